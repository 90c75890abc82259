#include "tools/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "analyzers/base/unique_fd.h"
#include "analyzers/base/units.h"
#include "analyzers/capture/writer.h"
#include "probes/host/ethtool.h"
#include "probes/host/facts.h"
#include "probes/host/interface.h"
#include "probes/host/irqs.h"
#include "probes/host/link_monitor.h"
#include "probes/tracer.h"
#include "probes/window_builder.h"
#include "tools/child_process.h"

namespace ringside {

namespace {

std::uint64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
           static_cast<std::uint64_t>(now.tv_nsec);
}

// Signals as readable events, for as long as the object lives.
class SignalSource {
  public:
    SignalSource() {
        sigset_t set;
        ::sigemptyset(&set);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
            ::sigaddset(&set, number);
        }
        ::sigprocmask(SIG_BLOCK, &set, &before_);
        fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    }
    ~SignalSource() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
    SignalSource(const SignalSource&) = delete;
    SignalSource& operator=(const SignalSource&) = delete;

    [[nodiscard]] int fd() const { return fd_.get(); }
    // The number of a signal that asks to end; 0: none came (SIGCHLD only wakes the loop).
    int take() {
        int asked = 0;
        signalfd_siginfo info{};
        while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
            if (info.ssi_signo != SIGCHLD) {
                asked = static_cast<int>(info.ssi_signo);
            }
        }
        return asked;
    }

  private:
    UniqueFd fd_;
    sigset_t before_{};
};

class WindowTimer {
  public:
    explicit WindowTimer(std::uint64_t window_ns)
        : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
        const timespec step{.tv_sec = static_cast<time_t>(window_ns / kNsPerSecond),
                            .tv_nsec = static_cast<long>(window_ns % kNsPerSecond)};
        const itimerspec spec{.it_interval = step, .it_value = step};
        ::timerfd_settime(fd_.get(), 0, &spec, nullptr);
    }
    [[nodiscard]] int fd() const { return fd_.get(); }
    // Windows that have ended since the last call; more than 1 when we were late.
    std::uint64_t take() {
        std::uint64_t expired = 0;
        return ::read(fd_.get(), &expired, sizeof expired) == sizeof expired ? expired : 0;
    }

  private:
    UniqueFd fd_;
};

std::string signal_name(int number) {
    const char* name = ::sigabbrev_np(number);
    return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

std::vector<std::string> hook_lines(const std::vector<Hook>& hooks) {
    std::vector<std::string> lines;
    for (const Hook& hook : hooks) {
        lines.push_back(hook.name + ": " +
                        (hook.why.empty() ? hook.how : "not attached, " + hook.why));
    }
    return lines;
}

unsigned queues_to_watch(const Interface& interface) {
    // All that are allocated, so that `ethtool -L` during the run is followed.
    return std::max({interface.num_tx_queues, interface.real_tx_queues, 1U});
}

// What `ethtool -G` could set during the run; 0: the driver does not say.
unsigned ring_size_max(const std::string& name) {
    const Result<Ethtool> ethtool = Ethtool::open(name);
    if (!ethtool) {
        return 0;
    }
    const auto ring = ethtool->rings();
    return ring ? ring->tx_max : 0;
}

class Recorder {
  public:
    Recorder(const RecordOptions& options, RecordObserver& observer)
        : options_(options), observer_(observer) {}

    Result<Recording> run();

  private:
    Status open();
    Status begin();
    Status loop();
    Status end_window();
    Status handle_links();
    Status handle_link(const LinkEvent& event);
    Status note(EventKind kind, std::string text = {});
    Status write(Status status);
    void count_kernel(Window& window);
    void watch_irqs();
    bool check_end();
    Result<Recording> finish();

    const RecordOptions& options_;
    RecordObserver& observer_;
    SignalSource signals_;
    Interface interface_;
    bool present_ = true;  // the device exists
    std::optional<LinkMonitor> monitor_;
    std::optional<LinkQuery> query_;
    std::optional<LinkCounters> counters_;
    std::optional<CaptureWriter> writer_;
    std::optional<Tracer> tracer_;
    std::optional<ChildProcess> child_;
    std::optional<ChildExit> child_exit_;
    WindowBuilder builder_;
    std::uint64_t last_look_ns_ = 0;
    bool wrote_window_ = false;
    std::string reason_;  // why the recording ends; empty while it goes on
};

Status Recorder::open() {
    Result<Interface> found = find_interface(options_.interface);
    if (!found) {
        return fail(found.error());
    }
    interface_ = std::move(*found);
    if (Status ok = check_traceable(interface_); !ok) {
        return ok;
    }
    if (!Tracer::built_in()) {
        return fail(Tracer::start({}).error());
    }
    // The output first: a wrong folder must not cost a started benchmark.
    Result<CaptureWriter> writer = options_.append ? CaptureWriter::append(options_.output)
                                                   : CaptureWriter::create(options_.output);
    if (!writer) {
        return fail(writer.error());
    }
    writer_.emplace(std::move(*writer));

    Result<LinkMonitor> monitor = LinkMonitor::open({.watch_ifindex = interface_.ifindex});
    if (!monitor) {
        return fail(std::move(monitor).error().context("watching the interface"));
    }
    monitor_.emplace(std::move(*monitor));
    Result<LinkQuery> query = LinkQuery::open();
    if (!query) {
        return fail(std::move(query).error().context("reading the interface's counters"));
    }
    query_.emplace(std::move(*query));
    return {};
}

Status Recorder::begin() {
    RunInfo info;
    info.tool_version = RINGSIDE_VERSION;
    info.interface = interface_.name;
    info.command = options_.command;
    info.window_ns = options_.window_ns;
    info.num_queues = std::max(1U, interface_.real_tx_queues);
    info.facts = collect_facts(interface_, Sysroot());

    Result<Tracer> tracer = Tracer::start({.ifindex = interface_.ifindex,
                                           .netns_inum = interface_.netns_inum,
                                           .num_queues = queues_to_watch(interface_),
                                           .driver = interface_.driver,
                                           .ring_size_max = ring_size_max(interface_.name),
                                           .tier = options_.tier});
    if (!tracer) {
        return fail(std::move(tracer).error().context("tracing " + interface_.name));
    }
    tracer_.emplace(std::move(*tracer));
    watch_irqs();
    if (const Result<LinkCounters> now = query_->counters(interface_.ifindex)) {
        counters_ = *now;
    }
    info.tier = tracer_->tier();
    info.tier_why = tracer_->tier_why();
    info.hooks = hook_lines(tracer_->hooks());
    info.start_boottime_ns = tracer_->start_ns();
    info.start_unix_ns = static_cast<std::int64_t>(
        clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_BOOTTIME) - tracer_->start_ns()));
    if (Status ok = writer_->begin_run(info); !ok) {
        return ok;
    }
    if (!options_.command.empty()) {
        Result<ChildProcess> child =
            ChildProcess::start(options_.command, options_.command_stdout_to_stderr);
        if (!child) {
            return fail(child.error());
        }
        child_.emplace(std::move(*child));
    }
    observer_.on_start(info);
    return {};
}

Status Recorder::note(EventKind kind, std::string text) {
    const Event event{.time_ns = clock_ns(CLOCK_BOOTTIME), .kind = kind, .text = std::move(text)};
    observer_.on_event(event);
    return writer_->add(event);
}

// Not being able to is not an error: an interrupt that is not watched is not seen, as on a device
// that has none.
void Recorder::watch_irqs() {
    std::vector<unsigned> numbers;
    const Sysroot root;
    if (const Result<Interrupts> interrupts = read_interrupts(root)) {
        for (const IrqLine& line : interface_irqs(*interrupts, interface_.name, root)) {
            if (line.number) {
                numbers.push_back(*line.number);
            }
        }
    }
    tracer_->watch_irqs(numbers);
}

void Recorder::count_kernel(Window& window) {
    if (!present_) {
        return;
    }
    const Result<LinkCounters> now = query_->counters(interface_.ifindex);
    if (!now) {
        return;
    }
    // Some drivers start counting anew when they are reopened.
    if (counters_ && now->tx_packets >= counters_->tx_packets &&
        now->tx_bytes >= counters_->tx_bytes) {
        window.kernel_counters = true;
        window.kernel_tx_packets = now->tx_packets - counters_->tx_packets;
        window.kernel_tx_bytes = now->tx_bytes - counters_->tx_bytes;
        window.kernel_tx_dropped = now->tx_dropped - counters_->tx_dropped;
        window.kernel_tx_errors = now->tx_errors - counters_->tx_errors;
    }
    counters_ = *now;
}

Status Recorder::end_window() {
    // Once a second the whole flight table is read through, so that the age of the oldest packet
    // and the number that waits are known from a second source.
    const bool look = clock_ns(CLOCK_BOOTTIME) - last_look_ns_ >= kNsPerSecond;
    const RawWindow raw = tracer_->end_window(look);
    if (look) {
        last_look_ns_ = raw.end_ns;
    }
    Window window = builder_.build(raw);
    count_kernel(window);
    if (Status ok = writer_->add(window); !ok) {
        return ok;
    }
    wrote_window_ = true;
    observer_.on_window(window);
    return {};
}

Status Recorder::handle_link(const LinkEvent& event) {
    if (present_ && event.ifindex == interface_.ifindex) {
        switch (event.kind) {
            case LinkEventKind::kRenamed:
                interface_.name = event.name;
                return note(EventKind::kRenamed, event.name);
            case LinkEventKind::kCarrierUp:
                watch_irqs();  // opened again, it may have others
                return note(EventKind::kLinkUp);
            case LinkEventKind::kCarrierDown:
                return note(EventKind::kLinkDown);
            case LinkEventKind::kQueuesChanged:
                watch_irqs();
                return note(EventKind::kQueuesChanged, std::to_string(event.queues));
            case LinkEventKind::kGone:
                present_ = false;
                counters_.reset();
                tracer_->retarget(0);
                return note(EventKind::kDeviceGone);
            case LinkEventKind::kNew:
                return {};
        }
    }
    const bool same_name = event.name == interface_.name && (event.kind == LinkEventKind::kNew ||
                                                             event.kind == LinkEventKind::kRenamed);
    if (!present_ && same_name) {
        Result<Interface> found = find_interface(event.name);
        if (!found) {
            return {};  // gone again already; its own event follows
        }
        if (tracer_->tier() == "ring" && found->driver != interface_.driver) {
            // The programs that run know another driver's ring.
            return note(EventKind::kOther, event.name + " is back with another driver (" +
                                               found->driver + "): not followed any more");
        }
        interface_ = std::move(*found);
        present_ = true;
        if (const Result<LinkCounters> now = query_->counters(interface_.ifindex)) {
            counters_ = *now;
        }
        tracer_->retarget(interface_.ifindex);
        watch_irqs();
        monitor_->watch(interface_.ifindex);
        return note(EventKind::kDeviceBack, interface_.name);
    }
    return {};
}

Status Recorder::handle_links() {
    const Result<std::vector<LinkEvent>> events = monitor_->read_events();
    if (!events) {
        return fail(events.error());
    }
    for (const LinkEvent& event : *events) {
        if (Status ok = handle_link(event); !ok) {
            return ok;
        }
    }
    return {};
}

// Whether the recording is to end after the current window.
bool Recorder::check_end() {
    if (const int asked = signals_.take(); asked != 0) {
        reason_ = signal_name(asked);
    }
    if (child_ && !child_exit_) {
        if (child_exit_ = child_->poll(); child_exit_) {
            reason_ = "command exited";
        }
    }
    return !reason_.empty();
}

Status Recorder::loop() {
    WindowTimer timer(options_.window_ns);
    const std::uint64_t begin_ns = tracer_->start_ns();
    for (;;) {
        std::array<pollfd, 3> ready{{{.fd = timer.fd(), .events = POLLIN, .revents = 0},
                                     {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                                     {.fd = monitor_->fd(), .events = POLLIN, .revents = 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) {
            return fail(Error::from_errno(errno, "cannot wait for events"));
        }
        const std::uint64_t expired = timer.take();
        check_end();
        if (expired > 0 || (ready[2].revents & POLLIN) != 0) {
            // Also without a message: the number of queues in use has none.
            if (Status ok = handle_links(); !ok) {
                return ok;
            }
        }
        if (expired > 1) {
            if (Status ok = note(EventKind::kLateWindow, fmt::format("{} windows in one", expired));
                !ok) {
                return ok;
            }
        }
        if (expired > 0) {
            if (Status ok = end_window(); !ok) {
                return ok;
            }
        }
        if (options_.duration_ns && reason_.empty() &&
            clock_ns(CLOCK_BOOTTIME) + options_.window_ns / 10 >=
                begin_ns + *options_.duration_ns) {
            reason_ = "duration";
        }
        if (reason_.empty()) {
            continue;
        }
        if (expired > 0) {
            return {};
        }
        // The last packets of a command are still on their way: its window is finished. A user who
        // asks to stop does not wait.
        if (!child_exit_) {
            return end_window();
        }
    }
}

Result<Recording> Recorder::finish() {
    Recording recording;
    if (child_) {
        if (!child_exit_) {
            // The terminal sends SIGINT to the command too: let it write its own summary first.
            child_exit_ = child_->wait(reason_ == "SIGINT" ? 2000 : 0);
        }
        if (!child_exit_) {
            child_exit_ = child_->terminate();
        }
        recording.command_text = options_.command[0] + " " + child_exit_->text();
        recording.end.command_ran = true;
        recording.end.command_exit = child_exit_->code;
        recording.end.command_signal = child_exit_->signal;
        if (Status ok = note(EventKind::kCommandExited, child_exit_->text()); !ok) {
            return fail(ok.error());
        }
    }
    const TracerEnd end = tracer_->finish();
    recording.start_ns = tracer_->start_ns();
    recording.end.end_ns = clock_ns(CLOCK_BOOTTIME);
    recording.end.reason = reason_;
    recording.end.program_misses = end.program_misses;
    recording.end.queue_beyond = end.queue_beyond;
    recording.end.napi_beyond = end.napi_beyond;
    recording.end.lost_pairs = end.lost_pairs;
    recording.end.ring_odd = end.ring_odd;
    recording.end.recorder_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (Status ok = writer_->end_run(recording.end); !ok) {
        return fail(ok.error());
    }
    recording.path = options_.output;
    if (Status ok = writer_->close(); !ok) {
        return fail(ok.error());
    }
    recording.file_bytes = writer_->bytes_written();
    return recording;
}

Result<Recording> Recorder::run() {
    Status ok = open();
    if (ok) {
        ok = begin();
    }
    if (!ok) {
        return fail(ok.error());
    }
    ok = loop();
    Result<Recording> recording = ok ? finish() : Result<Recording>(fail(ok.error()));
    if (!recording && wrote_window_) {
        const std::filesystem::path part = writer_->abandon();
        return fail(std::move(recording).error().hint("what was recorded until then is in " +
                                                      part.string()));
    }
    return recording;
}

}  // namespace

Result<Recording> record(const RecordOptions& options, RecordObserver& observer) {
    return Recorder(options, observer).run();
}

}  // namespace ringside
