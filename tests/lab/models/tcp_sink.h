// The receiving half of TCP, as much as a bulk sender needs: accepts on every port, acknowledges
// what comes in order, answers FIN with FIN. What comes out of order is acknowledged at the old
// place, as a receiver without a reassembly queue would, so the sender repeats it.
//
// Sends no data of its own, so it needs no timer: the sender's timers repair every loss.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/lab/models/wire_bytes.h"

namespace ringside::lab {

class TcpSink {
  public:
    struct Ends {
        std::uint32_t sender = 0;
        std::uint32_t receiver = 0;
    };

    // A segment (the bytes of its TCP header and what follows, as far as known; `bytes` is its
    // whole length with all TSO payload). Returns the segments to send back.
    std::vector<Bytes> segment(const Ends& ends, BytesView segment, std::uint64_t bytes);

    // Payload that arrived in order, of all connections.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t connections() const { return connections_.size(); }

  private:
    struct Key {
        std::uint32_t address;
        std::uint16_t port;
        std::uint16_t local_port;
        auto operator<=>(const Key&) const = default;
    };
    struct Connection {
        std::uint32_t expected = 0;  // the next sequence number of the sender
        std::uint32_t sequence = 0;  // ours
        bool closed = false;         // the sender's FIN is acknowledged
    };
    struct Header;

    Connection* find_or_open(const Key& key, const Header& header);
    void accept_payload(Connection& connection, const Header& header, std::uint64_t payload);
    [[nodiscard]] static Bytes reply(const Ends& ends, const Key& key, const Connection& connection,
                                     std::uint8_t flags);

    std::map<Key, Connection> connections_;
    std::uint64_t bytes_ = 0;
};

}  // namespace ringside::lab
