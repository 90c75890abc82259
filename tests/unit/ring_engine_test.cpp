// The ring tier's bookkeeping against a driver that the test plays: every packet, descriptor and
// time is known, so every sum is compared exactly.
#include <gtest/gtest.h>

#include <deque>
#include <random>

extern "C" {
#include "tests/unit/ring_engine.h"
}

namespace ringside {
namespace {

constexpr int kBusy = 0x10;  // NETDEV_TX_BUSY

// What really happens, beside what the programs are shown of it.
class Driver {
  public:
    Driver(std::uint32_t size, bool free_running, std::uint32_t first = 0)
        : size_(size), free_running_(free_running) {
        engine_reset(free_running ? 1 : 0);
        engine_driver.size = size;
        engine_driver.head = engine_driver.tail = first;
        engine_driver.now_ns = 1'000'000'000;
    }

    void pass(std::uint64_t ns) { engine_driver.now_ns += ns; }
    [[nodiscard]] std::uint32_t used() const {
        return free_running_ ? engine_driver.head - engine_driver.tail
                             : (engine_driver.head + size_ - engine_driver.tail) % size_;
    }
    [[nodiscard]] std::uint32_t room() const { return size_ - 1 - used(); }

    void begin(std::uint32_t len) {
        engine_xmit_begin(len);
        started_ns_ = engine_driver.now_ns;
        len_ = len;
    }
    void fill(std::uint32_t descriptors) {
        engine_driver.head = moved(engine_driver.head, descriptors);
    }
    void end(std::uint32_t descriptors) {
        engine_xmit_end(0);
        in_ring_.push_back({started_ns_, len_, descriptors});
        put_in += descriptors;
    }
    void send(std::uint32_t len, std::uint32_t descriptors) {
        begin(len);
        fill(descriptors);
        pass(100);
        end(descriptors);
    }
    void refuse(std::uint32_t len) {
        begin(len);
        pass(100);
        engine_xmit_end(kBusy);
    }
    void swallow(std::uint32_t len) {
        begin(len);
        pass(100);
        engine_xmit_end(0);
    }
    void bypass(std::uint32_t descriptors) {
        fill(descriptors);
        in_ring_.push_back({0, 0, descriptors});
        put_in += descriptors;
        bypassed += descriptors;
    }
    // The driver cleans whole packets, then the poll ends.
    void clean(std::size_t packets) {
        const bool any = packets > 0 && !in_ring_.empty();
        std::uint32_t batch = 0;
        for (; packets > 0 && !in_ring_.empty(); --packets) {
            const InRing packet = in_ring_.front();
            in_ring_.pop_front();
            engine_driver.tail = moved(engine_driver.tail, packet.descriptors);
            batch += packet.descriptors;
            if (packet.started_ns != 0) {
                completed += 1;
                completed_bytes += packet.len;
                latency_ns += engine_driver.now_ns - packet.started_ns;
            }
        }
        taken += batch;
        batches += any ? 1 : 0;
        engine_poll();
    }
    // Everything in the ring is thrown away and indices start anew.
    void reset(std::uint32_t new_size = 0) {
        for (const InRing& packet : in_ring_) {
            lost += packet.started_ns != 0 ? 1 : 0;
            lost_descriptors += packet.descriptors;
        }
        in_ring_.clear();
        engine_driver.head = engine_driver.tail = 0;
        if (new_size != 0) {
            size_ = engine_driver.size = new_size;
        }
    }
    void expect_agreement() const {
        const rs_done_cell& done = *engine_done_cell();
        const rs_xmit_cell& xmit = *engine_xmit_cell();
        EXPECT_EQ(done.completed.packets, completed);
        EXPECT_EQ(done.completed.bytes, completed_bytes);
        EXPECT_EQ(done.latency_ns, latency_ns);
        EXPECT_EQ(done.descriptors.n, taken);
        EXPECT_EQ(done.batches, batches);
        EXPECT_EQ(xmit.bypassed, bypassed);
        EXPECT_EQ(engine_ring()->lost.packets, lost);
        EXPECT_EQ(engine_odd(), 0U);
    }
    void expect_levels() const {
        EXPECT_EQ(engine_xmit_cell()->descriptors.n - engine_done_cell()->descriptors.n -
                      engine_ring()->lost_descriptors.n,
                  used());
        std::size_t packets = 0;
        for (const InRing& packet : in_ring_) {
            packets += packet.started_ns != 0 ? 1 : 0;
        }
        EXPECT_EQ(engine_queue()->started - engine_queue()->finished, packets);
    }

    std::uint64_t completed = 0, completed_bytes = 0, latency_ns = 0, taken = 0, batches = 0;
    std::uint64_t put_in = 0, bypassed = 0, lost = 0, lost_descriptors = 0;

  private:
    [[nodiscard]] std::uint32_t moved(std::uint32_t index, std::uint32_t by) const {
        return free_running_ ? index + by : (index + by) % size_;
    }
    struct InRing {
        std::uint64_t started_ns;
        std::uint32_t len;
        std::uint32_t descriptors;
    };
    std::uint32_t size_;
    bool free_running_;
    std::deque<InRing> in_ring_;
    std::uint64_t started_ns_ = 0;
    std::uint32_t len_ = 0;
};

class RingEngine : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Indices, RingEngine, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "FreeRunning" : "Wrapped"; });

TEST_P(RingEngine, MeasuresFromStartToTheEndOfThePoll) {
    Driver driver(64, GetParam());
    driver.send(1000, 1);
    driver.pass(5'000);
    driver.send(2000, 3);
    driver.pass(20'000);
    driver.clean(1);
    driver.pass(7'000);
    driver.clean(1);
    driver.expect_agreement();
    driver.expect_levels();
    EXPECT_EQ(engine_done_cell()->latency_ns,
              (100U + 5'000 + 100 + 20'000) + (100 + 20'000 + 7'000));
    EXPECT_EQ(engine_xmit_cell()->max_used, 4U);
    EXPECT_EQ(engine_xmit_cell()->max_in_flight, 2U);
    EXPECT_EQ(engine_done_cell()->max_batch, 3U);
}

TEST_P(RingEngine, LooksOnlyAtThePollsOfItsQueue) {
    Driver driver(64, GetParam());
    driver.send(1000, 1);
    engine_driver.tail += 1;
    engine_poll_of_another_queue();
    EXPECT_EQ(engine_done_cell()->completed.packets, 0U);
    engine_poll();
    EXPECT_EQ(engine_done_cell()->completed.packets, 1U);
}

TEST_P(RingEngine, AgreesWithAnyHistory) {
    std::minstd_rand random(7);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    // Free-running indices pass 2^32 on the way.
    Driver driver(48, GetParam(), GetParam() ? 0xffffff00U : 5U);
    for (int step = 0; step < 50'000 && !HasFailure(); ++step) {
        driver.pass(1 + below(9'000));
        const std::uint32_t choice = below(100);
        const std::uint32_t descriptors = 1 + below(5);
        if (choice < 55 && driver.room() >= descriptors) {
            driver.send(60 + below(60'000), descriptors);
        } else if (choice < 58) {
            driver.refuse(60 + below(1'500));
        } else if (choice < 60) {
            driver.swallow(60 + below(1'500));
        } else if (choice < 61 && driver.room() > descriptors && driver.put_in > 0) {
            driver.bypass(descriptors);
            driver.pass(10);
            driver.send(777, 1);  // by which it is noticed
        } else {
            driver.clean(below(6));
        }
        driver.expect_agreement();
    }
    driver.expect_levels();
    EXPECT_GT(driver.completed, 20'000U);
    EXPECT_GT(driver.bypassed, 100U);
}

TEST_P(RingEngine, TakesAPollInTheMiddleOfAPacketForItsEnd) {
    Driver driver(64, GetParam());
    driver.send(500, 1);
    driver.clean(1);
    // On another CPU the hardware and a poll are done before the driver's function has returned.
    driver.begin(1000);
    driver.fill(2);
    driver.pass(3'000);
    engine_driver.tail = engine_driver.head;
    engine_poll();
    EXPECT_EQ(engine_done_cell()->completed.packets, 1U);
    driver.pass(900);
    engine_xmit_end(0);
    // Known only at the next poll, but with the time of the one that came past.
    driver.pass(50'000'000);
    driver.begin(1000);
    driver.fill(1);
    engine_xmit_end(0);
    engine_driver.tail = engine_driver.head;
    engine_poll();
    EXPECT_EQ(engine_done_cell()->completed.packets, 3U);
    EXPECT_EQ(engine_done_cell()->max_latency_ns, 3'000U);
}

TEST_P(RingEngine, LosesPacketsToAResetAndInventsNoLatency) {
    for (const bool poll_first : {true, false}) {
        Driver driver(64, GetParam(), 7);
        driver.send(1000, 2);
        driver.pass(1'000);
        driver.clean(1);
        for (int i = 0; i < 5; ++i) {
            driver.send(1500, 2);
        }
        driver.pass(5'000'000'000);
        driver.reset();
        if (poll_first) {
            engine_poll();
            engine_poll();
            EXPECT_EQ(engine_ring()->lost.packets, 5U);
        }
        driver.send(700, 1);
        driver.pass(2'000);
        driver.clean(1);
        driver.send(700, 1);
        driver.pass(2'000);
        driver.clean(1);
        driver.expect_agreement();
        driver.expect_levels();
        EXPECT_EQ(engine_ring()->epoch, 1U) << "poll first: " << poll_first;
        EXPECT_EQ(engine_done_cell()->completed.packets, 3U);
        EXPECT_LT(engine_done_cell()->max_latency_ns, 3'000U);
        // The five seconds are a wait all the same.
        EXPECT_GE(engine_done_cell()->max_gap_ns, 5'000'000'000U);
        EXPECT_LT(engine_done_cell()->max_gap_ns, 5'000'010'000U);
        EXPECT_EQ(engine_ring()->lost_descriptors.n, 10U);
    }
}

TEST_P(RingEngine, FollowsAResize) {
    Driver driver(64, GetParam(), 3);
    driver.send(1000, 3);
    driver.pass(1'000);
    driver.clean(1);
    driver.reset(GetParam() ? 1024 : 16);
    for (int i = 0; i < 100; ++i) {
        driver.send(1000, 3);
        driver.pass(1'000);
        driver.clean(1);
        driver.expect_agreement();
    }
    EXPECT_EQ(engine_ring()->size, GetParam() ? 1024U : 16U);
}

TEST_P(RingEngine, StartsWithARingThatHoldsSomething) {
    Driver driver(64, GetParam(), 60);
    engine_driver.head = GetParam() ? 70 : 6;
    driver.begin(100);
    driver.fill(1);
    engine_xmit_end(0);
    EXPECT_EQ(engine_xmit_cell()->descriptors.n, 11U);
    EXPECT_EQ(engine_xmit_cell()->max_used, 11U);
    engine_driver.tail = engine_driver.head;
    driver.pass(1'000);
    engine_poll();
    EXPECT_EQ(engine_done_cell()->completed.packets, 1U);
    EXPECT_EQ(engine_done_cell()->descriptors.n, 11U);
}

TEST(RingEngineLimits, CountsPacketsThatDoNotFit) {
    // More packets than the queue of packets holds: only possible when ring sizes were not known.
    Driver driver(1U << 20, true);
    for (int i = 0; i < 1'500; ++i) {
        driver.send(100, 1);
    }
    EXPECT_EQ(engine_xmit_cell()->unpaired, 476U);
    driver.clean(1'500);
    EXPECT_EQ(engine_done_cell()->completed.packets, 1'024U);
    EXPECT_EQ(engine_done_cell()->descriptors.n, 1'500U);
}

TEST(RingEngineLimits, CountsIndicesThatCannotBe) {
    Driver driver(64, true);
    driver.send(100, 1);
    engine_driver.head += 1'000'000;
    driver.begin(100);
    engine_xmit_end(0);
    EXPECT_GT(engine_odd(), 0U);
}

// ---- who scheduled a poll

class Wakeups : public testing::Test {
  protected:
    Wakeups() : driver_(256, false) {}

    // One packet that a poll takes back 7 us after it began.
    void take_back() {
        driver_.pass(7'000);
        driver_.clean(1);
    }
    static std::uint64_t by(rs_wakeup wakeup) { return engine_done_cell()->batches_by[wakeup]; }
    static const rs_napi_cell& napi() { return *engine_napi_cell(); }

    Driver driver_;
};

TEST_F(Wakeups, MeasureFromTheInterruptToThePollsBeginning) {
    driver_.send(100, 1);
    driver_.pass(50'000);
    engine_irq(ENGINE_IRQ);
    driver_.pass(3'000);
    engine_softirq();
    take_back();
    EXPECT_EQ(napi().irq_polls, 1U);
    EXPECT_EQ(napi().irq_to_poll_ns, 3'000U);
    EXPECT_EQ(napi().max_irq_to_poll_ns, 3'000U);
    EXPECT_EQ(napi().irq_to_poll[rs_hist_index(3'000)], 1U);
    EXPECT_EQ(by(RS_BY_IRQ), 1U);
    EXPECT_EQ(by(RS_BY_TIMER), 0U);
}

TEST_F(Wakeups, LeaveOutInterruptsOfOtherDevices) {
    driver_.send(100, 1);
    engine_irq(ENGINE_IRQ + 1);
    engine_irq(ENGINE_IRQ + 32);
    engine_irq(-1);
    engine_irq(RS_MAX_IRQ);
    engine_softirq();
    take_back();
    EXPECT_EQ(napi().irq_polls, 0U);
    EXPECT_EQ(by(RS_BY_IRQ), 0U);
    EXPECT_EQ(engine_done_cell()->batches, 1U);
}

TEST_F(Wakeups, GiveAnInterruptToOnePollOnly) {
    engine_irq(ENGINE_IRQ);
    driver_.pass(1'000);
    engine_softirq();
    driver_.send(100, 1);
    take_back();
    driver_.send(100, 1);
    take_back();  // goes on in the same softirq
    driver_.send(100, 1);
    engine_softirq();
    take_back();
    EXPECT_EQ(napi().irq_polls, 1U);
    EXPECT_EQ(by(RS_BY_IRQ), 1U);
    EXPECT_EQ(engine_done_cell()->batches, 3U);
}

TEST_F(Wakeups, ServeAnInterruptDuringAPollWithTheNext) {
    engine_softirq();
    driver_.send(100, 1);
    driver_.pass(1'000);
    engine_irq(ENGINE_IRQ);
    take_back();
    EXPECT_EQ(napi().irq_polls, 0U) << "the poll had begun before";
    driver_.send(100, 1);
    take_back();
    EXPECT_EQ(napi().irq_polls, 1U);
    EXPECT_EQ(napi().irq_to_poll_ns, 7'000U) << "it waited for the end of the poll that ran";
}

TEST_F(Wakeups, ForgetAnInterruptThatScheduledSomethingElse) {
    engine_irq(ENGINE_IRQ);
    driver_.pass(1'000);
    engine_softirq();
    engine_poll_of_another_queue();
    EXPECT_EQ(napi().irq_polls, 1U) << "of the other instance";
    engine_softirq();
    engine_softirq();
    driver_.send(100, 1);
    take_back();
    EXPECT_EQ(by(RS_BY_IRQ), 0U);
    EXPECT_EQ(engine_done_cell()->batches, 1U);
}

TEST_F(Wakeups, PreferTheTimerAndForgetItAfterOnePoll) {
    driver_.send(100, 1);
    engine_timer();
    engine_irq(ENGINE_IRQ);
    driver_.pass(1'000);
    engine_softirq();
    take_back();
    EXPECT_EQ(by(RS_BY_TIMER), 1U);
    EXPECT_EQ(by(RS_BY_IRQ), 0U);
    driver_.send(100, 1);
    engine_softirq();
    take_back();
    EXPECT_EQ(by(RS_BY_TIMER), 1U);
    EXPECT_EQ(engine_queue()->timers, 1U);
}

TEST_F(Wakeups, ForgetATimerThatFoundTheRingEmpty) {
    engine_timer();
    driver_.pass(1'000);
    engine_softirq();
    engine_poll();
    driver_.send(100, 1);
    engine_irq(ENGINE_IRQ);
    driver_.pass(1'000);
    engine_softirq();
    take_back();
    EXPECT_EQ(by(RS_BY_TIMER), 0U);
    EXPECT_EQ(by(RS_BY_IRQ), 1U);
}

}  // namespace
}  // namespace ringside
