// The peer: what it answers, byte for byte where that matters, and what it leaves alone.
#include "tests/lab/models/peer.h"

#include <gmock/gmock.h>

#include "tests/models/guest.h"

namespace ringside::lab {
namespace {

using testing::SizeIs;

constexpr std::uint8_t kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16;
constexpr std::uint16_t kDiscard = 9;
constexpr std::uint64_t kRtt = 200 * kUs;

Bytes ipv4_frame(std::uint8_t protocol, BytesView payload, std::uint32_t to = 0x0a000002) {
    Bytes frame = bytes_of({2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0});
    append_be(frame, 0x4500, 2);
    append_be(frame, 20 + payload.size(), 2);
    append_be(frame, 0x1234'4000, 4);
    append_be(frame, 64, 1);
    append_be(frame, protocol, 1);
    append_be(frame, 0, 2);
    append_be(frame, 0x0a000001, 4);
    append_be(frame, to, 4);
    append(frame, payload);
    return frame;
}

Bytes tcp_frame(std::uint32_t sequence, std::uint8_t flags, std::size_t payload = 0,
                std::uint16_t port = 40000) {
    Bytes segment;
    append_be(segment, port, 2);
    append_be(segment, kDiscard, 2);
    append_be(segment, sequence, 4);
    append_be(segment, 0, 4);
    append_be(segment, 0x50, 1);
    append_be(segment, flags, 1);
    append_be(segment, 0xffff, 2);
    append_be(segment, 0, 4);
    segment.resize(segment.size() + payload);
    return ipv4_frame(6, segment);
}

struct Segment {
    std::uint64_t sequence, acknowledgement, flags;
    auto operator<=>(const Segment&) const = default;
};

class PeerTest : public testing::Test {
  protected:
    // What comes back at once for a frame sent at time 0; nothing if nothing does.
    std::optional<Bytes> ask(const Bytes& frame, std::uint32_t tso_payload = 0) {
        peer_.frame(frame, tso_payload, 0, 0);
        EXPECT_EQ(peer_.take(kRtt - 1), std::nullopt);
        return peer_.take(kRtt);
    }
    std::optional<Segment> ask_tcp(const Bytes& frame, std::uint32_t tso_payload = 0) {
        const std::optional<Bytes> answer = ask(frame, tso_payload);
        if (!answer) {
            return std::nullopt;
        }
        EXPECT_EQ(be(*answer, 34, 2), kDiscard);
        EXPECT_EQ(be(*answer, 36, 2), 40000U);
        EXPECT_EQ(internet_checksum(BytesView(*answer).subspan(14, 20)), 0);
        const BytesView segment = BytesView(*answer).subspan(34);
        // Over the pseudo header, a right checksum sums to 0.
        EXPECT_EQ(
            internet_checksum(segment, 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + segment.size()), 0);
        return Segment{*be(*answer, 38, 4), *be(*answer, 42, 4), *be(*answer, 47, 1)};
    }

    Faults faults_;
    TruthLog log_;
    Peer peer_{{}, faults_, log_};
};

TEST_F(PeerTest, AnswersArpForItsOwnAddressOnly) {
    const std::optional<Bytes> answer = ask(arp_request());
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer,
              bytes_of({2, 0, 0, 0, 0, 1, 2, 0,  0, 0, 0, 2, 0x08, 0x06, 0, 1, 8, 0,  6, 4, 0,
                        2, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 2, 0,    0,    0, 0, 1, 10, 0, 0, 1}));
    Bytes other = arp_request();
    other.back() = std::byte{3};
    EXPECT_FALSE(ask(other));
    Bytes reply = arp_request();
    reply[21] = std::byte{2};
    EXPECT_FALSE(ask(reply));
}

TEST_F(PeerTest, EchoesAPingWithItsPayloadAndARightChecksum) {
    Bytes ping = bytes_of({8, 0, 0, 0, 0x12, 0x34, 0, 7, 1, 2, 3, 4, 5});
    put_be16(ping, 2, internet_checksum(ping));
    const std::optional<Bytes> answer = ask(ipv4_frame(1, ping));
    ASSERT_TRUE(answer);
    const BytesView message = BytesView(*answer).subspan(34);
    EXPECT_EQ(internet_checksum(message), 0);
    EXPECT_EQ(be(message, 0, 2), 0U);
    EXPECT_EQ(Bytes(message.begin() + 4, message.end()), Bytes(ping.begin() + 4, ping.end()));
    EXPECT_EQ(be(*answer, 26, 4), 0x0a000002U);
    EXPECT_EQ(be(*answer, 30, 4), 0x0a000001U);
    EXPECT_FALSE(ask(ipv4_frame(1, ping, 0x0a000003)));
}

TEST_F(PeerTest, TakesAConnectionThroughItsWholeLife) {
    EXPECT_EQ(ask_tcp(tcp_frame(100, kSyn)), (Segment{1000, 101, kSyn | kAck}));
    EXPECT_EQ(ask_tcp(tcp_frame(101, kAck)), std::nullopt);
    EXPECT_EQ(ask_tcp(tcp_frame(101, kAck | kPsh, 500)), (Segment{1001, 601, kAck}));
    EXPECT_EQ(peer_.tcp_bytes(), 500U);
    EXPECT_EQ(ask_tcp(tcp_frame(601, kAck | kFin)), (Segment{1001, 602, kAck | kFin}));
    EXPECT_EQ(ask_tcp(tcp_frame(602, kAck)), std::nullopt);
    EXPECT_EQ(ask_tcp(tcp_frame(602, kAck, 10)), std::nullopt);  // there is no connection now
}

TEST_F(PeerTest, CountsDataOnceWhateverIsRepeatedOrOutOfOrder) {
    ask_tcp(tcp_frame(0xffff'ff00, kSyn));  // the sequence numbers wrap within
    const std::uint32_t begin = 0xffff'ff01;
    EXPECT_EQ(ask_tcp(tcp_frame(begin, kAck, 400))->acknowledgement, begin + 400);
    EXPECT_EQ(ask_tcp(tcp_frame(begin, kAck, 400))->acknowledgement, begin + 400);
    EXPECT_EQ(ask_tcp(tcp_frame(begin + 800, kAck, 400))->acknowledgement, begin + 400);
    EXPECT_EQ(ask_tcp(tcp_frame(begin + 300, kAck, 400))->acknowledgement, begin + 700);
    EXPECT_EQ(peer_.tcp_bytes(), 700U);
}

TEST_F(PeerTest, ARepeatedFinIsAnsweredTheSameWay) {
    ask_tcp(tcp_frame(100, kSyn));
    const std::optional<Segment> first = ask_tcp(tcp_frame(101, kAck | kFin));
    EXPECT_EQ(first, (Segment{1001, 102, kAck | kFin}));
    EXPECT_EQ(ask_tcp(tcp_frame(101, kAck | kFin)), first);
}

TEST_F(PeerTest, AcknowledgesAllSegmentsOfATsoFrame) {
    ask_tcp(tcp_frame(100, kSyn));
    EXPECT_EQ(ask_tcp(tcp_frame(101, kAck, 1448), 60'000)->acknowledgement, 60'101U);
    EXPECT_EQ(peer_.tcp_bytes(), 60'000U);
}

TEST_F(PeerTest, ForgetsAConnectionThatIsReset) {
    ask_tcp(tcp_frame(100, kSyn));
    EXPECT_FALSE(ask(tcp_frame(101, kRst)));
    EXPECT_FALSE(ask(tcp_frame(101, kAck, 10)));
}

TEST_F(PeerTest, AnswersAfterTheRoundTripTimeThatWasSet) {
    faults_.set_rtt_ns(5 * kMs);
    peer_.frame(arp_request(), 0, 0, 100);
    EXPECT_EQ(peer_.next_arrival(), 5 * kMs + 100);
    EXPECT_FALSE(peer_.take(5 * kMs + 99));
    EXPECT_TRUE(peer_.take(5 * kMs + 100));
    EXPECT_EQ(peer_.next_arrival(), std::nullopt);
}

TEST_F(PeerTest, LogsAMarkOfTheGuest) {
    Bytes datagram = bytes_of({0x9c, 0x40, 0, 9, 0, 0, 0, 0});
    const std::string_view text = "ringside-mark step 3\n";
    append(datagram, std::as_bytes(std::span(text)));
    peer_.frame(ipv4_frame(17, datagram), 0, 77, 100);
    EXPECT_EQ(log_.buffered(), "{\"t\":77,\"e\":\"mark\",\"text\":\"step 3\",\"via\":\"frame\"}\n");
    datagram[8] = std::byte{'R'};
    peer_.frame(ipv4_frame(17, datagram), 0, 78, 100);
    EXPECT_EQ(log_.lines(), 1U);
}

// Every frame, cut at every length and with every byte wrong in turn: no answer is allowed to be
// made of what is not there. The sanitizers see what these expectations do not.
TEST_F(PeerTest, SurvivesCutAndDamagedFrames) {
    Bytes options = tcp_frame(101, kAck, 20);
    options[46] = std::byte{0xf0};  // a TCP header longer than the segment
    for (const Bytes& good : {arp_request(), tcp_frame(100, kSyn), options,
                              ipv4_frame(1, bytes_of({8, 0, 0, 0, 0, 0, 0, 0}))}) {
        for (std::size_t size = 0; size < good.size(); ++size) {
            peer_.frame(BytesView(good).first(size), 0, 0, 0);
            peer_.frame(BytesView(good).first(size), 60'000, 0, 0);
        }
        for (std::size_t at = 0; at < good.size(); ++at) {
            Bytes bad = good;
            bad[at] ^= std::byte{0xff};
            peer_.frame(bad, 0, 0, 0);
        }
    }
    peer_.forget();
    EXPECT_TRUE(ask(arp_request()));
}

}  // namespace
}  // namespace ringside::lab
