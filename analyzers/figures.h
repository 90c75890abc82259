// From a run to figures: pure functions, no clock, no files. docs/figures.md explains each figure.
// Whatever a capture holds, they return: a number that makes no sense gives a figure that makes
// none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analyzers/analysis.h"
#include "analyzers/base/result.h"
#include "analyzers/capture/records.h"

namespace ringside {

// a - b, or 0: differences of times from a file.
constexpr std::uint64_t minus_or_zero(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : 0;
}

constexpr std::uint64_t kDefaultStallNs = 200'000'000;

struct AnalysisParams {
    // Absent: kDefaultStallNs, or twice the window of the recording when that is longer. A
    // threshold must be longer than a window: a window holds the longest gap that ended in it, and
    // only then can there be no second one.
    std::optional<std::uint64_t> stall_threshold_ns;
    // Windows that begin earlier than this after the first one are left out.
    std::uint64_t lead_in_ns = 0;
};

// Errors: kUsage (a stall threshold that is not longer than a window, a lead-in that leaves
// nothing). A run without windows is not an error: its figures are zero.
Result<Analysis> analyze(const Run& run, const AnalysisParams& params = {});

// ---- parts of analyze(), for tests and rules
// --------------------------------------------------------

// One queue in one window.
struct Sample {
    const Window* window = nullptr;
    const QueueWindow* queue = nullptr;
};

// The windows of the used part, and what came just before them.
struct UsedPart {
    std::uint64_t origin_ns = 0;  // boot time that *_ns points in time count from
    UsedInterval interval;
    std::vector<const Window*> windows;
    std::map<std::uint32_t, std::vector<Sample>> queues;     // in order of time
    std::map<std::uint32_t, std::int64_t> in_flight_before;  // at the end of the lead-in
};

UsedPart used_part(const Run& run, std::uint64_t lead_in_ns);

// All queues together when `queue` is absent.
TrafficFigures traffic_figures(const UsedPart& used, std::optional<std::uint32_t> queue);
QueueFigures queue_figures(const UsedPart& used, std::uint32_t queue);
std::vector<NapiFigures> napi_figures(const UsedPart& used);
IrqFigures irq_figures(const UsedPart& used);

// Residual above which the figures are said not to agree with each other.
constexpr double kLittleLimit = 0.10;
// `in_flight_before`: packets in flight when the used part began; `most_age_ns`: the most that a
// packet in flight at its end can have waited.
LittleCheck little_check(const TrafficFigures& traffic, std::int64_t in_flight_before,
                         std::uint64_t most_age_ns);

// Share of completions that may be missed before latency is not to be trusted.
constexpr double kMissedLimit = 0.01;
Trust trust_of(const TrafficFigures& traffic);

// Boot times between which the link was down or the device was not there; to the end of time when
// the run ended like that.
struct Away {
    std::uint64_t from_ns = 0;
    std::uint64_t to_ns = 0;
    StallContext context = StallContext::kNone;
};
std::vector<Away> away_intervals(const Run& run);

// In order of time; `doubtful` is left false.
std::vector<Stall> find_stalls(const Run& run, const UsedPart& used, std::uint64_t threshold_ns);

NotSeen not_seen(const Run& run, const UsedPart& used, const TrafficFigures& port);

}  // namespace ringside
