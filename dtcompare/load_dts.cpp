#include "dtcompare/load_dts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "analyzers/base/unique_fd.h"
#include "dtcompare/tree.h"

extern char** environ;

namespace ringside::dt {

namespace {

constexpr std::chrono::seconds kTimeLimit{20};
constexpr std::size_t kMaxMessages = 64 * 1024;

struct Pipe {
    UniqueFd read_end;
    UniqueFd write_end;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail(Error::from_errno(errno, "cannot make a pipe for dtc"));
    }
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<pid_t> spawn_dtc(const std::string& file, const Pipe& out, const Pipe& messages) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out.write_end.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, messages.write_end.get(), STDERR_FILENO);
    // -q -q: only errors; a tree full of warnings is normal.
    std::array<std::string, 10> words{"dtc", "-q", "-q", "-I", "dts", "-O", "dtb", "-o", "-", file};
    std::array<char*, 11> arguments{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        arguments[i] = words[i].data();
    }
    pid_t pid = 0;
    const int error = ::posix_spawnp(&pid, "dtc", &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == ENOENT) {
        return fail(Error(ErrorCode::kUnsupported, "source text needs dtc, which is not installed")
                        .hint("install the package device-tree-compiler, or give a .dtb"));
    }
    if (error != 0) {
        return fail(Error::from_errno(error, "cannot start dtc"));
    }
    return pid;
}

struct Output {
    std::string blob;
    std::string messages;
    const char* broken = nullptr;  // the bound that was hit
};

// Reads one ready end; closes it at its end. False when a bound was hit.
bool drain(UniqueFd& fd, std::string& into, std::size_t limit) {
    std::array<char, 65536> chunk{};
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got > 0) {
        into.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
        fd.reset();
    }
    return into.size() <= limit;
}

Output collect(Pipe& out, Pipe& messages) {
    Output output;
    const auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
    while (out.read_end || messages.read_end) {
        std::array<pollfd, 2> ends{pollfd{out.read_end.get(), POLLIN, 0},
                                   pollfd{messages.read_end.get(), POLLIN, 0}};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) {
            output.broken = "dtc did not finish in 20 s";
            return output;
        }
        if (::poll(ends.data(), ends.size(), static_cast<int>(left.count())) <= 0) {
            continue;
        }
        if (ends[0].revents != 0 && !drain(out.read_end, output.blob, kMaxBlobBytes)) {
            output.broken = "dtc made a tree of more than 16 MiB";
            return output;
        }
        if (ends[1].revents != 0 && !drain(messages.read_end, output.messages, kMaxMessages)) {
            output.broken = "dtc wrote more messages than anybody reads";
            return output;
        }
    }
    return output;
}

Error dtc_error(std::string_view messages) {
    const std::string first(messages.substr(0, messages.find('\n')));
    Error error(ErrorCode::kBadInput, first.empty() ? "dtc failed without a message" : first);
    if (messages.find("#include") != std::string_view::npos ||
        messages.find("syntax error") != std::string_view::npos) {
        error.hint("sources with #include must go through the C preprocessor first");
    }
    return error;
}

}  // namespace

Result<std::vector<std::uint8_t>> compile_dts(const std::filesystem::path& path) {
    Result<Pipe> out = make_pipe();
    if (!out) {
        return fail(std::move(out).error());
    }
    Result<Pipe> messages = make_pipe();
    if (!messages) {
        return fail(std::move(messages).error());
    }
    // An absolute name cannot be taken for an option.
    Result<pid_t> pid = spawn_dtc(std::filesystem::absolute(path).string(), *out, *messages);
    if (!pid) {
        return fail(std::move(pid).error());
    }
    out->write_end.reset();
    messages->write_end.reset();
    const Output output = collect(*out, *messages);
    if (output.broken != nullptr) {
        ::kill(*pid, SIGKILL);
    }
    int status = 0;
    while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (output.broken != nullptr) {
        return fail(ErrorCode::kBadInput, output.broken);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return fail(dtc_error(output.messages));
    }
    return std::vector<std::uint8_t>(output.blob.begin(), output.blob.end());
}

}  // namespace ringside::dt
