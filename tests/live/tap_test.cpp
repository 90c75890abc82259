// A TAP device whose reader is the hardware: the reader's own clock and counts are the truth.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/live/live.h"

namespace ringside::live {
namespace {

constexpr int kPackets = 1009;  // a prime: a figure that is off by a factor shows

std::vector<double> reader_latencies_ns(const DemoNic& nic) {
    std::vector<double> latencies;
    for (const FrameTimes& frame : nic.frames()) {
        latencies.push_back(static_cast<double>(frame.read_ns - frame.sent_ns));
    }
    std::sort(latencies.begin(), latencies.end());
    return latencies;
}

// 10 % or 0.3 ms, whichever is larger: between the sender's clock reading and the tracepoint lies a
// system call, between the free and the reader's clock reading its return.
double margin_ns(double truth_ns) {
    return std::max(0.1 * truth_ns, 0.3e6);
}

// Times with a frame waiting and none read, as the reader's clock tells, of `threshold_ns` or
// longer.
std::vector<double> reader_stalls_ns(const std::vector<FrameTimes>& frames,
                                     std::uint64_t threshold_ns) {
    std::vector<double> stalls;
    for (std::size_t i = 1; i < frames.size(); ++i) {
        const std::uint64_t since = std::max(frames[i].sent_ns, frames[i - 1].read_ns);
        if (frames[i].read_ns - since >= threshold_ns) {
            stalls.push_back(static_cast<double>(frames[i].read_ns - since));
        }
    }
    return stalls;
}

class TapLatency : public LiveTest, public ::testing::WithParamInterface<double> {};

TEST_P(TapLatency, AgreesWithTheReadersClock) {
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(static_cast<std::uint64_t>(GetParam() * 1e6));
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < kPackets; ++i) {
        ASSERT_TRUE(nic->send(static_cast<std::uint32_t>(64 + i)));
        ::usleep(1000);
    }
    nic->stop_reader(5'000'000'000);
    recording.stop();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();

    const Analysis analysis = analysis_of(file());
    const std::vector<double> truth = reader_latencies_ns(*nic);
    ASSERT_EQ(truth.size(), static_cast<std::size_t>(kPackets));
    expect_all_accounted(analysis.port, kPackets);
    ASSERT_TRUE(analysis.port.latency);
    const double mean = std::accumulate(truth.begin(), truth.end(), 0.0) / kPackets;
    const double p50 = truth[truth.size() / 2];
    EXPECT_NEAR(analysis.port.latency->mean_ns, mean, margin_ns(mean));
    EXPECT_NEAR(analysis.port.latency->p50_ns, p50, margin_ns(p50));
    EXPECT_EQ(analysis.queues.at(0).little.verdict, LittleVerdict::kAgrees);
    std::printf("reader %.1f ms: mean %.3f traced %.3f, p50 %.3f traced %.3f ms\n", GetParam(),
                mean / 1e6, analysis.port.latency->mean_ns / 1e6, p50 / 1e6,
                analysis.port.latency->p50_ns / 1e6);
}

INSTANTIATE_TEST_SUITE_P(ReaderDelayMs, TapLatency, ::testing::Values(0.5, 2.0, 20.0),
                         [](const auto& delay) {
                             return std::to_string(static_cast<int>(delay.param * 10));
                         });

class Tap : public LiveTest {};

TEST_F(Tap, CountsDroppedPackets) {
    // The device's own queue holds 100 packets; nobody reads, so all others are dropped by the
    // driver.
    Result<DemoNic> nic = DemoNic::create("tap0", 100);
    ASSERT_TRUE(nic) << nic.error().line();
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < kPackets; ++i) {
        ASSERT_TRUE(nic->send(200));
    }
    ::usleep(150'000);
    recording.stop();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();

    const Analysis analysis = analysis_of(file());
    expect_all_accounted(analysis.port, kPackets);
    EXPECT_EQ(analysis.port.in_flight_end, 100);
    EXPECT_EQ(analysis.port.dropped, kPackets - 100U);
    EXPECT_EQ(analysis.port.completed, 0U);
    // The driver's own counter of the same drops.
    EXPECT_EQ(analysis.not_seen.kernel_dropped, kPackets - 100U);
    EXPECT_TRUE(analysis.has_findings);
}

TEST_F(Tap, ShowsOneStallOfASecondAndWhatWasInFlight) {
    constexpr int kQueued = 211;
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(1'000'000);
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < 199; ++i) {
        ASSERT_TRUE(nic->send(500));
        ::usleep(2000);
    }
    ::usleep(50'000);
    nic->stall(true);
    const std::uint64_t stall_begin = boottime_now_ns();
    for (int i = 0; i < kQueued; ++i) {
        ASSERT_TRUE(nic->send(500));
    }
    ::usleep(1'000'000);
    nic->stall(false);
    nic->stop_reader(5'000'000'000);
    const std::vector<FrameTimes> frames = nic->frames();
    ASSERT_EQ(frames.size(), 199U + kQueued);
    const auto stalled_ns = static_cast<double>(frames[199].read_ns - stall_begin);
    const std::vector<double> truth = reader_stalls_ns(frames, 200'000'000);
    recording.stop();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();

    const Analysis analysis = analysis_of(file());
    // The one that was made, and on a busy machine perhaps one that the reader itself was held up
    // for: whatever the reader saw, no more and no less.
    ASSERT_EQ(analysis.stalls.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) {
        EXPECT_FALSE(analysis.stalls[i].open);
        EXPECT_NEAR(static_cast<double>(analysis.stalls[i].duration_ns), truth[i], 0.05 * truth[i]);
    }
    const Stall longest = *std::max_element(
        analysis.stalls.begin(), analysis.stalls.end(),
        [](const Stall& x, const Stall& y) { return x.duration_ns < y.duration_ns; });
    EXPECT_NEAR(static_cast<double>(longest.duration_ns), stalled_ns, 0.05 * stalled_ns);
    ASSERT_TRUE(analysis.port.in_flight_max_packets);
    EXPECT_EQ(*analysis.port.in_flight_max_packets, static_cast<std::uint64_t>(kQueued));
    // A window that lies wholly inside the stall has exactly these packets in flight.
    const bool steady =
        std::any_of(analysis.port.windows.begin(), analysis.port.windows.end(),
                    [](const auto& w) { return std::abs(w.in_flight_packets - kQueued) < 1e-6; });
    EXPECT_TRUE(steady);
    expect_all_accounted(analysis.port, 199U + kQueued);
    std::printf("stall: reader %.3f s, traced %.3f s; in flight %d, traced at most %llu\n",
                stalled_ns / 1e9, static_cast<double>(longest.duration_ns) / 1e9, kQueued,
                static_cast<unsigned long long>(*analysis.port.in_flight_max_packets));
}

TEST_F(Tap, ReportsAStallThatHasNotEnded) {
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < 7; ++i) {
        ASSERT_TRUE(nic->send(500));
    }
    ::usleep(900'000);
    recording.stop();
    const Analysis analysis = analysis_of(file());
    ASSERT_EQ(analysis.stalls.size(), 1U);
    EXPECT_TRUE(analysis.stalls[0].open);
    EXPECT_EQ(analysis.stalls[0].in_flight, 7);
    EXPECT_NEAR(static_cast<double>(analysis.stalls[0].duration_ns), 0.9e9, 0.15e9);
}

TEST_F(Tap, ShowsNothingOnAnIdleInterface) {
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(0);
    BackgroundRecording recording(
        {.interface = "tap0", .output = file(), .duration_ns = 1'500'000'000});
    recording.wait();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();
    const Analysis analysis = analysis_of(file());
    EXPECT_TRUE(analysis.stalls.empty());
    EXPECT_EQ(analysis.port.packets, 0U);
    EXPECT_FALSE(analysis.has_findings);
    EXPECT_GE(analysis.used.windows, 10U);
}

TEST_F(Tap, TellsTheShareThatPassesTheTracepointsBy) {
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(0);
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    constexpr int kBypassed = 307;
    for (int i = 0; i < kPackets; ++i) {
        ASSERT_TRUE(nic->send(300, i < kBypassed));
        ::usleep(300);
    }
    nic->stop_reader(5'000'000'000);
    ::usleep(150'000);
    recording.stop();
    const Analysis analysis = analysis_of(file());
    EXPECT_EQ(analysis.port.packets, static_cast<std::uint64_t>(kPackets - kBypassed));
    EXPECT_EQ(analysis.not_seen.kernel_packets, static_cast<std::uint64_t>(kPackets));
    const double share = static_cast<double>(kBypassed) / kPackets;
    EXPECT_NEAR(analysis.not_seen.unseen_min, share, 0.001);
    EXPECT_NEAR(analysis.not_seen.unseen_max, share, 0.001);
}

TEST_F(Tap, FollowsARename) {
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(0);
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < kPackets; ++i) {
        ASSERT_TRUE(nic->send(300));
        ::usleep(500);
        if (i == 500) {
            must_run("ip link set tap0 name wan0");
        }
    }
    nic->stop_reader(5'000'000'000);
    recording.stop();
    expect_all_accounted(analysis_of(file()).port, kPackets);
    const std::vector<Event> events = recording.events();
    const auto renamed = std::find_if(events.begin(), events.end(),
                                      [](const Event& e) { return e.kind == EventKind::kRenamed; });
    ASSERT_NE(renamed, events.end());
    EXPECT_EQ(renamed->text, "wan0");
}

TEST_F(Tap, FollowsADeviceThatComesBackUnderItsName) {
    auto first = std::make_unique<Result<DemoNic>>(DemoNic::create("tap0"));
    ASSERT_TRUE(*first) << first->error().line();
    (*first)->start_reader(0);
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < 211; ++i) {
        ASSERT_TRUE((*first)->send(300));
        ::usleep(300);
    }
    (*first)->stop_reader(5'000'000'000);
    const unsigned old_ifindex = (*first)->ifindex();
    first.reset();  // closing the TAP removes the device
    ::usleep(400'000);
    Result<DemoNic> second = DemoNic::create("tap0");
    ASSERT_TRUE(second) << second.error().line();
    ASSERT_NE(second->ifindex(), old_ifindex);
    second->start_reader(0);
    ::usleep(400'000);
    for (int i = 0; i < 307; ++i) {
        ASSERT_TRUE(second->send(300));
        ::usleep(300);
    }
    second->stop_reader(5'000'000'000);
    ::usleep(150'000);
    recording.stop();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();
    const Analysis analysis = analysis_of(file());
    expect_all_accounted(analysis.port, 211 + 307);
    EXPECT_GT(analysis.not_seen.device_gone_ns, 200'000'000U);
    EXPECT_NEAR(analysis.not_seen.unseen_min, 0, 0.001);
}

TEST_F(Tap, EndsNormallyWhenTheDeviceVanishes) {
    auto nic = std::make_unique<Result<DemoNic>>(DemoNic::create("tap0"));
    ASSERT_TRUE(*nic) << nic->error().line();
    BackgroundRecording recording(
        {.interface = "tap0", .output = file(), .duration_ns = 1'500'000'000});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    for (int i = 0; i < 53; ++i) {
        ASSERT_TRUE((*nic)->send(300));
    }
    nic.reset();  // with 53 packets in its queue: the kernel frees them
    recording.wait();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();
    const Analysis analysis = analysis_of(file());
    expect_all_accounted(analysis.port, 53);
    EXPECT_EQ(analysis.port.in_flight_end, 0);
}

TEST_F(Tap, CountsAPacketOnceUnderABridge) {
    // The same skb passes start_xmit of the bridge and of its port; only the port is recorded.
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(0);
    must_run("ip link add br0 type bridge");
    must_run("ip link set tap0 master br0");
    must_run("ip link set br0 up");
    ::usleep(100'000);
    BackgroundRecording recording({.interface = "tap0", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    ASSERT_TRUE(nic->send_through("br0"));
    for (int i = 0; i < kPackets; ++i) {
        ASSERT_TRUE(nic->send(300));
        ::usleep(300);
    }
    nic->stop_reader(5'000'000'000);
    recording.stop();
    const Analysis analysis = analysis_of(file());
    const std::uint64_t read = nic->frames().size();
    EXPECT_EQ(read, static_cast<std::uint64_t>(kPackets));
    // The bridge may add a few frames of its own (IPv6, MLD): they are the port's packets as well.
    EXPECT_GE(analysis.port.packets, read);
    EXPECT_LE(analysis.port.packets, read + 20);
    EXPECT_EQ(analysis.port.packets, analysis.not_seen.kernel_packets);
    EXPECT_EQ(analysis.port.missed, 0U);
}

TEST_F(Tap, StaysFlatInMemoryAndSmallOnDisk) {
    // 5 ms windows: as many windows in 20 s as an hour has in three and a half minutes.
    Result<DemoNic> nic = DemoNic::create("tap0");
    ASSERT_TRUE(nic) << nic.error().line();
    nic->start_reader(100'000);
    BackgroundRecording recording({.interface = "tap0", .output = file(), .window_ns = 5'000'000});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    const auto resident_kb = [] {
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("VmRSS:")) {
                return std::stol(line.substr(6));
            }
        }
        return 0L;
    };
    const auto send_for = [&nic](int packets) {
        for (int i = 0; i < packets; ++i) {
            ASSERT_TRUE(nic->send(static_cast<std::uint32_t>(64 + i % 1400)));
            ::usleep(800);
            if (i % 512 == 0) {
                nic->forget_frames();  // the reader's own notes would grow
            }
        }
    };
    send_for(4000);
    const long early_kb = resident_kb();
    send_for(12000);
    const long late_kb = resident_kb();
    recording.stop();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();
    const Analysis analysis = analysis_of(file());
    const auto windows = static_cast<double>(analysis.used.windows);
    const double hour_mb =
        static_cast<double>(std::filesystem::file_size(file())) / windows * 36'000 / 1e6;
    std::printf("%.0f windows; resident %ld then %ld kB; an hour of 100 ms windows: %.1f MB\n",
                windows, early_kb, late_kb, hour_mb);
    EXPECT_GT(windows, 1000);
    // 1 MB: what the allocator may keep of freed buffers. 12,000 windows kept would be more than 5
    // MB.
    EXPECT_LT(late_kb - early_kb, 1024);
    EXPECT_LT(hour_mb, 30);
}

}  // namespace
}  // namespace ringside::live
