#include "tools/render/analysis_json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace ringside {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

// Six significant digits: no measured average is better, and the last bits of a double differ
// between compilers.
Json number(double value) {
    if (!std::isfinite(value)) {
        return nullptr;
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return std::strtod(text, nullptr);
}

Json number(const std::optional<double>& value) {
    return value ? number(*value) : Json();
}

template <class T>
Json optional(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

// Not recorded is null and not an empty string.
Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

const char* name_of(LittleVerdict verdict) {
    switch (verdict) {
        case LittleVerdict::kAgrees:
            return "agrees";
        case LittleVerdict::kDisagrees:
            return "disagrees";
        case LittleVerdict::kTooShort:
            return "too-short";
        case LittleVerdict::kNoData:
            break;
    }
    return "no-data";
}

const char* name_of(CountedAs counted) {
    switch (counted) {
        case CountedAs::kPackets:
            return "packets";
        case CountedAs::kSegments:
            return "frames";
        case CountedAs::kBetween:
            return "between";
        case CountedAs::kMore:
            return "more";
        case CountedAs::kFewer:
            return "fewer";
        case CountedAs::kUnknown:
            break;
    }
    return "unknown";
}

Json window_json(const WindowFigures& window) {
    Json json{{"start_ns", window.start_ns},
              {"duration_ns", window.duration_ns},
              {"wire_bps", number(window.wire_bps)},
              {"packets_per_s", number(window.packets_per_s)},
              {"in_flight_packets", number(window.in_flight_packets)},
              {"in_flight_bytes", number(window.in_flight_bytes)},
              {"in_flight_max_packets", optional(window.in_flight_max_packets)},
              {"latency_p50_ns", number(window.latency_p50_ns)},
              {"latency_p99_ns", number(window.latency_p99_ns)},
              {"driver_stopped_share", number(window.driver_stopped_share)},
              {"bql_stopped_share", number(window.bql_stopped_share)}};
    if (window.polls) {
        json["polls"] = *window.polls;
    }
    return json;
}

Json latency_json(const LatencyFigures& latency) {
    Json bins = Json::array();
    for (const double bin : latency.distribution.bins) {
        bins.push_back(number(bin));
    }
    return {{"count", latency.count},
            {"mean_ns", number(latency.mean_ns)},
            {"histogram_mean_ns", number(latency.histogram_mean_ns)},
            {"p50_ns", number(latency.p50_ns)},
            {"p90_ns", number(latency.p90_ns)},
            {"p99_ns", number(latency.p99_ns)},
            {"p99_9_ns", number(latency.p99_9_ns)},
            {"max_ns", number(latency.max_ns)},
            {"distribution",
             {{"from_ns", number(latency.distribution.from_ns)},
              {"to_ns", number(latency.distribution.to_ns)},
              {"mode_ns", number(latency.distribution.mode_ns)},
              {"bins", std::move(bins)}}}};
}

Json traffic_json(const TrafficFigures& traffic, const AnalysisJsonOptions& options) {
    Json json{{"packets", traffic.packets},
              {"bytes", traffic.bytes},
              {"segments", traffic.segments},
              {"wire_bytes", traffic.wire_bytes},
              {"wire_bps", number(traffic.wire_bps)},
              {"packet_bps", number(traffic.packet_bps)},
              {"packets_per_s", number(traffic.packets_per_s)},
              {"segments_per_packet", number(traffic.segments_per_packet)},
              {"completed", traffic.completed},
              {"completed_bytes", traffic.completed_bytes},
              {"dropped", traffic.dropped},
              {"requeued", traffic.requeued},
              {"errors", traffic.errors},
              {"missed", traffic.missed},
              {"unpaired", traffic.unpaired},
              {"in_flight_end_packets", traffic.in_flight_end},
              {"in_flight_packets", number(traffic.in_flight_packets)},
              {"in_flight_bytes", number(traffic.in_flight_bytes)},
              {"in_flight_max_packets", optional(traffic.in_flight_max_packets)},
              {"in_flight_window_max_bytes", number(traffic.in_flight_window_max_bytes)},
              {"latency", traffic.latency ? latency_json(*traffic.latency) : Json()}};
    if (options.windows) {
        Json windows = Json::array();
        for (const WindowFigures& window : traffic.windows) {
            windows.push_back(window_json(window));
        }
        json["windows"] = std::move(windows);
    }
    return json;
}

Json stop_json(const StopSummary& stop) {
    return {{"count", stop.count},
            {"stopped_ns", stop.stopped_ns},
            {"stopped_share", number(stop.share)},
            {"longest_ns", stop.longest_ns},
            {"open", stop.open}};
}

Json queue_json(const QueueFigures& queue, const AnalysisJsonOptions& options) {
    Json bql;
    if (queue.bql) {
        bql = {{"average_bytes", number(queue.bql->average_bytes)},
               {"max_bytes", queue.bql->max_bytes},
               {"exact", queue.bql->exact()},
               {"inexact_windows", queue.bql->inexact_windows},
               {"in_flight_bytes", number(queue.bql->in_flight_bytes)},
               {"difference_share", number(queue.bql->difference)}};
    }
    Json ring;
    if (queue.ring) {
        ring = {{"size", queue.ring->size},
                {"descriptors", queue.ring->descriptors},
                {"descriptors_per_packet", number(queue.ring->descriptors_per_packet)},
                {"used", number(queue.ring->used)},
                {"used_share", number(queue.ring->used_share)},
                {"used_max", queue.ring->used_max},
                {"batches", queue.ring->batches},
                {"batch_descriptors", number(queue.ring->batch_descriptors)},
                {"batch_max", queue.ring->batch_max},
                {"batches_by_irq", queue.ring->batches_by_irq},
                {"batches_by_timer", queue.ring->batches_by_timer},
                {"batches_by_other", queue.ring->batches_by_other},
                {"timers", queue.ring->timers},
                {"bypassed", queue.ring->bypassed},
                {"resets", queue.ring->resets},
                {"reset_packets", queue.ring->reset_packets}};
    }
    return {{"queue", queue.queue},
            {"traffic", traffic_json(queue.traffic, options)},
            {"ring", std::move(ring)},
            {"bql", std::move(bql)},
            {"driver_stop", stop_json(queue.driver_stop)},
            {"bql_stop", stop_json(queue.bql_stop)},
            {"watchdogs", queue.watchdogs},
            {"little",
             {{"verdict", name_of(queue.little.verdict)},
              {"in_flight_packets", number(queue.little.in_flight)},
              {"rate_times_latency_packets", number(queue.little.rate_times_latency)},
              {"residual_share", number(queue.little.residual)},
              {"edge_share", number(queue.little.edge_share)}}},
            {"trusted", queue.trust.ok()},
            {"not_trusted_reason", text_or_null(queue.trust.reason)}};
}

Json napi_json(const NapiFigures& napi) {
    return {{"instance", napi.instance},
            {"polls", napi.polls},
            {"polls_per_s", number(napi.polls_per_s)},
            {"work_per_poll", number(napi.work_per_poll)},
            {"exhausted_share", number(napi.exhausted_share)},
            {"gap_p50_ns", number(napi.gap_p50_ns)},
            {"gap_p99_ns", number(napi.gap_p99_ns)},
            {"gap_max_ns", number(napi.gap_max_ns)},
            {"irq_polls", napi.irq_polls},
            {"irq_to_poll_p50_ns", number(napi.irq_to_poll_p50_ns)},
            {"irq_to_poll_p99_ns", number(napi.irq_to_poll_p99_ns)},
            {"irq_to_poll_max_ns", number(napi.irq_to_poll_max_ns)}};
}

Json stall_json(const Stall& stall) {
    return {{"queue", stall.queue},
            {"begin_ns", stall.begin_ns},
            {"end_ns", stall.end_ns},
            {"duration_ns", stall.duration_ns},
            {"open", stall.open},
            {"in_flight_packets", stall.open ? Json(stall.in_flight) : Json()},
            {"context", name_of(stall.context)},
            {"doubtful", stall.doubtful}};
}

Json not_seen_json(const NotSeen& seen) {
    Json by_program = Json::array();
    for (const auto& [program, count] : seen.program_misses_by_name) {
        by_program.push_back({{"program", program}, {"misses", count}});
    }
    return {{"kernel_counts", name_of(seen.counted_as)},
            {"kernel_packets", seen.kernel_packets},
            {"traced_packets", seen.traced_packets},
            {"traced_segments", seen.traced_segments},
            {"unseen_min_share", number(seen.unseen_min)},
            {"unseen_max_share", number(seen.unseen_max)},
            {"kernel_dropped", seen.kernel_dropped},
            {"kernel_errors", seen.kernel_errors},
            {"missed", seen.missed},
            {"missed_share", number(seen.missed_share)},
            {"unpaired", seen.unpaired},
            {"dropped", seen.dropped},
            {"program_misses", optional(seen.program_misses)},
            {"program_misses_by_name", std::move(by_program)},
            {"queue_beyond", seen.queue_beyond},
            {"napi_beyond", seen.napi_beyond},
            {"lost_pairs", seen.lost_pairs},
            {"ring_odd", seen.ring_odd},
            {"windows_late", seen.windows_late},
            {"device_gone_ns", seen.device_gone_ns}};
}

Json end_json(const Analysis& analysis) {
    if (!analysis.ended) {
        return nullptr;
    }
    const RunEnd& end = analysis.end;
    return {{"reason", end.reason},
            {"command_exit", end.command_ran ? Json(end.command_exit) : Json()},
            {"command_signal",
             end.command_ran && end.command_signal != 0 ? Json(end.command_signal) : Json()},
            {"recorder_cpu_ns", end.recorder_cpu_ns}};
}

Json used_json(const Analysis& analysis) {
    const UsedInterval& used = analysis.used;
    return {{"from_ns", used.from_ns},
            {"to_ns", used.to_ns},
            {"duration_ns", used.duration_ns},
            {"run_ns", used.run_ns},
            {"lead_in_ns", analysis.lead_in_ns},
            {"windows", used.windows},
            {"windows_left_out", used.windows_left_out},
            {"windows_unusable", used.windows_unusable},
            {"window_longest_ns", used.window_longest_ns}};
}

// Renders each value of a list.
template <class T, class Render>
Json list(const std::vector<T>& values, Render render) {
    Json json = Json::array();
    for (const T& value : values) {
        json.push_back(render(value));
    }
    return json;
}

Json run_json(const NumberedAnalysis& numbered, const AnalysisJsonOptions& options) {
    const Analysis& analysis = numbered.analysis;
    const RunInfo& info = analysis.info;
    const HostSummary& host = analysis.host;
    return {{"run", numbered.number},
            {"interface", info.interface},
            {"host",
             {{"model", text_or_null(host.model)},
              {"kernel", text_or_null(host.kernel)},
              {"arch", text_or_null(host.arch)},
              {"driver", text_or_null(host.driver)},
              {"link_mbps", optional(host.link_mbps)},
              {"duplex", text_or_null(host.duplex)},
              {"ring_descriptors", optional(host.ring_descriptors)},
              {"coalesce_tx_us", optional(host.tx_usecs)},
              {"coalesce_tx_frames", optional(host.tx_frames)}}},
            {"tier", info.tier},
            {"tier_why", info.tier_why},
            {"hooks", info.hooks},
            {"command", info.command},
            {"tool_version", info.tool_version},
            {"start_unix_ns", info.start_unix_ns},
            {"window_ns", info.window_ns},
            {"tx_queues", info.num_queues},
            {"end", end_json(analysis)},
            {"used", used_json(analysis)},
            {"stall_threshold_ns", analysis.stall_threshold_ns},
            {"has_findings", analysis.has_findings},
            {"queues_used", analysis.queues_used},
            {"port", traffic_json(analysis.port, options)},
            {"queues", list(analysis.queues,
                            [&](const QueueFigures& queue) { return queue_json(queue, options); })},
            {"napi", list(analysis.napis, napi_json)},
            {"irqs", {{"count", analysis.irqs.count}, {"per_s", number(analysis.irqs.per_s)}}},
            {"stalls", list(analysis.stalls, stall_json)},
            {"events", list(analysis.events,
                            [](const Event& event) {
                                return Json{{"time_ns", event.time_ns},
                                            {"kind", name_of(event.kind)},
                                            {"text", event.text}};
                            })},
            {"not_seen", not_seen_json(analysis.not_seen)},
            {"warnings", list(analysis.warnings, [](const Warning& warning) {
                 return Json{{"id", warning.id},
                             {"queue", optional(warning.queue)},
                             {"text", warning.text}};
             })}};
}

}  // namespace

std::string analysis_json(const CaptureAnalysis& capture, const AnalysisJsonOptions& options) {
    const Json json{{"schema", "ringside.analysis"},
                    {"schema_version", kSchemaVersion},
                    {"capture",
                     {{"cut", text_or_null(capture.cut)},
                      {"file_bytes", capture.file_bytes},
                      {"used_bytes", capture.used_bytes},
                      {"runs", capture.runs_in_file}}},
                    {"runs", list(capture.runs, [&](const NumberedAnalysis& run) {
                         return run_json(run, options);
                     })}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ringside
