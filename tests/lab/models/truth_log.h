// clang-format off
// The ground truth of a lab run: what the hardware did, and when, in the model's own words.
//
// One JSON object a line. Every line has "t", CLOCK_BOOTTIME of the host in ns, and "e", the event.
// The guest's clock is another one: compare intervals, or have the guest send a mark (below).
//
//   e          other fields          when
//   start      model, queues         first line
//   doorbell   q, tail               the driver says there is work; tail as written, the
//                                    ring index if the chip has tail pointers
//   fetch      q, f, i, n, b, s, ic  a frame's descriptors are read and the wire begins to send it
//   done       q, f, i, n, b         written back: the driver may see it
//   never      q, f, i, n, b         sent, but not written back (neverdone)
//   event      q, frames             TX status bit set after `frames` write-backs
//   event_lost q, frames             neither status bit nor interrupt (dropirq)
//   irq        v, st                 message sent: vector, status bits
//   irq_lost   v, st                 status is set, no message (loseirq)
//   rx         b                     frame of the peer put in the RX ring
//   rx_lost    b                     no RX descriptor free
//   dropped    q, frames             the driver stopped the queue: frames fetched and not
//                                    written back are forgotten
//   knob       text                  a line of the control FIFO took effect
//   mark       text, via             "mark TEXT" by the FIFO (via "control"), or by a UDP datagram of
//                                    the guest that begins "ringside-mark " (via "frame"; t is when
//                                    its descriptor was fetched)
//   reset      what                  device, chip or queue reset
//   error      what                  hardware would call it a bus error
//   stat       scope, then counters  one for each queue, one for all
//   reg        op, bar, o, s, val    register access, with "trace 1"
//
//   q queue; f number of the frame in its queue, from 1, never reset; i ring index of its first
//   descriptor; n descriptors; b bytes on the wire without FCS, preamble and gap; s segments; ic
//   the descriptor asks for an interrupt.
// clang-format on
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside::lab {

class TruthLog {
  public:
    struct Field {
        std::string_view name;
        std::variant<std::uint64_t, std::string_view> value;
    };

    // Truncates the file. Errors: kIo, kNoRights, kNotFound.
    static Result<TruthLog> create(const std::filesystem::path& path);
    // Keeps everything in memory, for tests.
    TruthLog() = default;

    TruthLog(TruthLog&&) noexcept = default;
    TruthLog& operator=(TruthLog&&) noexcept = default;
    ~TruthLog() { flush(); }

    void write(std::uint64_t now_ns, std::string_view event, std::initializer_list<Field> fields);
    // Writes out what is buffered. A write that fails is reported once on stderr and counted: the
    // run goes on, because its guest would hang otherwise.
    void flush() noexcept;

    [[nodiscard]] const std::string& buffered() const { return buffer_; }
    [[nodiscard]] std::uint64_t lines() const { return lines_; }
    [[nodiscard]] std::uint64_t bytes_lost() const { return bytes_lost_; }

  private:
    UniqueFd fd_;
    std::filesystem::path path_;
    std::string buffer_;
    std::uint64_t lines_ = 0;
    std::uint64_t bytes_lost_ = 0;
};

}  // namespace ringside::lab
