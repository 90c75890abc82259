// What an analysis of one run holds: plain values, ready to be printed. Renderers convert units and
// format; whatever is computed is computed in figures.cpp, stalls.cpp and analysis.cpp.
// docs/figures.md defines every figure. Times called *_ns that are points in time count from the
// start of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/capture/records.h"

namespace ringside {

// Facts for the first lines. Empty or absent: not recorded.
struct HostSummary {
    std::string model;
    std::string kernel;
    std::string arch;  // "aarch64"
    std::string driver;
    std::string duplex;
    std::optional<std::int64_t> link_mbps;
    std::optional<std::int64_t> ring_descriptors;  // TX ring
    std::optional<std::int64_t> tx_usecs;          // coalescing when the run began
    std::optional<std::int64_t> tx_frames;
};

// The part of the run that the figures cover: whole windows only.
struct UsedInterval {
    std::uint64_t from_ns = 0;
    std::uint64_t to_ns = 0;
    std::uint64_t duration_ns = 0;  // sum of the windows; less than to - from when there are holes
    std::uint64_t run_ns = 0;       // whole run
    std::uint64_t windows = 0;
    std::uint64_t windows_left_out = 0;  // began in the lead-in
    std::uint64_t windows_unusable = 0;  // end before they begin: never used
    std::uint64_t window_longest_ns = 0;
};

// Histogram of latencies re-binned for drawing: equal parts of the logarithm of [from, to).
struct Distribution {
    double from_ns = 0;
    double to_ns = 0;
    std::vector<double> bins;
    double mode_ns = 0;  // middle of the fullest histogram bucket
};

// Times from start_xmit to the free of the skb.
struct LatencyFigures {
    std::uint64_t count = 0;
    double mean_ns = 0;            // exact, from the sum
    double histogram_mean_ns = 0;  // from bucket middles: the independent path of the Little check
    double p50_ns = 0;
    double p90_ns = 0;
    double p99_ns = 0;
    double p99_9_ns = 0;
    double max_ns = 0;
    Distribution distribution;
};

// One window of a queue or of the port, for sparklines and tables.
struct WindowFigures {
    std::uint64_t start_ns = 0;
    std::uint64_t duration_ns = 0;
    double wire_bps = 0;
    double packets_per_s = 0;
    double in_flight_packets = 0;
    double in_flight_bytes = 0;
    std::optional<std::uint64_t> in_flight_max_packets;  // absent for a port with several queues
    std::optional<double> latency_p50_ns;                // absent when nothing completed
    std::optional<double> latency_p99_ns;
    double driver_stopped_share = 0;  // port: of the time of all its queues
    double bql_stopped_share = 0;
    std::optional<std::uint64_t> polls;  // port only: NAPI instances do not belong to TX queues
};

// A queue, or all queues of the port together.
struct TrafficFigures {
    std::uint64_t duration_ns = 0;
    std::uint64_t packets = 0;  // taken by the driver: start_xmit without requeues
    std::uint64_t bytes = 0;
    std::uint64_t segments = 0;
    std::uint64_t wire_bytes = 0;
    double wire_bps = 0;
    double packet_bps = 0;  // from skb->len
    double packets_per_s = 0;
    double segments_per_packet = 0;

    std::uint64_t completed = 0;
    std::uint64_t completed_bytes = 0;
    std::uint64_t dropped = 0;
    std::uint64_t requeued = 0;
    std::uint64_t errors = 0;
    std::uint64_t missed = 0;
    std::uint64_t unpaired = 0;

    std::int64_t in_flight_end = 0;
    double in_flight_packets = 0;  // time averages
    double in_flight_bytes = 0;
    std::optional<std::uint64_t> in_flight_max_packets;  // absent for a port with several queues
    double in_flight_window_max_bytes =
        0;  // highest average of a window: bytes have no recorded maximum

    std::optional<LatencyFigures> latency;
    std::vector<WindowFigures> windows;
};

struct BqlFigures {
    double average_bytes = 0;
    std::uint64_t max_bytes = 0;
    std::uint64_t inexact_windows = 0;  // the kernel's counters and ours disagreed
    double in_flight_bytes = 0;         // average of the skb pairing over the same windows
    std::optional<double> difference;   // |BQL - skb| / skb; absent when nothing was in flight

    [[nodiscard]] bool exact() const { return inexact_windows == 0; }
};

// The ring itself, ring tier only.
struct RingFigures {
    std::uint64_t size = 0;  // descriptors, as last seen
    std::uint64_t descriptors = 0;
    double descriptors_per_packet = 0;
    double used = 0;  // time average
    double used_share = 0;
    std::uint64_t used_max = 0;
    std::uint64_t batches = 0;
    double batch_descriptors = 0;  // average of a batch
    std::uint64_t batch_max = 0;
    std::uint64_t batches_by_irq = 0;    // whose poll an interrupt had scheduled
    std::uint64_t batches_by_timer = 0;  // whose poll the driver's TX timer had scheduled
    std::uint64_t batches_by_other = 0;
    std::uint64_t timers = 0;  // times that this timer has expired
    std::uint64_t bypassed = 0;
    std::uint64_t resets = 0;
    std::uint64_t reset_packets = 0;
};

struct StopSummary {
    std::uint64_t count = 0;  // stops that began in the used part
    std::uint64_t stopped_ns = 0;
    double share = 0;  // of the used part
    std::uint64_t longest_ns = 0;
    bool open = false;  // still stopped at the end
};

enum class LittleVerdict {
    kAgrees,
    kDisagrees,
    kTooShort,  // packets in flight at the ends of the run could explain the residual
    kNoData,    // nothing in flight or nothing completed
};

// L = lambda * W, from two paths that share nothing but the packets.
struct LittleCheck {
    LittleVerdict verdict = LittleVerdict::kNoData;
    double in_flight = 0;           // L, from the areas
    double rate_times_latency = 0;  // lambda * W
    double residual = 0;            // |L - lambda W| / L
    double edge_share = 0;          // the most that the ends of the run can add to the residual
};

// Empty reason: latency and in-flight figures stand.
struct Trust {
    std::string reason;
    bool frees_as_drops = false;  // dropped packets are in truth completions
    [[nodiscard]] bool ok() const { return reason.empty(); }
};

struct QueueFigures {
    std::uint32_t queue = 0;
    TrafficFigures traffic;
    std::optional<RingFigures> ring;  // absent in the skb tier
    std::optional<BqlFigures> bql;    // absent: the driver does not report to BQL
    StopSummary driver_stop;
    StopSummary bql_stop;
    std::uint64_t watchdogs = 0;
    LittleCheck little;
    Trust trust;
};

enum class StallContext { kNone, kLinkDown, kDeviceGone };

// As the JSON has them: "link-down"; "none", "other".
std::string_view name_of(StallContext context);
std::string_view name_of(EventKind kind);

// An interval with packets in flight and none completing for the threshold or longer.
struct Stall {
    std::uint32_t queue = 0;
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    std::uint64_t duration_ns = 0;
    bool open = false;           // had not ended when the recording did: at least this long
    std::int64_t in_flight = 0;  // packets, for an open stall
    StallContext context = StallContext::kNone;
    bool doubtful = false;  // the figures of this queue are not to be trusted

    // A stall as a finding: the link was up and the figures stand.
    [[nodiscard]] bool counts() const { return context == StallContext::kNone && !doubtful; }
};

struct NapiFigures {
    std::uint32_t instance = 0;
    std::uint64_t polls = 0;
    double polls_per_s = 0;
    double work_per_poll = 0;
    double exhausted_share = 0;
    std::optional<double> gap_p50_ns;  // absent when there were less than two polls
    std::optional<double> gap_p99_ns;
    double gap_max_ns = 0;
    std::uint64_t irq_polls = 0;               // polls that an interrupt had scheduled
    std::optional<double> irq_to_poll_p50_ns;  // absent without such polls
    std::optional<double> irq_to_poll_p99_ns;
    double irq_to_poll_max_ns = 0;
};

// Hard interrupts of the device.
struct IrqFigures {
    std::uint64_t count = 0;
    double per_s = 0;
};

// What the kernel's own packet counter turned out to count, compared with what was traced.
enum class CountedAs {
    kUnknown,   // no counters
    kPackets,   // one per GSO packet
    kSegments,  // one per frame
    kBetween,   // neither: the share that was not seen is a range
    kMore,      // more than can be explained by what was traced
    kFewer,     // less than was traced
};

struct NotSeen {
    CountedAs counted_as = CountedAs::kUnknown;
    std::uint64_t kernel_packets = 0;  // in windows with counters, as the next two
    std::uint64_t traced_packets = 0;
    std::uint64_t traced_segments = 0;
    double unseen_min = 0;  // share of what the kernel counted
    double unseen_max = 0;
    std::uint64_t kernel_dropped = 0;
    std::uint64_t kernel_errors = 0;
    std::uint64_t missed = 0;
    double missed_share = 0;  // of completed + missed
    std::uint64_t unpaired = 0;
    std::uint64_t dropped = 0;
    std::optional<std::uint64_t> program_misses;  // absent when the recording was cut
    std::vector<std::pair<std::string, std::uint64_t>> program_misses_by_name;
    std::uint64_t queue_beyond = 0;
    std::uint64_t napi_beyond = 0;
    std::uint64_t lost_pairs = 0;  // in flight by count, but not in the table at the end
    std::uint64_t ring_odd = 0;
    std::uint64_t windows_late = 0;
    std::uint64_t device_gone_ns = 0;
};

// A remark on the measurement itself, never on the port.
struct Warning {
    std::string id;  // "little-residual"; stable, for scripts
    std::optional<std::uint32_t> queue;
    std::string text;
};

struct Analysis {
    RunInfo info;  // facts left out
    HostSummary host;
    UsedInterval used;
    std::uint64_t lead_in_ns = 0;
    std::uint64_t stall_threshold_ns = 0;
    bool ended = false;
    RunEnd end;
    std::vector<Event> events;  // times from the start of the run

    TrafficFigures port;
    std::size_t queues_used = 0;  // that were ever used, in the port figures
    bool trusted = true;          // latency and in-flight figures of all of them
    std::vector<QueueFigures> queues;
    std::vector<NapiFigures> napis;
    IrqFigures irqs;
    std::vector<Stall> stalls;
    NotSeen not_seen;
    std::vector<Warning> warnings;
    // A stall that counts, a watchdog event, or packets that were dropped.
    bool has_findings = false;
};

struct NumberedAnalysis {
    std::size_t number = 0;  // place of the run in the file, from 1
    Analysis analysis;
};

// What `ringside analyze` prints.
struct CaptureAnalysis {
    std::string cut;  // empty, or why reading ended before the end of the file
    std::uint64_t file_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::size_t runs_in_file = 0;
    std::vector<NumberedAnalysis> runs;
};

}  // namespace ringside
