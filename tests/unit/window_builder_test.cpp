// From counts to the figures of a window: values that follow by hand.
#include <gtest/gtest.h>

#include "probes/window_builder.h"

namespace ringside {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kStart = 5'000'000 * kMs;

rs_flow flow(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> bytes_at) {
    rs_flow result{};
    for (const auto& [bytes, at_ns] : bytes_at) {
        result.packets += 1;
        result.packets_t += at_ns;
        result.bytes += bytes;
        result.bytes_t += bytes * at_ns;
    }
    return result;
}

RawWindow window(std::uint64_t number, const RawQueue& queue) {
    RawWindow raw;
    raw.start_ns = kStart + number * 100 * kMs;
    raw.end_ns = raw.start_ns + 100 * kMs;
    raw.queues = {queue};
    return raw;
}

TEST(WindowBuilder, AveragesWhatIsInFlightOverTheWindow) {
    WindowBuilder builder;
    RawQueue queue;
    // 1000 bytes from 20 to 70 ms, 500 bytes from 50 ms on: 50 + 50 packet ms, 50,000 + 25,000 byte
    // ms.
    queue.xmit.sent = flow({{1000, kStart + 20 * kMs}, {500, kStart + 50 * kMs}});
    queue.xmit.packets = 2;
    queue.done.completed = flow({{1000, kStart + 70 * kMs}});
    const QueueWindow first = builder.build(window(0, queue)).queues.at(0);
    EXPECT_EQ(first.in_flight_end, 1);
    EXPECT_DOUBLE_EQ(first.in_flight_packet_ns, 100.0 * kMs);
    EXPECT_DOUBLE_EQ(first.in_flight_byte_ns, 75'000.0 * kMs);
    // The second packet waits through a whole window in which nothing is counted, and half of the
    // next.
    const QueueWindow second = builder.build(window(1, RawQueue{})).queues.at(0);
    EXPECT_EQ(second.in_flight_end, 1);
    EXPECT_EQ(second.in_flight_max, 1U);
    EXPECT_DOUBLE_EQ(second.in_flight_packet_ns, 100.0 * kMs);
    RawQueue last;
    last.done.completed = flow({{500, kStart + 250 * kMs}});
    const QueueWindow third = builder.build(window(2, last)).queues.at(0);
    EXPECT_EQ(third.in_flight_end, 0);
    EXPECT_DOUBLE_EQ(third.in_flight_packet_ns, 50.0 * kMs);
    EXPECT_DOUBLE_EQ(third.in_flight_byte_ns, 25'000.0 * kMs);
}

TEST(WindowBuilder, SurvivesSumsThatWrap) {
    // A million packets at the largest times: the sums have wrapped many times over, areas are
    // right.
    constexpr std::uint64_t kLate = ~std::uint64_t{0} - 300 * kMs;
    WindowBuilder builder;
    RawQueue queue;
    queue.xmit.sent = {.packets = 1'000'000,
                       .packets_t = 1'000'000 * (kLate + 10 * kMs),
                       .bytes = 0,
                       .bytes_t = 0};
    queue.done.completed = {.packets = 1'000'000,
                            .packets_t = 1'000'000 * (kLate + 12 * kMs),
                            .bytes = 0,
                            .bytes_t = 0};
    RawWindow raw = window(0, queue);
    raw.start_ns = kLate;
    raw.end_ns = kLate + 100 * kMs;
    EXPECT_DOUBLE_EQ(builder.build(raw).queues.at(0).in_flight_packet_ns, 1e6 * 2 * kMs);
}

TEST(WindowBuilder, TakesRequeuedStaleAndDroppedPacketsOutOfFlight) {
    WindowBuilder builder;
    RawQueue queue;
    queue.xmit.sent = flow({{100, kStart}, {100, kStart}, {100, kStart}, {100, kStart}});
    queue.xmit.packets = 5;
    queue.xmit.unpaired = 1;
    queue.xmit.requeued = 1;
    queue.xmit.returned = flow({{100, kStart + 10 * kMs}});
    queue.xmit.stale = flow({{100, kStart + 20 * kMs}});
    queue.done.dropped = flow({{100, kStart + 30 * kMs}});
    queue.done.completed = flow({{100, kStart + 40 * kMs}});
    const QueueWindow figures = builder.build(window(0, queue)).queues.at(0);
    EXPECT_EQ(figures.in_flight_end, 0);
    EXPECT_DOUBLE_EQ(figures.in_flight_packet_ns, 100.0 * kMs);
    EXPECT_EQ(figures.packets, 5U);
    EXPECT_EQ(figures.missed, 1U);
    EXPECT_EQ(figures.dropped, 1U);
    EXPECT_EQ(figures.completed, 1U);
    EXPECT_EQ(figures.unpaired, 1U);
    EXPECT_EQ(figures.requeued, 1U);
}

TEST(WindowBuilder, SplitsAStopOverTheWindowsThatItCrosses) {
    WindowBuilder builder;
    RawQueue queue;
    rs_stop& stop = queue.state.stop[RS_STOP_DRIVER];
    stop = {.begins = 3,
            .ends = 2,
            .begin_ns = kStart + 70 * kMs,
            .base_ns = 5 * kMs,
            .closed_ns = 5 * kMs,
            .longest_ns = 4 * kMs};
    const StopFigures first = builder.build(window(0, queue)).queues.at(0).driver_stop;
    EXPECT_EQ(first.count, 3U);
    EXPECT_EQ(first.stopped_ns, 35 * kMs);  // 5 in stops that have ended, 30 in the open one
    EXPECT_TRUE(first.open);
    EXPECT_EQ(first.longest_ns, 30 * kMs);
    const StopFigures second = builder.build(window(1, queue)).queues.at(0).driver_stop;
    EXPECT_EQ(second.count, 0U);
    EXPECT_EQ(second.stopped_ns, 100 * kMs);
    stop.ends = 3;
    stop.closed_ns = 5 * kMs + 140 * kMs;  // woken 10 ms into the third window
    stop.longest_ns = 140 * kMs;
    const StopFigures third = builder.build(window(2, queue)).queues.at(0).driver_stop;
    EXPECT_EQ(third.stopped_ns, 10 * kMs);
    EXPECT_FALSE(third.open);
    EXPECT_EQ(third.longest_ns, 140 * kMs);
}

TEST(WindowBuilder, CorrectsWhatItsBqlSumsHaveLost) {
    WindowBuilder builder;
    RawQueue queue;
    queue.state.bql_seen = 1;
    queue.xmit.max_bql_bytes = 3000;
    // 3000 bytes at 0 ms, 2000 of them gone at 50 ms; the kernel's counters have wrapped in
    // between.
    queue.state.bql_in = 3000;
    queue.state.bql_in_t = 3000 * kStart;
    queue.state.bql_out = 2000;
    queue.state.bql_out_t = 2000 * (kStart + 50 * kMs);
    queue.state.bql_in_last = 500;
    queue.state.bql_out_last = static_cast<std::uint32_t>(500 - 1000);
    const QueueWindow good = builder.build(window(0, queue)).queues.at(0);
    EXPECT_TRUE(good.bql);
    EXPECT_TRUE(good.bql_exact);
    EXPECT_DOUBLE_EQ(good.bql_byte_ns, (3000.0 * 50 + 1000.0 * 50) * kMs);
    // The remaining 1000 bytes leave in the next window, and two CPUs lose 700 of them: the kernel
    // says that nothing is left.
    queue.state.bql_out_last += 1000;
    queue.state.bql_out += 300;
    queue.state.bql_out_t += 300 * (kStart + 150 * kMs);
    const QueueWindow lost = builder.build(window(1, queue)).queues.at(0);
    EXPECT_FALSE(lost.bql_exact);
    EXPECT_DOUBLE_EQ(lost.bql_byte_ns, 500.0 * 100 * kMs);  // between the two levels
    // From then on the drift is known.
    const QueueWindow idle = builder.build(window(2, queue)).queues.at(0);
    EXPECT_TRUE(idle.bql_exact);
    EXPECT_DOUBLE_EQ(idle.bql_byte_ns, 0);
    EXPECT_EQ(idle.bql_max, 3000U);
}

TEST(WindowBuilder, DoesNotBelieveABqlAverageAboveTheMaximum) {
    WindowBuilder builder;
    RawQueue queue;
    queue.state.bql_seen = 1;
    queue.xmit.max_bql_bytes = 1500;
    // In and out within the window, but the time of the leaving is lost.
    queue.state.bql_in = queue.state.bql_in_last = 1500;
    queue.state.bql_in_t = 1500 * kStart;
    queue.state.bql_out = queue.state.bql_out_last = 1500;
    const QueueWindow torn = builder.build(window(0, queue)).queues.at(0);
    EXPECT_FALSE(torn.bql_exact);
    EXPECT_DOUBLE_EQ(torn.bql_byte_ns, 0);
    EXPECT_TRUE(builder.build(window(1, queue)).queues.at(0).bql_exact);
}

TEST(WindowBuilder, CountsWatchdogsOnce) {
    WindowBuilder builder;
    RawQueue queue;
    queue.state.watchdogs = 2;
    EXPECT_EQ(builder.build(window(0, queue)).queues.at(0).watchdogs, 2U);
    EXPECT_EQ(builder.build(window(1, queue)).queues.at(0).watchdogs, 0U);
}

TEST(WindowBuilder, FollowsARingThroughAReset) {
    WindowBuilder builder;
    RawQueue queue;
    queue.has_ring = true;
    queue.ring.size = 512;
    // Three descriptors from 20 ms on, two of them taken back at 60 ms: 3 x 40 + 1 x 40.
    queue.xmit.sent = flow({{1000, kStart + 20 * kMs}, {500, kStart + 20 * kMs}});
    queue.xmit.packets = 2;
    queue.xmit.descriptors = {3, 3 * (kStart + 20 * kMs)};
    queue.xmit.max_used = 3;
    queue.done.completed = flow({{1000, kStart + 60 * kMs}});
    queue.done.descriptors = {2, 2 * (kStart + 60 * kMs)};
    queue.done.batches = 1;
    queue.done.max_batch = 2;
    const QueueWindow first = builder.build(window(0, queue)).queues.at(0);
    EXPECT_EQ(first.ring.size, 512U);
    EXPECT_DOUBLE_EQ(first.ring.used_ns, 160.0 * kMs);
    EXPECT_EQ(first.ring.used_end, 1);
    EXPECT_EQ(first.ring.used_max, 3U);
    EXPECT_EQ(first.ring.batches, 1U);
    // The reset at 150 ms empties it: the packet is lost and not completed.
    RawQueue after;
    after.has_ring = true;
    after.ring.size = 512;
    after.ring.epoch = 1;
    after.ring.lost = flow({{500, kStart + 150 * kMs}});
    after.ring.lost_descriptors = {1, kStart + 150 * kMs};
    const QueueWindow second = builder.build(window(1, after)).queues.at(0);
    EXPECT_EQ(second.ring.resets, 1U);
    EXPECT_EQ(second.ring.reset_packets, 1U);
    EXPECT_EQ(second.ring.used_end, 0);
    EXPECT_DOUBLE_EQ(second.ring.used_ns, 50.0 * kMs);
    EXPECT_EQ(second.in_flight_end, 0);
    EXPECT_DOUBLE_EQ(second.in_flight_packet_ns, 50.0 * kMs);
    EXPECT_EQ(second.completed, 0U);
    // It is lost once.
    const QueueWindow third = builder.build(window(2, after)).queues.at(0);
    EXPECT_EQ(third.ring.resets, 0U);
    EXPECT_EQ(third.ring.reset_packets, 0U);
    EXPECT_DOUBLE_EQ(third.ring.used_ns, 0);
}

}  // namespace
}  // namespace ringside
