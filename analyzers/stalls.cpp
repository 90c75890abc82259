// A stall: packets in flight and none completing for the threshold or longer. An idle queue has
// none.
#include <algorithm>
#include <optional>

#include "analyzers/figures.h"

namespace ringside {

namespace {

// Gaps that ended without a completion: the packets were taken out of the ring, by a reset of the
// driver or when the port was closed. From the oldest packet to the beginning of the window in
// which they went: at least so long.
void add_dropped_stalls(std::uint32_t queue, const std::vector<Sample>& samples,
                        std::uint64_t threshold_ns, std::vector<Stall>& result) {
    std::optional<Stall> current;
    for (const Sample& sample : samples) {
        const QueueWindow& window = *sample.queue;
        const bool waits =
            window.completed == 0 && window.in_flight_end > 0 && window.oldest_ns != 0;
        if (current && waits && window.oldest_ns <= current->begin_ns) {
            continue;
        }
        if (current && window.dropped > 0) {
            current->end_ns = sample.window->start_ns;
            current->duration_ns = minus_or_zero(current->end_ns, current->begin_ns);
            if (current->duration_ns >= threshold_ns) {
                result.push_back(*current);
            }
        }
        current.reset();
        if (waits) {
            current.emplace();
            current->queue = queue;
            current->begin_ns = std::max(window.oldest_ns, window.last_progress_ns);
        }
    }
}

// The gap that ended in each window. Two windows may show the same one (a program that was delayed
// past the change of window), and one CPU may see a part of what another sees whole: gaps of a
// queue cannot overlap, so of two that do the longer is kept.
std::vector<Stall> closed_stalls(std::uint32_t queue, const std::vector<Sample>& samples,
                                 std::uint64_t threshold_ns) {
    std::vector<Stall> result;
    for (const Sample& sample : samples) {
        const QueueWindow& window = *sample.queue;
        if (window.gap_max_ns < threshold_ns) {
            continue;
        }
        Stall stall;
        stall.queue = queue;
        stall.end_ns = window.gap_max_end_ns;
        stall.begin_ns = minus_or_zero(window.gap_max_end_ns, window.gap_max_ns);
        stall.duration_ns = window.gap_max_ns;
        result.push_back(stall);
    }
    add_dropped_stalls(queue, samples, threshold_ns, result);
    std::stable_sort(result.begin(), result.end(),
                     [](const Stall& a, const Stall& b) { return a.end_ns < b.end_ns; });
    std::vector<Stall> unique;
    for (const Stall& stall : result) {
        if (unique.empty() || stall.begin_ns >= unique.back().end_ns) {
            unique.push_back(stall);
        } else if (stall.duration_ns > unique.back().duration_ns) {
            unique.back() = stall;
        }
    }
    return unique;
}

// When the gap began that is open at the end of the samples; when that is not known, a time at
// which it had begun.
std::uint64_t open_since(const std::vector<Sample>& samples) {
    const std::uint64_t progress = samples.back().queue->last_progress_ns;
    std::uint64_t since = samples.back().window->end_ns;
    for (auto sample = samples.rbegin(); sample != samples.rend(); ++sample) {
        if (sample->queue->in_flight_end <= 0) {
            break;
        }
        // In flight when this window ended, and nothing has completed since.
        since = sample->window->end_ns;
        if (sample->queue->oldest_ns != 0) {
            // Had an older packet been there when the last one left, it would still be there.
            since = sample->queue->oldest_ns;
            break;
        }
        if (sample->queue->completed > 0) {
            break;
        }
    }
    return std::max(since, progress);
}

std::optional<Stall> open_stall(std::uint32_t queue, const std::vector<Sample>& samples,
                                const Window& last_window, std::uint64_t threshold_ns) {
    // A queue that is missing from the last window has been taken away; nothing is known of it.
    if (samples.back().window != &last_window || samples.back().queue->in_flight_end <= 0) {
        return std::nullopt;
    }
    Stall stall;
    stall.queue = queue;
    stall.begin_ns = open_since(samples);
    stall.end_ns = last_window.end_ns;
    stall.duration_ns = minus_or_zero(stall.end_ns, stall.begin_ns);
    stall.open = true;
    stall.in_flight = samples.back().queue->in_flight_end;
    if (stall.duration_ns < threshold_ns) {
        return std::nullopt;
    }
    return stall;
}

}  // namespace

std::vector<Away> away_intervals(const Run& run) {
    struct Rule {
        EventKind begin;
        EventKind end;
        StallContext context;
    };
    constexpr Rule kRules[] = {
        {EventKind::kLinkDown, EventKind::kLinkUp, StallContext::kLinkDown},
        {EventKind::kDeviceGone, EventKind::kDeviceBack, StallContext::kDeviceGone}};
    std::vector<Away> result;
    for (const Rule& rule : kRules) {
        bool away = false;
        for (const Event& event : run.events) {
            if (event.kind == rule.begin && !away) {
                away = true;
                result.push_back({event.time_ns, ~std::uint64_t{0}, rule.context});
            } else if (event.kind == rule.end && away) {
                away = false;
                result.back().to_ns = std::max(result.back().from_ns, event.time_ns);
            }
        }
    }
    return result;
}

std::vector<Stall> find_stalls(const Run& run, const UsedPart& used, std::uint64_t threshold_ns) {
    std::vector<Stall> result;
    if (used.windows.empty()) {
        return result;
    }
    const std::vector<Away> away = away_intervals(run);
    for (const auto& [queue, samples] : used.queues) {
        std::vector<Stall> stalls = closed_stalls(queue, samples, threshold_ns);
        if (const auto open = open_stall(queue, samples, *used.windows.back(), threshold_ns)) {
            stalls.push_back(*open);
        }
        for (Stall& stall : stalls) {
            for (const Away& interval : away) {
                if (stall.begin_ns < interval.to_ns && interval.from_ns < stall.end_ns) {
                    stall.context = std::max(stall.context, interval.context);
                }
            }
            stall.begin_ns = minus_or_zero(stall.begin_ns, used.origin_ns);
            stall.end_ns = minus_or_zero(stall.end_ns, used.origin_ns);
            result.push_back(stall);
        }
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Stall& a, const Stall& b) { return a.begin_ns < b.begin_ns; });
    return result;
}

}  // namespace ringside
