#include <gtest/gtest.h>

#include "analyzers/figures.h"
#include "tests/golden/make_runs.h"

namespace ringside {
namespace {

using namespace golden;

constexpr std::uint64_t kMs = 1'000'000;

std::vector<Stall> stalls_of(const Run& run, std::optional<std::uint64_t> threshold_ns = {}) {
    AnalysisParams params;
    params.stall_threshold_ns = threshold_ns;
    const Result<Analysis> analysis = analyze(run, params);
    EXPECT_TRUE(analysis);
    return analysis ? analysis->stalls : std::vector<Stall>();
}

TEST(Stalls, AClosedOneIsCountedOnceOverAllItsWindows) {
    const std::vector<Stall> stalls = stalls_of(stall_run());
    ASSERT_EQ(stalls.size(), 1U);
    EXPECT_EQ(stalls[0].begin_ns, 1500 * kMs);
    EXPECT_EQ(stalls[0].end_ns, 2500 * kMs);
    EXPECT_EQ(stalls[0].duration_ns, 1000 * kMs);
    EXPECT_FALSE(stalls[0].open);
    EXPECT_TRUE(stalls[0].counts());
}

TEST(Stalls, AGapThatTwoWindowsReportIsOneStall) {
    auto run = stall_run();
    QueueWindow& next = run.windows[26].queues[0];
    next.gap_max_ns = 999 * kMs;  // another CPU saw a part of it
    next.gap_max_end_ns = kStartNs + 2500 * kMs;
    ASSERT_EQ(stalls_of(run).size(), 1U);
    EXPECT_EQ(stalls_of(run)[0].duration_ns, 1000 * kMs);
}

TEST(Stalls, ShorterThanTheThresholdIsNone) {
    EXPECT_EQ(stalls_of(stall_run(), 1000 * kMs).size(), 1U);
    EXPECT_TRUE(stalls_of(stall_run(), 1000 * kMs + 1).empty());
}

TEST(Stalls, AnIdleQueueHasNone) {
    EXPECT_TRUE(stalls_of(idle_run()).empty());
    // Traffic, then silence with nothing in flight.
    auto run = stall_run();
    run.windows.resize(15);
    for (std::uint64_t i = 15; i < 40; ++i) {
        Window window;
        window.start_ns = kStartNs + i * kWindowNs;
        window.end_ns = window.start_ns + kWindowNs;
        QueueWindow queue;
        queue.last_progress_ns = kStartNs + 1500 * kMs;
        window.queues.push_back(queue);
        run.windows.push_back(window);
    }
    EXPECT_TRUE(stalls_of(run).empty());
}

TEST(Stalls, AnOpenOneLastsToTheEnd) {
    const std::vector<Stall> stalls = stalls_of(stopped_run());
    ASSERT_EQ(stalls.size(), 1U);
    EXPECT_TRUE(stalls[0].open);
    EXPECT_EQ(stalls[0].begin_ns, 1000 * kMs);
    EXPECT_EQ(stalls[0].duration_ns, 1000 * kMs);
    EXPECT_EQ(stalls[0].in_flight, 16);
}

// Without a look at the flight table it is known from the end of the first window that had them in
// flight.
TEST(Stalls, AnOpenOneIsFoundWithoutKnowingTheOldestPacket) {
    auto run = stopped_run();
    for (Window& window : run.windows) {
        window.queues[0].oldest_ns = 0;
    }
    const std::vector<Stall> stalls = stalls_of(run);
    ASSERT_EQ(stalls.size(), 1U);
    EXPECT_EQ(stalls[0].begin_ns, 1100 * kMs);
    // One look in the middle is enough.
    run.windows[14].queues[0].oldest_ns = kStartNs + 1000 * kMs;
    EXPECT_EQ(stalls_of(run)[0].begin_ns, 1000 * kMs);
}

// A queue that was idle for long and got a packet a moment before the end does not stand still.
TEST(Stalls, APacketThatHasJustBeenSentIsNone) {
    auto run = stopped_run();
    for (std::size_t i = 10; i < 20; ++i) {
        QueueWindow& queue = run.windows[i].queues[0];
        queue.in_flight_end = i == 19 ? 1 : 0;
        queue.oldest_ns = i == 19 ? run.windows[i].end_ns - 1 * kMs : 0;
    }
    EXPECT_TRUE(stalls_of(run).empty());
    run.windows[19].queues[0].oldest_ns = 0;
    EXPECT_TRUE(stalls_of(run).empty());
}

// What a watchdog reset does: the packets of the dead ring are dropped, and traffic goes on.
TEST(Stalls, OneThatEndsInAResetOfTheDriverIsSeen) {
    auto run = stopped_run();
    const std::uint64_t begin_ns = kStartNs + 1000 * kMs;
    QueueWindow& reset = run.windows[17].queues[0];
    reset.dropped = 16;
    reset.in_flight_end = 0;
    reset.oldest_ns = 0;
    for (std::size_t i = 18; i < 20; ++i) {
        QueueWindow& after = run.windows[i].queues[0];
        after = detail::whole(0, 100, 1000, {{100, kMs}}, 2);
        after.last_progress_ns = run.windows[i].end_ns;
    }
    const std::vector<Stall> stalls = stalls_of(run);
    ASSERT_EQ(stalls.size(), 1U);
    EXPECT_FALSE(stalls[0].open);
    EXPECT_EQ(stalls[0].begin_ns, 1000 * kMs);
    EXPECT_EQ(stalls[0].end_ns, 1700 * kMs);
    EXPECT_TRUE(stalls_of(run, 701 * kMs).empty());
    // Drops of other packets while the old ones stay are no end of it.
    run.windows[13].queues[0].dropped = 3;
    ASSERT_EQ(stalls_of(run).size(), 1U);
    EXPECT_EQ(stalls_of(run)[0].duration_ns, 700 * kMs);
    // New packets that wait in the same window do not hide it.
    reset.in_flight_end = 1;
    reset.oldest_ns = begin_ns + 750 * kMs;
    ASSERT_EQ(stalls_of(run).size(), 1U);
    EXPECT_EQ(stalls_of(run)[0].duration_ns, 700 * kMs);
    // Packets that leave without a drop were completed: nothing more is known.
    reset.dropped = 0;
    EXPECT_TRUE(stalls_of(run).empty());
}

TEST(Stalls, WithoutALinkItIsNoFinding) {
    auto run = stall_run();
    run.events = {{kStartNs + 1400 * kMs, EventKind::kLinkDown, ""},
                  {kStartNs + 2400 * kMs, EventKind::kLinkUp, ""}};
    const Result<Analysis> analysis = analyze(run);
    ASSERT_TRUE(analysis);
    ASSERT_EQ(analysis->stalls.size(), 1U);
    EXPECT_EQ(analysis->stalls[0].context, StallContext::kLinkDown);
    EXPECT_FALSE(analysis->has_findings);
    // Up again before the stall began.
    run.events[1].time_ns = kStartNs + 1500 * kMs;
    EXPECT_EQ(stalls_of(run)[0].context, StallContext::kNone);
}

TEST(Stalls, ADeviceThatHasGoneLeavesNoOpenStallAsFinding) {
    auto run = stopped_run();
    run.events = {{kStartNs + 1200 * kMs, EventKind::kDeviceGone, ""}};
    ASSERT_EQ(stalls_of(run).size(), 1U);
    EXPECT_FALSE(stalls_of(run)[0].counts());
}

TEST(Stalls, FiguresThatAreNotToBeTrustedMakeNoFinding) {
    const Result<Analysis> analysis = analyze(veth_run());
    ASSERT_TRUE(analysis);
    ASSERT_EQ(analysis->stalls.size(), 1U);
    EXPECT_TRUE(analysis->stalls[0].doubtful);
    EXPECT_FALSE(analysis->has_findings);
}

TEST(Stalls, TheThresholdMustBeLongerThanAWindow) {
    AnalysisParams params;
    params.stall_threshold_ns = kWindowNs;
    const Result<Analysis> refused = analyze(stall_run(), params);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    params.stall_threshold_ns = kWindowNs + 1;
    EXPECT_TRUE(analyze(stall_run(), params));
}

TEST(Stalls, TheDefaultThresholdFollowsLongWindows) {
    auto run = idle_run();
    EXPECT_EQ(analyze(run)->stall_threshold_ns, kDefaultStallNs);
    run.info.window_ns = 1000 * kMs;
    EXPECT_EQ(analyze(run)->stall_threshold_ns, 2000 * kMs);
}

}  // namespace
}  // namespace ringside
