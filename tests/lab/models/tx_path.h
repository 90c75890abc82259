// From descriptor to wire and back: what every chip's transmit side has in common.
//
// One wire serves all queues. A frame is fetched when the wire is free for it, is on the wire for
// as long as the rate says, and is written back when the delay of its queue is over. The chip knows
// what its descriptors look like; this knows when things happen, what the faults do, and logs it.
//
// If the host wakes us late the wire makes up for it: its time line is what the rate says, not when
// we happened to run. So the rate is right on average, while one "fetch" or "done" line is as late
// as the wake-up was, which is also when the driver could see it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "tests/lab/models/faults.h"
#include "tests/lab/models/truth_log.h"

namespace ringside::lab {

struct TxFrame {
    unsigned queue = 0;
    std::uint32_t first = 0;        // ring index of the first descriptor
    std::uint32_t descriptors = 0;  // context descriptors included
    std::uint32_t bytes = 0;        // on the wire, without FCS: headers repeated for each segment
    std::uint32_t segments = 1;
    std::uint32_t payload = 0;  // TSO: the TCP payload of all segments; else 0
    bool wants_interrupt = true;
    std::vector<std::byte> head;  // the first bytes, as far as the peer needs them

    std::uint64_t serial = 0;  // set by TxPath, from 1 in each queue
    std::uint64_t done_at_ns = 0;
};

// What a chip does for its transmit path.
class TxChip {
  public:
    virtual ~TxChip() = default;
    // The next whole frame by the chip's scheduler, or nothing. Its descriptors count as fetched.
    virtual std::optional<TxFrame> fetch_frame(std::uint64_t now_ns) = 0;
    // The frame is on the wire since `now_ns`; it will have been sent at `sent_at_ns`.
    virtual void frame_on_wire(const TxFrame& frame, std::uint64_t now_ns,
                               std::uint64_t sent_at_ns) = 0;
    // Gives the descriptors back to the driver. False: not mapped.
    virtual bool write_back(const TxFrame& frame) = 0;
    // The frame was sent, and the driver must never learn it (fault "neverdone").
    virtual void withhold(const TxFrame& frame) = 0;
    // A frame that wants an interrupt was written back: status bit and interrupt.
    virtual void tx_event(unsigned queue, std::uint64_t now_ns) = 0;

  protected:
    TxChip() = default;
    TxChip(const TxChip&) = default;
    TxChip& operator=(const TxChip&) = default;
};

struct TxCounters {
    std::uint64_t doorbells = 0;
    std::uint64_t fetched = 0;
    std::uint64_t frames = 0;  // written back
    std::uint64_t bytes = 0;   // of those
    std::uint64_t segments = 0;
    std::uint64_t tso = 0;
    std::uint64_t never_done = 0;
    std::uint64_t dropped = 0;  // fetched, then forgotten because the driver stopped the queue
    std::uint64_t events = 0;
    std::uint64_t events_lost = 0;
    std::uint64_t errors = 0;
    std::uint64_t most_in_flight = 0;
};

class TxPath {
  public:
    TxPath(TxChip& chip, Faults& faults, TruthLog& log) : chip_(chip), faults_(faults), log_(log) {}

    void doorbell(unsigned queue, std::uint64_t tail, std::uint64_t now_ns);
    // Fetches, sends and writes back what is due. Returns when something will be due next.
    std::optional<std::uint64_t> advance(std::uint64_t now_ns);
    // The driver stopped or reset the queue: it frees ring and buffers now, so nothing that was
    // fetched may be touched again.
    void forget(unsigned queue, std::uint64_t now_ns);
    // What hardware would report as a bus error. Counted and logged.
    void error(unsigned queue, std::string_view what, std::uint64_t now_ns);

    [[nodiscard]] const TxCounters& counters(unsigned queue) const { return counters_.at(queue); }
    [[nodiscard]] std::size_t in_flight(unsigned queue) const { return flight_.at(queue).size(); }
    void log_counters(unsigned queues, std::uint64_t now_ns);

  private:
    void send(std::uint64_t now_ns);
    void complete(unsigned queue, std::uint64_t now_ns);
    [[nodiscard]] std::optional<std::uint64_t> next_deadline() const;

    TxChip& chip_;
    Faults& faults_;
    TruthLog& log_;
    std::array<std::deque<TxFrame>, kMaxQueues> flight_;
    std::array<TxCounters, kMaxQueues> counters_{};
    std::uint64_t wire_free_ns_ = 0;
    bool wire_idle_ = true;
};

}  // namespace ringside::lab
