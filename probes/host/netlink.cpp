#include "probes/host/netlink.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

namespace ringside {

namespace {

constexpr int kDumpAttempts = 4;
constexpr timeval kAnswerTimeout = {5, 0};

constexpr std::size_t padded(std::size_t length) {
    return (length + NLMSG_ALIGNTO - 1) / NLMSG_ALIGNTO * NLMSG_ALIGNTO;
}

// Splits the front of `bytes`, which says that it is `length` long, and moves on to the next.
std::string_view take(std::string_view& bytes, std::size_t length) {
    const std::string_view front = bytes.substr(0, length);
    bytes.remove_prefix(std::min(padded(length), bytes.size()));
    return front;
}

}  // namespace

void for_each_attribute(std::string_view bytes,
                        const std::function<void(std::uint16_t, std::string_view)>& visit) {
    while (const auto header = copy_front<rtattr>(bytes)) {
        if (header->rta_len < sizeof(rtattr) || header->rta_len > bytes.size()) {
            return;
        }
        const std::string_view attribute = take(bytes, header->rta_len);
        visit(static_cast<std::uint16_t>(header->rta_type & NLA_TYPE_MASK),
              attribute.substr(sizeof(rtattr)));
    }
}

void for_each_message(std::string_view datagram,
                      const std::function<void(const NetlinkMessage&)>& visit) {
    while (const auto header = copy_front<nlmsghdr>(datagram)) {
        if (header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > datagram.size()) {
            return;
        }
        const std::string_view message = take(datagram, header->nlmsg_len);
        visit({header->nlmsg_type, header->nlmsg_flags, header->nlmsg_seq,
               message.substr(sizeof(nlmsghdr))});
    }
}

NetlinkRequest::NetlinkRequest(std::uint16_t type, std::uint16_t flags)
    : type_(type), flags_(static_cast<std::uint16_t>(flags | NLM_F_REQUEST)) {
    // An acknowledgement ends the answer to what is not a dump; a dump ends with NLMSG_DONE.
    if (!is_dump()) {
        flags_ = static_cast<std::uint16_t>(flags_ | NLM_F_ACK);
    }
}

NetlinkRequest& NetlinkRequest::append(std::string_view bytes) {
    body_.append(bytes);
    body_.resize(padded(body_.size()), '\0');
    return *this;
}

NetlinkRequest& NetlinkRequest::attribute(std::uint16_t type, std::string_view payload) {
    rtattr header = {};
    header.rta_len = static_cast<unsigned short>(sizeof header + payload.size());
    header.rta_type = type;
    body_.append(reinterpret_cast<const char*>(&header), sizeof header);
    return append(payload);
}

std::string NetlinkRequest::bytes(std::uint32_t sequence) const {
    nlmsghdr header = {};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + body_.size());
    header.nlmsg_type = type_;
    header.nlmsg_flags = flags_;
    header.nlmsg_seq = sequence;
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body_;
}

Result<NetlinkSocket> NetlinkSocket::open(std::uint32_t groups, bool nonblocking) {
    const int type = SOCK_RAW | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0);
    UniqueFd fd(::socket(AF_NETLINK, type, NETLINK_ROUTE));
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot open a netlink socket"));
    }
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof kAnswerTimeout);
    sockaddr_nl address = {};
    address.nl_family = AF_NETLINK;
    address.nl_groups = groups;
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return fail(Error::from_errno(errno, "cannot bind a netlink socket"));
    }
    return NetlinkSocket(std::move(fd));
}

Result<std::string_view> NetlinkSocket::receive() {
    for (;;) {
        // Asked for first: a link with many virtual functions does not fit any fixed size.
        const ssize_t size = ::recv(fd_.get(), nullptr, 0, MSG_PEEK | MSG_TRUNC);
        if (size >= 0) {
            buffer_.resize(std::max(buffer_.size(), static_cast<std::size_t>(size)));
            const ssize_t got = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
            if (got >= 0) {
                return std::string_view(buffer_).substr(0, static_cast<std::size_t>(got));
            }
        }
        if (errno != EINTR) {
            return fail(Error::from_errno(errno, "cannot receive from netlink"));
        }
    }
}

Status NetlinkSocket::send(const NetlinkRequest& request) {
    const std::string bytes = request.bytes(++sequence_);
    sockaddr_nl kernel = {};
    kernel.nl_family = AF_NETLINK;
    ssize_t sent = -1;
    do {
        sent = ::sendto(fd_.get(), bytes.data(), bytes.size(), 0,
                        reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        return fail(Error::from_errno(errno, "cannot send to netlink"));
    }
    return {};
}

Result<NetlinkSocket::Answer> NetlinkSocket::collect(
    bool dump, const std::function<void(const NetlinkMessage&)>& reply) {
    Answer answer = Answer::kWhole;
    bool ended = false;
    int refusal = 0;
    while (!ended) {
        const Result<std::string_view> datagram = receive();
        if (!datagram) {
            return fail(datagram.error());
        }
        for_each_message(*datagram, [&](const NetlinkMessage& message) {
            if (message.sequence != sequence_ || ended) {
                return;  // the rest of an answer that was given up
            }
            if ((message.flags & NLM_F_DUMP_INTR) != 0) {
                answer = Answer::kDisturbed;
            }
            if (message.type == NLMSG_ERROR || message.type == NLMSG_DONE) {
                // Both carry a negative errno first; 0 is success.
                refusal = -copy_front<std::int32_t>(message.payload).value_or(0);
                ended = message.type == NLMSG_DONE || refusal != 0 || !dump;
            } else if (reply) {
                reply(message);
            }
        });
    }
    if (refusal != 0) {
        return fail(Error::from_errno(refusal, "netlink request refused"));
    }
    return answer;
}

Status NetlinkSocket::request(const NetlinkRequest& request,
                              const std::function<void(const NetlinkMessage&)>& reply,
                              const std::function<void()>& restart) {
    for (int attempt = 1;; ++attempt) {
        if (Status sent = send(request); !sent) {
            return sent;
        }
        const Result<Answer> answer = collect(request.is_dump(), reply);
        if (!answer) {
            return fail(answer.error());
        }
        // The last attempt is taken as it is: a host whose links never rest must still get an
        // answer.
        if (*answer == Answer::kWhole || attempt == kDumpAttempts) {
            return {};
        }
        if (restart) {
            restart();
        }
    }
}

}  // namespace ringside
