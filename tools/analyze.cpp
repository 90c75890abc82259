// ringside analyze: figures from a capture, on any machine, without root.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "analyzers/base/duration.h"
#include "analyzers/capture/reader.h"
#include "analyzers/figures.h"
#include "tools/command.h"
#include "tools/render/analysis_json.h"
#include "tools/render/analysis_text.h"

namespace ringside {

namespace {

struct AnalyzeOptions {
    std::string capture;
    std::optional<std::size_t> run;
    std::optional<std::uint32_t> queue;
    bool windows = false;
    std::string stall;  // empty: by the recording
    std::string warmup = "0s";
};

constexpr const char* kFooter = R"(What each figure is: docs/figures.md.

Exit codes: 0 no finding; 1 a stall, a transmit watchdog event, or packets that
were dropped after they were given to the driver; 2 wrong usage; 3 could not run.
Warnings about the measurement itself are printed and do not change the code.)";

Result<AnalysisParams> params_of(const AnalyzeOptions& options) {
    AnalysisParams params;
    if (!options.stall.empty()) {
        const Result<std::uint64_t> stall_ns = parse_duration_ns(options.stall);
        if (!stall_ns) {
            return fail(Error(stall_ns.error()).context("--stall"));
        }
        params.stall_threshold_ns = *stall_ns;
    }
    const Result<std::uint64_t> lead_in_ns = parse_duration_ns(options.warmup);
    if (!lead_in_ns) {
        return fail(Error(lead_in_ns.error()).context("--warmup"));
    }
    params.lead_in_ns = *lead_in_ns;
    return params;
}

Result<Capture> open_capture(const std::filesystem::path& path) {
    Result<Capture> capture = read_capture(path);
    if (capture || capture.error().code() != ErrorCode::kNotFound) {
        return capture;
    }
    std::filesystem::path part = path;
    part += ".part";
    std::error_code ignored;
    Error error = capture.error();
    if (std::filesystem::exists(part, ignored)) {
        error.hint("a recording that was killed, or is still running, is in " + part.string() +
                   ": analyze that");
    } else {
        error.hint("record one with: ringside trace IFACE -o " + path.string());
    }
    return fail(std::move(error));
}

// Leaves only the queue that was asked for; the port stays whole. False when the run does not have
// it.
bool keep_queue(Analysis& analysis, std::uint32_t queue) {
    const auto other = [queue](const auto& item) { return item.queue != queue; };
    std::erase_if(analysis.queues, other);
    std::erase_if(analysis.stalls, other);
    std::erase_if(analysis.warnings, [queue](const Warning& warning) {
        return warning.queue && *warning.queue != queue;
    });
    return !analysis.queues.empty();
}

std::string queue_names(const Capture& capture) {
    std::vector<std::uint32_t> queues;
    for (const Run& run : capture.runs) {
        for (const Window& window : run.windows) {
            for (const QueueWindow& queue : window.queues) {
                if (std::find(queues.begin(), queues.end(), queue.queue) == queues.end()) {
                    queues.push_back(queue.queue);
                }
            }
        }
    }
    std::sort(queues.begin(), queues.end());
    return queues.empty() ? "none" : fmt::format("{}", fmt::join(queues, ", "));
}

Result<CaptureAnalysis> analyze_capture(const Capture& capture, const AnalyzeOptions& options,
                                        const AnalysisParams& params) {
    if (options.run && (*options.run == 0 || *options.run > capture.runs.size())) {
        return fail(Error(ErrorCode::kUsage, fmt::format("there is no run {}", *options.run))
                        .hint(fmt::format("runs are numbered from 1; this capture has {}",
                                          capture.runs.size())));
    }
    CaptureAnalysis result{
        capture.cut, capture.file_bytes, capture.used_bytes, capture.runs.size(), {}};
    bool queue_found = !options.queue;
    for (std::size_t number = 1; number <= capture.runs.size(); ++number) {
        if (options.run && *options.run != number) {
            continue;
        }
        Result<Analysis> analysis = analyze(capture.runs[number - 1], params);
        if (!analysis) {
            return fail(Error(analysis.error()).context(fmt::format("run {}", number)));
        }
        if (options.queue) {
            queue_found |= keep_queue(*analysis, *options.queue);
        }
        result.runs.push_back({number, std::move(*analysis)});
    }
    if (!queue_found) {
        return fail(Error(ErrorCode::kUsage, fmt::format("queue {} was never used", *options.queue))
                        .hint("queues in this capture: " + queue_names(capture)));
    }
    return result;
}

Result<ExitCode> run_analyze(const AnalyzeOptions& options, const GlobalOptions& global) {
    const Result<AnalysisParams> params = params_of(options);
    if (!params) {
        return fail(params.error());  // a typing error is told before a large file is read
    }
    const Result<Capture> capture = open_capture(options.capture);
    if (!capture) {
        return fail(capture.error());
    }
    const Result<CaptureAnalysis> result = analyze_capture(*capture, options, *params);
    if (!result) {
        return fail(result.error());
    }
    const std::string text =
        global.json
            ? analysis_json(*result, {.windows = options.windows})
            : analysis_text(*result, {.windows = options.windows, .verbose = global.verbose > 0},
                            text_style(global));
    if (Status printed = print_result(text); !printed) {
        return fail(printed.error());
    }
    const bool findings =
        std::any_of(result->runs.begin(), result->runs.end(),
                    [](const NumberedAnalysis& run) { return run.analysis.has_findings; });
    return findings ? ExitCode::kFindings : ExitCode::kOk;
}

}  // namespace

void register_analyze(CLI::App& app, CommandLine& line) {
    const auto options = std::make_shared<AnalyzeOptions>();
    CLI::App* command =
        app.add_subcommand("analyze", "Figures from a capture, on any machine, without root");
    command->add_option("CAPTURE", options->capture, "File that 'ringside trace -o' wrote")
        ->required();
    command->add_option("--run", options->run, "Only the N-th run of the capture (from 1)")
        ->type_name("N");
    command->add_option("--queue", options->queue, "Only this TX queue; the port stays whole")
        ->type_name("N");
    command->add_flag("--windows", options->windows, "Also every window, in text and JSON");
    command
        ->add_option("--stall", options->stall,
                     "Packets in flight and none completing for this long is a stall\n"
                     "(default 200ms, or two windows of the recording if longer)")
        ->type_name("TIME");
    command
        ->add_option("--warmup", options->warmup, "Leave out windows that begin earlier than this")
        ->type_name("TIME")
        ->capture_default_str();
    command->footer(kFooter);
    command->callback([options, &line] {
        line.run = [options, &line] { return run_analyze(*options, line.global); };
    });
}

}  // namespace ringside
