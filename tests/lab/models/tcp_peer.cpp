#include "tests/lab/models/tcp_peer.h"

#include <algorithm>

namespace ringside::lab {
namespace {

constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kRst = 0x04;
constexpr std::uint8_t kPsh = 0x08;
constexpr std::uint8_t kAck = 0x10;
constexpr std::size_t kHeader = 20;
constexpr std::uint32_t kFirstSequence = 1000;
constexpr std::uint16_t kWindow = 0xffff;
// Options of our SYN: MSS 1460, no-op, window scale 7 (a window of 8 MiB, never the limit).
constexpr std::uint64_t kSynOptions = 0x0204'05b4'0103'0307;
constexpr std::uint8_t kSynOptionBytes = 8;
constexpr std::size_t kMaxSegment = 1460;
// Far more than any test opens; the lowest port makes room.
constexpr std::size_t kMostConnections = 256;
constexpr std::uint64_t kTcpProtocol = 6;
constexpr std::uint64_t kRepeatNs = 300'000'000;

}  // namespace

struct TcpPeer::Header {
    std::uint32_t sequence = 0;
    std::uint32_t acknowledgement = 0;
    std::uint8_t flags = 0;
};

TcpPeer::Connection* TcpPeer::find_or_open(const TcpKey& key, const Header& header) {
    if ((header.flags & kSyn) != 0) {
        if (connections_.size() >= kMostConnections) {
            connections_.erase(connections_.begin());
        }
        Connection& fresh = connections_[key];
        fresh = Connection{};
        fresh.expected = header.sequence + 1;
        fresh.sequence = kFirstSequence + 1;
        return &fresh;
    }
    const auto found = connections_.find(key);
    return found == connections_.end() ? nullptr : &found->second;
}

void TcpPeer::accept_acknowledgement(Connection& connection, const Header& header) const {
    const std::uint32_t done = header.acknowledgement - connection.sequence;
    if (done != 0 && done <= connection.unacknowledged.size()) {
        connection.unacknowledged.erase(connection.unacknowledged.begin(),
                                        connection.unacknowledged.begin() + done);
        connection.sequence += done;
    }
}

std::optional<std::uint64_t> TcpPeer::accept_payload(Connection& connection, const Header& header,
                                                     std::uint64_t payload) {
    const std::uint32_t end = header.sequence + static_cast<std::uint32_t>(payload);
    const auto fresh = static_cast<std::int32_t>(end - connection.expected);
    const auto gap = static_cast<std::int32_t>(header.sequence - connection.expected);
    std::optional<std::uint64_t> begins;
    if (fresh > 0 && gap <= 0) {
        bytes_ += static_cast<std::uint64_t>(fresh);
        connection.expected = end;
        begins = payload - static_cast<std::uint64_t>(fresh);
    }
    if ((header.flags & kFin) != 0 && end == connection.expected && !connection.closed) {
        ++connection.expected;
        connection.closed = true;
    }
    return begins;
}

TcpPeer::Out TcpPeer::reply(const TcpKey& key, std::uint32_t sequence, const Connection& connection,
                            std::uint8_t flags, BytesView payload) const {
    const bool syn = (flags & kSyn) != 0;
    const std::size_t header = kHeader + (syn ? kSynOptionBytes : 0);
    Out out{.to = key.address, .segment = {}};
    append_be(out.segment, key.local_port, 2);
    append_be(out.segment, key.port, 2);
    append_be(out.segment, sequence, 4);
    append_be(out.segment, connection.expected, 4);
    append_be(out.segment, header / 4 << 4, 1);
    append_be(out.segment, flags, 1);
    append_be(out.segment, kWindow, 2);
    append_be(out.segment, 0, 4);  // checksum, urgent pointer
    if (syn) {
        append_be(out.segment, kSynOptions, kSynOptionBytes);
    }
    append(out.segment, payload);
    const std::uint64_t pseudo = (address_ >> 16) + (address_ & 0xffff) + (key.address >> 16) +
                                 (key.address & 0xffff) + kTcpProtocol + out.segment.size();
    put_be16(out.segment, 16, internet_checksum(out.segment, pseudo));
    return out;
}

void TcpPeer::send(const std::vector<TcpMessage>& messages, std::uint64_t now_ns,
                   std::vector<Out>& out) {
    for (const TcpMessage& message : messages) {
        const auto found = connections_.find(message.to);
        if (found == connections_.end() || found->second.closed ||
            message.bytes.size() + found->second.unacknowledged.size() > kMaxSegment) {
            continue;
        }
        Connection& connection = found->second;
        const auto sequence =
            connection.sequence + static_cast<std::uint32_t>(connection.unacknowledged.size());
        append(connection.unacknowledged, message.bytes);
        connection.repeat_at_ns = now_ns + kRepeatNs;
        out.push_back(reply(message.to, sequence, connection, kAck | kPsh, message.bytes));
    }
}

std::vector<TcpPeer::Out> TcpPeer::segment(std::uint32_t from, BytesView segment,
                                           std::uint64_t bytes, std::uint64_t now_ns) {
    if (segment.size() < kHeader) {
        return {};
    }
    const std::uint64_t header_bytes = (be(segment, 12, 1).value_or(0) >> 4) * 4;
    if (header_bytes < kHeader || header_bytes > bytes) {
        return {};
    }
    const Header header{
        .sequence = static_cast<std::uint32_t>(be(segment, 4, 4).value_or(0)),
        .acknowledgement = static_cast<std::uint32_t>(be(segment, 8, 4).value_or(0)),
        .flags = static_cast<std::uint8_t>(be(segment, 13, 1).value_or(0))};
    const TcpKey key{.address = from,
                     .port = static_cast<std::uint16_t>(be(segment, 0, 2).value_or(0)),
                     .local_port = static_cast<std::uint16_t>(be(segment, 2, 2).value_or(0))};
    const bool served = key.local_port == service_port_;
    if ((header.flags & kRst) != 0) {
        if (connections_.erase(key) != 0 && served) {
            service_.closed(key);
        }
        return {};
    }
    Connection* connection = find_or_open(key, header);
    if (connection == nullptr) {
        return {};
    }
    if ((header.flags & kSyn) != 0) {
        return {reply(key, kFirstSequence, *connection, kSyn | kAck)};
    }
    accept_acknowledgement(*connection, header);
    const std::uint64_t payload = bytes - header_bytes;
    if (payload == 0 && (header.flags & kFin) == 0) {
        if (connection->closed) {  // the last ACK, of our FIN
            connections_.erase(key);
        }
        return {};
    }
    const bool was_closed = connection->closed;
    const std::optional<std::uint64_t> begins = accept_payload(*connection, header, payload);
    // A repeated FIN gets the same answer again: our sequence still stands before our own FIN.
    const auto flags = static_cast<std::uint8_t>(kAck | (connection->closed ? kFin : 0));
    const auto sequence =
        connection->sequence + static_cast<std::uint32_t>(connection->unacknowledged.size());
    std::vector<Out> out{reply(key, sequence, *connection, flags)};
    if (served && begins) {
        const std::uint64_t skip = std::min<std::uint64_t>(segment.size(), header_bytes + *begins);
        send(service_.received(key, segment.subspan(skip), payload - *begins, now_ns), now_ns, out);
    }
    if (served && connection->closed && !was_closed) {
        service_.closed(key);
    }
    return out;
}

std::vector<TcpPeer::Out> TcpPeer::repeat(std::uint64_t now_ns) {
    std::vector<Out> out;
    for (auto& [key, connection] : connections_) {
        if (!connection.unacknowledged.empty() && connection.repeat_at_ns <= now_ns) {
            connection.repeat_at_ns = now_ns + kRepeatNs;
            out.push_back(reply(key, connection.sequence, connection, kAck | kPsh,
                                connection.unacknowledged));
        }
    }
    return out;
}

std::optional<std::uint64_t> TcpPeer::next_repeat() const {
    std::optional<std::uint64_t> next;
    for (const auto& [key, connection] : connections_) {
        if (!connection.unacknowledged.empty()) {
            next = std::min(next.value_or(connection.repeat_at_ns), connection.repeat_at_ns);
        }
    }
    return next;
}

}  // namespace ringside::lab
