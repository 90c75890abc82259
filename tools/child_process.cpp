#include "tools/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "analyzers/base/unique_fd.h"

namespace ringside {

namespace {

constexpr int kReset[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};

ChildExit exit_of(int status) {
    if (WIFSIGNALED(status)) {
        return {.code = 0, .signal = WTERMSIG(status)};
    }
    return {.code = WEXITSTATUS(status), .signal = 0};
}

// In the child, between fork and exec. `report` closes itself when exec succeeds.
[[noreturn]] void become(char* const* argv, bool stdout_to_stderr, pid_t parent, int report) {
    // A killed recorder must not leave its benchmark running.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) {
        ::_exit(127);
    }
    for (const int number : kReset) {
        ::signal(number, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (stdout_to_stderr) {
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    ::execvp(argv[0], argv);
    const int error = errno;
    [[maybe_unused]] const ssize_t put = ::write(report, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

std::string ChildExit::text() const {
    if (signal != 0) {
        return "was ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    }
    return "exited " + std::to_string(code);
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& argv,
                                         bool stdout_to_stderr) {
    std::vector<char*> raw;
    raw.reserve(argv.size() + 1);
    for (const std::string& word : argv) {
        raw.push_back(const_cast<char*>(word.c_str()));
    }
    raw.push_back(nullptr);

    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return fail(Error::from_errno(errno, "cannot make a pipe"));
    }
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
        return fail(Error::from_errno(errno, "cannot start " + argv[0]));
    }
    if (pid == 0) {
        become(raw.data(), stdout_to_stderr, parent, write_end.get());
    }
    write_end.reset();
    int error = 0;
    ssize_t got = 0;
    do {
        got = ::read(read_end.get(), &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof error) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        return fail(
            Error::from_errno(error, "cannot start the command '" + argv[0] + "'")
                .hint("give a program that exists, with its full path if it is not in PATH"));
    }
    return ChildProcess(pid);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}

ChildProcess::~ChildProcess() {
    terminate();
}

std::optional<ChildExit> ChildProcess::poll() {
    if (pid_ < 0) {
        return exit_;
    }
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) {
        return std::nullopt;
    }
    pid_ = -1;
    exit_ = exit_of(status);
    return exit_;
}

std::optional<ChildExit> ChildProcess::wait(int limit_ms) {
    constexpr int kStepMs = 10;
    for (int waited = 0; waited < limit_ms && !poll(); waited += kStepMs) {
        ::usleep(kStepMs * 1000);
    }
    return poll();
}

ChildExit ChildProcess::terminate() {
    if (poll()) {
        return exit_;
    }
    ::kill(pid_, SIGTERM);
    if (!wait(2000)) {
        ::kill(pid_, SIGKILL);
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = -1;
        exit_ = exit_of(status);
    }
    return exit_;
}

}  // namespace ringside
