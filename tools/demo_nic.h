// A NIC whose hardware is this process: a TAP device in a network namespace of its own. Frames wait
// in the device's queue until they are read here, so the reader decides when a packet completes,
// and its own clock is the truth that a recording is checked against. For `ringside demo` and the
// live tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside {

// CLOCK_BOOTTIME, ns: the clock of a recording.
std::uint64_t boottime_now_ns();

// Moves this process (its calling thread, and threads and children that it starts later) into new
// network and mount namespaces with a /sys of their own. Root only.
Status enter_private_network();

// One frame as the two ends saw it.
struct FrameTimes {
    std::uint64_t sequence = 0;
    std::uint64_t sent_ns = 0;  // just before it was given to the kernel
    std::uint64_t read_ns = 0;  // just after the reader had it; 0: not read
    std::uint32_t bytes = 0;
};

class DemoNic {
  public:
    // Creates and brings up the TAP device. `queue_len` is its queue in packets (txqueuelen).
    static Result<DemoNic> create(const std::string& name, unsigned queue_len = 1000);

    // Sends one frame of `bytes` (at least 64) through the qdisc and the driver; it carries its
    // number and the time. With `bypass` it goes to the driver without the qdisc layer
    // (PACKET_QDISC_BYPASS), past the tracepoints. Errors: kIo (ENOBUFS when the queue is full).
    Status send(std::uint32_t bytes, bool bypass = false);

    // From now on send() sends through another interface, for example a bridge on top of this
    // device.
    Status send_through(const std::string& interface);

    // Starts the reader: each frame is read `delay_ns` after it was sent, in order.
    void start_reader(std::uint64_t delay_ns);
    // The hardware stands still (true) or goes on.
    void stall(bool stalled) { shared_->stalled = stalled; }
    // Waits until all that was sent has been read, at most `limit_ns`, and ends the reader.
    void stop_reader(std::uint64_t limit_ns);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] unsigned ifindex() const { return ifindex_; }
    [[nodiscard]] int tap_fd() const { return tap_.get(); }
    [[nodiscard]] std::uint64_t sent() const { return next_sequence_; }
    // What the reader saw so far, in the order of reading.
    [[nodiscard]] std::vector<FrameTimes> frames() const;
    void forget_frames();

    DemoNic(DemoNic&&) noexcept = default;
    DemoNic& operator=(DemoNic&&) = delete;
    ~DemoNic();

  private:
    struct Shared {
        std::atomic<bool> stalled{false};
        std::atomic<bool> stop{false};
        std::mutex mutex;
        std::deque<std::uint64_t> due;  // send times of frames not yet read
        std::vector<FrameTimes> frames;
    };
    DemoNic() = default;
    static void read_loop(int fd, std::uint64_t delay_ns, Shared& shared);

    std::string name_;
    unsigned ifindex_ = 0;
    UniqueFd tap_;
    UniqueFd packet_;
    UniqueFd packet_bypass_;
    std::uint64_t next_sequence_ = 0;
    std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
    std::thread reader_;
};

}  // namespace ringside
