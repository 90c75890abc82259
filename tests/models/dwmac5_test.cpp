// DWMAC 5.10 against a driver made by hand: channels, TSO, scheduler, interrupts, broken rings.
#include "tests/lab/models/dwmac5.h"

#include <gmock/gmock.h>

#include "tests/lab/models/dwmac5_regs.h"
#include "tests/models/guest.h"

namespace ringside::lab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kRing = 7;  // a prime number: the ring ends in the middle of things
// A frame of 1226 bytes and its 24 of overhead at 1 Gb/s.
constexpr std::uint32_t kFrame = 1226;
constexpr std::uint64_t kWireNs = 10'000;
constexpr std::uint32_t kWhole = dwmac::kOwn | dwmac::kFirst | dwmac::kLast;

class Dwmac5Test : public testing::Test {
  protected:
    explicit Dwmac5Test(bool msix = false) : chip_(guest_.machine(), {.queues = 2, .msix = msix}) {
        buffer_ = guest_.place(plain_frame(4096));
        for (unsigned q = 0; q < 2; ++q) {
            start(q, 0);
        }
    }

    void start(unsigned q, std::uint32_t control) {
        rings_.at(q) = guest_.allocate(64 * 32);
        channel(q, dwmac::kTxBaseHigh, static_cast<std::uint32_t>(rings_.at(q) >> 32));
        channel(q, dwmac::kTxBase, static_cast<std::uint32_t>(rings_.at(q)));
        channel(q, dwmac::kTxRingLength, kRing - 1);
        channel(q, dwmac::kTxTail, static_cast<std::uint32_t>(rings_.at(q)));
        channel(q, dwmac::kInterruptEnable,
                dwmac::kNis | dwmac::kAis | dwmac::kFbe | dwmac::kTi | dwmac::kRi);
        channel(q, dwmac::kTxControl, control | dwmac::kStartTx);
    }
    static std::uint64_t at(unsigned q, std::uint32_t offset) {
        return dwmac::kChannels + dwmac::kChannelStep * q + offset;
    }
    void channel(unsigned q, std::uint32_t offset, std::uint32_t value, std::uint64_t now = 0) {
        chip_.write(0, at(q, offset), 4, value, now);
    }
    std::uint32_t status(unsigned q) {
        return static_cast<std::uint32_t>(chip_.read(0, at(q, dwmac::kStatus), 4, 0));
    }
    [[nodiscard]] std::uint64_t descriptor(unsigned q, std::uint32_t index) const {
        return rings_.at(q) + std::uint64_t{stride_} * index + stride_ - 16;
    }
    void post_raw(unsigned q, std::uint32_t des2, std::uint32_t des3, std::uint64_t buffer) {
        const std::uint64_t where = descriptor(q, posted_.at(q)++ % kRing);
        guest_.put32(where, static_cast<std::uint32_t>(buffer));
        guest_.put32(where + 4, static_cast<std::uint32_t>(buffer >> 32));
        guest_.put32(where + 8, des2);
        guest_.put32(where + 12, des3);
    }
    void post(unsigned q, bool ic = true) {
        post_raw(q, kFrame | (ic ? dwmac::kInterruptOnCompletion : 0), kWhole | kFrame, buffer_);
    }
    std::optional<std::uint64_t> doorbell(unsigned q, std::uint64_t now) {
        const std::uint64_t tail = rings_.at(q) + std::uint64_t{stride_} * (posted_.at(q) % kRing);
        channel(q, dwmac::kTxTail, static_cast<std::uint32_t>(tail), now);
        return chip_.advance(now);
    }
    [[nodiscard]] bool owned(unsigned q, std::uint32_t index) const {
        return (guest_.get32(descriptor(q, index) + 12) & dwmac::kOwn) != 0;
    }
    std::vector<unsigned> queues_done() {
        std::vector<unsigned> queues;
        for (const nlohmann::json& line : guest_.logged("done")) {
            queues.push_back(line.at("q"));
        }
        return queues;
    }

    Guest guest_;
    Dwmac5 chip_;
    std::uint64_t buffer_ = 0;
    std::array<std::uint64_t, kMaxQueues> rings_{};
    std::array<std::uint32_t, kMaxQueues> posted_{};
    std::uint32_t stride_ = 16;
};

TEST_F(Dwmac5Test, WritesAFrameBackWhenTheWireHasSentItAndNotBefore) {
    post(0);
    EXPECT_EQ(doorbell(0, 1000), 1000 + kWireNs);
    chip_.advance(1000 + kWireNs - 1);
    EXPECT_TRUE(owned(0, 0));
    chip_.advance(1000 + kWireNs);
    EXPECT_EQ(guest_.get32(descriptor(0, 0) + 12), dwmac::kFirst | dwmac::kLast);
    EXPECT_EQ(guest_.get32(descriptor(0, 0) + 8), 0U);
    EXPECT_EQ(guest_.messages(), 1U);
    EXPECT_EQ(status(0) & (dwmac::kTi | dwmac::kNis), dwmac::kTi | dwmac::kNis);
    EXPECT_EQ(chip_.read(0, dwmac::kDmaStatus, 4, 0), 1U);
    EXPECT_EQ(guest_.logged("fetch")[0].dump(),
              R"({"b":1226,"e":"fetch","f":1,"i":0,"ic":1,"n":1,"q":0,"s":1,"t":1000})");
}

TEST_F(Dwmac5Test, OnlyAFrameThatAsksForAnInterruptRaisesOne) {
    for (int i = 0; i < 3; ++i) {
        post(0, false);
    }
    doorbell(0, 0);
    chip_.advance(kMs);
    EXPECT_EQ(guest_.messages(), 0U);
    EXPECT_EQ(status(0) & dwmac::kTi, 0U);
    post(0, true);
    doorbell(0, kMs);
    chip_.advance(2 * kMs);
    EXPECT_EQ(guest_.messages(), 1U);
    EXPECT_EQ(chip_.tx().counters(0).frames, 4U);
    EXPECT_EQ(chip_.tx().counters(0).events, 1U);
}

TEST_F(Dwmac5Test, FollowsTheRingPastItsEnd) {
    std::uint64_t now = 0;
    for (std::uint32_t i = 0; i < 3 * kRing + 2; ++i) {
        post(0);
        doorbell(0, now);
        now += 2 * kWireNs;
        chip_.advance(now);
        EXPECT_FALSE(owned(0, i % kRing)) << i;
    }
    const std::vector<nlohmann::json> done = guest_.logged("done");
    ASSERT_THAT(done, SizeIs(3 * kRing + 2));
    EXPECT_EQ(done[kRing].at("i"), 0);
}

TEST_F(Dwmac5Test, ATsoChainIsOneFrameOfManySegmentsWithTheMssOfItsContext) {
    const std::uint32_t payload = 1448 * 3 + 1;
    post_raw(0, 1448, dwmac::kOwn | dwmac::kContext | dwmac::kMssValid, 0);
    post_raw(0, 54, dwmac::kOwn | dwmac::kFirst | dwmac::kTse | payload, buffer_);
    post_raw(0, 4000, dwmac::kOwn, buffer_);
    post_raw(0, (payload - 4000) | dwmac::kInterruptOnCompletion, dwmac::kOwn | dwmac::kLast,
             buffer_);
    doorbell(0, 0);
    chip_.advance(kMs);
    ASSERT_THAT(guest_.logged("fetch"), SizeIs(1));
    EXPECT_EQ(guest_.logged("fetch")[0].dump(),
              R"({"b":4561,"e":"fetch","f":1,"i":0,"ic":1,"n":4,"q":0,"s":4,"t":0})");
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_FALSE(owned(0, i));
    }
    EXPECT_EQ(guest_.get32(descriptor(0, 0) + 12), dwmac::kContext);
    EXPECT_EQ(guest_.messages(), 1U);
    // The MSS holds until the next context descriptor, across the end of the ring.
    post_raw(0, 54, dwmac::kOwn | dwmac::kFirst | dwmac::kTse | 2896, buffer_);
    post_raw(0, 2896, dwmac::kOwn | dwmac::kLast, buffer_);
    doorbell(0, kMs);
    EXPECT_EQ(guest_.logged("fetch")[1].at("s"), 2);
}

TEST_F(Dwmac5Test, EnhancedDescriptorsHave32BytesAndTheBasicOnesBehind) {
    start(1, dwmac::kEdse);
    stride_ = 32;
    post(1);
    post(1);
    doorbell(1, 0);
    chip_.advance(kMs);
    chip_.advance(2 * kMs);
    EXPECT_FALSE(owned(1, 0) || owned(1, 1));
    EXPECT_EQ(guest_.logged("doorbell").back().at("tail"), 2);
}

TEST_F(Dwmac5Test, DoesNotGoBeyondTheTailPointer) {
    post(0);
    doorbell(0, 0);
    post(0);  // owned by the DMA, but the tail has not moved
    chip_.advance(kMs);
    EXPECT_THAT(guest_.logged("fetch"), SizeIs(1));
    doorbell(0, kMs);
    EXPECT_THAT(guest_.logged("fetch"), SizeIs(2));
}

TEST_F(Dwmac5Test, ARunDryChannelSaysSoOnceAndSendsNoInterruptForIt) {
    post(0, false);
    doorbell(0, 0);
    chip_.advance(kMs);
    EXPECT_EQ(status(0), dwmac::kTbu);
    EXPECT_EQ(guest_.messages(), 0U);
    channel(0, dwmac::kStatus, dwmac::kTbu);
    chip_.advance(2 * kMs);
    EXPECT_EQ(status(0), 0U);  // suspended: it does not look again
    guest_.knob(chip_, "tbu 0");
    post(0, false);
    doorbell(0, 2 * kMs);
    chip_.advance(3 * kMs);
    EXPECT_EQ(status(0), 0U);
}

TEST_F(Dwmac5Test, WeightedRoundRobinSharesTheWireByTheWeights) {
    chip_.write(0, dwmac::kMtlTxqWeight, 4, 1, 0);
    chip_.write(0, dwmac::kMtlTxqWeight + dwmac::kMtlQueueStep, 4, 2, 0);
    for (int i = 0; i < 6; ++i) {
        post(0, false);
        post(1, false);
    }
    guest_.knob(chip_, "pause 1");
    doorbell(0, 0);
    doorbell(1, 0);
    guest_.knob(chip_, "pause 0");
    for (std::uint64_t now = 0; now <= 12 * kWireNs; now += kWireNs / 2) {
        chip_.advance(now);
    }
    EXPECT_THAT(queues_done(), ElementsAre(1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0));
}

TEST_F(Dwmac5Test, StrictPriorityServesTheHighestQueueFirst) {
    chip_.write(0, dwmac::kMtlOperationMode, 4, dwmac::kSchedulerStrict << dwmac::kSchedulerShift,
                0);
    for (int i = 0; i < 3; ++i) {
        post(0, false);
        post(1, false);
    }
    guest_.knob(chip_, "pause 1");
    doorbell(0, 0);
    doorbell(1, 0);
    guest_.knob(chip_, "pause 0");
    for (std::uint64_t now = 0; now <= 6 * kWireNs; now += kWireNs / 2) {
        chip_.advance(now);
    }
    EXPECT_THAT(queues_done(), ElementsAre(1, 1, 1, 0, 0, 0));
}

TEST_F(Dwmac5Test, AFaultOfOneQueueLeavesTheOtherAlone) {
    guest_.knob(chip_, "stall 1 0");
    guest_.knob(chip_, "dropirq 1 1");
    post(0);
    post(1);
    doorbell(0, 0);
    doorbell(1, 0);
    chip_.advance(kMs);
    EXPECT_TRUE(owned(0, 0));
    EXPECT_FALSE(owned(1, 0));
    EXPECT_EQ(status(1) & dwmac::kTi, 0U);
    guest_.knob(chip_, "stall 0 0");
    chip_.advance(kMs);
    chip_.advance(2 * kMs);
    EXPECT_FALSE(owned(0, 0));
    EXPECT_EQ(status(0) & dwmac::kTi, dwmac::kTi);
}

TEST_F(Dwmac5Test, AStatusThatIsStillSetAfterAnAcknowledgementIsSentAgain) {
    post(0);
    doorbell(0, 0);
    chip_.advance(kMs);
    EXPECT_EQ(guest_.messages(), 1U);
    channel(0, dwmac::kStatus, dwmac::kNis);  // not TI
    EXPECT_EQ(guest_.messages(), 1U);
    channel(0, dwmac::kStatus, dwmac::kTi | dwmac::kNis);
    EXPECT_EQ(guest_.messages(), 0U);
}

TEST_F(Dwmac5Test, AStoppedChannelForgetsWhatWasFetched) {
    post(0);
    doorbell(0, 0);
    channel(0, dwmac::kTxControl, 0);
    EXPECT_EQ(chip_.advance(kMs), std::nullopt);
    EXPECT_TRUE(owned(0, 0));
    EXPECT_EQ(guest_.logged("dropped")[0].at("frames"), 1);
}

TEST_F(Dwmac5Test, ASoftResetIsDoneWhenTheDriverLooks) {
    chip_.write(0, dwmac::kDmaBusMode, 4, dwmac::kSoftwareReset, 0);
    EXPECT_EQ(chip_.read(0, dwmac::kDmaBusMode, 4, 0) & dwmac::kSoftwareReset, 0U);
    EXPECT_EQ(chip_.read(0, at(0, dwmac::kTxControl), 4, 0), 0U);
    EXPECT_EQ(chip_.read(0, dwmac::kVersion, 4, 0), 0x3051U);
}

TEST_F(Dwmac5Test, ShowsTheQueuesItWasAskedToShow) {
    const std::uint64_t feature2 = chip_.read(0, dwmac::kHwFeature0 + 8, 4, 0);
    EXPECT_EQ(feature2 >> 6 & 15, 1U);   // two TX queues
    EXPECT_EQ(feature2 >> 18 & 15, 1U);  // two TX channels
    chip_.write(0, dwmac::kHwFeature0 + 8, 4, 0, 0);
    EXPECT_EQ(chip_.read(0, dwmac::kHwFeature0 + 8, 4, 0), feature2);
}

TEST_F(Dwmac5Test, ReadsThePhyOverMdioAndSeesTheCablePulled) {
    const auto bmsr = [this](unsigned phy) {
        chip_.write(0, dwmac::kMdioAddress, 4,
                    phy << dwmac::kMdioPhyShift | 1U << dwmac::kMdioRegShift |
                        dwmac::kMdioRead << dwmac::kMdioOpShift | dwmac::kMdioBusy,
                    0);
        EXPECT_EQ(chip_.read(0, dwmac::kMdioAddress, 4, 0) & dwmac::kMdioBusy, 0U);
        return chip_.read(0, dwmac::kMdioData, 4, 0);
    };
    EXPECT_EQ(bmsr(1) & 4, 4U);
    EXPECT_EQ(bmsr(2), 0xffffU);
    guest_.knob(chip_, "link 0");
    EXPECT_EQ(bmsr(1) & 4, 0U);
}

class Dwmac5Msix : public Dwmac5Test {
  protected:
    Dwmac5Msix() : Dwmac5Test(true) {}
};

TEST_F(Dwmac5Msix, HasAVectorForEachChannelAndDirection) {
    post(0);
    post(1);
    doorbell(0, 0);
    doorbell(1, 0);
    chip_.advance(kMs);
    chip_.advance(2 * kMs);
    EXPECT_EQ(guest_.messages(0), 0U);
    EXPECT_EQ(guest_.messages(1), 1U);
    EXPECT_EQ(guest_.messages(3), 1U);
}

// ---------------------------------------------------------------- broken rings

struct BrokenRing {
    const char* name;
    std::uint32_t des3;
    std::uint64_t buffer;
    const char* what;
};
class Dwmac5Broken : public Dwmac5Test, public testing::WithParamInterface<BrokenRing> {};

TEST_P(Dwmac5Broken, IsABusErrorWithItsInterruptAndStopsTheChannelOnly) {
    for (std::uint32_t i = 0; i + 1 < kRing; ++i) {
        post_raw(0, 100, GetParam().des3, GetParam().buffer);
    }
    EXPECT_EQ(doorbell(0, 0), std::nullopt);
    ASSERT_THAT(guest_.logged("error"), SizeIs(1));
    EXPECT_EQ(guest_.logged("error")[0].at("what"), GetParam().what);
    EXPECT_EQ(status(0) & (dwmac::kFbe | dwmac::kAis), dwmac::kFbe | dwmac::kAis);
    EXPECT_EQ(guest_.messages(), 1U);
    post(1);
    doorbell(1, 0);
    chip_.advance(kMs);
    EXPECT_FALSE(owned(1, 0));
    EXPECT_THAT(guest_.logged("error"), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(
    All, Dwmac5Broken,
    testing::Values(BrokenRing{"Buffer", kWhole, Guest::kNowhere, "TX buffer is not mapped"},
                    BrokenRing{"BufferBeyondTheEnd", kWhole, Guest::kBase + Guest::kSize - 99,
                               "TX buffer is not mapped"},
                    BrokenRing{"NoFirst", dwmac::kOwn | dwmac::kLast, Guest::kBase,
                               "FIRST_DESCRIPTOR is not where a frame begins"},
                    BrokenRing{"TwoFirst", dwmac::kOwn | dwmac::kFirst, Guest::kBase,
                               "FIRST_DESCRIPTOR is not where a frame begins"}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_F(Dwmac5Test, AChainWithoutItsLastDescriptorEndsAtTheTailPointer) {
    for (std::uint32_t i = 0; i < kRing; ++i) {
        post_raw(0, 0, dwmac::kOwn | dwmac::kContext, 0);
    }
    // Every descriptor of the ring is the DMA's and none ends a frame. A tail outside the ring is
    // taken modulo its size, so there is always one.
    channel(0, dwmac::kTxTail, static_cast<std::uint32_t>(rings_[0]) - 16);
    EXPECT_EQ(chip_.advance(0), std::nullopt);
    EXPECT_THAT(guest_.logged("fetch"), IsEmpty());
    EXPECT_EQ(status(0) & dwmac::kTbu, dwmac::kTbu);
}

TEST_F(Dwmac5Test, ARingThatIsNotMappedIsABusError) {
    channel(0, dwmac::kTxBaseHigh, static_cast<std::uint32_t>(Guest::kNowhere >> 32));
    post(0);
    EXPECT_EQ(doorbell(0, 0), std::nullopt);
    ASSERT_THAT(guest_.logged("error"), SizeIs(1));
    EXPECT_EQ(guest_.logged("error")[0].at("what"), "TX descriptor is not mapped");
}

TEST_F(Dwmac5Test, PutsAnAnswerOfThePeerIntoTheReceiveRing) {
    const std::uint64_t ring = guest_.allocate(64);
    const std::uint64_t buffer = guest_.allocate(2048);
    channel(0, dwmac::kRxBaseHigh, static_cast<std::uint32_t>(ring >> 32));
    channel(0, dwmac::kRxBase, static_cast<std::uint32_t>(ring));
    channel(0, dwmac::kRxControl, dwmac::kStartRx);
    guest_.put32(ring, static_cast<std::uint32_t>(buffer));
    guest_.put32(ring + 4, static_cast<std::uint32_t>(buffer >> 32));
    guest_.put32(ring + 12, dwmac::kOwn);
    const Bytes request = arp_request();
    post_raw(0, static_cast<std::uint32_t>(request.size()), kWhole, guest_.place(request));
    doorbell(0, 0);
    chip_.advance(kMs);
    EXPECT_EQ(guest_.get32(ring + 12), dwmac::kFirst | dwmac::kLast | 64);
    EXPECT_EQ(guest_.get(buffer, 6), bytes_of({2, 0, 0, 0, 0, 1}));
    EXPECT_EQ(status(0) & dwmac::kRi, dwmac::kRi);
}

}  // namespace
}  // namespace ringside::lab
