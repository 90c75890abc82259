#include "analyzers/base/error.h"

#include <cerrno>
#include <system_error>

namespace ringside {

namespace {

ErrorCode code_of(int error_number) {
    switch (error_number) {
        case EPERM:
        case EACCES:
            return ErrorCode::kNoRights;
        case ENOENT:
        case ENODEV:
            return ErrorCode::kNotFound;
        case EOPNOTSUPP:
        case ENOSYS:
            return ErrorCode::kUnsupported;
        default:
            return ErrorCode::kIo;
    }
}

// Names of files, interfaces and tags come from outside: a control character in one must neither
// break "one line per error" nor reach the terminal.
std::string printable(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            c = '?';
        }
    }
    return text;
}

}  // namespace

Error Error::from_errno(int error_number, std::string what) {
    Error error(code_of(error_number), std::move(what));
    error.error_number_ = error_number;
    return error;
}

std::string Error::message() const {
    std::string text;
    for (auto it = context_.rbegin(); it != context_.rend(); ++it) {
        text += *it + ": ";
    }
    text += what_;
    if (error_number_ != 0) {
        text += ": " + std::generic_category().message(error_number_);
    }
    return printable(text);
}

std::string Error::line() const {
    return hint_.empty() ? message() : message() + " (" + printable(hint_) + ")";
}

ExitCode Error::exit_code() const {
    return code_ == ErrorCode::kUsage ? ExitCode::kUsage : ExitCode::kCannotRun;
}

}  // namespace ringside
