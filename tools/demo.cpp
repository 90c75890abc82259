// ringside demo: the whole path on one machine with no NIC. A TAP device whose hardware is this
// process gives real traffic, real tracepoints and a known answer to hold the figures against.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "analyzers/base/units.h"
#include "analyzers/capture/reader.h"
#include "analyzers/figures.h"
#include "tools/command.h"
#include "tools/demo_nic.h"
#include "tools/recorder.h"
#include "tools/render/analysis_text.h"

namespace ringside {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDevice = "demo0";
constexpr std::uint64_t kReaderDelayNs = 2 * kNsPerMs;
constexpr std::uint64_t kStallNs = kNsPerSecond;
constexpr int kSteadyPackets = 1009;  // primes: a figure that is off by a factor shows
constexpr int kStallPackets = 53;
constexpr unsigned kGapUs = 2000;

// The demo's claims, each with what the reader saw and what was traced.
struct Check {
    std::string what;
    std::string reader;
    std::string traced;
    bool agrees = false;
};

// Lets the traffic begin when everything is attached.
class StartSignal : public RecordObserver {
  public:
    void on_start(const RunInfo& /*info*/) override { attached_.set_value(); }
    void on_window(const Window& /*window*/) override {}
    void on_event(const Event& /*event*/) override {}
    std::future<void> attached() { return attached_.get_future(); }

  private:
    std::promise<void> attached_;
};

// A folder for the capture: the user's, or one of our own that is removed at the end.
class Workspace {
  public:
    static Result<Workspace> make(const std::string& wanted) {
        if (!wanted.empty()) {
            std::error_code error;
            fs::create_directories(wanted, error);
            if (error) {
                return fail(Error::from_errno(error.value(), "cannot create the folder " + wanted));
            }
            return Workspace(wanted, false);
        }
        std::string name = fs::temp_directory_path() / "ringside-demo-XXXXXX";
        if (::mkdtemp(name.data()) == nullptr) {
            return fail(Error::from_errno(
                errno, "cannot create a folder in " + fs::temp_directory_path().string()));
        }
        return Workspace(name, true);
    }
    Workspace(Workspace&& other) noexcept
        : path_(std::move(other.path_)), own_(std::exchange(other.own_, false)) {}
    Workspace& operator=(Workspace&&) = delete;
    ~Workspace() {
        if (own_) {
            std::error_code ignored;
            fs::remove_all(path_, ignored);
        }
    }
    [[nodiscard]] fs::path capture() const { return path_ / "demo.rsc"; }
    [[nodiscard]] bool kept() const { return !own_; }

  private:
    Workspace(fs::path path, bool own) : path_(std::move(path)), own_(own) {}
    fs::path path_;
    bool own_;
};

// Steady traffic, then a second in which the hardware stands still with packets in its ring.
void drive(DemoNic& nic, std::future<void> attached) {
    try {
        attached.get();
    } catch (const std::future_error&) {
        return;  // the recording failed before it began
    }
    for (int i = 0; i < kSteadyPackets; ++i) {
        [[maybe_unused]] const Status sent = nic.send(1000);
        ::usleep(kGapUs);
    }
    ::usleep(100'000);
    nic.stall(true);
    for (int i = 0; i < kStallPackets; ++i) {
        [[maybe_unused]] const Status sent = nic.send(1000);
    }
    ::usleep(kStallNs / kNsPerUs);
    nic.stall(false);
    nic.stop_reader(2 * kNsPerSecond);
}

Result<Recording> record_demo(DemoNic& nic, const fs::path& output) {
    // Threads inherit the mask: signals must reach the recorder, which waits for them.
    sigset_t set;
    sigset_t before;
    ::sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        ::sigaddset(&set, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &set, &before);
    nic.start_reader(kReaderDelayNs);
    auto start = std::make_unique<StartSignal>();
    std::thread traffic(drive, std::ref(nic), start->attached());
    RecordOptions options;
    options.interface = nic.name();
    options.output = output;
    options.duration_ns = kSteadyPackets * (kGapUs + 300) * kNsPerUs + kStallNs + 1500 * kNsPerMs;
    Result<Recording> recording = record(options, *start);
    start.reset();
    traffic.join();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return recording;
}

// 10 % or 0.3 ms: between the sender's clock reading and the tracepoint lies a system call.
bool close_enough(double traced_ns, double truth_ns) {
    return std::abs(traced_ns - truth_ns) <= std::max(0.1 * truth_ns, 0.3 * kNsPerMs);
}

std::vector<Check> check(const DemoNic& nic, const Analysis& analysis) {
    const std::vector<FrameTimes> frames = nic.frames();
    double sum_ns = 0;
    for (const FrameTimes& frame : frames) {
        sum_ns += static_cast<double>(frame.read_ns - frame.sent_ns);
    }
    const double mean_ns = frames.empty() ? 0 : sum_ns / static_cast<double>(frames.size());
    const TrafficFigures& port = analysis.port;
    const double traced_ns = port.latency ? port.latency->mean_ns : 0;
    double stalled_ns = 0;
    for (const Stall& stall : analysis.stalls) {
        stalled_ns += static_cast<double>(stall.duration_ns);
    }
    return {
        {"packets sent", format_count(nic.sent()), format_count(port.packets),
         port.packets == nic.sent()},
        {"packets completed", format_count(frames.size()), format_count(port.completed),
         port.completed == frames.size()},
        {"mean latency", format_ns(mean_ns), format_ns(traced_ns),
         close_enough(traced_ns, mean_ns)},
        {"stalls", fmt::format("1 of {}", format_ns(kStallNs)),
         fmt::format("{} of {}", analysis.stalls.size(), format_ns(stalled_ns)),
         analysis.stalls.size() == 1 && close_enough(stalled_ns, kStallNs)},
    };
}

std::string checks_text(const std::vector<Check>& checks) {
    std::string text = fmt::format("{:<20}{:>16}{:>16}\n", "", "reader's clock", "traced");
    for (const Check& c : checks) {
        text += fmt::format("{:<20}{:>16}{:>16}   {}\n", c.what, c.reader, c.traced,
                            c.agrees ? "agrees" : "DIFFERS");
    }
    return text;
}

std::string checks_json(const std::vector<Check>& checks, bool ok, const std::string& file) {
    nlohmann::ordered_json document = {{"schema", "ringside.demo"},
                                       {"schema_version", 1},
                                       {"file", file},
                                       {"agrees", ok},
                                       {"checks", nlohmann::ordered_json::array()}};
    for (const Check& c : checks) {
        document["checks"].push_back(
            {{"what", c.what}, {"reader", c.reader}, {"traced", c.traced}, {"agrees", c.agrees}});
    }
    return document.dump(2) + "\n";
}

void say(const GlobalOptions& global, const std::string& text) {
    if (!global.quiet && !global.json) {
        fmt::print("{}\n", text);
        std::fflush(stdout);
    }
}

Result<ExitCode> run_demo(const std::string& keep, const GlobalOptions& global) {
    Result<Workspace> workspace = Workspace::make(keep);
    if (!workspace) {
        return fail(workspace.error());
    }
    if (Status ok = enter_private_network(); !ok) {
        return fail(ok.error());
    }
    say(global,
        fmt::format("1. A network card of our own: TAP device {} in a private network namespace.\n"
                    "   It completes each packet {} after it was sent.",
                    kDevice, format_ns(kReaderDelayNs)));
    Result<DemoNic> nic = DemoNic::create(kDevice);
    if (!nic) {
        return fail(nic.error());
    }
    say(global,
        fmt::format(
            "2. Recording: {} packets, then the hardware stands still for {} with {} more in\n"
            "   its ring.",
            kSteadyPackets, format_ns(kStallNs), kStallPackets));
    const Result<Recording> recording = record_demo(*nic, workspace->capture());
    if (!recording) {
        return fail(recording.error());
    }
    const Result<Capture> capture = read_capture(recording->path);
    if (!capture) {
        return fail(capture.error());
    }
    Result<Analysis> analysis = analyze(capture->runs.front());
    if (!analysis) {
        return fail(analysis.error());
    }
    const std::vector<Check> checks = check(*nic, *analysis);
    const bool agrees =
        std::all_of(checks.begin(), checks.end(), [](const Check& c) { return c.agrees; });
    const std::string file = workspace->kept() ? recording->path.string() : "";

    if (global.json) {
        if (Status ok = print_result(checks_json(checks, agrees, file)); !ok) {
            return fail(ok.error());
        }
    } else {
        say(global, "3. What `ringside analyze` says of it:\n");
        const CaptureAnalysis whole{
            capture->cut, capture->file_bytes, capture->used_bytes, 1, {{1, *analysis}}};
        say(global, analysis_text(whole, {}, text_style(global)));
        say(global, "4. Held against the reader's own clock:\n");
        if (Status ok = print_result(checks_text(checks)); !ok) {
            return fail(ok.error());
        }
        if (!file.empty()) {
            say(global, "The capture is " + file);
        }
    }
    if (!agrees) {
        return fail(
            Error(ErrorCode::kUnsupported, "what was traced differs from what the reader saw")
                .hint("a busy machine can do that: run it again; if it stays, report it with "
                      "--keep DIR"));
    }
    return ExitCode::kOk;
}

}  // namespace

void register_demo(CLI::App& app, CommandLine& line) {
    auto keep = std::make_shared<std::string>();
    CLI::App* command =
        app.add_subcommand("demo", "Record and analyze a network card that is made for it (root)");
    command->add_option("--keep", *keep,
                        "Folder in which the capture stays (default: removed at the end)");
    command->footer(
        "Takes about 6 s. Everything happens in a network namespace of its own; nothing of the "
        "system is\n"
        "changed. Exit code 0: what was traced agrees with the reader's own clock.");
    command->callback(
        [keep, &line] { line.run = [keep, &line] { return run_demo(*keep, line.global); }; });
}

}  // namespace ringside
