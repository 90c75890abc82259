// The host at the other end of the cable: answers ARP, ICMP echo and TCP (tcp_peer.h; on port 5201
// iperf3_server.h), swallows the rest. It sees what the wire sees, so a frame of the guest that
// begins no answer is simply gone.
//
// A UDP datagram that begins "ringside-mark " is logged: the guest puts its own clock or the name
// of a step there, and the log has the host's time beside it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "tests/lab/models/faults.h"
#include "tests/lab/models/iperf3_server.h"
#include "tests/lab/models/tcp_peer.h"
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
    Peer(const Peer&) = delete;  // its parts know each other
    Peer& operator=(const Peer&) = delete;

    // A frame that the wire will have sent at `sent_at_ns`. `tso_payload` is the TCP payload of all
    // its segments, 0 for a frame that is one segment.
    void frame(BytesView head, std::uint32_t tso_payload, std::uint64_t now_ns,
               std::uint64_t sent_at_ns);

    // The next answer that has arrived by now.
    std::optional<Bytes> take(std::uint64_t now_ns);
    // When take() will have something to do next.
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
    void icmp(std::uint32_t from, BytesView message, std::uint64_t sent_at_ns);
    void mark(BytesView datagram, std::uint64_t now_ns);
    // A frame to the guest, as far as the Ethernet header, and an IPv4 packet in one.
    [[nodiscard]] Bytes ethernet_to_guest(std::uint16_t type) const;
    [[nodiscard]] Bytes ipv4_to(std::uint32_t to, std::uint8_t protocol, BytesView payload) const;
    void send_tcp(const std::vector<TcpPeer::Out>& segments, std::uint64_t sent_at_ns);
    void answer(std::uint64_t sent_at_ns, Bytes frame);

    PeerAddress address_;
    const Faults& faults_;
    TruthLog& log_;
    Iperf3Server iperf3_;
    TcpPeer tcp_{address_.ipv4, Iperf3Server::kPort, iperf3_};
    std::array<std::byte, 6> guest_mac_{};
    std::deque<Answer> answers_;
};

}  // namespace ringside::lab
