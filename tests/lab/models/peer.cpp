#include "tests/lab/models/peer.h"

#include <algorithm>
#include <string_view>

namespace ringside::lab {
namespace {

constexpr std::size_t kEthernet = 14;
constexpr std::size_t kIpv4 = 20;
constexpr std::uint16_t kTypeIpv4 = 0x0800;
constexpr std::uint16_t kTypeArp = 0x0806;
constexpr std::uint8_t kIcmp = 1;
constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kUdp = 17;
constexpr std::size_t kUdpHeader = 8;
constexpr std::string_view kMark = "ringside-mark ";
// More answers than any receive ring has descriptors: a sender gone wild must not eat the memory.
constexpr std::size_t kMostAnswers = 8192;

}  // namespace

void Peer::frame(BytesView head, std::uint32_t tso_payload, std::uint64_t now_ns,
                 std::uint64_t sent_at_ns) {
    const std::optional<std::uint64_t> type = be(head, 12, 2);
    if (!type) {
        return;
    }
    std::copy_n(head.begin() + 6, guest_mac_.size(), guest_mac_.begin());
    if (type == kTypeArp) {
        arp(head, sent_at_ns);
    } else if (type == kTypeIpv4) {
        ipv4(head, tso_payload, now_ns, sent_at_ns);
    }
}

void Peer::arp(BytesView frame, std::uint64_t sent_at_ns) {
    constexpr std::uint64_t kIpv4OverEthernet = 0x0001'0800'0604;
    constexpr std::uint64_t kRequest = 1;
    if (be(frame, 14, 6) != kIpv4OverEthernet || be(frame, 20, 2) != kRequest ||
        be(frame, 38, 4) != address_.ipv4) {
        return;
    }
    Bytes out = ethernet_to_guest(kTypeArp);
    append_be(out, kIpv4OverEthernet, 6);
    append_be(out, 2, 2);  // reply
    append(out, std::as_bytes(std::span(address_.mac)));
    append_be(out, address_.ipv4, 4);
    append(out, frame.subspan(22, 10));  // the asker's own MAC and IP
    answer(sent_at_ns, std::move(out));
}

void Peer::ipv4(BytesView frame, std::uint32_t tso_payload, std::uint64_t now_ns,
                std::uint64_t sent_at_ns) {
    const std::optional<std::uint64_t> first = be(frame, kEthernet, 1);
    const std::optional<std::uint64_t> length = be(frame, kEthernet + 2, 2);
    const std::optional<std::uint64_t> fragment = be(frame, kEthernet + 6, 2);
    const std::optional<std::uint64_t> protocol = be(frame, kEthernet + 9, 1);
    const std::optional<std::uint64_t> source = be(frame, kEthernet + 12, 4);
    const std::optional<std::uint64_t> destination = be(frame, kEthernet + 16, 4);
    if (!destination || *destination != address_.ipv4 || *first >> 4 != 4 ||
        (*fragment & 0x3fff) != 0) {
        return;
    }
    const std::size_t header = static_cast<std::size_t>(*first & 15) * 4;
    if (header < kIpv4 || *length < header || frame.size() < kEthernet + header) {
        return;
    }
    BytesView payload = frame.subspan(kEthernet + header);
    std::uint64_t payload_bytes = *length - header;
    if (tso_payload != 0) {
        // What the length field of a TSO frame says is the driver's affair (0 beyond 64 KiB).
        const std::uint64_t tcp_header = be(payload, 12, 1).value_or(0) >> 4;
        payload_bytes = tcp_header * 4 + tso_payload;
    }
    payload = payload.first(std::min<std::size_t>(payload.size(), payload_bytes));
    const auto from = static_cast<std::uint32_t>(*source);
    if (*protocol == kIcmp) {
        icmp(from, payload, sent_at_ns);
    } else if (*protocol == kUdp && payload.size() > kUdpHeader) {
        mark(payload.subspan(kUdpHeader), now_ns);
    } else if (*protocol == kTcp) {
        send_tcp(tcp_.segment(from, payload, payload_bytes, sent_at_ns), sent_at_ns);
    }
}

void Peer::send_tcp(const std::vector<TcpPeer::Out>& segments, std::uint64_t sent_at_ns) {
    for (const TcpPeer::Out& out : segments) {
        answer(sent_at_ns, ipv4_to(out.to, kTcp, out.segment));
    }
}

void Peer::icmp(std::uint32_t from, BytesView message, std::uint64_t sent_at_ns) {
    constexpr std::uint64_t kEcho = 8;
    if (message.size() < 8 || be(message, 0, 2) != kEcho << 8) {
        return;
    }
    Bytes reply(message.begin(), message.end());
    put_be16(reply, 0, 0);
    put_be16(reply, 2, 0);
    put_be16(reply, 2, internet_checksum(reply));
    answer(sent_at_ns, ipv4_to(from, kIcmp, reply));
}

void Peer::mark(BytesView datagram, std::uint64_t now_ns) {
    std::string_view text(reinterpret_cast<const char*>(datagram.data()), datagram.size());
    if (text.starts_with(kMark)) {
        text.remove_prefix(kMark.size());
        while (text.ends_with('\n')) {
            text.remove_suffix(1);
        }
        log_.write(now_ns, "mark", {{"text", text}, {"via", "frame"}});
    }
}

Bytes Peer::ethernet_to_guest(std::uint16_t type) const {
    Bytes out(guest_mac_.begin(), guest_mac_.end());
    append(out, std::as_bytes(std::span(address_.mac)));
    append_be(out, type, 2);
    return out;
}

Bytes Peer::ipv4_to(std::uint32_t to, std::uint8_t protocol, BytesView payload) const {
    Bytes out = ethernet_to_guest(kTypeIpv4);
    append_be(out, 0x4500, 2);
    append_be(out, kIpv4 + payload.size(), 2);
    append_be(out, 0, 2);       // identification
    append_be(out, 0x4000, 2);  // do not fragment
    append_be(out, 64, 1);      // TTL
    append_be(out, protocol, 1);
    append_be(out, 0, 2);
    append_be(out, address_.ipv4, 4);
    append_be(out, to, 4);
    put_be16(out, kEthernet + 10, internet_checksum(BytesView(out).subspan(kEthernet, kIpv4)));
    append(out, payload);
    return out;
}

void Peer::answer(std::uint64_t sent_at_ns, Bytes frame) {
    if (answers_.size() < kMostAnswers) {
        answers_.push_back({sent_at_ns + faults_.rtt_ns(), std::move(frame)});
    }
}

std::optional<Bytes> Peer::take(std::uint64_t now_ns) {
    send_tcp(tcp_.repeat(now_ns), now_ns);
    if (answers_.empty() || answers_.front().arrives_ns > now_ns) {
        return std::nullopt;
    }
    Bytes frame = std::move(answers_.front().frame);
    answers_.pop_front();
    return frame;
}

std::optional<std::uint64_t> Peer::next_arrival() const {
    std::optional<std::uint64_t> next = tcp_.next_repeat();
    if (!answers_.empty()) {
        next = std::min(next.value_or(answers_.front().arrives_ns), answers_.front().arrives_ns);
    }
    return next;
}

}  // namespace ringside::lab
