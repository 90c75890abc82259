// The socket under vfio_user.h: whole messages and the descriptors that come with them.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "analyzers/base/output_file.h"
#include "tests/lab/models/vfio_user.h"

namespace ringside::lab {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kVfioMaxFds);

// Takes every descriptor of the message; those beyond kVfioMaxFds are closed.
void take_fds(msghdr& message, std::vector<UniqueFd>& fds) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            UniqueFd owned(fd);
            if (fds.size() < kVfioMaxFds) {
                fds.push_back(std::move(owned));
            }
        }
    }
}

}  // namespace

VfioConnection::VfioConnection(UniqueFd socket, VfioServer& server,
                               std::chrono::milliseconds patience)
    : socket_(std::move(socket)), server_(server) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
    const timeval wait{.tv_sec = seconds.count(),
                       .tv_usec = std::chrono::microseconds(patience - seconds).count()};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
}

Result<std::size_t> VfioConnection::read_all(std::span<std::byte> bytes,
                                             std::vector<UniqueFd>& fds) {
    std::size_t have = 0;
    while (have < bytes.size()) {
        alignas(cmsghdr) std::array<char, kControlBytes> control{};
        iovec part{bytes.data() + have, bytes.size() - have};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(Error::from_errno(errno, "reading from the vfio-user client"));
        }
        take_fds(message, fds);
        if (got == 0) {
            break;
        }
        have += static_cast<std::size_t>(got);
    }
    return have;
}

Result<bool> VfioConnection::serve_one() {
    VfioMessage message;
    std::array<std::byte, sizeof(VfioHeader)> raw{};
    Result<std::size_t> have = read_all(raw, message.fds);
    if (!have) {
        return fail(std::move(have).error());
    }
    if (*have == 0) {
        return false;
    }
    Result<VfioHeader> header = parse_vfio_header(std::span(raw).first(*have));
    if (!header) {
        return fail(std::move(header).error().context("vfio-user"));
    }
    message.header = *header;
    message.body.resize(header->size - sizeof *header);
    have = read_all(message.body, message.fds);
    if (!have) {
        return fail(std::move(have).error());
    }
    if (*have != message.body.size()) {
        return fail(ErrorCode::kIo, fmt::format("vfio-user: the client left within a message, "
                                                "after {} of {} bytes",
                                                *have, message.body.size()));
    }
    const std::vector<std::byte> reply = server_.handle(std::move(message));
    const std::string_view text(reinterpret_cast<const char*>(reply.data()), reply.size());
    if (Status sent = write_all(socket_.get(), text, "the vfio-user socket"); !sent) {
        return fail(std::move(sent).error());
    }
    return true;
}

Result<UniqueFd> listen_unix(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return fail(ErrorCode::kUsage, fmt::format("the socket path is longer than {} bytes: {}",
                                                   sizeof address.sun_path - 1, path));
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
        ::unlink(path.c_str());
    }
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), 1) != 0) {
        return fail(Error::from_errno(errno, "cannot listen on " + path));
    }
    return socket;
}

}  // namespace ringside::lab
