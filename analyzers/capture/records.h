// What a recording holds, as plain values. The encoding is docs/capture.proto; nothing here knows
// it. Times are CLOCK_BOOTTIME in ns unless a name says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "analyzers/histogram.h"

namespace ringside {

// One fact about the host: a name from docs/host-facts.md, and either a value or the reason why
// there is none. A flat list, so that two hosts can be compared name by name.
struct Fact {
    std::string name;                                               // "coalesce.tx_usecs"
    std::variant<std::monostate, std::int64_t, std::string> value;  // monostate: absent
    std::string source;  // where it was read: a path, an ioctl
    std::string absent;  // why there is no value; empty when there is one

    bool operator==(const Fact&) const = default;
};

// Written once at the start of each run in a file.
struct RunInfo {
    std::string tool_version;
    std::string interface;             // name when the run began
    std::string tier;                  // "ring" or "skb"
    std::string tier_why;              // why this tier and no better one
    std::vector<std::string> hooks;    // "net_dev_start_xmit: tp_btf"
    std::vector<std::string> command;  // argv of the command that ran, empty without one
    std::uint64_t window_ns = 0;       // nominal length
    std::uint64_t start_boottime_ns = 0;
    std::int64_t start_unix_ns = 0;  // CLOCK_REALTIME at the same moment
    std::uint32_t num_queues = 0;    // TX queues in use when the run began
    std::vector<Fact> facts;

    bool operator==(const RunInfo&) const = default;
};

struct StopFigures {
    std::uint64_t count = 0;       // stops that began in the window
    std::uint64_t stopped_ns = 0;  // time spent stopped inside the window
    std::uint64_t longest_ns = 0;  // longest stop of the run so far
    bool open = false;             // stopped when the window ended

    bool operator==(const StopFigures&) const = default;
};

// The descriptor ring of one queue in one window, ring tier only. virtio_net counts packets where
// others count descriptors.
struct RingWindow {
    std::uint32_t size = 0;         // descriptors in the ring as last seen; 0: no ring tier
    std::uint64_t descriptors = 0;  // put into the ring
    std::uint64_t taken = 0;        // taken back by the driver
    double used_ns = 0;             // area: descriptors * ns
    std::uint64_t used_max = 0;     // as seen when a packet was put in
    std::int64_t used_end = 0;
    std::uint64_t batches = 0;  // polls that took something back
    std::uint64_t batch_max = 0;
    std::uint64_t batches_by_irq = 0;    // of them, those that an interrupt had scheduled
    std::uint64_t batches_by_timer = 0;  // and those that the driver's TX timer had
    std::uint64_t timers = 0;            // times that this timer has expired
    std::uint64_t bypassed = 0;          // descriptors put in by what the tracepoints do not see
    std::uint64_t resets = 0;            // the driver emptied the ring
    std::uint64_t reset_packets = 0;     // packets that were in it then

    bool operator==(const RingWindow&) const = default;
};

// One TX queue in one window. Counts are of this window; *_in_flight_end are levels.
struct QueueWindow {
    std::uint32_t queue = 0;

    std::uint64_t packets = 0;     // given to the driver, a GSO packet counts once
    std::uint64_t bytes = 0;       // their skb->len
    std::uint64_t segments = 0;    // frames on the wire
    std::uint64_t wire_bytes = 0;  // bytes of those frames, without preamble, FCS and gap
    std::uint64_t requeued = 0;    // NETDEV_TX_BUSY: back to the qdisc, sent again later
    std::uint64_t requeued_bytes = 0;
    std::uint64_t errors = 0;  // driver returned an error and took the packet

    std::uint64_t completed = 0;
    std::uint64_t completed_bytes = 0;
    std::uint64_t dropped = 0;   // freed as dropped after start_xmit; ring: no descriptor was used
    std::uint64_t unpaired = 0;  // no place to remember the packet: not in latency or in flight
    std::uint64_t missed = 0;    // completion not seen: the skb came back before it was seen freed

    std::int64_t in_flight_end = 0;      // packets
    std::uint64_t in_flight_max = 0;     // packets
    double in_flight_packet_ns = 0;      // area: packets * ns
    double in_flight_byte_ns = 0;        // area: bytes (skb->len) * ns
    std::uint64_t last_progress_ns = 0;  // when a packet last left; 0: never
    std::uint64_t oldest_ns = 0;  // start of the oldest packet in flight; 0: none, or not looked

    bool bql = false;           // the driver reports to BQL
    bool bql_exact = true;      // false: the kernel's counters and ours disagree in this window
    double bql_byte_ns = 0;     // area: bytes * ns
    std::uint64_t bql_max = 0;  // bytes

    std::uint64_t latency_ns = 0;  // sum over completed
    std::uint64_t latency_max_ns = 0;
    SparseHistogram latency;
    // Longest time with a packet in flight and none leaving, that ended here.
    std::uint64_t gap_max_ns = 0;
    std::uint64_t gap_max_end_ns = 0;

    StopFigures driver_stop;
    StopFigures bql_stop;
    std::uint64_t watchdogs = 0;
    RingWindow ring;

    bool operator==(const QueueWindow&) const = default;
};

struct NapiWindow {
    std::uint32_t instance = 0;  // number in order of appearance
    std::uint64_t polls = 0;
    std::uint64_t work = 0;
    std::uint64_t budget = 0;
    std::uint64_t exhausted = 0;  // polls that used their whole budget
    std::uint64_t gap_ns = 0;     // sum of times between polls
    std::uint64_t gap_max_ns = 0;
    SparseHistogram gap;
    std::uint64_t irq_polls = 0;  // polls that an interrupt had scheduled
    std::uint64_t irq_to_poll_ns =
        0;  // sum of the times from the interrupt to the poll's beginning
    std::uint64_t irq_to_poll_max_ns = 0;
    SparseHistogram irq_to_poll;

    bool operator==(const NapiWindow&) const = default;
};

struct Window {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
    std::vector<QueueWindow> queues;  // only queues that were ever used
    std::vector<NapiWindow> napis;
    std::uint64_t irqs = 0;  // hard interrupts of the device
    // The kernel's own counters over the same time (IFLA_STATS64), as a check on what was seen.
    bool kernel_counters = false;  // false: could not be read (device gone)
    std::uint64_t kernel_tx_packets = 0;
    std::uint64_t kernel_tx_bytes = 0;
    std::uint64_t kernel_tx_dropped = 0;
    std::uint64_t kernel_tx_errors = 0;

    bool operator==(const Window&) const = default;
};

enum class EventKind : std::uint32_t {
    kOther = 0,
    kRenamed = 1,  // text: new name
    kDeviceGone = 2,
    kDeviceBack = 3,  // text: name; queue state starts anew
    kLinkUp = 4,
    kLinkDown = 5,
    kQueuesChanged = 6,  // text: new count
    kLateWindow = 7,     // the recorder itself was late; the window is longer than nominal
    kCommandExited = 8,  // text: how
};

struct Event {
    std::uint64_t time_ns = 0;
    EventKind kind = EventKind::kOther;
    std::string text;

    bool operator==(const Event&) const = default;
};

// Written when a run ends in good order; its absence tells that a recording was cut.
struct RunEnd {
    std::uint64_t end_ns = 0;
    std::string reason;  // "duration", "SIGINT", "command exited", ...
    // Misses per BPF program, as the kernel counts them (recursion_misses): name and count, zeros
    // too.
    std::vector<std::pair<std::string, std::uint64_t>> program_misses;
    std::uint64_t queue_beyond = 0;
    std::uint64_t napi_beyond = 0;
    // Packets that count as in flight but have no place in the table any more: two CPUs took the
    // same one. Found by reading the table through at the end.
    std::uint64_t lost_pairs = 0;
    std::uint64_t ring_odd = 0;  // ring indices read that cannot be
    bool command_ran = false;
    std::int32_t command_exit = 0;    // exit code
    std::int32_t command_signal = 0;  // or the signal that ended it
    // What the kernel counted for the whole run, where it could be read.
    std::uint64_t recorder_cpu_ns = 0;  // CPU time of the recorder process

    bool operator==(const RunEnd&) const = default;
};

struct Run {
    RunInfo info;
    std::vector<Window> windows;
    std::vector<Event> events;
    bool ended = false;  // false: no RunEnd, the recording was cut
    RunEnd end;

    bool operator==(const Run&) const = default;
};

}  // namespace ringside
