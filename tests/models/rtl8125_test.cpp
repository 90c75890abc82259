// RTL8125B against a driver made by hand: rings, completions, interrupts, faults, broken rings.
#include "tests/lab/models/rtl8125.h"

#include <gmock/gmock.h>

#include "tests/lab/models/rtl8125_regs.h"
#include "tests/models/guest.h"

namespace ringside::lab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr unsigned kBar = 2;
constexpr std::uint32_t kRing = 7;  // a prime number: the ring ends in the middle of things
// A frame of 1226 bytes and its 24 of overhead at 2.5 Gb/s.
constexpr std::size_t kFrame = 1226;
constexpr std::uint64_t kWireNs = 4000;

class Rtl8125Test : public testing::Test {
  protected:
    Rtl8125Test() {
        tx_ring_ = guest_.allocate(64 * 32);
        rx_ring_ = guest_.allocate(64 * 16);
        write(rtl::kTxDescStartAddrLow + 4, 4, tx_ring_ >> 32);
        write(rtl::kTxDescStartAddrLow, 4, tx_ring_ & 0xffff'ffff);
        write(rtl::kRxDescAddrLow + 4, 4, rx_ring_ >> 32);
        write(rtl::kRxDescAddrLow, 4, rx_ring_ & 0xffff'ffff);
        write(rtl::kChipCmd, 1, rtl::kCmdTxEnb | rtl::kCmdRxEnb);
        write(rtl::kIntrMask, 4, rtl::kTxOk | rtl::kRxOk | rtl::kLinkChg);
        guest_.messages();
    }

    void write(std::uint64_t offset, unsigned size, std::uint64_t value, std::uint64_t now = 0) {
        chip_.write(kBar, offset, size, value, now);
    }
    std::uint64_t read(std::uint64_t offset, unsigned size) {
        return chip_.read(kBar, offset, size, 0);
    }
    [[nodiscard]] std::uint64_t descriptor(std::uint32_t index) const {
        return tx_ring_ + std::uint64_t{stride_} * index;
    }
    void post_raw(std::uint32_t index, std::uint32_t opts1, std::uint32_t opts2,
                  std::uint64_t buffer) {
        const std::uint64_t at = descriptor(index);
        guest_.put32(at + 4, opts2);
        guest_.put32(at + 8, static_cast<std::uint32_t>(buffer));
        guest_.put32(at + 12, static_cast<std::uint32_t>(buffer >> 32));
        guest_.put32(at, opts1);
    }
    // A frame of one descriptor at the next place of the ring.
    void post(const Bytes& frame = plain_frame(kFrame)) {
        const std::uint32_t index = posted_++ % kRing;
        post_raw(index,
                 rtl::kDescOwn | rtl::kFirstFrag | rtl::kLastFrag |
                     (index == kRing - 1 ? rtl::kRingEnd : 0) |
                     static_cast<std::uint32_t>(frame.size()),
                 0, guest_.place(frame));
    }
    std::optional<std::uint64_t> poll_tx(std::uint64_t now) {
        write(rtl::kTxPoll, 2, 1, now);
        return chip_.advance(now);
    }
    [[nodiscard]] bool owned(std::uint32_t index) const {
        return (guest_.get32(descriptor(index)) & rtl::kDescOwn) != 0;
    }
    // The receive ring has this one descriptor.
    std::uint64_t post_receive_buffer() {
        const std::uint64_t buffer = guest_.allocate(2048);
        guest_.put32(rx_ring_ + 8, static_cast<std::uint32_t>(buffer));
        guest_.put32(rx_ring_ + 12, static_cast<std::uint32_t>(buffer >> 32));
        guest_.put32(rx_ring_, rtl::kDescOwn | rtl::kRingEnd | 2048);
        return buffer;
    }
    void acknowledge() {
        write(rtl::kIntrStatus, 4, read(rtl::kIntrStatus, 4));
        guest_.messages();
    }

    Guest guest_;
    Rtl8125 chip_{guest_.machine()};
    std::uint64_t tx_ring_ = 0;
    std::uint64_t rx_ring_ = 0;
    std::uint32_t stride_ = 16;
    std::uint32_t posted_ = 0;
};

TEST_F(Rtl8125Test, WritesAFrameBackWhenTheWireHasSentItAndNotBefore) {
    post();
    EXPECT_EQ(poll_tx(1000), 1000 + kWireNs);
    chip_.advance(1000 + kWireNs - 1);
    EXPECT_TRUE(owned(0));
    EXPECT_EQ(guest_.messages(), 0U);
    EXPECT_EQ(chip_.advance(1000 + kWireNs), std::nullopt);
    EXPECT_FALSE(owned(0));
    EXPECT_EQ(guest_.messages(), 1U);
    EXPECT_EQ(read(rtl::kIntrStatus, 4), rtl::kTxOk);
}

TEST_F(Rtl8125Test, LogsFetchDoneEventAndInterruptOfAFrame) {
    post();
    poll_tx(1000);
    chip_.advance(9000);
    const std::vector<nlohmann::json> fetched = guest_.logged("fetch");
    ASSERT_THAT(fetched, SizeIs(1));
    EXPECT_EQ(fetched[0].dump(),
              R"({"b":1226,"e":"fetch","f":1,"i":0,"ic":1,"n":1,"q":0,"s":1,"t":1000})");
    ASSERT_THAT(guest_.logged("done"), SizeIs(1));
    EXPECT_EQ(guest_.logged("done")[0].dump(),
              R"({"b":1226,"e":"done","f":1,"i":0,"n":1,"q":0,"t":9000})");
    EXPECT_THAT(guest_.times("doorbell"), ElementsAre(1000));
    EXPECT_THAT(guest_.times("event"), ElementsAre(9000));
    EXPECT_THAT(guest_.times("irq"), ElementsAre(9000));
}

TEST_F(Rtl8125Test, SendsFramesOneAfterAnotherAtTheRateOfTheWire) {
    for (int i = 0; i < 5; ++i) {
        post();
    }
    poll_tx(0);
    for (std::uint64_t now = 0; now <= 5 * kWireNs; now += 500) {
        chip_.advance(now);
    }
    EXPECT_THAT(guest_.times("done"),
                ElementsAre(kWireNs, 2 * kWireNs, 3 * kWireNs, 4 * kWireNs, 5 * kWireNs));
}

TEST_F(Rtl8125Test, FollowsTheRingPastItsEnd) {
    std::uint64_t now = 0;
    for (std::uint32_t i = 0; i < 3 * kRing + 2; ++i) {
        post();
        poll_tx(now);
        now += 2 * kWireNs;
        chip_.advance(now);
        EXPECT_FALSE(owned(i % kRing));
    }
    const std::vector<nlohmann::json> done = guest_.logged("done");
    ASSERT_THAT(done, SizeIs(3 * kRing + 2));
    EXPECT_EQ(done[kRing - 1].at("i"), kRing - 1);
    EXPECT_EQ(done[kRing].at("i"), 0);
    EXPECT_EQ(done.back().at("f"), 3 * kRing + 2);
}

TEST_F(Rtl8125Test, AFrameOfSeveralDescriptorsIsOneFrame) {
    const std::uint64_t buffer = guest_.place(plain_frame(kFrame));
    post_raw(0, rtl::kDescOwn | rtl::kFirstFrag | 100, 0, buffer);
    post_raw(1, rtl::kDescOwn | 126, 0, buffer);
    poll_tx(0);
    EXPECT_THAT(guest_.logged("fetch"), IsEmpty());  // no LastFrag yet: not whole
    post_raw(2, rtl::kDescOwn | rtl::kLastFrag | 1000, 0, buffer);
    poll_tx(0);
    chip_.advance(kWireNs);
    ASSERT_THAT(guest_.logged("done"), SizeIs(1));
    EXPECT_EQ(guest_.logged("done")[0].at("n"), 3);
    EXPECT_EQ(guest_.logged("done")[0].at("b"), kFrame);
    EXPECT_FALSE(owned(0) || owned(1) || owned(2));
}

TEST_F(Rtl8125Test, CutsAGiantSendIntoSegments) {
    Bytes frame = plain_frame(54 + 1448 * 3 + 1);
    frame[34 + 12] = std::byte{0x50};  // TCP data offset: 20 bytes
    post_raw(0,
             rtl::kDescOwn | rtl::kFirstFrag | rtl::kLastFrag | rtl::kGiantSendV4 |
                 34U << rtl::kTransportShift | static_cast<std::uint32_t>(frame.size()),
             1448U << rtl::kMssShift, guest_.place(frame));
    poll_tx(0);
    ASSERT_THAT(guest_.logged("fetch"), SizeIs(1));
    EXPECT_EQ(guest_.logged("fetch")[0].at("s"), 4);
    EXPECT_EQ(guest_.logged("fetch")[0].at("b"), 1448 * 3 + 1 + 4 * 54);
}

TEST_F(Rtl8125Test, WithoutCloseMovesThePointerAndLeavesTheOwnBit) {
    write(rtl::kTxConfig, 4, read(rtl::kTxConfig, 4) | rtl::kTxConfigNoClose);
    write(rtl::kOcpdr, 4, rtl::kOcpFlag | rtl::kMacTxDescFormat << 15 | 1);  // 32-byte descriptors
    stride_ = 32;
    for (int i = 0; i < 3; ++i) {
        post();
    }
    write(rtl::kSwTailPtr, 2, 2);  // the third is not for the chip yet, whatever OWN says
    chip_.advance(0);
    chip_.advance(kMs);
    EXPECT_EQ(read(rtl::kHwCloPtr, 2), 2U);
    EXPECT_TRUE(owned(0) && owned(1));
    EXPECT_EQ(guest_.logged("doorbell")[0].at("tail"), 2);
    write(rtl::kSwTailPtr, 2, 3);
    chip_.advance(kMs);
    chip_.advance(2 * kMs);
    EXPECT_EQ(read(rtl::kHwCloPtr, 2), 3U);
}

TEST_F(Rtl8125Test, SendsEachSourceItsOwnVectorInTheVendorsMode) {
    write(rtl::kIntCfg0, 1, rtl::kIntCfg0EnableV2);
    write(rtl::kImrV2Set, 4, 1U << rtl::kV2TxQ0 | 1U << rtl::kV2Link);
    post();
    poll_tx(0);
    chip_.advance(kMs);
    EXPECT_EQ(guest_.messages(rtl::kV2TxQ0), 1U);
    EXPECT_EQ(guest_.messages(0), 0U);
    EXPECT_EQ(read(rtl::kIsrV2, 4), 1U << rtl::kV2TxQ0);
    guest_.knob(chip_, "link 0");
    EXPECT_EQ(guest_.messages(rtl::kV2Link), 1U);
}

TEST_F(Rtl8125Test, InTheVendorsModeAMaskedEventIsSentWhenItIsUnmasked) {
    write(rtl::kIntCfg0, 1, rtl::kIntCfg0EnableV2);
    post();
    poll_tx(0);
    chip_.advance(kMs);
    EXPECT_EQ(guest_.messages(rtl::kV2TxQ0), 0U);
    write(rtl::kImrV2Set, 4, 1U << rtl::kV2TxQ0);
    EXPECT_EQ(guest_.messages(rtl::kV2TxQ0), 1U);
}

TEST_F(Rtl8125Test, ASecondQueueHasItsOwnRingTailAndVector) {
    const std::uint64_t ring = guest_.allocate(64 * 16);
    write(rtl::kTnpdsQ1Low, 8, ring);  // both halves in one write
    write(rtl::kTxConfig, 4, rtl::kTxConfigNoClose);
    write(rtl::kIntCfg0, 1, rtl::kIntCfg0EnableV2);
    write(rtl::kImrV2Set, 4, 1U << (rtl::kV2TxQ0 + rtl::kV2TxStep));
    tx_ring_ = ring;
    post();
    write(rtl::kSwTailPtr + 4, 2, 1);
    chip_.advance(0);
    chip_.advance(kMs);
    EXPECT_EQ(read(rtl::kHwCloPtr + 4, 2), 1U);
    EXPECT_EQ(read(rtl::kHwCloPtr, 2), 0U);
    EXPECT_EQ(guest_.messages(rtl::kV2TxQ0 + rtl::kV2TxStep), 1U);
    EXPECT_EQ(guest_.logged("done")[0].at("q"), 1);
}

// ---------------------------------------------------------------- faults

TEST_F(Rtl8125Test, DelayHoldsTheCompletionBack) {
    guest_.knob(chip_, "delay 5000");
    post();
    poll_tx(0);
    EXPECT_EQ(chip_.advance(kWireNs), kWireNs + 5 * kMs);
    EXPECT_TRUE(owned(0));
    chip_.advance(kWireNs + 5 * kMs);
    EXPECT_FALSE(owned(0));
}

TEST_F(Rtl8125Test, RateSetsTheTimeOnTheWire) {
    guest_.knob(chip_, "rate 10000");
    post();
    EXPECT_EQ(poll_tx(0), 1 * kMs);  // 1250 bytes at 10 Mb/s
    guest_.knob(chip_, "rate 0");
    post();
    poll_tx(1 * kMs);
    EXPECT_FALSE(owned(0) || owned(1));
}

TEST_F(Rtl8125Test, ADroppedInterruptLeavesNoStatusButTheFrameIsDone) {
    guest_.knob(chip_, "dropirq 1");
    post();
    poll_tx(0);
    chip_.advance(kMs);
    EXPECT_FALSE(owned(0));
    EXPECT_EQ(read(rtl::kIntrStatus, 4), 0U);
    EXPECT_EQ(guest_.messages(), 0U);
    EXPECT_THAT(guest_.logged("event_lost"), SizeIs(1));
    post();
    poll_tx(kMs);
    chip_.advance(2 * kMs);
    EXPECT_EQ(guest_.messages(), 1U);
}

TEST_F(Rtl8125Test, ALostMessageLeavesTheStatusSet) {
    guest_.knob(chip_, "loseirq 1");
    post();
    poll_tx(0);
    chip_.advance(kMs);
    EXPECT_EQ(read(rtl::kIntrStatus, 4), rtl::kTxOk);
    EXPECT_EQ(guest_.messages(), 0U);
    EXPECT_THAT(guest_.logged("irq_lost"), SizeIs(1));
    // The line stays high, so the next frame sends no message either: only the driver can end it.
    post();
    poll_tx(kMs);
    chip_.advance(2 * kMs);
    EXPECT_EQ(guest_.messages(), 0U);
    acknowledge();
    post();
    poll_tx(2 * kMs);
    chip_.advance(3 * kMs);
    EXPECT_EQ(guest_.messages(), 1U);
}

TEST_F(Rtl8125Test, AMessageThatNobodyTakesIsLoggedAsSuch) {
    guest_.interrupts.clear(VFIO_PCI_MSIX_IRQ_INDEX);
    post();
    poll_tx(0);
    chip_.advance(kMs);
    EXPECT_THAT(guest_.logged("irq_off"), SizeIs(1));
    EXPECT_THAT(guest_.logged("irq"), IsEmpty());
    EXPECT_EQ(chip_.messages(), 0U);
}

TEST_F(Rtl8125Test, ANeverDoneFrameKeepsItsOwnBitAndTheNextDoesNot) {
    guest_.knob(chip_, "neverdone 1 0");
    post();
    post();
    poll_tx(0);
    chip_.advance(kMs);
    chip_.advance(2 * kMs);
    EXPECT_TRUE(owned(0));
    EXPECT_FALSE(owned(1));
    EXPECT_EQ(guest_.logged("never")[0].at("f"), 1);
    EXPECT_EQ(guest_.logged("done")[0].at("f"), 2);
    EXPECT_EQ(chip_.tx().counters(0).never_done, 1U);
    EXPECT_EQ(chip_.tx().counters(0).frames, 1U);
}

TEST_F(Rtl8125Test, ANeverDoneFrameStopsTheClosePointerUntilReset) {
    write(rtl::kTxConfig, 4, rtl::kTxConfigNoClose);
    guest_.knob(chip_, "neverdone 1");
    post();
    post();
    write(rtl::kSwTailPtr, 2, 2);
    chip_.advance(0);
    chip_.advance(kMs);
    EXPECT_EQ(read(rtl::kHwCloPtr, 2), 0U);
    write(rtl::kChipCmd, 1, rtl::kCmdReset);
    write(rtl::kChipCmd, 1, rtl::kCmdTxEnb);
    posted_ = 0;
    post();
    write(rtl::kSwTailPtr, 2, 1);
    chip_.advance(2 * kMs);
    chip_.advance(3 * kMs);
    EXPECT_EQ(read(rtl::kHwCloPtr, 2), 1U);
}

TEST_F(Rtl8125Test, AStalledChipFetchesNothingUntilReleased) {
    guest_.knob(chip_, "stall 1");
    post();
    poll_tx(0);
    EXPECT_EQ(chip_.advance(10 * kMs), std::nullopt);
    EXPECT_THAT(guest_.logged("fetch"), IsEmpty());
    guest_.knob(chip_, "stall 0", 20 * kMs);
    chip_.advance(20 * kMs);
    EXPECT_THAT(guest_.times("fetch"), ElementsAre(20 * kMs));
}

TEST_F(Rtl8125Test, PauseLetsTheFrameOnTheWireEndAndBeginsNoOther) {
    post();
    post();
    poll_tx(0);
    guest_.knob(chip_, "pause 1");
    EXPECT_EQ(chip_.advance(10 * kMs), std::nullopt);
    EXPECT_FALSE(owned(0));
    EXPECT_TRUE(owned(1));
    guest_.knob(chip_, "pause 0");
    EXPECT_EQ(chip_.advance(10 * kMs), 10 * kMs + kWireNs);
}

TEST_F(Rtl8125Test, LinkIsSeenInThePhyTheRegisterAndByAnInterrupt) {
    const std::uint32_t bmsr = 0xa402U << 15;
    write(rtl::kGphyOcp, 4, bmsr);
    EXPECT_TRUE(read(rtl::kGphyOcp, 4) & 0x0004);
    EXPECT_EQ(read(rtl::kPhyStatus, 4), rtl::kPhyStatusUp);
    guest_.knob(chip_, "link 0");
    write(rtl::kGphyOcp, 4, bmsr);
    EXPECT_FALSE(read(rtl::kGphyOcp, 4) & 0x0004);
    EXPECT_EQ(read(rtl::kPhyStatus, 4), 0U);
    EXPECT_EQ(read(rtl::kIntrStatus, 4), rtl::kLinkChg);
    EXPECT_EQ(guest_.messages(), 1U);
    post();
    poll_tx(0);
    EXPECT_THAT(guest_.logged("fetch"), IsEmpty());
}

// ---------------------------------------------------------------- reset and broken rings

TEST_F(Rtl8125Test, ResetForgetsWhatWasFetchedAndTouchesNoDescriptor) {
    post();
    poll_tx(0);
    write(rtl::kChipCmd, 1, rtl::kCmdReset, 100);
    EXPECT_EQ(chip_.advance(kMs), std::nullopt);
    EXPECT_TRUE(owned(0));
    EXPECT_EQ(guest_.logged("dropped")[0].at("frames"), 1);
    EXPECT_EQ(read(rtl::kChipCmd, 1) & rtl::kCmdReset, 0U);
}

struct BrokenRing {
    const char* name;
    std::uint32_t opts1;
    std::uint64_t buffer;
    const char* what;
};
class Rtl8125Broken : public Rtl8125Test, public testing::WithParamInterface<BrokenRing> {};

TEST_P(Rtl8125Broken, IsAnErrorInTheLogAndStopsTheRing) {
    for (std::uint32_t i = 0; i < 64; ++i) {
        post_raw(i, GetParam().opts1, 0, GetParam().buffer);
    }
    EXPECT_EQ(poll_tx(0), std::nullopt);
    ASSERT_THAT(guest_.logged("error"), SizeIs(1));
    EXPECT_EQ(guest_.logged("error")[0].at("what"), GetParam().what);
    poll_tx(kMs);
    EXPECT_THAT(guest_.logged("error"), SizeIs(1));  // said once, until the driver resets
    write(rtl::kChipCmd, 1, rtl::kCmdReset);
    write(rtl::kChipCmd, 1, rtl::kCmdTxEnb);
    posted_ = 0;
    post();
    poll_tx(2 * kMs);
    chip_.advance(3 * kMs);
    EXPECT_FALSE(owned(0));
}

constexpr std::uint32_t kWhole = rtl::kDescOwn | rtl::kFirstFrag | rtl::kLastFrag;
INSTANTIATE_TEST_SUITE_P(
    All, Rtl8125Broken,
    testing::Values(BrokenRing{"Buffer", kWhole | 100, Guest::kNowhere, "TX buffer is not mapped"},
                    BrokenRing{"BufferBeyondTheEnd", kWhole | 100, Guest::kBase + Guest::kSize - 99,
                               "TX buffer is not mapped"},
                    BrokenRing{"BufferThatWraps", kWhole | 100, ~std::uint64_t{0} - 50,
                               "TX buffer is not mapped"},
                    BrokenRing{"NoFirst", rtl::kDescOwn | rtl::kLastFrag | 100, Guest::kBase,
                               "FirstFrag is not where a frame begins"},
                    BrokenRing{"TwoFirst", rtl::kDescOwn | rtl::kFirstFrag | 100, Guest::kBase,
                               "FirstFrag is not where a frame begins"}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_F(Rtl8125Test, AChainWithoutEndIsCutOff) {
    // One descriptor that is the ring's last, so its successor is itself.
    post_raw(0, rtl::kDescOwn | rtl::kFirstFrag | 10, 0, Guest::kBase);
    for (std::uint32_t i = 1; i < 64; ++i) {
        post_raw(i, rtl::kDescOwn | 10, 0, Guest::kBase);
    }
    EXPECT_EQ(poll_tx(0), std::nullopt);
    ASSERT_THAT(guest_.logged("error"), SizeIs(1));
    EXPECT_EQ(guest_.logged("error")[0].at("what"), "a frame without LastFrag");
}

TEST_F(Rtl8125Test, ARingThatIsNotMappedIsAnError) {
    write(rtl::kTxDescStartAddrLow + 4, 4, Guest::kNowhere >> 32);
    EXPECT_EQ(poll_tx(0), std::nullopt);
    ASSERT_THAT(guest_.logged("error"), SizeIs(1));
    EXPECT_EQ(guest_.logged("error")[0].at("what"), "TX descriptor is not mapped");
}

TEST_F(Rtl8125Test, WriteBackToMemoryThatHasGoneIsAnErrorAndNoCrash) {
    post();
    poll_tx(0);
    guest_.memory.unmap_all();
    chip_.advance(kMs);
    // The look for the next frame fails first, then the write-back of this one.
    ASSERT_THAT(guest_.logged("error"), SizeIs(2));
    EXPECT_EQ(guest_.logged("error")[1].at("what"), "write-back to memory that is not mapped");
    EXPECT_THAT(guest_.logged("done"), IsEmpty());
}

// ---------------------------------------------------------------- receive

TEST_F(Rtl8125Test, PutsAnAnswerOfThePeerIntoTheReceiveRing) {
    const std::uint64_t buffer = post_receive_buffer();
    post(arp_request());
    poll_tx(0);
    EXPECT_EQ(chip_.advance(kWireNs),
              33 * 8 + 4 + 200 * kUs);  // 84 bytes on the wire, then the RTT
    chip_.advance(kMs);
    // 60 bytes and the FCS, whole, still the ring's end, now the driver's.
    EXPECT_EQ(guest_.get32(rx_ring_), rtl::kRingEnd | rtl::kFirstFrag | rtl::kLastFrag | 64);
    EXPECT_EQ(guest_.get(buffer, 6), bytes_of({2, 0, 0, 0, 0, 1}));
    EXPECT_EQ(read(rtl::kIntrStatus, 4), rtl::kTxOk | rtl::kRxOk);
    EXPECT_THAT(guest_.logged("rx"), SizeIs(1));
}

TEST_F(Rtl8125Test, AnAnswerThatArrivesWhileTheCableIsOutIsLost) {
    post_receive_buffer();
    post(arp_request());
    poll_tx(0);
    guest_.knob(chip_, "link 0");
    chip_.advance(kMs);
    EXPECT_THAT(guest_.logged("rx_lost"), SizeIs(1));
    EXPECT_EQ(guest_.get32(rx_ring_) & rtl::kDescOwn, rtl::kDescOwn);
}

TEST_F(Rtl8125Test, AnAnswerWithoutAReceiveDescriptorIsLostAndCounted) {
    post(arp_request());
    poll_tx(0);
    chip_.advance(kMs);
    EXPECT_THAT(guest_.logged("rx_lost"), SizeIs(1));
    EXPECT_THAT(guest_.logged("rx"), IsEmpty());
}

TEST_F(Rtl8125Test, DumpsItsCountersWhereTheDriverAsks) {
    post();
    poll_tx(0);
    chip_.advance(kMs);
    const std::uint64_t counters = guest_.allocate(64);
    write(rtl::kCounterAddrLow + 4, 4, counters >> 32);
    write(rtl::kCounterAddrLow, 4, (counters & 0xffff'ffff) | rtl::kCounterDump);
    EXPECT_EQ(guest_.get32(counters), 1U);
    EXPECT_EQ(read(rtl::kCounterAddrLow, 4) & rtl::kCounterDump, 0U);
}

}  // namespace
}  // namespace ringside::lab
