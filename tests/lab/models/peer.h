// The host at the other end of the cable: answers ARP, ICMP echo and TCP (tcp_sink.h), swallows the
// rest. It sees what the wire sees, so a frame of the guest that begins no answer is simply gone.
//
// A UDP datagram that begins "ringside-mark " is logged: the guest puts its own clock or the name
// of a step there, and the log has the host's time beside it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "tests/lab/models/faults.h"
#include "tests/lab/models/tcp_sink.h"
#include "tests/lab/models/truth_log.h"
#include "tests/lab/models/wire_bytes.h"

namespace ringside::lab {

// How much of a frame the peer reads: a whole frame of the usual MTU, the headers of a TSO one.
constexpr std::size_t kPeerReads = 2048;

struct PeerAddress {
    std::array<std::uint8_t, 6> mac{0x02, 0, 0, 0, 0, 0x02};
    std::uint32_t ipv4 = 0x0a000002;  // 10.0.0.2
};

class Peer {
  public:
    Peer(const PeerAddress& address, const Faults& faults, TruthLog& log)
        : address_(address), faults_(faults), log_(log) {}

    // A frame that the wire will have sent at `sent_at_ns`. `tso_payload` is the TCP payload of all
    // its segments, 0 for a frame that is one segment.
    void frame(BytesView head, std::uint32_t tso_payload, std::uint64_t now_ns,
               std::uint64_t sent_at_ns);

    // The next answer that has arrived by now.
    std::optional<Bytes> take(std::uint64_t now_ns);
    [[nodiscard]] std::optional<std::uint64_t> next_arrival() const;
    // What is on its way is lost: the receiver was reset.
    void forget() { answers_.clear(); }

    [[nodiscard]] std::uint64_t tcp_bytes() const { return tcp_.bytes(); }

  private:
    struct Answer {
        std::uint64_t arrives_ns;
        Bytes frame;
    };

    void arp(BytesView frame, std::uint64_t sent_at_ns);
    void ipv4(BytesView frame, std::uint32_t tso_payload, std::uint64_t now_ns,
              std::uint64_t sent_at_ns);
    void icmp(BytesView frame, BytesView message, std::uint64_t sent_at_ns);
    void mark(BytesView datagram, std::uint64_t now_ns);
    [[nodiscard]] Bytes ethernet_to(BytesView frame) const;
    // An IPv4 packet back to the sender of `frame`.
    [[nodiscard]] Bytes ipv4_to(BytesView frame, std::uint8_t protocol, BytesView payload) const;
    void answer(std::uint64_t sent_at_ns, Bytes frame);

    PeerAddress address_;
    const Faults& faults_;
    TruthLog& log_;
    TcpSink tcp_;
    std::deque<Answer> answers_;
};

}  // namespace ringside::lab
