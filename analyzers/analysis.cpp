// Puts the figures of a run together, and says what was not seen and what is not to be trusted.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzers/base/units.h"
#include "analyzers/figures.h"

namespace ringside {

namespace {

double share_of(std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

const Fact* find_fact(const Run& run, std::string_view name) {
    const auto found = std::find_if(run.info.facts.begin(), run.info.facts.end(),
                                    [&](const Fact& fact) { return fact.name == name; });
    return found == run.info.facts.end() ? nullptr : &*found;
}

HostSummary host_summary(const Run& run) {
    struct Row {
        std::string_view fact;
        std::string HostSummary::*field;
    };
    // Names from docs/host-facts.md.
    constexpr std::array kRows{
        Row{"machine.model", &HostSummary::model}, Row{"kernel.release", &HostSummary::kernel},
        Row{"kernel.arch", &HostSummary::arch}, Row{"driver.name", &HostSummary::driver},
        Row{"link.duplex", &HostSummary::duplex}};
    HostSummary host;
    for (const Row& row : kRows) {
        if (const Fact* fact = find_fact(run, row.fact)) {
            if (const auto* text = std::get_if<std::string>(&fact->value)) {
                host.*row.field = *text;
            }
        }
    }
    struct NumberRow {
        std::string_view fact;
        std::optional<std::int64_t> HostSummary::*field;
    };
    constexpr std::array kNumbers{NumberRow{"link.speed_mbps", &HostSummary::link_mbps},
                                  NumberRow{"ring.tx.size", &HostSummary::ring_descriptors},
                                  NumberRow{"coalesce.tx_usecs", &HostSummary::tx_usecs},
                                  NumberRow{"coalesce.tx_frames", &HostSummary::tx_frames}};
    for (const NumberRow& row : kNumbers) {
        if (const Fact* fact = find_fact(run, row.fact)) {
            const auto* number = std::get_if<std::int64_t>(&fact->value);
            // An unknown speed reads as -1.
            if (number != nullptr && *number >= 0) {
                host.*row.field = *number;
            }
        }
    }
    return host;
}

std::uint64_t device_gone_ns(const Run& run, const UsedPart& used) {
    if (used.windows.empty()) {
        return 0;
    }
    const std::uint64_t from = used.windows.front()->start_ns;
    const std::uint64_t to = std::max(from, used.windows.back()->end_ns);
    std::uint64_t total = 0;
    for (const Away& away : away_intervals(run)) {
        if (away.context == StallContext::kDeviceGone) {
            total += std::clamp(away.to_ns, from, to) - std::clamp(away.from_ns, from, to);
        }
    }
    return total;
}

// The kernel's packet counter against what was traced.
//
// Drivers count either one per GSO packet or one per frame, at transmit or at completion; which, is
// not known. With K counted by the kernel, P packets and S frames traced in the same windows:
//     K <= max(P, S) + slack: everything can be explained by what was traced, unseen_min = 0
//     else                    unseen_min = (K - max(P, S)) / K
//     unseen_max = (K - P) / K, not below 0: the case of a driver that counts packets.
// P and S leave out what the driver gave back or refused, which it does not count (requeues are in
// P only). Drops are not left out: some drivers free packets that they have sent as if dropped.
// Slack: what may be counted on the other side of a window border, which is what can be in flight,
// and one average window of frames, because counters are not read at the very moment of the
// snapshot and some drivers refresh theirs at intervals.
void compare_with_kernel(const UsedPart& used, NotSeen& result) {
    std::uint64_t counted_windows = 0;
    std::uint64_t segments_traced = 0;
    std::uint64_t packets_traced = 0;
    std::uint64_t errors = 0;
    std::map<std::uint32_t, std::uint64_t> most_in_flight;
    for (const Window* window : used.windows) {
        if (!window->kernel_counters) {
            continue;
        }
        ++counted_windows;
        result.kernel_packets += window->kernel_tx_packets;
        result.kernel_dropped += window->kernel_tx_dropped;
        result.kernel_errors += window->kernel_tx_errors;
        for (const QueueWindow& queue : window->queues) {
            packets_traced += queue.packets - queue.requeued;
            segments_traced += queue.segments;
            errors += queue.errors;
            std::uint64_t& most = most_in_flight[queue.queue];
            most = std::max(most, queue.in_flight_max);
        }
    }
    if (counted_windows == 0) {
        return;
    }
    const double taken = 1 - std::min(1.0, share_of(errors, packets_traced));
    const double kernel = static_cast<double>(result.kernel_packets);
    const double packets = static_cast<double>(packets_traced) * taken;
    const double segments = static_cast<double>(segments_traced) * taken;
    const double most = std::max(packets, segments);
    // Whole numbers up to 2^53 survive the way through a double; larger ones are no packet counts.
    result.traced_packets = minus_or_zero(packets_traced, errors);
    result.traced_segments = static_cast<std::uint64_t>(std::min(segments, 9e18));

    double in_flight = 0;
    for (const auto& [queue, count] : most_in_flight) {
        in_flight += static_cast<double>(count);
    }
    const double frames_per_packet = packets > 0 ? std::max(1.0, segments / packets) : 1;
    const double slack =
        in_flight * frames_per_packet + most / static_cast<double>(counted_windows);

    if (kernel > most + slack) {
        result.unseen_min = (kernel - most) / kernel;
        result.counted_as = CountedAs::kMore;
    } else if (std::abs(kernel - packets) <= slack) {
        result.counted_as = CountedAs::kPackets;
    } else if (std::abs(kernel - segments) <= slack) {
        result.counted_as = CountedAs::kSegments;
    } else {
        result.counted_as = kernel < packets ? CountedAs::kFewer : CountedAs::kBetween;
    }
    if (kernel > packets) {
        result.unseen_max = (kernel - packets) / kernel;
    }
}

void warn(Analysis& analysis, const char* id, std::optional<std::uint32_t> queue,
          std::string text) {
    analysis.warnings.push_back({id, queue, std::move(text)});
}

void warn_of_queue(Analysis& analysis, const QueueFigures& queue) {
    if (!queue.trust.ok()) {
        warn(analysis, "not-to-be-trusted", queue.queue,
             "latency and in-flight figures are not to be trusted: " + queue.trust.reason);
    }
    const LittleCheck& little = queue.little;
    if (little.verdict == LittleVerdict::kDisagrees) {
        warn(analysis, "little-residual", queue.queue,
             fmt::format(
                 "the figures do not agree with each other: {:.1f} packets in flight, but rate "
                 "x latency gives {:.1f} ({} apart)",
                 little.in_flight, little.rate_times_latency, format_share(little.residual)));
    } else if (little.verdict == LittleVerdict::kTooShort) {
        warn(analysis, "little-too-short", queue.queue,
             fmt::format(
                 "in flight and rate x latency are {} apart, but packets in flight at the ends "
                 "of the used part can account for {}: too short, or standing still at the end",
                 format_share(little.residual), format_share(little.edge_share)));
    }
    if (queue.bql && !queue.bql->exact()) {
        warn(analysis, "bql-inexact", queue.queue,
             fmt::format("BQL averages are approximate: windows in which the kernel's counters "
                         "and the traced ones disagree: {}",
                         format_count(queue.bql->inexact_windows)));
    }
    // Not for figures that are known to be wrong already.
    if (queue.bql && queue.trust.ok() && queue.bql->difference.value_or(0) > kLittleLimit) {
        warn(analysis, "bql-differs", queue.queue,
             fmt::format(
                 "BQL holds {} on average, the packets in flight {}: {} apart; a driver may "
                 "report other lengths to BQL (headers of each segment, padding), or report late",
                 format_bytes(queue.bql->average_bytes), format_bytes(queue.bql->in_flight_bytes),
                 format_share(*queue.bql->difference)));
    }
}

void warn_of_run(Analysis& analysis) {
    const NotSeen& seen = analysis.not_seen;
    if (!analysis.ended) {
        warn(analysis, "run-cut", {}, "the recording was cut: what came last is missing");
    }
    if (analysis.used.windows == 0) {
        warn(analysis, "no-windows", {}, "no window was recorded: there are no figures");
    } else if (analysis.port.packets == 0) {
        warn(analysis, "no-traffic", {}, "no packet was sent through this port");
    }
    if (analysis.used.windows_unusable > 0) {
        warn(analysis, "windows-unusable", {},
             fmt::format("{} windows end before they begin and were left out",
                         format_count(analysis.used.windows_unusable)));
    }
    if (seen.unseen_min > kMissedLimit) {
        warn(analysis, "frames-unseen", {},
             fmt::format("at least {} of the frames went past the tracepoints (XDP, AF_XDP, packet "
                         "sockets with PACKET_QDISC_BYPASS, another path): they use the ring too",
                         format_share(seen.unseen_min)));
    }
    if (seen.program_misses.value_or(0) > 0 || seen.queue_beyond > 0 || seen.napi_beyond > 0 ||
        seen.lost_pairs > 0 || seen.ring_odd > 0) {
        warn(analysis, "events-lost", {},
             fmt::format(
                 "{} program runs missed, {} packets lost from the table, {} impossible ring "
                 "indices, {} packets of queues and {} polls of NAPI instances beyond what can be "
                 "followed",
                 format_count(seen.program_misses.value_or(0)), format_count(seen.lost_pairs),
                 format_count(seen.ring_odd), format_count(seen.queue_beyond),
                 format_count(seen.napi_beyond)));
    }
    if (seen.device_gone_ns > 0) {
        warn(analysis, "device-gone", {},
             fmt::format("the device was gone for {}: rates and averages count that time as idle",
                         format_ns(static_cast<double>(seen.device_gone_ns))));
    }
}

// A queue whose packets all end as drops: the driver's own counter tells whether they were lost or
// only freed that way after they were sent.
void judge_drops(Analysis& analysis) {
    if (2 * analysis.not_seen.kernel_dropped < analysis.port.dropped) {
        return;
    }
    for (QueueFigures& queue : analysis.queues) {
        if (queue.trust.frees_as_drops) {
            queue.trust.frees_as_drops = false;
            queue.trust.reason = fmt::format(
                "{} of {} packets were dropped and {} completed: nothing gets out",
                format_count(queue.traffic.dropped), format_count(queue.traffic.packets),
                format_count(queue.traffic.completed));
        }
    }
}

bool findings_in(const Analysis& analysis) {
    return std::any_of(analysis.stalls.begin(), analysis.stalls.end(),
                       [](const Stall& stall) { return stall.counts(); }) ||
           std::any_of(analysis.queues.begin(), analysis.queues.end(),
                       [](const QueueFigures& queue) {
                           return queue.watchdogs > 0 ||
                                  (queue.traffic.dropped > 0 && !queue.trust.frees_as_drops);
                       });
}

Result<std::uint64_t> stall_threshold(const Run& run, const AnalysisParams& params) {
    const std::uint64_t window_ns = run.info.window_ns;
    if (!params.stall_threshold_ns) {
        const std::uint64_t two = window_ns > ~std::uint64_t{0} / 2 ? window_ns : 2 * window_ns;
        return std::max(kDefaultStallNs, two);
    }
    if (*params.stall_threshold_ns <= window_ns) {
        return fail(
            Error(ErrorCode::kUsage,
                  fmt::format("a stall threshold of {} is not longer than the windows of this "
                              "recording ({})",
                              format_ns(static_cast<double>(*params.stall_threshold_ns)),
                              format_ns(static_cast<double>(window_ns))))
                .hint("choose a longer one, or record with shorter windows"));
    }
    return *params.stall_threshold_ns;
}

}  // namespace

std::string_view name_of(EventKind kind) {
    switch (kind) {
        case EventKind::kRenamed:
            return "renamed";
        case EventKind::kDeviceGone:
            return "device-gone";
        case EventKind::kDeviceBack:
            return "device-back";
        case EventKind::kLinkUp:
            return "link-up";
        case EventKind::kLinkDown:
            return "link-down";
        case EventKind::kQueuesChanged:
            return "queues-changed";
        case EventKind::kLateWindow:
            return "late-window";
        case EventKind::kCommandExited:
            return "command-exited";
        case EventKind::kOther:
            break;
    }
    return "other";
}

std::string_view name_of(StallContext context) {
    switch (context) {
        case StallContext::kLinkDown:
            return "link-down";
        case StallContext::kDeviceGone:
            return "device-gone";
        case StallContext::kNone:
            break;
    }
    return "none";
}

Trust trust_of(const TrafficFigures& traffic) {
    // Below this a few packets that are still in flight would decide.
    constexpr std::uint64_t kEnoughPackets = 1000;
    Trust trust;
    if (traffic.packets >= kEnoughPackets &&
        static_cast<double>(traffic.completed) <
            kMissedLimit * static_cast<double>(traffic.packets)) {
        if (share_of(traffic.dropped, traffic.packets) > 0.5) {
            trust.frees_as_drops = true;
            trust.reason = fmt::format(
                "{} of {} packets were freed as dropped and {} as completed; this driver frees "
                "what it "
                "has sent as if it were dropped, or nothing gets out",
                format_count(traffic.dropped), format_count(traffic.packets),
                format_count(traffic.completed));
        } else {
            trust.reason = fmt::format(
                "{} of {} packets were seen to complete; they are freed where no tracepoint sees "
                "it, or "
                "nothing completes",
                format_count(traffic.completed), format_count(traffic.packets));
        }
        return trust;
    }
    const double missed = share_of(traffic.missed, traffic.completed + traffic.missed);
    if (missed > kMissedLimit) {
        trust.reason = fmt::format(
            "{} of the completions ({}) were not seen; those packets are freed where no tracepoint "
            "sees it",
            format_share(missed), format_count(traffic.missed));
        return trust;
    }
    const double unpaired = share_of(traffic.unpaired, traffic.packets);
    if (unpaired > kMissedLimit) {
        trust.reason = fmt::format(
            "{} of the packets ({}) could not be followed: there was no place to remember them",
            format_share(unpaired), format_count(traffic.unpaired));
    }
    return trust;
}

NotSeen not_seen(const Run& run, const UsedPart& used, const TrafficFigures& port) {
    NotSeen result;
    compare_with_kernel(used, result);
    result.missed = port.missed;
    result.missed_share = share_of(port.missed, port.completed + port.missed);
    result.unpaired = port.unpaired;
    result.dropped = port.dropped;
    if (run.ended) {
        result.program_misses = 0;
        result.program_misses_by_name = run.end.program_misses;
        for (const auto& [program, count] : run.end.program_misses) {
            *result.program_misses += count;
        }
        result.queue_beyond = run.end.queue_beyond;
        result.napi_beyond = run.end.napi_beyond;
        result.lost_pairs = run.end.lost_pairs;
        result.ring_odd = run.end.ring_odd;
    }
    if (!used.windows.empty()) {
        const std::uint64_t from = used.windows.front()->start_ns;
        const std::uint64_t to = used.windows.back()->end_ns;
        result.windows_late = static_cast<std::uint64_t>(
            std::count_if(run.events.begin(), run.events.end(), [&](const Event& event) {
                return event.kind == EventKind::kLateWindow && event.time_ns >= from &&
                       event.time_ns <= to;
            }));
    }
    result.device_gone_ns = device_gone_ns(run, used);
    return result;
}

Result<Analysis> analyze(const Run& run, const AnalysisParams& params) {
    const Result<std::uint64_t> threshold_ns = stall_threshold(run, params);
    if (!threshold_ns) {
        return fail(threshold_ns.error());
    }
    const UsedPart used = used_part(run, params.lead_in_ns);
    if (used.windows.empty() && used.interval.windows_left_out > 0) {
        return fail(Error(ErrorCode::kUsage,
                          fmt::format("a lead-in of {} leaves nothing of a run of {}",
                                      format_ns(static_cast<double>(params.lead_in_ns)),
                                      format_ns(static_cast<double>(used.interval.run_ns))))
                        .hint("choose a shorter --warmup"));
    }
    Analysis analysis;
    analysis.info = run.info;
    analysis.info.facts.clear();
    analysis.host = host_summary(run);
    analysis.used = used.interval;
    analysis.lead_in_ns = params.lead_in_ns;
    analysis.stall_threshold_ns = *threshold_ns;
    analysis.ended = run.ended;
    analysis.end = run.end;
    for (Event event : run.events) {
        event.time_ns = minus_or_zero(event.time_ns, used.origin_ns);
        analysis.events.push_back(std::move(event));
    }

    analysis.port = traffic_figures(used, std::nullopt);
    for (const auto& [queue, samples] : used.queues) {
        analysis.queues.push_back(queue_figures(used, queue));
        analysis.trusted = analysis.trusted && analysis.queues.back().trust.ok();
    }
    analysis.queues_used = analysis.queues.size();
    analysis.napis = napi_figures(used);
    analysis.irqs = irq_figures(used);
    analysis.stalls = find_stalls(run, used, *threshold_ns);
    for (Stall& stall : analysis.stalls) {
        stall.doubtful = std::any_of(analysis.queues.begin(), analysis.queues.end(),
                                     [&](const QueueFigures& queue) {
                                         return queue.queue == stall.queue && !queue.trust.ok();
                                     });
    }
    analysis.not_seen = not_seen(run, used, analysis.port);
    judge_drops(analysis);
    warn_of_run(analysis);
    for (const QueueFigures& queue : analysis.queues) {
        warn_of_queue(analysis, queue);
    }
    analysis.has_findings = findings_in(analysis);
    return analysis;
}

}  // namespace ringside
