// Runs a program and keeps what it printed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace ringside {

struct Finished {
    int exit = -1;  // 128 + signal when a signal ended it
    std::string out;
    std::string err;
};

class Process {
  public:
    // `in_child` runs between fork and exec, for example to drop rights.
    explicit Process(const std::vector<std::string>& argv,
                     const std::function<void()>& in_child = {}) {
        int out[2];
        int err[2];
        EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
        EXPECT_EQ(::pipe2(err, O_CLOEXEC), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(out[1], STDOUT_FILENO);
            ::dup2(err[1], STDERR_FILENO);
            if (in_child) {
                in_child();
            }
            std::vector<char*> raw;
            for (const std::string& word : argv) {
                raw.push_back(const_cast<char*>(word.c_str()));
            }
            raw.push_back(nullptr);
            ::execvp(raw[0], raw.data());
            ::_exit(127);
        }
        ::close(out[1]);
        ::close(err[1]);
        ends_ = {out[0], err[0]};
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            finish();
        }
    }

    void signal(int number) const { ::kill(pid_, number); }
    [[nodiscard]] pid_t pid() const { return pid_; }
    // Reads until both streams hold together `text`; false when the program ends before.
    bool wait_for(const std::string& text) {
        while (result_.out.find(text) == std::string::npos &&
               result_.err.find(text) == std::string::npos) {
            if (!read_some(30'000)) {
                return false;
            }
        }
        return true;
    }
    Finished finish() {
        while (read_some(120'000)) {
        }
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        result_.exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return result_;
    }

  private:
    bool read_some(int limit_ms) {
        std::array<pollfd, 2> ready{{{.fd = ends_[0], .events = POLLIN, .revents = 0},
                                     {.fd = ends_[1], .events = POLLIN, .revents = 0}}};
        if ((ends_[0] < 0 && ends_[1] < 0) || ::poll(ready.data(), ready.size(), limit_ms) <= 0) {
            return false;
        }
        std::array<char, 4096> buffer{};
        for (std::size_t i = 0; i < ready.size(); ++i) {
            if (ready[i].revents == 0) {
                continue;
            }
            const ssize_t got = ::read(ends_[i], buffer.data(), buffer.size());
            if (got <= 0) {
                ::close(ends_[i]);
                ends_[i] = -1;
                continue;
            }
            (i == 0 ? result_.out : result_.err)
                .append(buffer.data(), static_cast<std::size_t>(got));
        }
        return true;
    }

    pid_t pid_ = -1;
    std::array<int, 2> ends_{-1, -1};
    Finished result_;
};

inline Finished ringside_says(std::vector<std::string> arguments,
                              const std::function<void()>& in_child = {}) {
    arguments.insert(arguments.begin(), RINGSIDE_BINARY);
    return Process(arguments, in_child).finish();
}

// An error is one line on stderr that names the program and ends with what to do.
inline void expect_error(const Finished& result, int exit, const std::string& part,
                         const std::string& fix) {
    EXPECT_EQ(result.exit, exit) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("ringside: ")) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(fix), std::string::npos) << result.err;
}

}  // namespace ringside
