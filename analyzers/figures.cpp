#include "analyzers/figures.h"

#include <algorithm>
#include <cmath>

#include "analyzers/base/units.h"

namespace ringside {

namespace {

constexpr std::size_t kDistributionBins = 40;

// A sum modulo 2^64 that may be a little below zero for a single window.
std::uint64_t not_negative(std::uint64_t sum) {
    return static_cast<std::int64_t>(sum) < 0 ? 0 : sum;
}

// Areas are doubles from a file: they may be anything.
double finite(double value) {
    return std::isfinite(value) ? value : 0;
}

double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

double per_second(double count, std::uint64_t ns) {
    return ratio(count * static_cast<double>(kNsPerSecond), static_cast<double>(ns));
}

// Sum of levels without signed overflow.
std::int64_t plus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// What several QueueWindows add up to.
struct Sum {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
    std::uint64_t wire_bytes = 0;
    std::uint64_t in_flight_max = 0;
    double packet_ns = 0;
    double byte_ns = 0;
    double latency_ns = 0;
    std::uint64_t latency_max_ns = 0;
    double driver_stopped_ns = 0;
    double bql_stopped_ns = 0;
    Histogram latency;

    void add(const QueueWindow& window) {
        // `segments` and `wire_bytes` never held what the driver gave back, `packets` and `bytes`
        // did. Modulo 2^64: a packet may be counted in one window and taken back in the next.
        packets += window.packets - window.requeued;
        bytes += window.bytes - window.requeued_bytes;
        segments += window.segments;
        wire_bytes += window.wire_bytes;
        in_flight_max = std::max(in_flight_max, window.in_flight_max);
        packet_ns += finite(window.in_flight_packet_ns);
        byte_ns += finite(window.in_flight_byte_ns);
        latency_ns += static_cast<double>(window.latency_ns);
        latency_max_ns = std::max(latency_max_ns, window.latency_max_ns);
        driver_stopped_ns += static_cast<double>(window.driver_stop.stopped_ns);
        bql_stopped_ns += static_cast<double>(window.bql_stop.stopped_ns);
        latency.add(window.latency);
    }
    // Interpolation inside a bucket must not give more than the longest latency that was measured.
    [[nodiscard]] double quantile_ns(double share) const {
        const double value = latency.quantile_ns(share);
        return latency_max_ns > 0 ? std::min(value, static_cast<double>(latency_max_ns)) : value;
    }
    [[nodiscard]] double average(double area, std::uint64_t duration_ns) const {
        return std::max(0.0, ratio(area, static_cast<double>(duration_ns)));
    }
};

// Absent for an empty histogram; never above the longest time, where one was recorded.
std::optional<double> quantile(const Histogram& histogram, double share, std::uint64_t max_ns) {
    if (histogram.empty()) {
        return std::nullopt;
    }
    const double value = histogram.quantile_ns(share);
    return max_ns > 0 ? std::min(value, static_cast<double>(max_ns)) : value;
}

// The next of 1, 2, 5, 10, 20 ... at or below (above) a time: ends of a scale that can be read.
double round_scale(double ns, bool up) {
    const double decade = std::pow(10.0, std::floor(std::log10(std::max(ns, 1.0))));
    double below = decade;
    for (const double step : {1.0, 2.0, 5.0, 10.0}) {
        if (up && step * decade >= ns) {
            return step * decade;
        }
        if (step * decade <= ns) {
            below = step * decade;
        }
    }
    return below;
}

Distribution distribution_of(const Histogram& histogram) {
    std::uint32_t first = kHistogramBuckets;
    std::uint32_t last = 0;
    std::uint32_t mode = 0;
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
        if (histogram.count(bucket) == 0) {
            continue;
        }
        first = std::min(first, bucket);
        last = bucket;
        mode = histogram.count(bucket) > histogram.count(mode) ? bucket : mode;
    }
    Distribution result;
    // Bucket 0 begins at 0, which no logarithm reaches.
    const double smallest = Histogram::lower_bound_ns(1) / 2;
    result.from_ns = round_scale(std::max(smallest, Histogram::lower_bound_ns(first)), false);
    result.to_ns = round_scale(Histogram::lower_bound_ns(last + 1), true);
    result.bins = histogram.log_bins(result.from_ns, result.to_ns, kDistributionBins);
    result.mode_ns = (Histogram::lower_bound_ns(mode) + Histogram::lower_bound_ns(mode + 1)) / 2;
    return result;
}

std::optional<LatencyFigures> latency_figures(const Sum& sum, std::uint64_t completed) {
    if (completed == 0 || sum.latency.empty()) {
        return std::nullopt;
    }
    LatencyFigures latency;
    latency.count = completed;
    latency.mean_ns = sum.latency_ns / static_cast<double>(completed);
    latency.histogram_mean_ns = sum.latency.mean_ns();
    latency.p50_ns = sum.quantile_ns(0.5);
    latency.p90_ns = sum.quantile_ns(0.9);
    latency.p99_ns = sum.quantile_ns(0.99);
    latency.p99_9_ns = sum.quantile_ns(0.999);
    latency.max_ns = static_cast<double>(sum.latency_max_ns);
    latency.distribution = distribution_of(sum.latency);
    latency.distribution.mode_ns = std::min(latency.distribution.mode_ns, latency.max_ns);
    return latency;
}

WindowFigures window_figures(const Window& window, const Sum& sum, std::uint64_t origin_ns,
                             std::size_t queues) {
    WindowFigures figures;
    figures.start_ns = minus_or_zero(window.start_ns, origin_ns);
    figures.duration_ns = window.end_ns - window.start_ns;
    figures.wire_bps =
        per_second(8 * static_cast<double>(not_negative(sum.wire_bytes)), figures.duration_ns);
    figures.packets_per_s =
        per_second(static_cast<double>(not_negative(sum.packets)), figures.duration_ns);
    figures.in_flight_packets = sum.average(sum.packet_ns, figures.duration_ns);
    figures.in_flight_bytes = sum.average(sum.byte_ns, figures.duration_ns);
    if (queues <= 1) {
        figures.in_flight_max_packets = sum.in_flight_max;
    }
    if (!sum.latency.empty()) {
        figures.latency_p50_ns = sum.quantile_ns(0.5);
        figures.latency_p99_ns = sum.quantile_ns(0.99);
    }
    const double queue_time = static_cast<double>(figures.duration_ns) *
                              static_cast<double>(std::max<std::size_t>(queues, 1));
    figures.driver_stopped_share = ratio(sum.driver_stopped_ns, queue_time);
    figures.bql_stopped_share = ratio(sum.bql_stopped_ns, queue_time);
    return figures;
}

// The samples of all queues, in the order of the windows.
std::vector<Sample> all_samples(const UsedPart& used) {
    std::vector<Sample> samples;
    for (const Window* window : used.windows) {
        for (const QueueWindow& queue : window->queues) {
            samples.push_back({window, &queue});
        }
    }
    return samples;
}

StopSummary stop_summary(const std::vector<Sample>& samples, StopFigures QueueWindow::*reason,
                         std::uint64_t duration_ns) {
    StopSummary summary;
    std::uint64_t open_ns = 0;  // length of the stop that is open now, at least
    bool was_open = false;
    for (const Sample& sample : samples) {
        const StopFigures& stop = sample.queue->*reason;
        summary.count += stop.count;
        summary.stopped_ns += stop.stopped_ns;
        summary.longest_ns = std::max(summary.longest_ns, stop.longest_ns);
        if (!stop.open) {
            open_ns = 0;
        } else if (was_open && stop.count == 0) {
            open_ns += stop.stopped_ns;
        } else {
            // It began here; with several stops in one window its share of the time is not known.
            open_ns = !was_open && stop.count == 1 ? stop.stopped_ns : 0;
        }
        was_open = stop.open;
    }
    // The recorded longest is of the whole run, and of stops that have ended.
    summary.longest_ns = std::max(std::min(summary.longest_ns, summary.stopped_ns), open_ns);
    summary.open = was_open;
    summary.share =
        ratio(static_cast<double>(summary.stopped_ns), static_cast<double>(duration_ns));
    return summary;
}

// The most that a packet in flight at the end can have waited. The oldest one is looked for only
// now and then; packets that leave in order have waited no longer than the last one that left, and
// since then.
std::uint64_t most_age_ns(const Sample& last, const TrafficFigures& traffic) {
    if (last.queue->oldest_ns != 0) {
        return minus_or_zero(last.window->end_ns, last.queue->oldest_ns);
    }
    const std::uint64_t waited = minus_or_zero(last.window->end_ns, last.queue->last_progress_ns);
    const double latency_ns = traffic.latency ? traffic.latency->max_ns : 0;
    return waited + static_cast<std::uint64_t>(std::min(latency_ns, 1e18));
}

std::optional<BqlFigures> bql_figures(const std::vector<Sample>& samples) {
    BqlFigures figures;
    double bql_area = 0;
    double skb_area = 0;
    std::uint64_t seen_ns = 0;
    for (const Sample& sample : samples) {
        if (!sample.queue->bql) {
            continue;
        }
        seen_ns += sample.window->end_ns - sample.window->start_ns;
        bql_area += finite(sample.queue->bql_byte_ns);
        skb_area += finite(sample.queue->in_flight_byte_ns);
        figures.max_bytes = std::max(figures.max_bytes, sample.queue->bql_max);
        figures.inexact_windows += sample.queue->bql_exact ? 0 : 1;
    }
    if (seen_ns == 0) {
        return std::nullopt;
    }
    figures.average_bytes = std::max(0.0, bql_area / static_cast<double>(seen_ns));
    figures.in_flight_bytes = std::max(0.0, skb_area / static_cast<double>(seen_ns));
    if (figures.in_flight_bytes > 0) {
        figures.difference =
            std::abs(figures.average_bytes - figures.in_flight_bytes) / figures.in_flight_bytes;
    }
    return figures;
}

std::optional<RingFigures> ring_figures(const std::vector<Sample>& samples, std::uint64_t packets,
                                        std::uint64_t duration_ns) {
    RingFigures figures;
    double area = 0;
    std::uint64_t taken = 0;
    for (const Sample& sample : samples) {
        const RingWindow& ring = sample.queue->ring;
        figures.size = ring.size != 0 ? ring.size : figures.size;
        figures.descriptors += ring.descriptors;
        taken += ring.taken;
        area += finite(ring.used_ns);
        figures.used_max = std::max(figures.used_max, ring.used_max);
        figures.batches += ring.batches;
        figures.batch_max = std::max(figures.batch_max, ring.batch_max);
        figures.batches_by_irq += ring.batches_by_irq;
        figures.batches_by_timer += ring.batches_by_timer;
        figures.timers += ring.timers;
        figures.bypassed += ring.bypassed;
        figures.resets += ring.resets;
        figures.reset_packets += ring.reset_packets;
    }
    if (figures.size == 0) {
        return std::nullopt;
    }
    figures.used = std::max(0.0, ratio(area, static_cast<double>(duration_ns)));
    figures.used_share = ratio(figures.used, static_cast<double>(figures.size));
    figures.descriptors_per_packet =
        ratio(static_cast<double>(figures.descriptors), static_cast<double>(packets));
    figures.batches_by_other =
        minus_or_zero(figures.batches, figures.batches_by_irq + figures.batches_by_timer);
    figures.batch_descriptors =
        ratio(static_cast<double>(taken), static_cast<double>(figures.batches));
    return figures;
}

}  // namespace

UsedPart used_part(const Run& run, std::uint64_t lead_in_ns) {
    UsedPart used;
    UsedInterval& interval = used.interval;
    used.origin_ns = run.info.start_boottime_ns;
    if (used.origin_ns == 0 && !run.windows.empty()) {
        used.origin_ns = run.windows.front().start_ns;
    }
    std::uint64_t last_ns = used.origin_ns;
    std::optional<std::uint64_t> first_ns;
    for (const Window& window : run.windows) {
        if (window.end_ns <= window.start_ns) {
            ++interval.windows_unusable;
            continue;
        }
        first_ns = first_ns.value_or(window.start_ns);
        last_ns = std::max(last_ns, window.end_ns);
        if (minus_or_zero(window.start_ns, *first_ns) < lead_in_ns) {
            ++interval.windows_left_out;
            for (const QueueWindow& queue : window.queues) {
                used.in_flight_before[queue.queue] = queue.in_flight_end;
            }
            continue;
        }
        const std::uint64_t length = window.end_ns - window.start_ns;
        if (used.windows.empty()) {
            interval.from_ns = minus_or_zero(window.start_ns, used.origin_ns);
        }
        interval.to_ns = minus_or_zero(window.end_ns, used.origin_ns);
        interval.duration_ns += length;
        interval.window_longest_ns = std::max(interval.window_longest_ns, length);
        used.windows.push_back(&window);
        for (const QueueWindow& queue : window.queues) {
            used.queues[queue.queue].push_back({&window, &queue});
        }
    }
    interval.windows = used.windows.size();
    interval.run_ns =
        minus_or_zero(run.ended ? std::max(run.end.end_ns, last_ns) : last_ns, used.origin_ns);
    return used;
}

TrafficFigures traffic_figures(const UsedPart& used, std::optional<std::uint32_t> queue) {
    static const std::vector<Sample> kNone;
    std::vector<Sample> all;
    const std::vector<Sample>* samples = &kNone;
    if (!queue) {
        all = all_samples(used);
        samples = &all;
    } else if (const auto found = used.queues.find(*queue); found != used.queues.end()) {
        samples = &found->second;
    }
    const std::size_t queues = queue ? 1 : used.queues.size();

    TrafficFigures figures;
    figures.duration_ns = used.interval.duration_ns;
    Sum total;
    auto at = samples->begin();
    for (const Window* window : used.windows) {
        Sum sum;
        std::int64_t in_flight_end = 0;
        for (; at != samples->end() && at->window == window; ++at) {
            const QueueWindow& sample = *at->queue;
            sum.add(sample);
            total.add(sample);
            figures.completed += sample.completed;
            figures.completed_bytes += sample.completed_bytes;
            figures.dropped += sample.dropped;
            figures.requeued += sample.requeued;
            figures.errors += sample.errors;
            figures.missed += sample.missed;
            figures.unpaired += sample.unpaired;
            in_flight_end = plus(in_flight_end, sample.in_flight_end);
        }
        figures.in_flight_end = in_flight_end;
        figures.windows.push_back(window_figures(*window, sum, used.origin_ns, queues));
        if (!queue) {
            std::uint64_t polls = 0;
            for (const NapiWindow& napi : window->napis) {
                polls += napi.polls;
            }
            figures.windows.back().polls = polls;
        }
        figures.in_flight_window_max_bytes =
            std::max(figures.in_flight_window_max_bytes, figures.windows.back().in_flight_bytes);
    }

    figures.packets = not_negative(total.packets);
    figures.bytes = not_negative(total.bytes);
    figures.segments = not_negative(total.segments);
    figures.wire_bytes = not_negative(total.wire_bytes);
    figures.wire_bps = per_second(8 * static_cast<double>(figures.wire_bytes), figures.duration_ns);
    figures.packet_bps = per_second(8 * static_cast<double>(figures.bytes), figures.duration_ns);
    figures.packets_per_s = per_second(static_cast<double>(figures.packets), figures.duration_ns);
    figures.segments_per_packet =
        ratio(static_cast<double>(figures.segments), static_cast<double>(figures.packets));
    figures.in_flight_packets = total.average(total.packet_ns, figures.duration_ns);
    figures.in_flight_bytes = total.average(total.byte_ns, figures.duration_ns);
    if (queues <= 1) {
        figures.in_flight_max_packets = total.in_flight_max;
    }
    figures.latency = latency_figures(total, figures.completed);
    return figures;
}

QueueFigures queue_figures(const UsedPart& used, std::uint32_t queue) {
    QueueFigures figures;
    figures.queue = queue;
    figures.traffic = traffic_figures(used, queue);
    figures.trust = trust_of(figures.traffic);
    const auto found = used.queues.find(queue);
    if (found == used.queues.end()) {
        return figures;
    }
    const std::vector<Sample>& samples = found->second;
    figures.ring = ring_figures(samples, figures.traffic.packets, used.interval.duration_ns);
    figures.bql = bql_figures(samples);
    figures.driver_stop =
        stop_summary(samples, &QueueWindow::driver_stop, used.interval.duration_ns);
    figures.bql_stop = stop_summary(samples, &QueueWindow::bql_stop, used.interval.duration_ns);
    for (const Sample& sample : samples) {
        figures.watchdogs += sample.queue->watchdogs;
    }
    const auto before = used.in_flight_before.find(queue);
    figures.little =
        little_check(figures.traffic, before == used.in_flight_before.end() ? 0 : before->second,
                     most_age_ns(samples.back(), figures.traffic));
    return figures;
}

LittleCheck little_check(const TrafficFigures& traffic, std::int64_t in_flight_before,
                         std::uint64_t most_age_ns) {
    LittleCheck check;
    const double duration_ns = static_cast<double>(traffic.duration_ns);
    check.in_flight = traffic.in_flight_packets;
    if (!traffic.latency || check.in_flight <= 0 || duration_ns <= 0) {
        return check;
    }
    const double latency_ns = traffic.latency->histogram_mean_ns;
    check.rate_times_latency = static_cast<double>(traffic.completed) / duration_ns * latency_ns;
    check.residual = std::abs(check.in_flight - check.rate_times_latency) / check.in_flight;
    // A packet that is still in flight at the end has been counted in the area, for at most the age
    // of the oldest one, but not in the latencies; one that was in flight when the used part began
    // is in the latencies with the time before it.
    const double age_ns = std::min(duration_ns, static_cast<double>(most_age_ns));
    const double edge_ns =
        static_cast<double>(std::max<std::int64_t>(0, traffic.in_flight_end)) * age_ns +
        static_cast<double>(std::max<std::int64_t>(0, in_flight_before)) * latency_ns;
    check.edge_share = std::min(1.0, edge_ns / (check.in_flight * duration_ns));
    if (check.residual <= kLittleLimit) {
        check.verdict = LittleVerdict::kAgrees;
    } else if (check.residual - check.edge_share <= kLittleLimit) {
        check.verdict = LittleVerdict::kTooShort;
    } else {
        check.verdict = LittleVerdict::kDisagrees;
    }
    return check;
}

std::vector<NapiFigures> napi_figures(const UsedPart& used) {
    struct Total {
        NapiWindow sum;
        Histogram gap;
        Histogram irq_to_poll;
    };
    std::map<std::uint32_t, Total> totals;
    for (const Window* window : used.windows) {
        for (const NapiWindow& napi : window->napis) {
            Total& total = totals[napi.instance];
            total.sum.polls += napi.polls;
            total.sum.work += napi.work;
            total.sum.exhausted += napi.exhausted;
            total.sum.gap_max_ns = std::max(total.sum.gap_max_ns, napi.gap_max_ns);
            total.gap.add(napi.gap);
            total.sum.irq_polls += napi.irq_polls;
            total.sum.irq_to_poll_max_ns =
                std::max(total.sum.irq_to_poll_max_ns, napi.irq_to_poll_max_ns);
            total.irq_to_poll.add(napi.irq_to_poll);
        }
    }
    std::vector<NapiFigures> result;
    for (const auto& [instance, total] : totals) {
        NapiFigures figures;
        const double polls = static_cast<double>(total.sum.polls);
        figures.instance = instance;
        figures.polls = total.sum.polls;
        figures.polls_per_s = per_second(polls, used.interval.duration_ns);
        figures.work_per_poll = ratio(static_cast<double>(total.sum.work), polls);
        figures.exhausted_share = ratio(static_cast<double>(total.sum.exhausted), polls);
        figures.gap_max_ns = static_cast<double>(total.sum.gap_max_ns);
        figures.gap_p50_ns = quantile(total.gap, 0.5, total.sum.gap_max_ns);
        figures.gap_p99_ns = quantile(total.gap, 0.99, total.sum.gap_max_ns);
        figures.irq_polls = total.sum.irq_polls;
        figures.irq_to_poll_max_ns = static_cast<double>(total.sum.irq_to_poll_max_ns);
        figures.irq_to_poll_p50_ns = quantile(total.irq_to_poll, 0.5, total.sum.irq_to_poll_max_ns);
        figures.irq_to_poll_p99_ns =
            quantile(total.irq_to_poll, 0.99, total.sum.irq_to_poll_max_ns);
        result.push_back(figures);
    }
    return result;
}

IrqFigures irq_figures(const UsedPart& used) {
    IrqFigures figures;
    for (const Window* window : used.windows) {
        figures.count += window->irqs;
    }
    figures.per_s = per_second(static_cast<double>(figures.count), used.interval.duration_ns);
    return figures;
}

}  // namespace ringside
