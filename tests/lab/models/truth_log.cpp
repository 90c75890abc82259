#include "tests/lab/models/truth_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <iterator>

#include "analyzers/base/output_file.h"

namespace ringside::lab {
namespace {

// Far more than one event writes, and small enough that a crash loses little.
constexpr std::size_t kFlushAt = 256U * 1024;

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
            // Marks come from the guest: any byte may be in them.
            fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            out += c;
        }
    }
    out += '"';
}

}  // namespace

Result<TruthLog> TruthLog::create(const std::filesystem::path& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return fail(Error::from_errno(errno, "cannot write the log " + path.string()));
    }
    TruthLog log;
    log.fd_ = UniqueFd(fd);
    log.path_ = path;
    return log;
}

void TruthLog::write(std::uint64_t now_ns, std::string_view event,
                     std::initializer_list<Field> fields) {
    fmt::format_to(std::back_inserter(buffer_), R"({{"t":{},"e":"{}")", now_ns, event);
    for (const Field& field : fields) {
        fmt::format_to(std::back_inserter(buffer_), R"(,"{}":)", field.name);
        if (const auto* number = std::get_if<std::uint64_t>(&field.value)) {
            fmt::format_to(std::back_inserter(buffer_), "{}", *number);
        } else {
            append_quoted(buffer_, std::get<std::string_view>(field.value));
        }
    }
    buffer_ += "}\n";
    ++lines_;
    if (fd_ && buffer_.size() >= kFlushAt) {
        flush();
    }
}

void TruthLog::flush() noexcept {
    if (!fd_ || buffer_.empty()) {
        return;
    }
    if (const Status written = write_all(fd_.get(), buffer_, path_); !written) {
        if (bytes_lost_ == 0) {
            std::fprintf(stderr, "ringside-lab-model: %s\n", written.error().line().c_str());
        }
        bytes_lost_ += buffer_.size();
    }
    buffer_.clear();
}

}  // namespace ringside::lab
