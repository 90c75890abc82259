// A command that runs while something is recorded.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "analyzers/base/result.h"

namespace ringside {

struct ChildExit {
    int code = 0;    // exit code, when it ended by itself
    int signal = 0;  // or the signal that ended it

    [[nodiscard]] std::string text() const;  // "exited 0", "was ended by signal 15 (Terminated)"
};

class ChildProcess {
  public:
    // Starts argv[0], looked up in PATH, with argv as it is: no shell. It gets the default signal
    // handling, ends when this process dies, and writes to stderr instead of stdout if asked.
    // Errors: kNotFound, kNoRights (argv[0] cannot be executed), kIo.
    static Result<ChildProcess> start(const std::vector<std::string>& argv, bool stdout_to_stderr);

    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&&) = delete;
    ~ChildProcess();  // terminate() if it still runs

    // How it ended, or nothing while it runs.
    std::optional<ChildExit> poll();
    // As poll(), but waits up to `limit_ms` for the end.
    std::optional<ChildExit> wait(int limit_ms);
    // SIGTERM, after two seconds SIGKILL; returns when it is gone.
    ChildExit terminate();

  private:
    explicit ChildProcess(pid_t pid) : pid_(pid) {}
    pid_t pid_ = -1;  // -1: ended, or moved from
    ChildExit exit_;
};

}  // namespace ringside
