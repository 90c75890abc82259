#include "analyzers/figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/golden/make_runs.h"

namespace ringside {
namespace {

using namespace golden;

Analysis analyzed(const Run& run, const AnalysisParams& params = {}) {
    Result<Analysis> analysis = analyze(run, params);
    EXPECT_TRUE(analysis);
    return analysis ? std::move(*analysis) : Analysis();
}

bool warns(const Analysis& analysis, std::string_view id) {
    return std::any_of(analysis.warnings.begin(), analysis.warnings.end(),
                       [&](const Warning& warning) { return warning.id == id; });
}

TEST(Figures, RatesInFlightAndLatencyOfTheLateCompletionCase) {
    const Analysis analysis = analyzed(late_completion_run());
    ASSERT_EQ(analysis.queues.size(), 1U);
    const TrafficFigures& traffic = analysis.queues[0].traffic;
    EXPECT_EQ(traffic.duration_ns, 2'000'000'000U);
    EXPECT_EQ(traffic.packets, 90'000U);
    EXPECT_EQ(traffic.completed, 89'775U);
    EXPECT_DOUBLE_EQ(traffic.wire_bps, 544.32e6);
    EXPECT_DOUBLE_EQ(traffic.packets_per_s, 45'000);
    EXPECT_DOUBLE_EQ(traffic.in_flight_packets, 449.4375 / 2);
    EXPECT_DOUBLE_EQ(traffic.in_flight_bytes, 449.4375 / 2 * 1512);
    EXPECT_EQ(traffic.in_flight_max_packets, 240U);
    EXPECT_EQ(traffic.in_flight_end, 225);
    // The highest window is a whole one: 225 x 1,512.
    EXPECT_DOUBLE_EQ(traffic.in_flight_window_max_bytes, 340'200);
    ASSERT_TRUE(traffic.latency);
    EXPECT_DOUBLE_EQ(traffic.latency->mean_ns, 5e6);
    EXPECT_NEAR(traffic.latency->histogram_mean_ns, 5'033'132, 1);
    EXPECT_NEAR(traffic.latency->p50_ns, 5'046'272, 1);
    EXPECT_DOUBLE_EQ(traffic.latency->p99_ns, 5.2e6);  // not above the maximum
    EXPECT_DOUBLE_EQ(traffic.latency->max_ns, 5.2e6);
}

TEST(Figures, FirstWindowIsLeftOutAsLeadIn) {
    AnalysisParams params;
    params.lead_in_ns = 1;  // any part of the first window takes all of it
    const Analysis analysis = analyzed(late_completion_run(), params);
    EXPECT_EQ(analysis.used.windows, 19U);
    EXPECT_EQ(analysis.used.windows_left_out, 1U);
    EXPECT_EQ(analysis.used.from_ns, kWindowNs);
    EXPECT_EQ(analysis.used.duration_ns, 1'900'000'000U);
    EXPECT_EQ(analysis.used.run_ns, 2'000'000'000U);
    EXPECT_DOUBLE_EQ(analysis.queues[0].traffic.in_flight_packets, 225);
}

TEST(Figures, LeadInThatLeavesNothingIsWrongUsage) {
    AnalysisParams params;
    params.lead_in_ns = 3'000'000'000;
    const Result<Analysis> analysis = analyze(late_completion_run(), params);
    ASSERT_FALSE(analysis);
    EXPECT_EQ(analysis.error().code(), ErrorCode::kUsage);
}

TEST(Figures, RequeuedPacketsAreSentOnce) {
    const Analysis analysis = analyzed(two_queues_run());
    const TrafficFigures& second = analysis.queues[1].traffic;
    EXPECT_EQ(second.packets, 1000U);
    EXPECT_EQ(second.bytes, 500'000U);
    EXPECT_EQ(second.requeued, 5U);
}

TEST(Figures, PortIsTheSumOfItsQueues) {
    const Analysis analysis = analyzed(two_queues_run());
    EXPECT_EQ(analysis.queues_used, 2U);
    EXPECT_DOUBLE_EQ(analysis.port.wire_bps, 72e6);
    EXPECT_DOUBLE_EQ(analysis.port.in_flight_packets, 12);
    EXPECT_DOUBLE_EQ(analysis.port.in_flight_bytes, 10'000);
    EXPECT_FALSE(analysis.port.in_flight_max_packets);
    // (4,000 x 1 ms + 1,000 x 2 ms) / 5,000
    EXPECT_DOUBLE_EQ(analysis.port.latency->mean_ns, 1.2e6);
}

TEST(Figures, SegmentsGiveTheWireRate) {
    const TrafficFigures traffic = analyzed(steady_run()).port;
    EXPECT_DOUBLE_EQ(traffic.segments_per_packet, 10);
    EXPECT_DOUBLE_EQ(traffic.wire_bps, 968.96e6);
    EXPECT_DOUBLE_EQ(traffic.packet_bps, 930.944e6);
    EXPECT_NEAR(traffic.in_flight_packets, 2.4, 1e-9);
}

TEST(Figures, BqlIsAbsentWithoutAReportAndFlaggedWhenInexact) {
    const Analysis analysis = analyzed(two_queues_run());
    EXPECT_FALSE(analysis.queues[0].bql);
    ASSERT_TRUE(analysis.queues[1].bql);
    EXPECT_DOUBLE_EQ(analysis.queues[1].bql->average_bytes, 3000);
    EXPECT_NEAR(*analysis.queues[1].bql->difference, 0.5, 1e-12);
    EXPECT_FALSE(analysis.queues[1].bql->exact());
    EXPECT_EQ(analysis.queues[1].bql->inexact_windows, 1U);
    EXPECT_TRUE(warns(analysis, "bql-inexact"));
    EXPECT_TRUE(warns(analysis, "bql-differs"));
    EXPECT_FALSE(warns(analyzed(late_completion_run()), "bql-differs"));
}

TEST(Figures, StopsOfBothKinds) {
    const Analysis analysis = analyzed(two_queues_run());
    const StopSummary& bql = analysis.queues[1].bql_stop;
    EXPECT_EQ(bql.count, 10U);
    EXPECT_DOUBLE_EQ(bql.share, 0.1);
    EXPECT_EQ(bql.longest_ns, 6'000'000U);
    EXPECT_FALSE(bql.open);
    const StopSummary driver = analyzed(stopped_run()).queues[0].driver_stop;
    EXPECT_EQ(driver.count, 1U);
    EXPECT_DOUBLE_EQ(driver.share, 0.5);
    EXPECT_EQ(driver.longest_ns, 1'000'000'000U);
    EXPECT_TRUE(driver.open);
}

// The longest stop is recorded for the whole run: with a lead-in left out it is a bound.
TEST(Figures, LongestStopOfTheLeadInDoesNotExceedTheStoppedTime) {
    auto run = two_queues_run();
    for (Window& window : run.windows) {
        window.queues[1].bql_stop.longest_ns = 90'000'000;
    }
    AnalysisParams params;
    params.lead_in_ns = 4 * kWindowNs;
    EXPECT_EQ(analyzed(run, params).queues[1].bql_stop.longest_ns, kWindowNs / 10);
}

TEST(Figures, NapiPerInstance) {
    const Analysis late = analyzed(late_completion_run());
    ASSERT_EQ(late.napis.size(), 1U);
    EXPECT_DOUBLE_EQ(late.napis[0].polls_per_s, 200);
    EXPECT_DOUBLE_EQ(late.napis[0].work_per_poll, 225);
    EXPECT_DOUBLE_EQ(late.napis[0].gap_max_ns, 5e6);
    const Analysis two = analyzed(two_queues_run());
    ASSERT_EQ(two.napis.size(), 2U);
    EXPECT_DOUBLE_EQ(two.napis[1].exhausted_share, 0.5);
    EXPECT_FALSE(two.napis[1].gap_p50_ns);
    EXPECT_EQ(two.port.windows[0].polls, 60U);
}

TEST(Little, AgreesOnConsistentFigures) {
    const LittleCheck late = analyzed(late_completion_run()).queues[0].little;
    EXPECT_EQ(late.verdict, LittleVerdict::kAgrees);
    EXPECT_NEAR(late.residual, (225.9247 - 224.71875) / 224.71875, 1e-5);
    EXPECT_EQ(analyzed(steady_run()).queues[0].little.verdict, LittleVerdict::kAgrees);
    EXPECT_EQ(analyzed(stall_run()).queues[0].little.verdict, LittleVerdict::kAgrees);
}

// An area that is 25 % too large: 8 packets become 10, residual (10 - 8.06) / 10 = 19 %.
TEST(Little, SaysWhenFiguresDoNotAgree) {
    auto run = two_queues_run();
    for (Window& window : run.windows) {
        window.queues[0].in_flight_packet_ns *= 1.25;
    }
    const Analysis analysis = analyzed(run);
    EXPECT_EQ(analysis.queues[0].little.verdict, LittleVerdict::kDisagrees);
    EXPECT_NEAR(analysis.queues[0].little.residual, (10 - 8 * 1.007616) / 10, 1e-9);
    EXPECT_TRUE(warns(analysis, "little-residual"));
    EXPECT_EQ(analysis.queues[1].little.verdict, LittleVerdict::kAgrees);
}

// One window of the late completion case with a latency of 80 ms: most packets never complete in
// it.
TEST(Little, SaysNothingOfARunShorterThanTheLatency) {
    TrafficFigures traffic;
    traffic.duration_ns = 100'000'000;
    traffic.completed = 200;  // of 1,000 that came in evenly; 800 are left
    traffic.in_flight_end = 800;
    // Each of the 200 waited 80 ms, the 800 on average 40 ms: 16 + 32 packet s in 0.1 s.
    traffic.in_flight_packets = 480;
    traffic.latency.emplace();
    traffic.latency->histogram_mean_ns = 80e6;
    const LittleCheck check = little_check(traffic, 0, 80'000'000);
    EXPECT_DOUBLE_EQ(check.residual, (480.0 - 160.0) / 480.0);
    EXPECT_DOUBLE_EQ(check.edge_share, 1);  // 800 x 80 ms is more than the area
    EXPECT_EQ(check.verdict, LittleVerdict::kTooShort);
}

TEST(Little, NeedsSomethingToCompare) {
    EXPECT_EQ(analyzed(veth_run()).queues[0].little.verdict, LittleVerdict::kNoData);
    EXPECT_EQ(little_check({}, 0, 0).verdict, LittleVerdict::kNoData);
}

TEST(TrustRule, MissedCompletionsAboveOnePercent) {
    TrafficFigures traffic;
    traffic.packets = 10'000;
    traffic.completed = 9'900;
    traffic.missed = 100;
    EXPECT_TRUE(trust_of(traffic).ok());  // exactly 1 %
    traffic.completed = 9'899;
    traffic.missed = 101;
    EXPECT_FALSE(trust_of(traffic).ok());
    EXPECT_NE(trust_of(traffic).reason.find("1.0 %"), std::string::npos);
}

TEST(TrustRule, NothingCompletesWithManySent) {
    TrafficFigures traffic;
    traffic.packets = 999;
    EXPECT_TRUE(trust_of(traffic).ok()) << "too few to tell";
    traffic.packets = 1000;
    EXPECT_FALSE(trust_of(traffic).ok());
    traffic.completed = 10;
    EXPECT_TRUE(trust_of(traffic).ok());
}

// dev_kfree_skb_any() for sent packets looks like dropping every one of them.
TEST(TrustRule, DriverThatFreesAsDroppedIsNoFinding) {
    auto run = bypass_run();
    for (Window& window : run.windows) {
        QueueWindow& queue = window.queues[0];
        queue.dropped = queue.completed;
        queue.completed = 0;
        queue.latency.clear();
        window.kernel_tx_packets = 7000;
    }
    const Analysis analysis = analyzed(run);
    EXPECT_TRUE(analysis.queues[0].trust.frees_as_drops);
    EXPECT_FALSE(analysis.has_findings);
    EXPECT_TRUE(warns(analysis, "not-to-be-trusted"));
}

TEST(TrustRule, PacketsThatCouldNotBeFollowed) {
    TrafficFigures traffic;
    traffic.packets = 1000;
    traffic.completed = 980;
    traffic.unpaired = 11;
    EXPECT_FALSE(trust_of(traffic).ok());
    traffic.unpaired = 10;
    EXPECT_TRUE(trust_of(traffic).ok());
}

TEST(NotSeenRule, BypassedFramesAreAShareOfTheKernelsCount) {
    const NotSeen seen = analyzed(bypass_run()).not_seen;
    EXPECT_EQ(seen.counted_as, CountedAs::kMore);
    EXPECT_DOUBLE_EQ(seen.unseen_min, 0.3);
    EXPECT_DOUBLE_EQ(seen.unseen_max, 0.3);
}

TEST(NotSeenRule, TellsWhatTheDriverCounts) {
    // 800 packets of 10 frames a window, 10 windows: 8,000 packets, 80,000 frames. Slack: 9 x 10 in
    // flight and one window of 8,000 frames.
    const auto counted = [](std::uint64_t kernel_per_window) {
        auto run = steady_run();
        for (Window& window : run.windows) {
            window.kernel_tx_packets = kernel_per_window;
        }
        return analyzed(run).not_seen;
    };
    EXPECT_EQ(counted(8000).counted_as, CountedAs::kSegments);
    EXPECT_EQ(counted(800).counted_as, CountedAs::kPackets);
    EXPECT_DOUBLE_EQ(counted(800).unseen_max, 0);
    EXPECT_EQ(counted(4000).counted_as, CountedAs::kBetween);
    EXPECT_DOUBLE_EQ(counted(4000).unseen_min, 0);
    EXPECT_DOUBLE_EQ(counted(4000).unseen_max, 0.8);  // (40,000 - 8,000) / 40,000
    EXPECT_EQ(counted(8800).counted_as, CountedAs::kSegments) << "within the slack";
    EXPECT_EQ(counted(8810).counted_as, CountedAs::kMore);
    // A driver that does not count at all: 0 against 8,000 is within one window of frames here.
    EXPECT_EQ(counted(0).counted_as, CountedAs::kPackets);
}

TEST(NotSeenRule, FewerThanTraced) {
    auto run = bypass_run();
    for (Window& window : run.windows) {
        window.kernel_tx_packets = 0;
    }
    const NotSeen seen = analyzed(run).not_seen;
    EXPECT_EQ(seen.counted_as, CountedAs::kFewer);
    EXPECT_DOUBLE_EQ(seen.unseen_min, 0);
    EXPECT_DOUBLE_EQ(seen.unseen_max, 0);
}

TEST(NotSeenRule, OnlyWindowsWithCountersAreCompared) {
    auto run = bypass_run();
    for (std::size_t i = 0; i < 10; ++i) {
        run.windows[i].kernel_counters = false;
        run.windows[i].kernel_tx_packets = 0;
    }
    const NotSeen seen = analyzed(run).not_seen;
    EXPECT_EQ(seen.kernel_packets, 100'000U);
    EXPECT_EQ(seen.traced_packets, 70'000U);
    EXPECT_DOUBLE_EQ(seen.unseen_min, 0.3);
    for (Window& window : run.windows) {
        window.kernel_counters = false;
    }
    EXPECT_EQ(analyzed(run).not_seen.counted_as, CountedAs::kUnknown);
}

TEST(NotSeenRule, TimeWithoutTheDevice) {
    auto run = idle_run();  // 1 s
    run.events = {{kStartNs + 100'000'000, EventKind::kDeviceGone, ""},
                  {kStartNs + 350'000'000, EventKind::kDeviceBack, "eth0"},
                  {kStartNs + 900'000'000, EventKind::kDeviceGone, ""}};
    const Analysis analysis = analyzed(run);
    EXPECT_EQ(analysis.not_seen.device_gone_ns, 350'000'000U);
    EXPECT_TRUE(warns(analysis, "device-gone"));
}

// Whatever a file says: no crash, no endless loop, nothing undefined (the sanitizers watch).
TEST(Figures, SurviveSenselessNumbers) {
    auto run = late_completion_run();
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    run.info.window_ns = kMax;
    run.info.start_boottime_ns = kMax;
    run.events = {{kMax, EventKind::kDeviceGone, ""}, {0, EventKind::kDeviceBack, ""}};
    QueueWindow& queue = run.windows[3].queues[0];
    queue.packets = queue.wire_bytes = queue.segments = queue.completed = kMax;
    queue.requeued = queue.errors = kMax - 1;
    queue.in_flight_end = std::numeric_limits<std::int64_t>::min();
    queue.in_flight_packet_ns = std::nan("");
    queue.in_flight_byte_ns = -HUGE_VAL;
    queue.bql_byte_ns = HUGE_VAL;
    queue.latency = {{65'535, kMax}, {0, kMax}, {0, kMax}};
    queue.gap_max_ns = kMax;
    queue.oldest_ns = queue.last_progress_ns = kMax;
    run.windows[4].queues.push_back(queue);
    run.windows[5].end_ns = 0;
    run.windows[6].queues[0] = queue;
    run.windows[7].start_ns = 0;
    run.windows[7].end_ns = kMax;
    run.windows.back().queues[0] = queue;
    run.windows.back().queues[0].in_flight_end = std::numeric_limits<std::int64_t>::max();
    const Analysis analysis = analyzed(run);
    EXPECT_EQ(analysis.used.windows_unusable, 1U);
    EXPECT_TRUE(std::isfinite(analysis.port.in_flight_packets));
}

TEST(Figures, ARunWithoutWindowsHasFiguresOfZero) {
    auto run = idle_run();
    run.windows.clear();
    const Analysis analysis = analyzed(run);
    EXPECT_EQ(analysis.used.windows, 0U);
    EXPECT_TRUE(warns(analysis, "no-windows"));
    EXPECT_FALSE(analysis.has_findings);
}

}  // namespace
}  // namespace ringside
