// What is made to go wrong: the knobs of a lab run, set by lines written to the control FIFO.
//
//   delay US [Q]        every completion comes US microseconds after the wire has sent the frame
//   rate KBPS           the wire sends at that rate; 0: it takes no time
//   dropirq N [Q]       the next N completion events set no status bit and send no interrupt; the
//                       frames do complete in the ring. One event may stand for many frames
//   loseirq N           the next N interrupt messages are lost; the status bits are set
//   neverdone N [Q]     the next N frames are sent, but their descriptors are never written back
//   stall 0|1 [Q]       the DMA fetches nothing
//   pause 0|1           the peer's PAUSE: the wire begins no frame
//   link 0|1            the cable: the PHY loses and finds the link, the wire begins no frame
//   rtt US              the peer answers that much later
//   sched -1|0|3        which queue is next: as the driver programs it, weighted round robin, or
//                       strict priority with the highest queue first (chips with a scheduler)
//   tbu 0|1             a queue that runs dry sets "transmit buffer unavailable" (dwmac5)
//   stat                log the counters and flush
//   trace 0|1           log every register access
//   mark TEXT           log TEXT
//
// Without Q: all queues. A count of 0 ends a fault. Times are as exact as the host's scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/base/result.h"

namespace ringside::lab {

constexpr unsigned kMaxQueues = 8;

enum class Knob : std::uint8_t {
    kDelay,
    kRate,
    kDropIrq,
    kLoseIrq,
    kNeverDone,
    kStall,
    kPause,
    kLink,
    kRtt,
    kSched,
    kTbu,
    kStat,
    kTrace,
    kMark,
};

struct Command {
    Knob knob{};
    std::int64_t value = 0;
    std::optional<unsigned> queue;  // empty: all
    std::string text;               // of a mark
};

// Errors: kUsage, with what was wrong and what is allowed.
Result<Command> parse_command(std::string_view line);

struct QueueFaults {
    std::uint64_t delay_ns = 0;
    std::uint64_t events_to_drop = 0;
    std::uint64_t frames_never_done = 0;
    bool stalled = false;
};

class Faults {
  public:
    // Takes over the value of a knob that is one; kStat and kMark change nothing here.
    void apply(const Command& command);

    [[nodiscard]] const QueueFaults& queue(unsigned queue) const { return queues_.at(queue); }
    // Each uses up one of the faults it tells of.
    bool take_event_drop(unsigned queue) { return take(queues_.at(queue).events_to_drop); }
    bool take_never_done(unsigned queue) { return take(queues_.at(queue).frames_never_done); }
    bool take_message_loss() { return take(messages_to_lose_); }

    // Whether the wire may begin a frame.
    [[nodiscard]] bool wire_open() const { return link_ && !paused_; }
    [[nodiscard]] bool link() const { return link_; }
    // How long the wire is busy with one frame of `segments` segments.
    [[nodiscard]] std::uint64_t wire_ns(std::uint64_t bytes, std::uint64_t segments) const;
    [[nodiscard]] std::uint64_t rtt_ns() const { return rtt_ns_; }
    [[nodiscard]] std::uint64_t rate_kbps() const { return rate_kbps_; }
    [[nodiscard]] std::optional<unsigned> scheduler() const { return scheduler_; }
    [[nodiscard]] bool tbu() const { return tbu_; }
    [[nodiscard]] bool trace() const { return trace_; }

    void set_rate_kbps(std::uint64_t rate) { rate_kbps_ = rate; }
    void set_rtt_ns(std::uint64_t rtt) { rtt_ns_ = rtt; }

  private:
    static bool take(std::uint64_t& left) {
        if (left == 0) {
            return false;
        }
        --left;
        return true;
    }
    void apply_to_queue(QueueFaults& queue, Knob knob, std::uint64_t value);

    std::array<QueueFaults, kMaxQueues> queues_{};
    std::uint64_t messages_to_lose_ = 0;
    std::uint64_t rate_kbps_ = 1'000'000;
    std::uint64_t rtt_ns_ = 200'000;
    std::optional<unsigned> scheduler_;
    bool link_ = true;
    bool paused_ = false;
    bool tbu_ = true;
    bool trace_ = false;
};

}  // namespace ringside::lab
