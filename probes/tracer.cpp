#include "probes/tracer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <span>

#include "analyzers/histogram.h"
#include "probes/bpf_object.h"
#include "probes/cells.h"
#include "probes/drivers.h"
#include "probes/hooks.h"
#include "probes/libbpf_log.h"

namespace ringside {

// The layouts of events.h as both sides see them; a change here is a change of the kernel border.
static_assert(sizeof(rs_flight_bucket) == 64, "one cache line");
static_assert(sizeof(rs_control) == 24);
static_assert(sizeof(rs_flow) == 32);
static_assert(sizeof(rs_level) == 16);
static_assert(sizeof(rs_xmit_cell) == 256);
static_assert(offsetof(rs_xmit_cell, max_in_flight) == 160);
static_assert(sizeof(rs_done_cell) == 3392);
static_assert(offsetof(rs_done_cell, latency) == 144);
static_assert(sizeof(rs_stop) == 48);
static_assert(sizeof(rs_queue) == 256);
static_assert(offsetof(rs_queue, finished) == 64);
static_assert(offsetof(rs_queue, stop) == 128);
static_assert(sizeof(rs_fifo_entry) == 32);
static_assert(sizeof(rs_ring) == 192);
static_assert(offsetof(rs_ring, tail) == 64);
static_assert(sizeof(rs_layout) == 16);
static_assert(sizeof(rs_napi_cell) == 6528);
static_assert(sizeof(rs_napi) == 24);
static_assert(sizeof(rs_cpu) == 64);
static_assert(sizeof(rs_stash) == 64);
static_assert(RS_HIST_BUCKETS == kHistogramBuckets);
static_assert(RS_HIST_MIN_SHIFT == kHistogramMinShift && RS_HIST_SUB_BITS == kHistogramSubBits);

namespace {

std::uint64_t boottime_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec);
}

Status check_kernel() {
    if (::access("/sys/kernel/btf/vmlinux", F_OK) != 0) {
        return fail(Error(ErrorCode::kUnsupported,
                          "this kernel has no BTF (/sys/kernel/btf/vmlinux is missing)")
                        .hint("live tracing needs a kernel built with CONFIG_DEBUG_INFO_BTF=y"));
    }
    return {};
}

// ---- reading
// ---------------------------------------------------------------------------------------

// State that the kernel writes meanwhile: two equal reads in a row, so that no update lies between
// its fields.
template <class State>
State read_steady(const State& live) {
    State first = live;
    for (int tries = 0; tries < 16; ++tries) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const State second = live;
        if (std::memcmp(&first, &second, sizeof first) == 0) {
            break;
        }
        first = second;
    }
    return first;
}

// A compiled object and its name.
struct Programs {
    const char* name;
    std::span<const std::byte> elf;
};

}  // namespace

struct Tracer::Impl {
    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() { detach(); }

    std::string tier;
    std::string tier_why;
    std::optional<BpfObject> object;
    std::vector<bpf_link*> links;
    std::vector<Hook> hooks;
    unsigned num_queues = 0;
    unsigned num_cpus = 0;
    unsigned fifo_size = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t window_start_ns = 0;

    // Shared with the programs.
    rs_control* control = nullptr;
    rs_trouble* trouble = nullptr;
    std::span<rs_queue> queues;
    std::span<rs_napi> napi_keys;
    std::span<rs_flight_bucket> flight;  // skb tier
    std::span<rs_ring> rings;            // ring tier
    std::span<rs_cpu> cpus;
    std::span<__u64> watched_irqs;
    std::uint64_t irqs_before = 0;
    MappedCells cpu_memory;
    MappedCells irq_memory;
    MappedCells xmit_memory;
    MappedCells done_memory;
    MappedCells fifo_memory;
    CellReader<rs_xmit_cell> xmit;
    CellReader<rs_done_cell> done;
    CellReader<rs_napi_cell> napi;

    Status load(const TracerOptions& options, const Programs& programs,
                const std::vector<Hook>* wanted = nullptr);
    Status load_without_refused(const TracerOptions& options, const Programs& programs);
    static Result<std::vector<Hook>> try_each(const Programs& programs);
    Status load_ring_tier(const TracerOptions& options);
    Status load_best(const TracerOptions& options);
    Status attach();
    Status map();
    void detach();
    void read_queues(unsigned slot, RawWindow& window);
    void read_napis(unsigned slot, RawWindow& window);
    [[nodiscard]] std::uint64_t count_irqs() const;
    struct TableRow {
        std::uint64_t packets = 0;
        std::uint64_t oldest_ns = 0;
    };
    using Table = std::array<TableRow, RS_MAX_QUEUES>;
    [[nodiscard]] Table read_flight() const;
    [[nodiscard]] std::uint64_t oldest_in_ring(unsigned queue) const;
    void look_at_flight(RawWindow& window, bool all);
    [[nodiscard]] std::uint64_t count_lost_pairs() const;
    void empty_rings(std::uint64_t now_ns);
};

bool Tracer::built_in() {
    return true;
}

Tracer::Tracer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

const std::string& Tracer::tier() const {
    return impl_->tier;
}
const std::string& Tracer::tier_why() const {
    return impl_->tier_why;
}
const std::vector<Hook>& Tracer::hooks() const {
    return impl_->hooks;
}
std::uint64_t Tracer::start_ns() const {
    return impl_->start_ns;
}

// With the hooks that are wanted, or all.
Status Tracer::Impl::load(const TracerOptions& options, const Programs& programs,
                          const std::vector<Hook>* wanted) {
    Result<BpfObject> opened = BpfObject::open(programs.name, programs.elf);
    if (!opened) {
        return fail(opened.error());
    }
    object.emplace(std::move(*opened));
    hooks = wanted != nullptr ? *wanted : hooks_of(*object);
    num_queues = std::clamp(options.num_queues, 1U, static_cast<unsigned>(RS_MAX_QUEUES));
    num_cpus = static_cast<unsigned>(std::max(1, libbpf_num_possible_cpus()));
    // As many places as `ethtool -G` could ever give the ring.
    fifo_size = std::bit_ceil(std::clamp(options.ring_size_max, 1024U, unsigned{RS_FIFO_MAX}));
    object->set_constant("rs_num_queues", num_queues);
    object->set_constant("rs_num_cpus", num_cpus);
    object->set_constant("rs_fifo_size", fifo_size);
    const std::size_t cells = std::size_t{RS_SLOTS} * num_queues * num_cpus;
    object->set_map_entries("xmit_cells", cells);
    object->set_map_entries("done_cells", cells);
    object->set_map_entries("stashes", num_cpus);
    object->set_map_entries("cpus", num_cpus);
    object->set_map_entries("fifos", std::size_t{num_queues} * fifo_size);
    for (const Hook& hook : hooks) {
        object->set_autoload(program_of(hook), hook.wanted());
    }
    return object->load();
}

Status Tracer::Impl::attach() {
    for (Hook& hook : hooks) {
        if (!hook.wanted()) {
            continue;
        }
        bpf_link* link = bpf_program__attach(object->program(program_of(hook)));
        if (link != nullptr) {
            links.push_back(link);
            continue;
        }
        const Error error = refused(errno, "cannot attach to the tracepoint " + hook.name);
        if (hook.required) {
            return fail(error);
        }
        mark_absent(hook, error.message());
    }
    return {};
}

void Tracer::Impl::detach() {
    for (bpf_link* link : links) {
        bpf_link__destroy(link);
    }
    links.clear();
}

Status Tracer::Impl::map() {
    const std::size_t cells = std::size_t{RS_SLOTS} * num_queues * num_cpus;
    const auto take = [this](const char* name, std::size_t bytes, MappedCells& memory) -> Status {
        Result<MappedCells> mapped = object->map_memory(name, bytes);
        if (!mapped) {
            return fail(mapped.error());
        }
        memory = std::move(*mapped);
        return {};
    };
    if (Status ok = take("xmit_cells", cells * sizeof(rs_xmit_cell), xmit_memory); !ok) {
        return ok;
    }
    if (Status ok = take("done_cells", cells * sizeof(rs_done_cell), done_memory); !ok) {
        return ok;
    }
    if (Status ok = take("cpus", num_cpus * sizeof(rs_cpu), cpu_memory); !ok) {
        return ok;
    }
    cpus = cpu_memory.as<rs_cpu>(num_cpus);
    if (Status ok = take("watched_irqs", RS_MAX_IRQ * sizeof(__u64), irq_memory); !ok) {
        return ok;
    }
    watched_irqs = irq_memory.as<__u64>(RS_MAX_IRQ);
    xmit = CellReader(xmit_memory.as<rs_xmit_cell>(cells));
    done = CellReader(done_memory.as<rs_done_cell>(cells));
    using NapiCells = rs_napi_cell[RS_SLOTS * RS_MAX_NAPI];
    using Queues = rs_queue[RS_MAX_QUEUES];
    using Napis = rs_napi[RS_MAX_NAPI];
    auto* napi_cells = object->variable<NapiCells>("napi_cells");
    auto* all_queues = object->variable<Queues>("queues");
    auto* all_napis = object->variable<Napis>("napis");
    control = object->variable<rs_control>("control");
    trouble = object->variable<rs_trouble>("trouble");
    if (napi_cells == nullptr || all_queues == nullptr || all_napis == nullptr ||
        control == nullptr || trouble == nullptr) {
        return fail(Error(ErrorCode::kUnsupported, "the BPF object lacks a variable"));
    }
    napi = CellReader(std::span<rs_napi_cell>(*napi_cells));
    queues = *all_queues;
    napi_keys = *all_napis;
    if (auto* table = object->variable<rs_flight_bucket[RS_FLIGHT_BUCKETS]>("flight")) {
        flight = *table;
    }
    if (auto* all_rings = object->variable<rs_ring[RS_MAX_QUEUES]>("rings")) {
        rings = *all_rings;
        return take("fifos", std::size_t{num_queues} * fifo_size * sizeof(rs_fifo_entry),
                    fifo_memory);
    }
    return {};
}

namespace {

Error no_ring(const std::string& driver, const std::string& why) {
    return Error(
        ErrorCode::kUnsupported,
        "no ring tier for " + (driver.empty() ? "a driver without a name" : driver) + ": " + why);
}

Programs skb_programs() {
    return {"txpath", skb_tier_elf()};
}

// Asks a small program what relocation has found.
Result<RingLayout> read_layout(const DriverRow& row) {
    const LibbpfLog log;
    Result<BpfObject> object = BpfObject::open(row.object, row.elf());
    if (!object) {
        return fail(object.error());
    }
    for (const Hook& hook : hooks_of(*object)) {
        object->set_autoload(program_of(hook), false);
    }
    if (Status ok = object->load(); !ok) {
        return fail(ok.error());
    }
    LIBBPF_OPTS(bpf_test_run_opts, options);
    const auto* layout = object->variable<rs_layout>("layout");
    if (layout == nullptr ||
        bpf_prog_test_run_opts(bpf_program__fd(object->program("on_layout")), &options) != 0) {
        return fail(Error::from_errno(errno, "cannot ask the kernel for its layout"));
    }
    if (layout->found == 0) {
        return fail(Error(ErrorCode::kUnsupported,
                          "this kernel's BTF has no layout of the driver that is known here (a "
                          "module without BTF, or another version)"));
    }
    return RingLayout{layout->head_offset, layout->tail_offset, layout->stride};
}

}  // namespace

Result<RingLayout> Tracer::try_ring(const std::string& driver) {
    if (Status ok = check_kernel(); !ok) {
        return fail(ok.error());
    }
    const DriverRow* row = find_driver(driver);
    if (row == nullptr) {
        return fail(no_ring(driver, "its ring is not known here"));
    }
    const Result<RingLayout> layout = read_layout(*row);
    if (!layout) {
        return fail(no_ring(driver, layout.error().message()));
    }
    const LibbpfLog log;
    Impl impl;
    if (Status ok = impl.load_without_refused({}, {row->object, row->elf()}); !ok) {
        return fail(no_ring(driver, ok.error().message()));
    }
    return layout;
}

Result<std::vector<Hook>> Tracer::Impl::try_each(const Programs& programs) {
    const LibbpfLog log;
    const Result<BpfObject> opened = BpfObject::open(programs.name, programs.elf);
    if (!opened) {
        return fail(opened.error());
    }
    std::vector<Hook> result = hooks_of(*opened);
    std::vector<Hook> none = result;
    for (Hook& hook : none) {
        hook.required = false;
        mark_absent(hook, "another one is tried");
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::vector<Hook> one = none;
        one[i] = result[i];
        Impl impl;
        Status ok = impl.load({}, programs, &one);
        if (ok) {
            impl.hooks[i].required = true;
            ok = impl.attach();
        }
        if (!ok) {
            mark_absent(result[i], ok.error().message());
        }
    }
    return result;
}

Result<std::vector<Hook>> Tracer::try_hooks(const std::string& driver) {
    if (Status ok = check_kernel(); !ok) {
        return fail(ok.error());
    }
    if (driver.empty()) {
        return Impl::try_each(skb_programs());
    }
    const DriverRow* row = find_driver(driver);
    if (row == nullptr) {
        return fail(no_ring(driver, "its ring is not known here"));
    }
    return Impl::try_each({row->object, row->elf()});
}

// One hook that this kernel does not know fails the whole load: then each is tried by itself, and
// those that are refused are left out if they may be.
Status Tracer::Impl::load_without_refused(const TracerOptions& options, const Programs& programs) {
    Status ok = load(options, programs);
    if (ok || ok.error().code() == ErrorCode::kNoRights) {
        return ok;
    }
    Result<std::vector<Hook>> tried = try_each(programs);
    if (!tried) {
        return fail(tried.error());
    }
    for (const Hook& hook : *tried) {
        if (hook.required && !hook.wanted()) {
            return fail(Error(ErrorCode::kUnsupported, "tracepoint " + hook.name + ": " + hook.why)
                            .hint("see what this kernel allows with: ringside doctor"));
        }
    }
    return load(options, programs, &*tried);
}

Status Tracer::Impl::load_ring_tier(const TracerOptions& options) {
    const DriverRow* row = find_driver(options.driver);
    if (row == nullptr) {
        return fail(no_ring(options.driver, "its ring is not known here"));
    }
    // The verifier's words about a field that does not exist help nobody: ask for the layout first.
    if (const Result<RingLayout> layout = read_layout(*row); !layout) {
        return layout.error().code() == ErrorCode::kNoRights
                   ? fail(layout.error())
                   : fail(no_ring(options.driver, layout.error().message()));
    }
    Status ok = load_without_refused(options, {row->object, row->elf()});
    if (ok || ok.error().code() == ErrorCode::kNoRights) {
        return ok;
    }
    return fail(no_ring(options.driver, ok.error().message()));
}

Status Tracer::Impl::load_best(const TracerOptions& options) {
    tier = "ring";
    tier_why = "the ring of " + options.driver + " can be read";
    if (options.tier != TierChoice::kSkb) {
        Status ok = load_ring_tier(options);
        if (ok || options.tier == TierChoice::kRing || ok.error().code() == ErrorCode::kNoRights) {
            return ok;
        }
        tier_why = ok.error().message();
    } else {
        tier_why = "asked for";
    }
    tier = "skb";
    object.reset();
    return load_without_refused(options, skb_programs());
}

Result<Tracer> Tracer::start(const TracerOptions& options) {
    if (Status ok = check_kernel(); !ok) {
        return fail(ok.error());
    }
    const LibbpfLog log;
    auto impl = std::make_unique<Impl>();
    Status ok = impl->load_best(options);
    if (!ok) {
        return fail(ok.error());
    }
    if (ok = impl->map(); !ok) {
        return fail(ok.error());
    }
    impl->control->netns_inum = options.netns_inum;
    if (ok = impl->attach(); !ok) {
        return fail(ok.error());
    }
    // Only now: a packet that is sent while some hooks are attached and others not would be seen to
    // start and never to end.
    impl->control->ifindex = options.ifindex;
    impl->start_ns = boottime_ns();
    impl->window_start_ns = impl->start_ns;
    return Tracer(std::move(impl));
}

// The rings of a device that is gone: what was in them will never complete.
void Tracer::Impl::empty_rings(std::uint64_t now_ns) {
    for (unsigned q = 0; q < rings.size(); ++q) {
        rs_ring& ring = rings[q];
        if (ring.ready == 0) {
            continue;
        }
        const auto entries = fifo_memory.as<rs_fifo_entry>(std::size_t{num_queues} * fifo_size);
        for (; ring.fifo_out != ring.fifo_in; ++ring.fifo_out) {
            const rs_fifo_entry& entry =
                entries[std::size_t{q} * fifo_size + (ring.fifo_out & (fifo_size - 1))];
            ring.lost.packets += 1;
            ring.lost.packets_t += now_ns;
            ring.lost.bytes += entry.len;
            ring.lost.bytes_t += entry.len * now_ns;
            queues[q].finished += 1;
        }
        const __u32 left = ring.head - ring.tail;
        ring.lost_descriptors.n += left;
        ring.lost_descriptors.n_t += left * now_ns;
        ring.tail = ring.head;
        ring.ready = 0;
    }
}

void Tracer::watch_irqs(std::span<const unsigned> irqs) {
    const std::span<__u64> watched = impl_->watched_irqs;
    for (std::size_t irq = 0; irq < watched.size(); ++irq) {
        watched[irq] = std::find(irqs.begin(), irqs.end(), irq) != irqs.end() ? 1 : 0;
    }
}

void Tracer::retarget(unsigned ifindex) {
    rs_control& control = *impl_->control;
    control.ifindex = 0;
    // The programs of the old device are through within microseconds.
    ::usleep(1000);
    const std::uint64_t now = boottime_ns();
    impl_->empty_rings(now);
    for (rs_queue& queue : impl_->queues) {
        queue.txq = 0;
        queue.bql_seen = 0;
        // What BQL had in flight went with the device.
        queue.bql_out = queue.bql_in;
        queue.bql_out_t = queue.bql_in_t;
        for (rs_stop& stop : queue.stop) {
            if (stop.begins != stop.ends) {
                stop.closed_ns = stop.base_ns + (now - stop.begin_ns);
                stop.ends = stop.begins;
            }
        }
    }
    for (rs_napi& napi : impl_->napi_keys) {
        napi = {};
    }
    control.device = 0;
    control.ifindex = ifindex;
}

void Tracer::Impl::read_queues(unsigned slot, RawWindow& window) {
    for (unsigned q = 0; q < num_queues; ++q) {
        const rs_queue& live = queues[q];
        if (live.started == 0 && live.txq == 0) {
            continue;
        }
        RawQueue queue;
        queue.queue = q;
        for (unsigned cpu = 0; cpu < num_cpus; ++cpu) {
            const std::size_t index = (std::size_t{slot} * num_queues + q) * num_cpus + cpu;
            xmit.read(index, queue.xmit);
            done.read(index, queue.done);
        }
        queue.state = read_steady(live);
        if (!rings.empty()) {
            queue.has_ring = true;
            queue.ring = read_steady(rings[q]);
        }
        window.queues.push_back(queue);
    }
}

void Tracer::Impl::read_napis(unsigned slot, RawWindow& window) {
    for (unsigned i = 0; i < napi_keys.size() && napi_keys[i].key != 0; ++i) {
        RawNapi raw;
        raw.instance = i;
        napi.read(std::size_t{slot} * RS_MAX_NAPI + i, raw.cell);
        window.napis.push_back(raw);
    }
}

std::uint64_t Tracer::Impl::count_irqs() const {
    std::uint64_t sum = 0;
    for (const rs_cpu& cpu : cpus) {
        sum += cpu.irqs;
    }
    return sum;
}

// Packets of each queue in the flight table, and the start of the oldest.
Tracer::Impl::Table Tracer::Impl::read_flight() const {
    Table table{};
    for (const rs_flight_bucket& bucket : flight) {
        for (unsigned way = 0; way < RS_FLIGHT_WAYS; ++way) {
            if (bucket.key[way] == 0) {
                continue;
            }
            TableRow& row = table[(bucket.info[way] >> RS_INFO_LEN_BITS) % RS_MAX_QUEUES];
            row.packets += 1;
            if (row.oldest_ns == 0 || bucket.start_ns[way] < row.oldest_ns) {
                row.oldest_ns = bucket.start_ns[way];
            }
        }
    }
    return table;
}

void Tracer::Impl::look_at_flight(RawWindow& window, bool all) {
    const auto wanted = [all](const RawQueue& queue) {
        return all ||
               (queue.state.started != queue.state.finished && queue.done.completed.packets == 0);
    };
    if (std::none_of(window.queues.begin(), window.queues.end(), wanted)) {
        return;
    }
    const Table table = read_flight();
    for (RawQueue& queue : window.queues) {
        if (wanted(queue)) {
            queue.oldest_ns =
                rings.empty() ? table[queue.queue].oldest_ns : oldest_in_ring(queue.queue);
        }
    }
}

// Start of the packet at the front; 0 when nothing is in flight.
std::uint64_t Tracer::Impl::oldest_in_ring(unsigned queue) const {
    const rs_ring& ring = rings[queue];
    if (ring.fifo_in == ring.fifo_out) {
        return 0;
    }
    const auto entries = fifo_memory.as<rs_fifo_entry>(std::size_t{num_queues} * fifo_size);
    return entries[std::size_t{queue} * fifo_size + (ring.fifo_out & (fifo_size - 1))].start_ns;
}

// The counts of packets in flight against the table that holds them. Nothing is sent any more;
// packets may still leave, so the table is compared only when the counts stood still while it was
// read.
std::uint64_t Tracer::Impl::count_lost_pairs() const {
    if (flight.empty()) {
        return 0;  // a ring loses nothing unseen: see rs_ring.lost
    }
    const auto in_flight = [this] {
        std::uint64_t sum = 0;
        for (const rs_queue& queue : queues) {
            sum += queue.started - queue.finished;
        }
        return sum;
    };
    std::uint64_t lost = 0;
    constexpr int kTries = 20;
    for (int tries = 0; tries < kTries; ++tries) {
        const std::uint64_t before = in_flight();
        std::uint64_t held = 0;
        for (const TableRow& row : read_flight()) {
            held += row.packets;
        }
        lost = before > held ? before - held : 0;
        if (in_flight() == before) {
            break;
        }
    }
    return lost;
}

RawWindow Tracer::end_window(bool look) {
    rs_control& control = *impl_->control;
    const unsigned closed = control.slot;
    RawWindow window;
    window.start_ns = impl_->window_start_ns;
    std::atomic_ref<__u32>(control.slot).store(1 - closed, std::memory_order_seq_cst);
    window.end_ns = boottime_ns();
    impl_->window_start_ns = window.end_ns;
    // Programs that had read the old slot are through within microseconds; one that a busy host
    // holds back longer only moves its counts to a later window.
    ::usleep(1000);
    impl_->read_queues(closed, window);
    impl_->read_napis(closed, window);
    const std::uint64_t irqs = impl_->count_irqs();
    window.irqs = irqs - std::exchange(impl_->irqs_before, irqs);
    impl_->look_at_flight(window, look);
    return window;
}

TracerEnd Tracer::finish() {
    TracerEnd end;
    impl_->control->ifindex = 0;
    ::usleep(1000);
    end.lost_pairs = impl_->count_lost_pairs();
    for (const Hook& hook : impl_->hooks) {
        bpf_prog_info info{};
        __u32 size = sizeof info;
        const int fd = bpf_program__fd(impl_->object->program(program_of(hook)));
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
            end.program_misses.emplace_back(hook.name, info.recursion_misses);
        }
    }
    impl_->detach();
    end.queue_beyond = impl_->trouble->queue_beyond;
    end.napi_beyond = impl_->trouble->napi_beyond;
    end.ring_odd = impl_->trouble->ring_odd;
    return end;
}

}  // namespace ringside
