#include "tools/render/analysis_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <initializer_list>

#include "analyzers/base/units.h"

namespace ringside {

namespace {

// "  in flight    ": figures stand in one column.
constexpr std::size_t kLabelWidth = 15;
constexpr std::size_t kChartWidth = 40;
// Lists in text end here; the JSON has them whole.
constexpr std::size_t kListLimit = 10;

std::string label(std::string_view name) {
    return fmt::format("  {:<13}", name);
}

class Printer {
  public:
    Printer(const AnalysisTextOptions& options, const TextStyle& style)
        : options_(options), style_(style) {}

    void capture(const CaptureAnalysis& capture);
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    void run(const Analysis& analysis);
    void head(const Analysis& analysis);
    void recording(const Analysis& analysis);
    void warnings(const Analysis& analysis);
    void traffic(const TrafficFigures& figures, bool trusted);
    void queue(const Analysis& analysis, const QueueFigures& queue);
    void stalls_of(const Analysis& analysis, std::uint32_t queue);
    void ring(const RingFigures& ring);
    void check(const QueueFigures& queue);
    void charts(const TrafficFigures& figures);
    void chart(std::string_view name, std::span<const std::optional<double>> values,
               std::string (*format)(double));
    void napis(const Analysis& analysis);
    void events(const Analysis& analysis);
    void not_seen(const NotSeen& seen, bool ring_tier);
    void windows(const Analysis& analysis, const QueueFigures& queue);

    // A labelled line; wrapped below the label when it is too long.
    void line(std::string_view name, std::string_view text, Paint color = Paint::kPlain) {
        const std::string head = label(name);
        std::string lines = wrap(head, text, kLabelWidth, style_);
        lines.pop_back();
        lines.erase(0, head.size());
        out_ += head + paint(lines, color, style_) + "\n";
    }
    // Wrapped below `first`. Painted as a whole: colour codes must not count in the wrapping.
    void block(std::string_view first, std::string_view text, Paint color) {
        std::string lines = wrap(std::string(first) + " ", text, 2, style_);
        lines.pop_back();
        out_ += paint(lines, color, style_) + "\n";
    }
    void title(std::string_view text) {
        out_ += "\n" + paint(fit(text, style_.width, style_), Paint::kHeading, style_) + "\n";
    }
    [[nodiscard]] std::string safe(std::string_view text) const { return printable(text, style_); }

    const AnalysisTextOptions& options_;
    const TextStyle& style_;
    std::string out_;
};

std::string seconds(std::uint64_t ns) {
    return fmt::format("{:.2f} s", static_cast<double>(ns) / static_cast<double>(kNsPerSecond));
}

std::string time_of(std::uint64_t ns) {
    return format_ns(static_cast<double>(ns));
}

std::string packets_text(double packets) {
    return fmt::format("{:.1f}", packets);
}

std::string packets_unit(double packets) {
    return packets_text(packets) + " packets";
}

// Years that a calendar has; anything else in the file is no date.
std::string utc_time(std::int64_t unix_ns) {
    const std::time_t when =
        static_cast<std::time_t>(unix_ns / static_cast<std::int64_t>(kNsPerSecond));
    std::tm parts{};
    if (unix_ns <= 0 || ::gmtime_r(&when, &parts) == nullptr) {
        return "at an unknown time";
    }
    return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", parts);
}

// "link-down" of the JSON as words.
std::string words(std::string_view name) {
    std::string text(name);
    std::replace(text.begin(), text.end(), '-', ' ');
    return text;
}

void Printer::capture(const CaptureAnalysis& capture) {
    if (!capture.cut.empty()) {
        block("this capture is cut:",
              fmt::format("{}; {} of {} bytes could be used", safe(capture.cut),
                          format_count(capture.used_bytes), format_count(capture.file_bytes)),
              Paint::kWarning);
    }
    bool first = true;
    for (const NumberedAnalysis& numbered : capture.runs) {
        if (!first) {
            out_ += "\n";
        }
        first = false;
        if (capture.runs_in_file > 1) {
            out_ += paint(fmt::format("run {} of {}", numbered.number, capture.runs_in_file),
                          Paint::kHeading, style_) +
                    "\n";
        }
        run(numbered.analysis);
    }
}

void Printer::head(const Analysis& analysis) {
    const HostSummary& host = analysis.host;
    std::string text = safe(analysis.info.interface);
    // Words of one part belong together, parts are set off by commas; what was not recorded is left
    // out.
    const auto part = [&](std::initializer_list<std::string> some) {
        std::string joined;
        for (const std::string& word : some) {
            joined += (word.empty() ? "" : " ") + safe(word);
        }
        text += joined.empty() ? "" : "," + joined;
    };
    const auto number = [](std::string_view before, const std::optional<std::int64_t>& value,
                           std::string_view after) {
        return value ? fmt::format("{}{}{}", before, *value, after) : std::string();
    };
    text += host.model.empty() ? "" : " on " + safe(host.model);
    part({host.kernel.empty() ? "" : "Linux", host.kernel, host.arch});
    part({host.driver, number("", host.link_mbps, " Mb/s"), host.duplex});
    part({plural(analysis.info.num_queues, "TX queue")});
    part({number("", host.ring_descriptors, " descriptors")});
    part({number("tx-usecs ", host.tx_usecs, "")});
    part({number("tx-frames ", host.tx_frames, "")});
    out_ += wrap("", text, 2, style_);
}

void Printer::recording(const Analysis& analysis) {
    const UsedInterval& used = analysis.used;
    std::string text = fmt::format("{} tier, {} windows, {} of {} used", safe(analysis.info.tier),
                                   time_of(analysis.info.window_ns), seconds(used.duration_ns),
                                   seconds(used.run_ns));
    if (used.windows_left_out > 0) {
        text += fmt::format(" (the first {} left out)", time_of(analysis.lead_in_ns));
    }
    out_ += wrap("", text, 2, style_);
    text = fmt::format("recorded {} with ringside {}", utc_time(analysis.info.start_unix_ns),
                       safe(analysis.info.tool_version));
    text += analysis.ended ? ", ended by: " + safe(analysis.end.reason) : ", cut before its end";
    out_ += wrap("", text, 2, style_);
    if (!analysis.info.command.empty()) {
        text.clear();
        for (const std::string& word : analysis.info.command) {
            text += safe(word) + " ";
        }
        if (analysis.end.command_ran) {
            text += analysis.end.command_signal != 0
                        ? fmt::format("(killed by signal {})", analysis.end.command_signal)
                        : fmt::format("(exited {})", analysis.end.command_exit);
        }
        out_ += wrap("command: ", text, 2, style_);
    }
    if (options_.verbose) {
        out_ += wrap("tier chosen: ", safe(analysis.info.tier_why), 2, style_);
        for (const std::string& hook : analysis.info.hooks) {
            out_ += wrap("hook: ", safe(hook), 2, style_);
        }
    }
}

void Printer::warnings(const Analysis& analysis) {
    for (const Warning& warning : analysis.warnings) {
        const std::string where = warning.queue ? fmt::format("queue {}: ", *warning.queue) : "";
        block("warning:", where + warning.text, Paint::kWarning);
    }
}

void Printer::traffic(const TrafficFigures& figures, bool trusted) {
    const std::string doubt = trusted ? "" : " (not to be trusted)";
    line("rate", fmt::format("{} in frames, {} in packets", format_rate_bps(figures.wire_bps),
                             format_rate_bps(figures.packet_bps)));
    line("packets", fmt::format("{} a second of {:.2f} frames; {} sent, {} completed",
                                format_short(figures.packets_per_s), figures.segments_per_packet,
                                format_count(figures.packets), format_count(figures.completed)));
    line("", fmt::format("{} dropped, {} requeued, {} errors, {} in flight at the end",
                         format_count(figures.dropped), format_count(figures.requeued),
                         format_count(figures.errors), figures.in_flight_end));
    std::string in_flight =
        fmt::format("{}, {} on average", packets_unit(figures.in_flight_packets),
                    format_bytes(figures.in_flight_bytes));
    if (figures.in_flight_max_packets) {
        in_flight += fmt::format("; at most {}", plural(*figures.in_flight_max_packets, "packet"));
    }
    line("in flight", in_flight + doubt);
    if (figures.latency) {
        const LatencyFigures& latency = *figures.latency;
        line("latency", fmt::format("p50 {}, p90 {}, p99 {}, p99.9 {},", format_ns(latency.p50_ns),
                                    format_ns(latency.p90_ns), format_ns(latency.p99_ns),
                                    format_ns(latency.p99_9_ns)));
        line("", fmt::format("max {}, mean {}{}", format_ns(latency.max_ns),
                             format_ns(latency.mean_ns), doubt));
    } else {
        line("latency", "nothing completed" + doubt);
    }
}

void Printer::ring(const RingFigures& ring) {
    line("ring", fmt::format("{:.1f} of {} descriptors in use ({}), at most {}; {:.2f} a packet",
                             ring.used, ring.size, format_share(ring.used_share), ring.used_max,
                             ring.descriptors_per_packet));
    line("", fmt::format("{} batches taken back, {:.1f} descriptors each, at most {}",
                         format_count(ring.batches), ring.batch_descriptors, ring.batch_max));
    if (ring.batches_by_irq + ring.batches_by_timer > 0) {
        line("", fmt::format("of them {} after an interrupt, {} after the TX timer, {} else",
                             format_count(ring.batches_by_irq), format_count(ring.batches_by_timer),
                             format_count(ring.batches_by_other)));
    }
    if (ring.resets > 0) {
        line("",
             fmt::format("emptied by the driver {}, {} lost in it", plural(ring.resets, "time"),
                         plural(ring.reset_packets, "packet")),
             Paint::kFinding);
    }
    if (ring.bypassed > 0) {
        line("", fmt::format("{} descriptors were put in past the tracepoints",
                             format_count(ring.bypassed)));
    }
}

void Printer::check(const QueueFigures& queue) {
    const LittleCheck& little = queue.little;
    std::string text;
    switch (little.verdict) {
        case LittleVerdict::kNoData:
            text = "in flight = rate x latency cannot be checked: nothing to compare";
            break;
        case LittleVerdict::kAgrees:
            text = fmt::format("in flight = rate x latency within {} (Little)",
                               format_share(little.residual));
            break;
        case LittleVerdict::kDisagrees:
            text = fmt::format("in flight = rate x latency FAILS, {} apart (Little)",
                               format_share(little.residual));
            break;
        case LittleVerdict::kTooShort:
            text = fmt::format("in flight and rate x latency {} apart, within what the ends allow",
                               format_share(little.residual));
            break;
    }
    line("check", text);
    if (queue.bql && queue.bql->difference) {
        line("", fmt::format("BQL {} against {} in flight: {} apart",
                             format_bytes(queue.bql->average_bytes),
                             format_bytes(queue.bql->in_flight_bytes),
                             format_share(*queue.bql->difference)));
    }
}

void Printer::stalls_of(const Analysis& analysis, std::uint32_t queue) {
    std::size_t shown = 0, total = 0;
    for (const Stall& stall : analysis.stalls) {
        if (stall.queue != queue) {
            continue;
        }
        if (++total > kListLimit) {
            continue;
        }
        std::string text = fmt::format("{} {} from {} to {}", stall.open ? "at least" : "",
                                       time_of(stall.duration_ns), seconds(stall.begin_ns),
                                       stall.open ? "the end" : seconds(stall.end_ns));
        text.erase(0, text.find_first_not_of(' '));
        if (stall.open) {
            text += fmt::format(
                ", {} in flight",
                plural(static_cast<std::uint64_t>(std::max<std::int64_t>(0, stall.in_flight)),
                       "packet"));
        }
        if (stall.context != StallContext::kNone) {
            text += " (" + words(name_of(stall.context)) + ")";
        }
        text += stall.doubtful ? " (doubtful)" : "";
        line(shown == 0 ? "stalls" : "", text, stall.counts() ? Paint::kFinding : Paint::kPlain);
        ++shown;
    }
    if (total == 0) {
        line("stalls", fmt::format("none of {} or longer", time_of(analysis.stall_threshold_ns)));
    } else if (total > shown) {
        line("", fmt::format("and {} more", total - shown));
    }
}

void Printer::queue(const Analysis& analysis, const QueueFigures& queue) {
    const TrafficFigures& figures = queue.traffic;
    title(fmt::format("queue {}", queue.queue));
    if (figures.packets == 0 && figures.completed == 0 && figures.in_flight_end == 0) {
        line("", "idle: no packet in the used part");
        stalls_of(analysis, queue.queue);
        return;
    }
    traffic(figures, queue.trust.ok());
    if (queue.ring) {
        ring(*queue.ring);
    }
    if (queue.bql) {
        line("BQL",
             fmt::format("{} on average, at most {}{}", format_bytes(queue.bql->average_bytes),
                         format_bytes(static_cast<double>(queue.bql->max_bytes)),
                         queue.bql->exact() ? "" : " (approximate)"));
    } else {
        line("BQL", "not reported by this driver");
    }
    const auto stop = [](const StopSummary& summary) {
        std::string text = fmt::format("{} ({} of the time", format_count(summary.count),
                                       format_share(summary.share));
        text += summary.count > 0 || summary.longest_ns > 0
                    ? fmt::format(", longest {})", time_of(summary.longest_ns))
                    : ")";
        return text + (summary.open ? ", still stopped" : "");
    };
    line("stops", "by the driver " + stop(queue.driver_stop));
    line("", "by BQL " + stop(queue.bql_stop));
    if (queue.watchdogs > 0) {
        line("watchdog",
             fmt::format("{} (transmit queue timed out)", plural(queue.watchdogs, "event")),
             Paint::kFinding);
    }
    stalls_of(analysis, queue.queue);
    check(queue);
    charts(figures);
    if (options_.windows) {
        windows(analysis, queue);
    }
}

void Printer::chart(std::string_view name, std::span<const std::optional<double>> values,
                    std::string (*format)(double)) {
    double max = 0;
    for (const std::optional<double>& value : values) {
        max = std::max(max, value.value_or(0));
    }
    out_ +=
        label(name) + sparkline(values, max, kChartWidth, style_) + "  0 to " + format(max) + "\n";
}

void Printer::charts(const TrafficFigures& figures) {
    std::vector<std::optional<double>> rate;
    std::vector<std::optional<double>> in_flight;
    std::vector<std::optional<double>> latency;
    for (const WindowFigures& window : figures.windows) {
        rate.emplace_back(window.wire_bps);
        in_flight.emplace_back(window.in_flight_packets);
        latency.push_back(window.latency_p50_ns);
    }
    const std::size_t columns = std::min(kChartWidth, rate.size());
    out_ += fmt::format("  over time, {} of {}:\n", plural(columns, "column"),
                        format_ns(static_cast<double>(figures.duration_ns) /
                                  static_cast<double>(std::max<std::size_t>(columns, 1))));
    chart("rate", rate, format_rate_bps);
    chart("in flight", in_flight, packets_unit);
    if (!figures.latency) {
        return;
    }
    chart("latency p50", latency, format_ns);
    const Distribution& distribution = figures.latency->distribution;
    std::vector<std::optional<double>> bins;
    double max = 0;
    for (const double bin : distribution.bins) {
        // An empty bin is blank: a lowest block would look like a few packets.
        bins.push_back(bin > 0 ? std::optional<double>(bin) : std::nullopt);
        max = std::max(max, bin);
    }
    out_ += "  distribution of latency, most at " + format_ns(distribution.mode_ns) + ":\n";
    out_ += fmt::format("  {:>11}  {}  {}\n", format_ns(distribution.from_ns),
                        sparkline(bins, max, kChartWidth, style_), format_ns(distribution.to_ns));
}

void Printer::windows(const Analysis& analysis, const QueueFigures& queue) {
    Table table;
    for (const char* header :
         {"start", "rate", "pkt/s", "in flight", "max", "p50", "p99", "stopped", "polls"}) {
        table.column(header);
    }
    for (std::size_t i = 0; i < queue.traffic.windows.size(); ++i) {
        const WindowFigures& window = queue.traffic.windows[i];
        const auto time = [](const std::optional<double>& ns) { return ns ? format_ns(*ns) : "-"; };
        table.row({seconds(window.start_ns), format_rate_bps(window.wire_bps),
                   format_short(window.packets_per_s),
                   fmt::format("{:.1f}", window.in_flight_packets),
                   window.in_flight_max_packets ? format_count(*window.in_flight_max_packets) : "-",
                   time(window.latency_p50_ns), time(window.latency_p99_ns),
                   // A queue may be stopped for both reasons at once, so the two are not added.
                   format_share(std::max(window.driver_stopped_share, window.bql_stopped_share)),
                   i < analysis.port.windows.size() && analysis.port.windows[i].polls
                       ? format_count(*analysis.port.windows[i].polls)
                       : "-"});
    }
    out_ += "  windows:\n" + table.text(2, style_);
}

void Printer::napis(const Analysis& analysis) {
    title("NAPI");
    if (analysis.napis.empty()) {
        line("", "no poll was seen");
        return;
    }
    Table table;
    for (const char* header :
         {"instance", "polls/s", "work/poll", "full budget", "gap p50", "p99", "max"}) {
        table.column(header);
    }
    for (const NapiFigures& napi : analysis.napis) {
        table.row({std::to_string(napi.instance), format_short(napi.polls_per_s),
                   fmt::format("{:.1f}", napi.work_per_poll), format_share(napi.exhausted_share),
                   napi.gap_p50_ns ? format_ns(*napi.gap_p50_ns) : "-",
                   napi.gap_p99_ns ? format_ns(*napi.gap_p99_ns) : "-",
                   napi.gap_p50_ns ? format_ns(napi.gap_max_ns) : "-"});
    }
    out_ += table.text(2, style_);
    if (analysis.irqs.count > 0) {
        line("interrupts", fmt::format("{}, {}/s", format_count(analysis.irqs.count),
                                       format_short(analysis.irqs.per_s)));
    }
    for (const NapiFigures& napi : analysis.napis) {
        if (napi.irq_to_poll_p50_ns && napi.irq_to_poll_p99_ns) {
            line("", fmt::format("to the poll of instance {}: p50 {}, p99 {}, max {} ({} polls)",
                                 napi.instance, format_ns(*napi.irq_to_poll_p50_ns),
                                 format_ns(*napi.irq_to_poll_p99_ns),
                                 format_ns(napi.irq_to_poll_max_ns), format_count(napi.irq_polls)));
        }
    }
}

void Printer::events(const Analysis& analysis) {
    std::size_t listed = 0, total = 0;
    for (const Event& event : analysis.events) {
        // Late windows are counted below; a command's end stands in the first lines.
        if (event.kind == EventKind::kLateWindow || event.kind == EventKind::kCommandExited) {
            continue;
        }
        if (++total == 1) {
            title("Events");
        }
        if (total <= kListLimit) {
            line(seconds(event.time_ns), words(name_of(event.kind)) + " " + safe(event.text));
            ++listed;
        }
    }
    if (total > listed) {
        line("", fmt::format("and {} more", total - listed));
    }
}

void Printer::not_seen(const NotSeen& seen, bool ring_tier) {
    title("Not seen");
    if (seen.counted_as == CountedAs::kUnknown) {
        line("frames", "sent past the tracepoints: unknown, no kernel counters");
    } else {
        // Once it is clear what the driver counts, there is one answer; else a range.
        const std::string least = format_share(seen.unseen_min);
        const std::string most = format_share(seen.unseen_max);
        const bool clear = seen.counted_as == CountedAs::kPackets ||
                           seen.counted_as == CountedAs::kSegments || least == most;
        std::string share = clear ? least : least + " to " + most;
        if (seen.counted_as == CountedAs::kFewer) {
            share = "none by the counters, which show less than was traced";
        }
        line("frames",
             fmt::format("sent past the tracepoints: {} (the kernel counted {}, traced {} in {})",
                         share, format_count(seen.kernel_packets),
                         plural(seen.traced_segments, "frame"),
                         plural(seen.traced_packets, "packet")));
    }
    if (seen.kernel_dropped > 0 || seen.kernel_errors > 0) {
        line("", fmt::format("the kernel counted {} dropped, {} errors",
                             format_count(seen.kernel_dropped), format_count(seen.kernel_errors)));
    }
    line("completions",
         fmt::format("{} missed ({}), {} not followed", format_count(seen.missed),
                     format_share(seen.missed_share), plural(seen.unpaired, "packet")));
    line("recorder",
         fmt::format("{} program runs missed, {}, device gone {}",
                     seen.program_misses ? format_count(*seen.program_misses) : "unknown",
                     plural(seen.windows_late, "late window"), seconds(seen.device_gone_ns)));
    if (options_.verbose) {
        for (const auto& [program, count] : seen.program_misses_by_name) {
            line("", fmt::format("{}: {} missed", safe(program), format_count(count)));
        }
    }
    line("never", ring_tier
                      ? "when the hardware was done: only when the driver took the packet back"
                      : "when the hardware was done: only when the driver freed the packet");
}

void Printer::run(const Analysis& analysis) {
    head(analysis);
    recording(analysis);
    warnings(analysis);
    if (analysis.queues_used > 1) {
        title(fmt::format("port, {} queues together", analysis.queues_used));
        traffic(analysis.port, analysis.trusted);
    }
    for (const QueueFigures& figures : analysis.queues) {
        queue(analysis, figures);
    }
    napis(analysis);
    events(analysis);
    not_seen(analysis.not_seen, analysis.info.tier == "ring");
}

}  // namespace

std::string analysis_text(const CaptureAnalysis& capture, const AnalysisTextOptions& options,
                          const TextStyle& style) {
    Printer printer(options, style);
    printer.capture(capture);
    return printer.take();
}

}  // namespace ringside
