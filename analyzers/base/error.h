// What can fail in normal use is a value: Error says what was tried, on what, why it failed and
// what to do. Exceptions are left to libraries (wrapped where they are called) and to bugs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringside {

// Why something failed, as far as the caller can act on it. Exit codes follow from it.
enum class ErrorCode {
    kUsage,        // the command line asks for something that makes no sense: exit code 2
    kNoRights,     // needs root or a capability
    kUnsupported,  // this kernel, driver or build cannot do it
    kNotFound,     // file, interface or program does not exist
    kBadInput,     // foreign bytes that are not what they claim to be
    kIo,           // the system refused to read or write
    kGone,         // was there and has disappeared (a device during a recording)
};

// Exit codes of every command, in one place.
enum class ExitCode : int {
    kOk = 0,         // ran, nothing found, or equal
    kFindings = 1,   // findings or differences
    kUsage = 2,      // wrong usage
    kCannotRun = 3,  // rights, kernel or input
};

class Error {
  public:
    Error(ErrorCode code, std::string what) : code_(code), what_(std::move(what)) {}

    // An error with the system's own reason. Takes the errno as a value: read it before any other
    // call.
    static Error from_errno(int error_number, std::string what);

    // Prefixes what a caller was doing; the outermost context is printed first.
    Error& context(std::string doing) & {
        context_.push_back(std::move(doing));
        return *this;
    }
    Error&& context(std::string doing) && {
        context_.push_back(std::move(doing));
        return std::move(*this);
    }
    // What the user can do about it. The innermost hint wins: it knows most.
    Error& hint(std::string advice) & {
        if (hint_.empty()) {
            hint_ = std::move(advice);
        }
        return *this;
    }
    Error&& hint(std::string advice) && { return std::move(hint(std::move(advice))); }

    [[nodiscard]] ErrorCode code() const { return code_; }
    [[nodiscard]] int error_number() const { return error_number_; }
    [[nodiscard]] const std::string& hint() const { return hint_; }

    // One line without the hint: "context: context: what: reason".
    [[nodiscard]] std::string message() const;
    // message() and the hint: "message (hint)".
    [[nodiscard]] std::string line() const;
    [[nodiscard]] ExitCode exit_code() const;

  private:
    ErrorCode code_;
    int error_number_ = 0;
    std::string what_;
    std::string hint_;
    std::vector<std::string> context_;
};

}  // namespace ringside
