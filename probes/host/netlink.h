// The little of netlink that ringside needs: a socket, a request, and a walk over attributes.
// Messages and attributes are bytes (std::string_view) and are copied out, never cast: nothing here
// depends on alignment, and a length that does not fit ends the walk.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside {

struct NetlinkMessage {
    std::uint16_t type = 0;  // RTM_NEWLINK, NLMSG_ERROR, ...
    std::uint16_t flags = 0;
    std::uint32_t sequence = 0;
    std::string_view payload;  // behind the nlmsghdr
};

// The value at the front of `bytes`, or nothing when there are too few.
template <class T>
std::optional<T> copy_front(std::string_view bytes) {
    if (bytes.size() < sizeof(T)) {
        return std::nullopt;
    }
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

// An attribute that is a string: up to its first zero byte.
inline std::string attribute_text(std::string_view payload) {
    return std::string(payload.substr(0, payload.find('\0')));
}

// Calls visit(type, payload) for each attribute of `bytes`; flags (nested, byte order) are masked
// off.
void for_each_attribute(std::string_view bytes,
                        const std::function<void(std::uint16_t, std::string_view)>& visit);

// Calls visit(message) for each message of a datagram.
void for_each_message(std::string_view datagram,
                      const std::function<void(const NetlinkMessage&)>& visit);

// Bytes of a request. NLM_F_REQUEST is set; the socket adds the sequence number.
class NetlinkRequest {
  public:
    NetlinkRequest(std::uint16_t type, std::uint16_t flags);

    // The family's header (ifinfomsg, tcmsg, ...): once, before any attribute.
    template <class T>
    NetlinkRequest& header(const T& value) {
        return append({reinterpret_cast<const char*>(&value), sizeof value});
    }
    template <class T>
    NetlinkRequest& number(std::uint16_t type, const T& value) {
        return attribute(type, {reinterpret_cast<const char*>(&value), sizeof value});
    }
    NetlinkRequest& text(std::uint16_t type, const std::string& value) {
        return attribute(type, {value.c_str(), value.size() + 1});
    }
    NetlinkRequest& attribute(std::uint16_t type, std::string_view payload);

    [[nodiscard]] std::string bytes(std::uint32_t sequence) const;
    [[nodiscard]] bool is_dump() const { return (flags_ & NLM_F_DUMP) == NLM_F_DUMP; }

  private:
    NetlinkRequest& append(std::string_view bytes);

    std::uint16_t type_;
    std::uint16_t flags_;
    std::string body_;
};

// A NETLINK_ROUTE socket, in the network namespace of the thread that opens it.
class NetlinkSocket {
  public:
    // `groups`: RTMGRP_* to listen to, 0 for requests only. Errors: kNoRights, kIo.
    static Result<NetlinkSocket> open(std::uint32_t groups = 0, bool nonblocking = false);

    // Sends and calls `reply` for each message of the answer, to its end. Not for a socket that
    // listens. The kernel's refusal is an Error with its errno (ENODEV: no such link). A dump that
    // the kernel says was disturbed by a change is repeated: `restart` is called before, to forget
    // what came. Errors: from the kernel; kIo when no answer comes within 5 s.
    Status request(const NetlinkRequest& request,
                   const std::function<void(const NetlinkMessage&)>& reply = {},
                   const std::function<void()>& restart = {});

    // The next datagram, whatever its size. Errors: with errno, EAGAIN and ENOBUFS among them.
    Result<std::string_view> receive();

    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    explicit NetlinkSocket(UniqueFd fd) : fd_(std::move(fd)) {}

    enum class Answer { kWhole, kDisturbed };
    Status send(const NetlinkRequest& request);
    Result<Answer> collect(bool dump, const std::function<void(const NetlinkMessage&)>& reply);

    UniqueFd fd_;
    std::uint32_t sequence_ = 0;
    std::string buffer_;
};

}  // namespace ringside
