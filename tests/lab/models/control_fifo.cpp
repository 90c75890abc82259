#include "tests/lab/models/control_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ringside::lab {

std::vector<std::string> LineSplitter::add(std::string_view bytes) {
    std::vector<std::string> lines;
    for (const char c : bytes) {
        if (c == '\n') {
            if (!too_long_ && !line_.empty()) {
                lines.push_back(line_);
            }
            line_.clear();
            too_long_ = false;
        } else if (line_.size() < kLongest) {
            line_ += c;
        } else {
            too_long_ = true;
        }
    }
    return lines;
}

Result<ControlFifo> ControlFifo::open(const std::filesystem::path& path) {
    if (::mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST) {
        return fail(Error::from_errno(errno, "cannot make the FIFO " + path.string()));
    }
    // Read and write: with a writer of our own there is no end of file when a shell closes it.
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot open the FIFO " + path.string()));
    }
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) {
        return fail(ErrorCode::kUsage, path.string() + " is not a FIFO");
    }
    ControlFifo fifo;
    fifo.fd_ = std::move(fd);
    return fifo;
}

std::vector<std::string> ControlFifo::read_lines() {
    std::vector<std::string> lines;
    std::array<char, 4096> piece{};
    for (;;) {
        const ssize_t got = ::read(fd_.get(), piece.data(), piece.size());
        if (got <= 0) {
            return lines;
        }
        for (std::string& line :
             splitter_.add(std::string_view(piece.data(), static_cast<std::size_t>(got)))) {
            lines.push_back(std::move(line));
        }
    }
}

}  // namespace ringside::lab
