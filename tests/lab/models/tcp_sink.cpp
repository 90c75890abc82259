#include "tests/lab/models/tcp_sink.h"

namespace ringside::lab {
namespace {

constexpr std::uint8_t kFin = 0x01;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kRst = 0x04;
constexpr std::uint8_t kAck = 0x10;
constexpr std::size_t kHeader = 20;
constexpr std::uint32_t kFirstSequence = 1000;
constexpr std::uint16_t kWindow = 0xffff;
// Options of our SYN: MSS 1460, no-op, window scale 7 (a window of 8 MiB, never the limit).
constexpr std::uint64_t kSynOptions = 0x0204'05b4'0103'0307;
constexpr std::uint8_t kSynOptionBytes = 8;
// Far more than any test opens; the oldest port makes room.
constexpr std::size_t kMostConnections = 256;
constexpr std::uint64_t kTcpProtocol = 6;

}  // namespace

struct TcpSink::Header {
    std::uint32_t sequence = 0;
    std::uint8_t flags = 0;
};

TcpSink::Connection* TcpSink::find_or_open(const Key& key, const Header& header) {
    if ((header.flags & kSyn) != 0) {
        if (connections_.size() >= kMostConnections) {
            connections_.erase(connections_.begin());
        }
        Connection& fresh = connections_[key];
        fresh = {.expected = header.sequence + 1, .sequence = kFirstSequence, .closed = false};
        return &fresh;
    }
    const auto found = connections_.find(key);
    return found == connections_.end() ? nullptr : &found->second;
}

void TcpSink::accept_payload(Connection& connection, const Header& header, std::uint64_t payload) {
    const std::uint32_t end = header.sequence + static_cast<std::uint32_t>(payload);
    const auto ahead = static_cast<std::int32_t>(end - connection.expected);
    const auto gap = static_cast<std::int32_t>(header.sequence - connection.expected);
    if (ahead > 0 && gap <= 0) {
        bytes_ += static_cast<std::uint64_t>(ahead);
        connection.expected = end;
    }
    if ((header.flags & kFin) != 0 && end == connection.expected && !connection.closed) {
        ++connection.expected;
        connection.closed = true;
    }
}

Bytes TcpSink::reply(const Ends& ends, const Key& key, const Connection& connection,
                     std::uint8_t flags) {
    const bool syn = (flags & kSyn) != 0;
    const std::size_t size = kHeader + (syn ? kSynOptionBytes : 0);
    Bytes out;
    out.reserve(size);
    append_be(out, key.local_port, 2);
    append_be(out, key.port, 2);
    append_be(out, connection.sequence, 4);
    append_be(out, connection.expected, 4);
    append_be(out, size / 4 << 4, 1);
    append_be(out, flags, 1);
    append_be(out, kWindow, 2);
    append_be(out, 0, 4);  // checksum, urgent pointer
    if (syn) {
        append_be(out, kSynOptions, kSynOptionBytes);
    }
    const std::uint64_t pseudo = (ends.receiver >> 16) + (ends.receiver & 0xffff) +
                                 (ends.sender >> 16) + (ends.sender & 0xffff) + kTcpProtocol + size;
    put_be16(out, 16, internet_checksum(out, pseudo));
    return out;
}

std::vector<Bytes> TcpSink::segment(const Ends& ends, BytesView segment, std::uint64_t bytes) {
    if (segment.size() < kHeader) {
        return {};
    }
    const std::uint64_t header_bytes = (be(segment, 12, 1).value_or(0) >> 4) * 4;
    if (header_bytes < kHeader || header_bytes > bytes) {
        return {};
    }
    const Header header{.sequence = static_cast<std::uint32_t>(be(segment, 4, 4).value_or(0)),
                        .flags = static_cast<std::uint8_t>(be(segment, 13, 1).value_or(0))};
    const Key key{.address = ends.sender,
                  .port = static_cast<std::uint16_t>(be(segment, 0, 2).value_or(0)),
                  .local_port = static_cast<std::uint16_t>(be(segment, 2, 2).value_or(0))};
    if ((header.flags & kRst) != 0) {
        connections_.erase(key);
        return {};
    }
    Connection* connection = find_or_open(key, header);
    if (connection == nullptr) {
        return {};
    }
    if ((header.flags & kSyn) != 0) {
        Bytes out = reply(ends, key, *connection, kSyn | kAck);
        ++connection->sequence;
        return {std::move(out)};
    }
    const std::uint64_t payload = bytes - header_bytes;
    if (payload == 0 && (header.flags & kFin) == 0) {
        if (connection->closed) {  // the last ACK, of our FIN
            connections_.erase(key);
        }
        return {};
    }
    const bool was_closed = connection->closed;
    accept_payload(*connection, header, payload);
    const bool closes = connection->closed;
    // A repeated FIN gets the same answer again: sequence still stands before our FIN.
    if (closes && was_closed) {
        --connection->sequence;
    }
    Bytes out =
        reply(ends, key, *connection, static_cast<std::uint8_t>(kAck | (closes ? kFin : 0)));
    if (closes) {
        ++connection->sequence;
    }
    return {std::move(out)};
}

}  // namespace ringside::lab
