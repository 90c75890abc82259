// One thread, one poll(): messages of the client, the device's own deadlines, control lines,
// signals. A delay is a deadline of the device, served by a timerfd; no handler ever sleeps.
#pragma once

#include <cstdint>
#include <optional>

#include "analyzers/base/result.h"
#include "tests/lab/models/control_fifo.h"
#include "tests/lab/models/nic.h"
#include "tests/lab/models/vfio_user.h"

namespace ringside::lab {

// CLOCK_BOOTTIME, as every time in the truth log.
std::uint64_t boot_time_ns();

class EventLoop {
  public:
    // SIGTERM and SIGINT are taken over by the loop and end it. Errors: kIo.
    static Result<EventLoop> create(Nic& nic, TruthLog& log);

    // Waits for one client and serves it until it leaves or a signal comes; then logs the counters
    // and flushes. `control` may be absent. Errors: of the connection.
    Status run(const UniqueFd& listener, VfioServer& server, ControlFifo* control);

  private:
    EventLoop(Nic& nic, TruthLog& log, UniqueFd timer, UniqueFd signals)
        : nic_(&nic), log_(&log), timer_(std::move(timer)), signals_(std::move(signals)) {}

    // False: the loop ends.
    Result<bool> serve_ready(std::optional<VfioConnection>& connection, const UniqueFd& listener,
                             VfioServer& server, ControlFifo* control);
    void take_commands(ControlFifo& control);
    void arm(std::optional<std::uint64_t> deadline_ns);

    Nic* nic_;
    TruthLog* log_;
    UniqueFd timer_;
    UniqueFd signals_;
};

}  // namespace ringside::lab
