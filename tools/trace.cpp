// ringside trace: records the TX path of an interface.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "analyzers/base/duration.h"
#include "analyzers/base/units.h"
#include "tools/command.h"
#include "tools/recorder.h"
#include "tools/render/text.h"

namespace ringside {

namespace {

struct TraceArguments {
    std::string interface;
    std::string output;
    std::string duration;
    bool append = false;
    TierChoice tier = TierChoice::kBest;
    std::vector<std::string> command;
};

// Sums over queues and windows.
struct Totals {
    std::uint64_t packets = 0, bytes = 0, segments = 0, wire_bytes = 0;
    std::uint64_t completed = 0, dropped = 0, requeued = 0, missed = 0, unpaired = 0, errors = 0;
    std::uint64_t lost_in_reset = 0;  // ring tier
    std::uint64_t stops = 0, watchdogs = 0, polls = 0;
    std::uint64_t span_ns = 0;
    std::uint64_t stopped_ns = 0;  // of all queues
    double packet_ns = 0;
    std::uint64_t in_flight_max = 0;  // of one queue
    std::int64_t in_flight_end = 0;
    std::size_t queues = 0;
    std::uint64_t kernel_packets = 0;
    Histogram latency;

    void add(const Window& window);
};

void Totals::add(const Window& window) {
    span_ns += window.end_ns - window.start_ns;
    queues = std::max(queues, window.queues.size());
    in_flight_end = 0;
    for (const QueueWindow& queue : window.queues) {
        packets += queue.packets;
        bytes += queue.bytes;
        segments += queue.segments;
        wire_bytes += queue.wire_bytes;
        completed += queue.completed;
        dropped += queue.dropped;
        requeued += queue.requeued;
        missed += queue.missed;
        unpaired += queue.unpaired;
        lost_in_reset += queue.ring.reset_packets;
        errors += queue.errors;
        stops += queue.driver_stop.count + queue.bql_stop.count;
        stopped_ns += queue.driver_stop.stopped_ns + queue.bql_stop.stopped_ns;
        watchdogs += queue.watchdogs;
        packet_ns += queue.in_flight_packet_ns;
        in_flight_max = std::max(in_flight_max, queue.in_flight_max);
        in_flight_end += queue.in_flight_end;
        latency.add(queue.latency);
    }
    for (const NapiWindow& napi : window.napis) {
        polls += napi.polls;
    }
    kernel_packets += window.kernel_tx_packets;
}

constexpr const char* kColumns =
    "   time   rate Mb/s    pkt/s  in flight avg/max   latency p50/p99  stops  stopped  NAPI";

std::string live_line(double seconds, const Totals& t) {
    const double span_s = static_cast<double>(t.span_ns) / 1e9;
    const double queue_ns =
        static_cast<double>(t.span_ns) * static_cast<double>(std::max<std::size_t>(t.queues, 1));
    const std::string latency = t.latency.empty()
                                    ? std::string("-")
                                    : fmt::format("{} / {}", format_ns(t.latency.quantile_ns(0.5)),
                                                  format_ns(t.latency.quantile_ns(0.99)));
    return fmt::format(
        "{:>5.0f} s {:>11.1f} {:>8} {:>18} {:>17} {:>6} {:>8} {:>5}", seconds,
        static_cast<double>(t.wire_bytes) * 8 / span_s / 1e6,
        format_short(static_cast<double>(t.packets) / span_s),
        fmt::format("{} / {}", format_short(t.packet_ns / static_cast<double>(t.span_ns)),
                    format_short(static_cast<double>(t.in_flight_max))),
        latency, format_short(static_cast<double>(t.stops)),
        format_share(static_cast<double>(t.stopped_ns) / queue_ns),
        format_short(static_cast<double>(t.polls)));
}

// Rows while recording, and the sums for the end.
class LiveView : public RecordObserver {
  public:
    LiveView(const GlobalOptions& global, std::string output)
        : global_(global), output_(std::move(output)) {
        // With --json stdout belongs to the result.
        stream_ = global.json ? stderr : stdout;
    }

    void on_start(const RunInfo& info) override {
        info_ = info;
        if (global_.quiet) {
            return;
        }
        fmt::print(stderr, "ringside: {}, {} tier, {} TX {}, {} windows -> {}\n", info.interface,
                   info.tier, info.num_queues, info.num_queues == 1 ? "queue" : "queues",
                   format_ns(static_cast<double>(info.window_ns)), output_);
        for (const std::string& hook : info.hooks) {
            if (global_.verbose > 0 || hook.find("not attached") != std::string::npos) {
                fmt::print(stderr, "ringside: hook {}\n", hook);
            }
        }
        print(kColumns);
    }

    void on_window(const Window& window) override {
        total.add(window);
        second_.add(window);
        if (second_.span_ns + info_.window_ns / 2 < kNsPerSecond) {
            return;
        }
        if (!global_.quiet) {
            print(live_line(static_cast<double>(total.span_ns) / 1e9, second_));
        }
        second_ = Totals();
    }

    void on_event(const Event& event) override {
        static constexpr const char* kTexts[] = {"note",
                                                 "renamed to",
                                                 "the device is gone, waiting for it",
                                                 "the device is back as",
                                                 "link up",
                                                 "link down",
                                                 "TX queues in use",
                                                 "this machine was busy:",
                                                 "the command"};
        const auto kind = static_cast<std::size_t>(event.kind);
        if (!global_.quiet && kind < std::size(kTexts)) {
            fmt::print(stderr, "ringside: {} {}\n", kTexts[kind],
                       printable(event.text, text_style(global_)));
        }
    }

    Totals total;
    [[nodiscard]] const RunInfo& info() const { return info_; }

  private:
    void print(std::string_view line) const {
        fmt::print(stream_, "{}\n", line);
        std::fflush(stream_);
    }

    const GlobalOptions& global_;
    std::string output_;
    std::FILE* stream_ = nullptr;
    RunInfo info_;
    Totals second_;
};

std::uint64_t sum_of_misses(const RunEnd& end) {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : end.program_misses) {
        sum += count;
    }
    return sum;
}

// Every packet that was given to the driver went somewhere; say where.
std::string accounting(const Totals& t) {
    std::string text = fmt::format(
        "{} completed, {} dropped, {} requeued, {} in flight, {} not seen to complete, {} not "
        "paired",
        format_count(t.completed), format_count(t.dropped), format_count(t.requeued),
        t.in_flight_end, format_count(t.missed), format_count(t.unpaired));
    if (t.lost_in_reset > 0) {
        text += fmt::format(", {} lost in a reset of the ring", format_count(t.lost_in_reset));
    }
    return text;
}

std::string summary_text(const Recording& recording, const Totals& t) {
    std::string text = fmt::format(
        "{:.1f} s, {} packets: {}\n{} program runs missed, {} packets of unknown queues; ended by "
        "{}; recorder used "
        "{:.1f} % of one CPU; {} written\n",
        static_cast<double>(t.span_ns) / 1e9, format_count(t.packets), accounting(t),
        sum_of_misses(recording.end), recording.end.queue_beyond, recording.end.reason,
        t.span_ns == 0 ? 0.0
                       : 100.0 * static_cast<double>(recording.end.recorder_cpu_ns) /
                             static_cast<double>(t.span_ns),
        format_bytes(static_cast<double>(recording.file_bytes)));
    if (!recording.command_text.empty()) {
        text += recording.command_text + ". ";
    }
    return text + fmt::format("Next: ringside analyze {}\n", recording.path.string());
}

std::string summary_json(const Recording& recording, const RunInfo& info, const Totals& t) {
    using Json = nlohmann::ordered_json;
    Json misses = Json::object();
    for (const auto& [name, count] : recording.end.program_misses) {
        misses[name] = count;
    }
    Json command = nullptr;
    if (recording.end.command_ran) {
        command = {{"argv", info.command},
                   {"exit_code", recording.end.command_exit},
                   {"signal", recording.end.command_signal}};
    }
    const Json document = {
        {"schema", "ringside.trace"},
        {"schema_version", 1},
        {"tool_version", info.tool_version},
        {"interface", info.interface},
        {"tier", info.tier},
        {"hooks", info.hooks},
        {"file", recording.path.string()},
        {"file_bytes", recording.file_bytes},
        {"duration_ns", t.span_ns},
        {"ended_by", recording.end.reason},
        {"packets", t.packets},
        {"segments", t.segments},
        {"bytes", t.bytes},
        {"wire_bytes", t.wire_bytes},
        {"completed", t.completed},
        {"dropped", t.dropped},
        {"requeued", t.requeued},
        {"in_flight_end", t.in_flight_end},
        {"missed_completions", t.missed},
        {"unpaired", t.unpaired},
        {"lost_in_reset", t.lost_in_reset},
        {"driver_errors", t.errors},
        {"watchdogs", t.watchdogs},
        {"kernel_tx_packets", t.kernel_packets},
        {"program_misses", misses},
        {"recorder_cpu_ns", recording.end.recorder_cpu_ns},
        {"command", command},
    };
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string default_output(const std::string& interface) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    return fmt::format("{}-{:%Y%m%d-%H%M%S}.rsc", interface, local);
}

Result<ExitCode> run_trace(const TraceArguments& arguments, const GlobalOptions& global) {
    RecordOptions options;
    options.interface = arguments.interface;
    options.output =
        arguments.output.empty() ? default_output(arguments.interface) : arguments.output;
    options.append = arguments.append;
    options.command = arguments.command;
    options.tier = arguments.tier;
    options.command_stdout_to_stderr = global.json;
    if (!arguments.duration.empty()) {
        const Result<std::uint64_t> duration = parse_duration_ns(arguments.duration);
        if (!duration) {
            return fail(duration.error());
        }
        if (*duration == 0) {
            return fail(Error(ErrorCode::kUsage, "a recording of 0 s records nothing")
                            .hint("for example: -d 30s"));
        }
        options.duration_ns = *duration;
    }
    if (options.append && arguments.output.empty()) {
        return fail(Error(ErrorCode::kUsage, "--append needs the file to add to")
                        .hint("name it with -o FILE"));
    }

    LiveView view(global, options.output.string());
    const Result<Recording> recording = record(options, view);
    if (!recording) {
        return fail(recording.error());
    }
    const std::string text = global.json ? summary_json(*recording, view.info(), view.total)
                                         : summary_text(*recording, view.total);
    if (!global.quiet || global.json) {
        if (Status ok = print_result(text); !ok) {
            return fail(ok.error());
        }
    }
    return ExitCode::kOk;
}

}  // namespace

void register_trace(CLI::App& app, CommandLine& line) {
    auto arguments = std::make_shared<TraceArguments>();
    CLI::App* command =
        app.add_subcommand("trace", "Record the TX path of an interface while it works");
    command->add_option("IFACE", arguments->interface, "Interface to record")->required();
    command->add_option("-o,--output", arguments->output,
                        "Capture file to write (default: IFACE-DATE-TIME.rsc in this folder)");
    command->add_option("-d,--duration", arguments->duration,
                        "How long, for example 30s or 5m (default: until CMD ends, or ^C)");
    command->add_flag("--append", arguments->append, "Add this run to the capture named with -o");
    command
        ->add_option("--tier", arguments->tier,
                     "ring (the driver's own ring), skb (any driver), or best (default)")
        ->transform(CLI::CheckedTransformer(std::map<std::string, TierChoice>{
            {"best", TierChoice::kBest}, {"ring", TierChoice::kRing}, {"skb", TierChoice::kSkb}}));
    command->add_option("CMD", arguments->command,
                        "After --: command to run; the recording lasts as long as it");
    command->footer(
        "Needs root and a kernel with BTF. The best tier that works is taken; a tier named with "
        "--tier "
        "must\n"
        "work. ^C ends a recording normally. While it runs the file is "
        "called\n"
        "FILE.part; a killed recording loses at most its last second. With -d and CMD the first to "
        "end\n"
        "ends both. The exit code is 0 when the recording is whole, whatever CMD returned; how CMD "
        "ended\n"
        "is in the output and in the file.\n\n"
        "In a network namespace: ip netns exec NS ringside trace IFACE");
    command->callback([arguments, &line] {
        line.run = [arguments, &line] { return run_trace(*arguments, line.global); };
    });
}

}  // namespace ringside
