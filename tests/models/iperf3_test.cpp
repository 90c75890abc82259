// The iperf3 server and the sending half of TCP under it: a test from cookie to results, and
// clients that are not iperf3.
#include "tests/lab/models/iperf3_server.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/models/guest.h"

namespace ringside::lab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kGuest = 0x0a000001;
constexpr TcpKey kControl{kGuest, 40000, Iperf3Server::kPort};
constexpr TcpKey kStream{kGuest, 40001, Iperf3Server::kPort};
constexpr TcpKey kStream2{kGuest, 40002, Iperf3Server::kPort};

Bytes text_bytes(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}
Bytes with_length(std::string_view text) {
    Bytes out;
    append_be(out, text.size(), 4);
    append(out, text_bytes(text));
    return out;
}
const std::string kCookie = "abcdefghijklmnopqrstuvwxyz0123456789" + std::string(1, '\0');

class Iperf3Test : public testing::Test {
  protected:
    // The state bytes that a message brings back on the control connection.
    std::vector<int> states(const TcpKey& from, const Bytes& bytes, std::uint64_t now_ns = 0) {
        std::vector<int> out;
        for (const TcpMessage& message : server_.received(from, bytes, bytes.size(), now_ns)) {
            last_ = message.bytes;
            if (message.bytes.size() == 1) {
                out.push_back(static_cast<std::int8_t>(message.bytes[0]));
            } else {
                text_ = std::string(reinterpret_cast<const char*>(message.bytes.data()) + 4,
                                    message.bytes.size() - 4);
            }
        }
        return out;
    }

    Iperf3Server server_;
    Bytes last_;
    std::string text_;
};

TEST_F(Iperf3Test, RunsATestOfTwoStreamsFromCookieToResults) {
    EXPECT_THAT(states(kControl, text_bytes(kCookie)), ElementsAre(9));
    EXPECT_THAT(states(kControl, with_length(R"({"tcp":true,"time":1,"parallel":2})")),
                ElementsAre(10));
    EXPECT_THAT(states(kStream, text_bytes(kCookie)), IsEmpty());
    EXPECT_THAT(states(kStream2, text_bytes(kCookie), 5 * kMs), ElementsAre(1, 2));
    server_.received(kStream, {}, 1000, 6 * kMs);
    server_.received(kStream2, {}, 700, 6 * kMs);
    server_.received(kStream, {}, 11, 6 * kMs);
    EXPECT_THAT(states(kControl, bytes_of({4})), ElementsAre(13));
    EXPECT_THAT(states(kControl, with_length(R"({"streams":[]})"), 1005 * kMs), ElementsAre(14));
    const nlohmann::json results = nlohmann::json::parse(text_);
    ASSERT_THAT(results.at("streams"), SizeIs(2));
    EXPECT_EQ(results.at("streams")[0].at("id"), 1);
    EXPECT_EQ(results.at("streams")[0].at("bytes"), 1011);
    EXPECT_EQ(results.at("streams")[1].at("id"), 3);
    EXPECT_EQ(results.at("streams")[1].at("bytes"), 700);
    EXPECT_EQ(results.at("streams")[1].at("end_time"), 1.0);
    server_.closed(kControl);
    EXPECT_THAT(states(kControl, text_bytes(kCookie)), ElementsAre(9));  // the next test
}

TEST_F(Iperf3Test, TakesCookieAndParametersInPieces) {
    const Bytes cookie = text_bytes(kCookie);
    EXPECT_THAT(states(kControl, Bytes(cookie.begin(), cookie.begin() + 10)), IsEmpty());
    EXPECT_THAT(states(kControl, Bytes(cookie.begin() + 10, cookie.end())), ElementsAre(9));
    const Bytes parameters = with_length(R"({"tcp":true,"parallel":1})");
    EXPECT_THAT(states(kControl, Bytes(parameters.begin(), parameters.begin() + 3)), IsEmpty());
    EXPECT_THAT(states(kControl, Bytes(parameters.begin() + 3, parameters.begin() + 9)), IsEmpty());
    EXPECT_THAT(states(kControl, Bytes(parameters.begin() + 9, parameters.end())), ElementsAre(10));
}

TEST_F(Iperf3Test, RefusesWhatItCannotDoAndASecondClient) {
    states(kControl, text_bytes(kCookie));
    EXPECT_THAT(states(kControl, with_length(R"({"udp":true,"parallel":1})")), ElementsAre(-1));
    EXPECT_THAT(states(kControl, with_length(R"({"tcp":true,"reverse":true})")), ElementsAre(-1));
    EXPECT_THAT(states(kControl, with_length(R"({"tcp":true,"parallel":100000})")),
                ElementsAre(-1));
    std::string other = kCookie;
    other[0] = 'X';
    EXPECT_THAT(states(kStream, text_bytes(other)), ElementsAre(-1));
}

TEST_F(Iperf3Test, SurvivesClientsThatAreNotIperf3) {
    std::mt19937 random(5201);
    for (int i = 0; i < 5'000; ++i) {
        const TcpKey from{kGuest, static_cast<std::uint16_t>(random() % 4), Iperf3Server::kPort};
        Bytes bytes(random() % 80);
        for (std::byte& byte : bytes) {
            byte = static_cast<std::byte>(random() % 3 == 0 ? random() : random() % 6);
        }
        server_.received(from, bytes, bytes.size() + random() % 2 * 5000, 0);
        if (random() % 50 == 0) {
            server_.closed(from);
        }
    }
    for (std::uint16_t port = 0; port < 4; ++port) {
        server_.closed({kGuest, port, Iperf3Server::kPort});
    }
    EXPECT_THAT(states(kControl, text_bytes(kCookie)), ElementsAre(9));
}

// ---------------------------------------------------------------- the sending half of TCP

class EchoService final : public TcpService {
  public:
    std::vector<TcpMessage> received(const TcpKey& from, BytesView known, std::uint64_t,
                                     std::uint64_t) override {
        return {{from, {known.begin(), known.end()}}};
    }
    void closed(const TcpKey&) override { ++closed_; }
    int closed_ = 0;
};

class TcpPeerTest : public testing::Test {
  protected:
    std::vector<TcpPeer::Out> send(std::uint32_t sequence, std::uint32_t acknowledgement,
                                   std::uint8_t flags, std::string_view payload = {},
                                   std::uint64_t now_ns = 0) {
        Bytes segment;
        append_be(segment, 40000, 2);
        append_be(segment, 7, 2);
        append_be(segment, sequence, 4);
        append_be(segment, acknowledgement, 4);
        append_be(segment, 0x50, 1);
        append_be(segment, flags, 1);
        append_be(segment, 0xffff, 2);
        append_be(segment, 0, 4);
        append(segment, text_bytes(payload));
        return peer_.segment(kGuest, segment, segment.size(), now_ns);
    }
    static std::string payload_of(const TcpPeer::Out& out) {
        return {reinterpret_cast<const char*>(out.segment.data()) + 20, out.segment.size() - 20};
    }
    static std::uint64_t sequence_of(const TcpPeer::Out& out) { return *be(out.segment, 4, 4); }

    EchoService echo_;
    TcpPeer peer_{0x0a000002, 7, echo_};
};

constexpr std::uint8_t kFin = 1, kSyn = 2, kAck = 16;

TEST_F(TcpPeerTest, RepeatsAMessageUntilItIsAcknowledged) {
    send(100, 0, kSyn);
    const std::vector<TcpPeer::Out> out = send(101, 1001, kAck, "hello", 0);
    ASSERT_THAT(out, SizeIs(2));
    EXPECT_EQ(payload_of(out[1]), "hello");
    EXPECT_EQ(sequence_of(out[1]), 1001U);
    EXPECT_EQ(peer_.next_repeat(), 300 * kMs);
    EXPECT_THAT(peer_.repeat(299 * kMs), IsEmpty());
    ASSERT_THAT(peer_.repeat(300 * kMs), SizeIs(1));
    EXPECT_EQ(peer_.next_repeat(), 600 * kMs);
    send(106, 1003, kAck);  // two of the five
    const std::vector<TcpPeer::Out> rest = peer_.repeat(600 * kMs);
    ASSERT_THAT(rest, SizeIs(1));
    EXPECT_EQ(payload_of(rest[0]), "llo");
    EXPECT_EQ(sequence_of(rest[0]), 1003U);
    send(106, 1006, kAck);
    EXPECT_EQ(peer_.next_repeat(), std::nullopt);
}

TEST_F(TcpPeerTest, GivesTheServiceARepeatedByteOnlyOnce) {
    send(100, 0, kSyn);
    send(101, 1001, kAck, "abc");
    const std::vector<TcpPeer::Out> out = send(101, 1001, kAck, "abcde");
    ASSERT_THAT(out, SizeIs(2));
    EXPECT_EQ(payload_of(out[1]), "de");
    EXPECT_EQ(sequence_of(out[1]), 1004U);
    EXPECT_THAT(send(101, 1001, kAck, "abcde"), SizeIs(1));
}

TEST_F(TcpPeerTest, AnAcknowledgementOfWhatWasNeverSentIsIgnored) {
    send(100, 0, kSyn);
    send(101, 1001, kAck, "abc");
    send(104, 5000, kAck);
    send(104, 900, kAck);
    EXPECT_EQ(payload_of(peer_.repeat(kMs * 1000).at(0)), "abc");
}

TEST_F(TcpPeerTest, TellsTheServiceOnceThatAConnectionIsClosed) {
    send(100, 0, kSyn);
    EXPECT_EQ(*be(send(101, 1001, kAck | kFin).at(0).segment, 13, 1), kAck | kFin);
    send(101, 1001, kAck | kFin);
    EXPECT_EQ(echo_.closed_, 1);
}

}  // namespace
}  // namespace ringside::lab
