// TCP as much as the other end of a benchmark needs: accepts on every port, acknowledges what comes
// in order, lets a service answer with short messages, repeats those that are not acknowledged, and
// answers FIN with FIN.
//
// What comes out of order is acknowledged at the old place, as a receiver without a reassembly
// queue would, so the sender repeats it. There is no flow or congestion control of our own sending:
// a service's messages fit into one segment.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tests/lab/models/wire_bytes.h"

namespace ringside::lab {

// A connection, as the guest names it.
struct TcpKey {
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    std::uint16_t local_port = 0;
    auto operator<=>(const TcpKey&) const = default;
};

// What listens behind a port. Returns what to send, if anything, to whom.
struct TcpMessage {
    TcpKey to;
    Bytes bytes;
};
class TcpService {
  public:
    virtual ~TcpService() = default;
    // New payload in order: `total` bytes, of which the first are known (a TSO frame's payload is
    // known only as far as the peer reads).
    virtual std::vector<TcpMessage> received(const TcpKey& from, BytesView known,
                                             std::uint64_t total, std::uint64_t now_ns) = 0;
    virtual void closed(const TcpKey& from) = 0;

  protected:
    TcpService() = default;
    TcpService(const TcpService&) = default;
    TcpService& operator=(const TcpService&) = default;
};

class TcpPeer {
  public:
    // `address` is ours. What arrives on `service_port` goes to the service, the rest is swallowed.
    TcpPeer(std::uint32_t address, std::uint16_t service_port, TcpService& service)
        : address_(address), service_port_(service_port), service_(service) {}

    struct Out {
        std::uint32_t to = 0;
        Bytes segment;
    };
    // A segment (its header and what follows, as far as known; `bytes` is its whole length with all
    // TSO payload). Returns the segments to send back.
    std::vector<Out> segment(std::uint32_t from, BytesView segment, std::uint64_t bytes,
                             std::uint64_t now_ns);
    // Repeats what was not acknowledged in time.
    std::vector<Out> repeat(std::uint64_t now_ns);
    [[nodiscard]] std::optional<std::uint64_t> next_repeat() const;

    // Payload that arrived in order, of all connections.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    struct Connection {
        std::uint32_t expected = 0;  // the next sequence number of the guest
        std::uint32_t sequence = 0;  // of the first byte of `unacknowledged`
        Bytes unacknowledged;
        std::uint64_t repeat_at_ns = 0;
        bool closed = false;  // the guest's FIN is acknowledged, ours is sent
    };
    struct Header;

    Connection* find_or_open(const TcpKey& key, const Header& header);
    void accept_acknowledgement(Connection& connection, const Header& header) const;
    // Takes what is new of the payload; returns where in it that begins.
    std::optional<std::uint64_t> accept_payload(Connection& connection, const Header& header,
                                                std::uint64_t payload);
    void send(const std::vector<TcpMessage>& messages, std::uint64_t now_ns, std::vector<Out>& out);
    [[nodiscard]] Out reply(const TcpKey& key, std::uint32_t sequence, const Connection& connection,
                            std::uint8_t flags, BytesView payload = {}) const;

    std::uint32_t address_;
    std::uint16_t service_port_;
    TcpService& service_;
    std::map<TcpKey, Connection> connections_;
    std::uint64_t bytes_ = 0;
};

}  // namespace ringside::lab
