#include "probes/tracer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <span>

#include "analyzers/histogram.h"
#include "probes/cells.h"
#include "txpath.skel.h"

namespace ringside {

// The layouts of events.h as both sides see them; a change here is a change of the kernel border.
static_assert(sizeof(rs_flight_bucket) == 64, "one cache line");
static_assert(sizeof(rs_control) == 24);
static_assert(sizeof(rs_flow) == 32);
static_assert(sizeof(rs_xmit_cell) == 192);
static_assert(offsetof(rs_xmit_cell, max_in_flight) == 160);
static_assert(sizeof(rs_done_cell) == 3328);
static_assert(offsetof(rs_done_cell, latency) == 96);
static_assert(sizeof(rs_stop) == 48);
static_assert(sizeof(rs_queue) == 256);
static_assert(offsetof(rs_queue, finished) == 64);
static_assert(offsetof(rs_queue, stop) == 128);
static_assert(sizeof(rs_napi_cell) == 3264);
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

// ---- libbpf's own messages
// ------------------------------------------------------------------------

// The last warning of libbpf is the best reason there is for a refusal. libbpf has one print
// callback for the whole process, so this is one string for the whole process.
class LibbpfLog {
  public:
    LibbpfLog() {
        text().clear();
        libbpf_set_print(&LibbpfLog::print);
    }
    [[nodiscard]] static std::string last_reason() {
        // Verifier logs end in statistics; the line before is the verdict.
        std::string_view log = text();
        std::string best;
        while (!log.empty()) {
            const auto end = log.find('\n');
            const std::string_view line = log.substr(0, end);
            log = end == std::string_view::npos ? std::string_view{} : log.substr(end + 1);
            const bool noise = line.empty() || line.starts_with("processed ") ||
                               line.starts_with("-- ") ||
                               line.find("failed to load object") != std::string_view::npos ||
                               line.find("failed to load BPF skeleton") != std::string_view::npos ||
                               line.find("BPF program load failed") != std::string_view::npos;
            if (!noise) {
                best = line;
            }
        }
        constexpr std::string_view kPrefix = "libbpf: ";
        if (best.starts_with(kPrefix)) {
            best.erase(0, kPrefix.size());
        }
        return best;
    }

  private:
    static std::string& text() {
        static std::string log;
        return log;
    }
    static int print(libbpf_print_level level, const char* format, va_list args) noexcept {
        if (level != LIBBPF_WARN) {
            return 0;
        }
        std::array<char, 2048> line{};
        const int length = std::vsnprintf(line.data(), line.size(), format, args);
        if (text().size() < 64 * 1024) {
            text().append(line.data());
        }
        return length;
    }
};

Error refused(int error_number, const std::string& what) {
    const std::string reason = LibbpfLog::last_reason();
    Error error =
        Error::from_errno(error_number, reason.empty() ? what : what + " (" + reason + ")");
    if (error_number == EPERM || error_number == EACCES) {
        if (::geteuid() != 0) {
            return std::move(error).hint("run as root, for example with sudo");
        }
        return std::move(error).hint(
            "root alone is not enough here: a container without CAP_BPF and CAP_PERFMON, or kernel "
            "lockdown");
    }
    return std::move(error).hint("see what this kernel allows with: ringside doctor");
}

// ---- the hooks
// ------------------------------------------------------------------------------------

struct HookRow {
    const char* tracepoint;
    const char* how;
    const char* gives;
    bool required;
    bpf_program* (*program)(const txpath&);
};

constexpr std::array kHooks{
    HookRow{"net_dev_start_xmit", "tp_btf", "packets, bytes, segments per queue", true,
            [](const txpath& s) { return s.progs.on_net_dev_start_xmit; }},
    HookRow{"net_dev_xmit", "tp_btf", "requeues, BQL, queue stops", true,
            [](const txpath& s) { return s.progs.on_net_dev_xmit; }},
    HookRow{"consume_skb", "raw_tp", "completion latency, packets in flight", true,
            [](const txpath& s) { return s.progs.on_consume_skb; }},
    HookRow{"kfree_skb", "raw_tp", "drops after the driver was called", true,
            [](const txpath& s) { return s.progs.on_kfree_skb; }},
    HookRow{"napi_poll", "tp_btf", "polls, work, budget, gaps", false,
            [](const txpath& s) { return s.progs.on_napi_poll; }},
    HookRow{"softirq_raise", "tp_btf", "the moment a stopped queue is woken", false,
            [](const txpath& s) { return s.progs.on_softirq_raise; }},
    HookRow{"net_dev_xmit_timeout", "tp_btf", "TX watchdog", false,
            [](const txpath& s) { return s.progs.on_net_dev_xmit_timeout; }},
};

Hook hook_of(const HookRow& row) {
    return {.name = row.tracepoint,
            .how = row.how,
            .gives = row.gives,
            .why = {},
            .required = row.required};
}

void mark_absent(Hook& hook, std::string why) {
    hook.how = "-";
    hook.why = std::move(why);
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

Result<MappedCells> map_cells(const bpf_map* map, std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (at == MAP_FAILED) {
        return fail(Error::from_errno(errno, std::string("cannot map ") + bpf_map__name(map)));
    }
    return MappedCells(at, whole);
}

// A queue's shared state: two equal reads in a row, so that no update lies between its fields.
rs_queue read_queue(const rs_queue& live) {
    rs_queue first = live;
    for (int tries = 0; tries < 16; ++tries) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const rs_queue second = live;
        if (std::memcmp(&first, &second, sizeof first) == 0) {
            break;
        }
        first = second;
    }
    return first;
}

}  // namespace

struct Tracer::Impl {
    ~Impl() {
        for (bpf_link* link : links) {
            bpf_link__destroy(link);
        }
        txpath::destroy(skeleton);
    }

    txpath* skeleton = nullptr;
    std::vector<bpf_link*> links;
    std::vector<Hook> hooks;
    unsigned num_queues = 0;
    unsigned num_cpus = 0;
    std::uint64_t start_ns = 0;
    std::uint64_t window_start_ns = 0;
    MappedCells xmit_memory;
    MappedCells done_memory;
    CellReader<rs_xmit_cell> xmit;
    CellReader<rs_done_cell> done;
    CellReader<rs_napi_cell> napi;

    Status load(const TracerOptions& options, const std::vector<Hook>& wanted);
    Status attach();
    Status map();
    void read_queues(unsigned slot, RawWindow& window);
    void read_napis(unsigned slot, RawWindow& window);
    struct TableRow {
        std::uint64_t packets = 0;
        std::uint64_t oldest_ns = 0;
    };
    using Table = std::array<TableRow, RS_MAX_QUEUES>;
    [[nodiscard]] Table read_flight() const;
    void look_at_flight(RawWindow& window, bool all);
    [[nodiscard]] std::uint64_t count_lost_pairs() const;
};

bool Tracer::built_in() {
    return true;
}

Tracer::Tracer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

const std::vector<Hook>& Tracer::hooks() const {
    return impl_->hooks;
}
std::uint64_t Tracer::start_ns() const {
    return impl_->start_ns;
}

Status Tracer::Impl::load(const TracerOptions& options, const std::vector<Hook>& wanted) {
    skeleton = txpath::open();
    if (skeleton == nullptr) {
        return fail(refused(errno, "cannot open the BPF programs"));
    }
    num_queues = std::clamp(options.num_queues, 1U, static_cast<unsigned>(RS_MAX_QUEUES));
    num_cpus = static_cast<unsigned>(std::max(1, libbpf_num_possible_cpus()));
    skeleton->rodata->rs_num_queues = num_queues;
    skeleton->rodata->rs_num_cpus = num_cpus;
    const unsigned cells = RS_SLOTS * num_queues * num_cpus;
    bpf_map__set_max_entries(skeleton->maps.xmit_cells, cells);
    bpf_map__set_max_entries(skeleton->maps.done_cells, cells);
    bpf_map__set_max_entries(skeleton->maps.stashes, num_cpus);
    for (std::size_t i = 0; i < kHooks.size(); ++i) {
        bpf_program__set_autoload(kHooks[i].program(*skeleton), wanted[i].how != "-");
    }
    if (const int error = txpath::load(skeleton); error != 0) {
        return fail(refused(-error, "the kernel refused the BPF programs"));
    }
    hooks = wanted;
    return {};
}

Status Tracer::Impl::attach() {
    for (std::size_t i = 0; i < kHooks.size(); ++i) {
        if (hooks[i].how == "-") {
            continue;
        }
        bpf_link* link = bpf_program__attach(kHooks[i].program(*skeleton));
        if (link != nullptr) {
            links.push_back(link);
            continue;
        }
        const Error error = refused(errno, "cannot attach to the tracepoint " + hooks[i].name);
        if (hooks[i].required) {
            return fail(error);
        }
        mark_absent(hooks[i], error.message());
    }
    return {};
}

Status Tracer::Impl::map() {
    const std::size_t cells = std::size_t{RS_SLOTS} * num_queues * num_cpus;
    Result<MappedCells> xmit_live =
        map_cells(skeleton->maps.xmit_cells, cells * sizeof(rs_xmit_cell));
    if (!xmit_live) {
        return fail(xmit_live.error());
    }
    Result<MappedCells> done_live =
        map_cells(skeleton->maps.done_cells, cells * sizeof(rs_done_cell));
    if (!done_live) {
        return fail(done_live.error());
    }
    xmit_memory = std::move(*xmit_live);
    done_memory = std::move(*done_live);
    xmit = CellReader(xmit_memory.as<rs_xmit_cell>(cells));
    done = CellReader(done_memory.as<rs_done_cell>(cells));
    napi = CellReader(std::span<rs_napi_cell>(skeleton->bss->napi_cells));
    return {};
}

namespace {

std::vector<Hook> all_hooks() {
    std::vector<Hook> hooks;
    for (const HookRow& row : kHooks) {
        hooks.push_back(hook_of(row));
    }
    return hooks;
}

}  // namespace

Result<std::vector<Hook>> Tracer::try_hooks() {
    if (Status ok = check_kernel(); !ok) {
        return fail(ok.error());
    }
    std::vector<Hook> result;
    for (std::size_t i = 0; i < kHooks.size(); ++i) {
        std::vector<Hook> one = all_hooks();
        for (std::size_t other = 0; other < one.size(); ++other) {
            if (other != i) {
                one[other].how = "-";
                one[other].required = false;
            }
        }
        const LibbpfLog log;
        Impl impl;
        Status ok = impl.load({}, one);
        if (ok) {
            impl.hooks[i].required = true;
            ok = impl.attach();
        }
        result.push_back(hook_of(kHooks[i]));
        if (!ok) {
            mark_absent(result.back(), ok.error().message());
        }
    }
    return result;
}

Result<Tracer> Tracer::start(const TracerOptions& options) {
    if (Status ok = check_kernel(); !ok) {
        return fail(ok.error());
    }
    const LibbpfLog log;
    auto impl = std::make_unique<Impl>();
    Status ok = impl->load(options, all_hooks());
    if (!ok && ok.error().code() != ErrorCode::kNoRights) {
        // One hook that this kernel does not know fails the whole load: find out which.
        Result<std::vector<Hook>> hooks = try_hooks();
        if (!hooks) {
            return fail(hooks.error());
        }
        for (const Hook& hook : *hooks) {
            if (hook.required && hook.how == "-") {
                return fail(
                    Error(ErrorCode::kUnsupported, "tracepoint " + hook.name + ": " + hook.why)
                        .hint("see what this kernel allows with: ringside doctor"));
            }
        }
        impl = std::make_unique<Impl>();
        ok = impl->load(options, *hooks);
    }
    if (!ok) {
        return fail(ok.error());
    }
    if (ok = impl->map(); !ok) {
        return fail(ok.error());
    }
    impl->skeleton->bss->control.netns_inum = options.netns_inum;
    if (ok = impl->attach(); !ok) {
        return fail(ok.error());
    }
    // Only now: a packet that is sent while some hooks are attached and others not would be seen to
    // start and never to end.
    impl->skeleton->bss->control.ifindex = options.ifindex;
    impl->start_ns = boottime_ns();
    impl->window_start_ns = impl->start_ns;
    return Tracer(std::move(impl));
}

void Tracer::retarget(unsigned ifindex) {
    auto& bss = *impl_->skeleton->bss;
    bss.control.ifindex = 0;
    // The programs of the old device are through within microseconds.
    ::usleep(1000);
    const std::uint64_t now = boottime_ns();
    for (rs_queue& queue : bss.queues) {
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
    for (rs_napi& napi : bss.napis) {
        napi.key = 0;
        napi.last_ns = 0;
    }
    bss.control.device = 0;
    bss.control.ifindex = ifindex;
}

void Tracer::Impl::read_queues(unsigned slot, RawWindow& window) {
    for (unsigned q = 0; q < num_queues; ++q) {
        const rs_queue& live = skeleton->bss->queues[q];
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
        queue.state = read_queue(live);
        window.queues.push_back(queue);
    }
}

void Tracer::Impl::read_napis(unsigned slot, RawWindow& window) {
    for (unsigned i = 0; i < RS_MAX_NAPI && skeleton->bss->napis[i].key != 0; ++i) {
        RawNapi raw;
        raw.instance = i;
        napi.read(std::size_t{slot} * RS_MAX_NAPI + i, raw.cell);
        window.napis.push_back(raw);
    }
}

// Packets of each queue in the flight table, and the start of the oldest.
Tracer::Impl::Table Tracer::Impl::read_flight() const {
    Table table{};
    for (const rs_flight_bucket& bucket : skeleton->bss->flight) {
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
            queue.oldest_ns = table[queue.queue].oldest_ns;
        }
    }
}

// The counts of packets in flight against the table that holds them. Nothing is sent any more;
// packets may still leave, so the table is compared only when the counts stood still while it was
// read.
std::uint64_t Tracer::Impl::count_lost_pairs() const {
    const auto in_flight = [this] {
        std::uint64_t sum = 0;
        for (const rs_queue& queue : skeleton->bss->queues) {
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
    rs_control& control = impl_->skeleton->bss->control;
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
    impl_->look_at_flight(window, look);
    return window;
}

TracerEnd Tracer::finish() {
    TracerEnd end;
    impl_->skeleton->bss->control.ifindex = 0;
    ::usleep(1000);
    end.lost_pairs = impl_->count_lost_pairs();
    for (const HookRow& row : kHooks) {
        bpf_prog_info info{};
        __u32 size = sizeof info;
        const int fd = bpf_program__fd(row.program(*impl_->skeleton));
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
            end.program_misses.emplace_back(row.tracepoint, info.recursion_misses);
        }
    }
    for (bpf_link* link : impl_->links) {
        bpf_link__destroy(link);
    }
    impl_->links.clear();
    end.queue_beyond = impl_->skeleton->bss->trouble.queue_beyond;
    end.napi_beyond = impl_->skeleton->bss->trouble.napi_beyond;
    return end;
}

}  // namespace ringside
