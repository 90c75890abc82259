// The server side of iperf3 for a client that sends TCP: enough of its control protocol that
// `iperf3 -c` runs its test, with -P, -t and -n, and prints what this end has received.
//
// A connection begins with a cookie of 37 bytes. The first with a new cookie is the control
// connection of a test, the others with it are its data streams. On the control connection the
// server sends one byte for each state, and both send JSON behind a length of four bytes
// (iperf_api.h: the states; iperf_api.c: JSON_write, send_results).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/lab/models/tcp_peer.h"

namespace ringside::lab {

class Iperf3Server final : public TcpService {
  public:
    static constexpr std::uint16_t kPort = 5201;

    std::vector<TcpMessage> received(const TcpKey& from, BytesView known, std::uint64_t total,
                                     std::uint64_t now_ns) override;
    void closed(const TcpKey& from) override;

  private:
    // What the control connection waits for.
    enum class Waiting : std::uint8_t { kParameters, kStreams, kEnd, kResults, kDone };

    struct Test {
        std::string cookie;
        TcpKey control;
        Waiting waiting = Waiting::kParameters;
        Bytes pending;           // of a length or a text that has not come whole
        std::uint64_t skip = 0;  // bytes of a text that are not needed
        unsigned parallel = 1;
        std::uint64_t begin_ns = 0;
        struct Stream {
            TcpKey key;
            std::uint64_t bytes = 0;
        };
        std::vector<Stream> streams;
    };
    // A connection whose cookie has not come whole.
    std::map<TcpKey, std::string> unknown_;
    std::optional<Test> test_;

    std::vector<TcpMessage> introduce(const TcpKey& from, BytesView known, std::uint64_t total,
                                      std::uint64_t now_ns);
    std::vector<TcpMessage> control(BytesView known, std::uint64_t total, std::uint64_t now_ns);
    std::vector<TcpMessage> parameters(BytesView known, std::uint64_t total);
    std::vector<TcpMessage> client_results(BytesView known, std::uint64_t total,
                                           std::uint64_t now_ns);
    // The text behind a length, once it has come whole; longer ones only as far as known.
    std::optional<std::string> text(BytesView known, std::uint64_t total);
    [[nodiscard]] Bytes results(std::uint64_t now_ns) const;
    [[nodiscard]] TcpMessage state(std::int8_t state) const;
};

}  // namespace ringside::lab
