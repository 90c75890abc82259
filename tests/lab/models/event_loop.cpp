#include "tests/lab/models/event_loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "analyzers/base/units.h"

namespace ringside::lab {

std::uint64_t boot_time_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond +
           static_cast<std::uint64_t>(now.tv_nsec);
}

Result<EventLoop> EventLoop::create(Nic& nic, TruthLog& log) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    ::sigprocmask(SIG_BLOCK, &ends, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
    UniqueFd signals(::signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC));
    if (!timer || !signals) {
        return fail(Error::from_errno(errno, "timerfd or signalfd"));
    }
    return EventLoop(nic, log, std::move(timer), std::move(signals));
}

void EventLoop::arm(std::optional<std::uint64_t> deadline_ns) {
    itimerspec at{};
    if (deadline_ns) {
        // 0 would disarm; a deadline that has passed fires at once.
        const std::uint64_t when = std::max<std::uint64_t>(*deadline_ns, 1);
        at.it_value.tv_sec = static_cast<time_t>(when / kNsPerSecond);
        at.it_value.tv_nsec = static_cast<long>(when % kNsPerSecond);
    }
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void EventLoop::take_commands(ControlFifo& control) {
    for (const std::string& line : control.read_lines()) {
        if (const Result<Command> command = parse_command(line)) {
            nic_->control(*command, line, boot_time_ns());
        } else {
            fmt::print(stderr, "ringside-lab-model: {}\n", command.error().line());
        }
    }
}

Result<bool> EventLoop::serve_ready(std::optional<VfioConnection>& connection,
                                    const UniqueFd& listener, VfioServer& server,
                                    ControlFifo* control) {
    // poll() leaves out entries with a negative descriptor.
    std::array<pollfd, 4> ready{{
        {connection ? connection->fd() : listener.get(), POLLIN, 0},
        {timer_.get(), POLLIN, 0},
        {control != nullptr ? control->fd() : -1, POLLIN, 0},
        {signals_.get(), POLLIN, 0},
    }};
    if (::poll(ready.data(), ready.size(), -1) < 0) {
        return errno == EINTR ? Result<bool>(true) : fail(Error::from_errno(errno, "poll"));
    }
    if (ready[3].revents != 0) {
        return false;
    }
    if (ready[1].revents != 0) {
        std::uint64_t fired = 0;
        (void)!::read(timer_.get(), &fired, sizeof fired);
    }
    if (ready[2].revents != 0) {
        take_commands(*control);
    }
    if (ready[0].revents != 0 && !connection) {
        UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client) {
            return fail(Error::from_errno(errno, "accept"));
        }
        connection.emplace(std::move(client), server);
    } else if (ready[0].revents != 0) {
        return connection->serve_one();
    }
    return true;
}

Status EventLoop::run(const UniqueFd& listener, VfioServer& server, ControlFifo* control) {
    std::optional<VfioConnection> connection;
    Status end;
    for (;;) {
        Result<bool> more = serve_ready(connection, listener, server, control);
        if (!more) {
            end = fail(std::move(more).error());
            break;
        }
        if (!*more) {
            break;
        }
        arm(nic_->advance(boot_time_ns()));
    }
    nic_->log_counters(boot_time_ns());
    log_->flush();
    return end;
}

}  // namespace ringside::lab
