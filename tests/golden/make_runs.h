// Captures made of stated values: every figure in the expected outputs follows from them by hand,
// by the arithmetic at each run. A header, because the unit tests use the same runs.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/capture/reader.h"
#include "analyzers/figures.h"

namespace ringside::golden {

struct Scenario {
    std::string name;  // of the files NAME.txt and NAME.json
    Capture capture;
    AnalysisParams params;
    bool windows = false;
    bool findings = false;  // expected
};

// For the names of failed tests.
inline void PrintTo(const Scenario& scenario, std::ostream* out) {
    *out << scenario.name;
}

// Windows of 100 ms from boot time 1000 s.
constexpr std::uint64_t kStartNs = 1'000'000'000'000;
constexpr std::uint64_t kWindowNs = 100'000'000;

namespace detail {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

inline Run new_run(const char* interface, std::size_t windows, std::uint32_t queues) {
    Run run;
    run.info.tool_version = "0.1.0";
    run.info.interface = interface;
    run.info.tier = "skb";
    run.info.tier_why = "no ring tier for this driver";
    run.info.hooks = {"net_dev_start_xmit: tp_btf", "consume_skb: tp_btf"};
    run.info.window_ns = kWindowNs;
    run.info.start_boottime_ns = kStartNs;
    run.info.start_unix_ns = 1'767'225'600'000'000'000;  // 2026-01-01 00:00:00 UTC
    run.info.num_queues = queues;
    for (std::size_t i = 0; i < windows; ++i) {
        Window window;
        window.start_ns = kStartNs + i * kWindowNs;
        window.end_ns = window.start_ns + kWindowNs;
        window.kernel_counters = true;
        run.windows.push_back(window);
    }
    run.ended = true;
    run.end.end_ns = kStartNs + windows * kWindowNs;
    run.end.reason = "duration";
    run.end.program_misses = {{"on_start_xmit", 0}, {"on_consume_skb", 0}};
    return run;
}

inline void add_board_facts(Run& run) {
    const auto text = [&](const char* name, const char* value) {
        run.info.facts.push_back({name, std::string(value), "/proc", ""});
    };
    const auto number = [&](const char* name, std::int64_t value) {
        run.info.facts.push_back({name, value, "ioctl", ""});
    };
    text("machine.model", "FriendlyElec NanoPi R6S");
    text("kernel.release", "6.18.38");
    text("kernel.arch", "aarch64");
    text("driver.name", "st_gmac");
    text("link.duplex", "full");
    number("link.speed_mbps", 1000);
    number("ring.tx.size", 512);
    number("coalesce.tx_usecs", 5000);
    number("coalesce.tx_frames", 25);
}

// Packets that were completed with a latency; their latencies.
struct Done {
    std::uint64_t count;
    std::uint64_t latency_ns;
};

inline void complete(QueueWindow& queue, std::initializer_list<Done> done,
                     std::uint64_t packet_bytes) {
    for (const Done& part : done) {
        queue.completed += part.count;
        queue.completed_bytes += part.count * packet_bytes;
        queue.latency_ns += part.count * part.latency_ns;
        queue.latency_max_ns = std::max(queue.latency_max_ns, part.latency_ns);
        queue.latency.emplace_back(Histogram::bucket_of(part.latency_ns), part.count);
    }
}

// Packets of one frame that are sent and completed inside the window: their area is the sum of
// their latencies.
inline QueueWindow whole(std::uint32_t number, std::uint64_t packets, std::uint64_t packet_bytes,
                         std::initializer_list<Done> done, std::uint64_t in_flight_max) {
    QueueWindow queue;
    queue.queue = number;
    queue.packets = packets;
    queue.segments = packets;
    queue.bytes = queue.wire_bytes = packets * packet_bytes;
    complete(queue, done, packet_bytes);
    queue.in_flight_packet_ns = static_cast<double>(queue.latency_ns);
    queue.in_flight_byte_ns = static_cast<double>(queue.latency_ns * packet_bytes);
    queue.in_flight_max = in_flight_max;
    return queue;
}

inline Capture one(Run run) {
    Capture capture;
    capture.file_bytes = capture.used_bytes = 4096;
    capture.runs.push_back(std::move(run));
    return capture;
}

}  // namespace detail

// 45,000 packets of 1,512 bytes a second, each 5 ms in flight: 544.32 Mb/s, and by Little 45,000 x
// 5 ms = 225 packets = 340,200 bytes. 2 s, beginning with nothing in flight, so the level climbs to
// 225 in the first 5 ms: the area is 225 x 2 s - 225 x 2.5 ms = 449.4375 packet s, on average
// 224.72 packets and 339,775 bytes; 90,000 are sent, 89,775 completed, 225 stay in flight.
// Latencies: 4.8 ms for 450 a window, 5.2 ms for 450, 5.0 ms for the rest; mean 5.0 ms by symmetry.
// Buckets of 131,072 ns: middles 4,784,128, 5,046,272, 5,177,344; the mean of these is (9,000 x
// 4,784,128 + 71,775 x 5,046,272 + 9,000 x 5,177,344) / 89,775 = 5.03313 ms; rate x latency =
// 44,887.5 x 5.03313 ms = 225.92, residual 1.21 / 224.72 = 0.5 %. p50 is 4,980,736 + 131,072 / 2
// = 5.046 ms by symmetry; p99 lies above the longest latency and is held to it.
inline Run late_completion_run() {
    Run run = detail::new_run("eth0", 20, 1);
    detail::add_board_facts(run);
    run.info.command = {"iperf3", "-c", "192.0.2.2", "-t", "2"};
    run.end.command_ran = true;
    run.end.reason = "command exited";
    bool first = true;
    for (Window& window : run.windows) {
        QueueWindow queue;
        queue.packets = queue.segments = 4500;
        queue.bytes = queue.wire_bytes = 4500 * 1512;
        detail::complete(
            queue, {{450, 4'800'000}, {first ? 3375U : 3600U, 5'000'000}, {450, 5'200'000}}, 1512);
        queue.in_flight_end = 225;
        queue.in_flight_max = 240;
        queue.in_flight_packet_ns = 225.0 * (first ? 97.5e6 : 100e6);
        queue.in_flight_byte_ns = queue.in_flight_packet_ns * 1512;
        queue.last_progress_ns = window.end_ns;
        queue.oldest_ns = window.end_ns - 5 * detail::kMs;
        queue.bql = true;
        queue.bql_byte_ns = queue.in_flight_byte_ns;
        queue.bql_max = 362'880;  // 240 packets
        window.queues.push_back(queue);
        window.kernel_tx_packets = 4500;
        // 20 polls a window, one each 5 ms, 225 completions each. Bucket of 5 ms: as above.
        window.napis.push_back(
            {.polls = 20,
             .work = 4500,
             .budget = 20 * 300,
             .gap_ns = 20 * 5 * detail::kMs,
             .gap_max_ns = 5 * detail::kMs,
             .gap = {{static_cast<std::uint16_t>(Histogram::bucket_of(5 * detail::kMs)), 20}},
             .irq_to_poll = {}});
        first = false;
    }
    return run;
}

// The same seen by the ring: 45,000 descriptors a second, one a packet, in a ring of 512; on
// average 224.72 in use = 43.9 %. A batch every 5 ms: 399 of 225 descriptors, for nothing is taken
// back in the first 5 ms. 390 of them after the timer (20 a window, 10 in the first; it expires 21
// times a window), 7 after an interrupt, 2 else. An interrupt reaches its poll in 10 us: bucket
// [9,984, 10,240).
inline Run ring_run() {
    Run run = late_completion_run();
    run.info.tier = "ring";
    run.info.tier_why = "the ring of st_gmac can be read";
    bool first = true;
    for (Window& window : run.windows) {
        QueueWindow& queue = window.queues[0];
        RingWindow& ring = queue.ring;
        ring.size = 512;
        ring.descriptors = 4500;
        ring.used_ns = queue.in_flight_packet_ns;
        ring.used_max = 240;
        ring.used_end = 225;
        ring.batches = first ? 19 : 20;
        ring.taken = ring.batches * 225;
        ring.batch_max = 240;
        ring.batches_by_timer = first ? 10 : 20;
        ring.batches_by_irq = first ? 7 : 0;
        ring.timers = 21;
        window.irqs = first ? 7 : 0;
        if (first) {
            NapiWindow& napi = window.napis[0];
            napi.irq_polls = 7;
            napi.irq_to_poll_ns = 7 * 10'000;
            napi.irq_to_poll_max_ns = 10'000;
            napi.irq_to_poll = {{static_cast<std::uint16_t>(Histogram::bucket_of(10'000)), 7}};
        }
        first = false;
    }
    return run;
}

// As an M/D/1 queue: 8,000 packets a second, 100 us of service each, so 80 % busy; waiting 0.8 x
// 100 us / (2 x 0.2) = 200 us, latency 300 us, in flight 8,000 x 300 us = 2.4. Each window begins
// and ends empty. Latencies 400 x 100 us, 320 x 400 us, 80 x 900 us: mean (40 + 128 + 72) ms / 800
// = 300 us. GSO packets of 10 frames: 14,480 bytes of payload and one header of 66 = 14,546; on the
// wire 10 x 1,514 = 15,140. Rates 8,000 x 15,140 x 8 = 968.96 Mb/s and 8,000 x 14,546 x 8 = 930.944
// Mb/s. In flight 2.4 x 14,546 = 34,910 bytes. The driver counts frames. Buckets: 100 us in
// [98,304, 100,352), 400 us in [393,216, 401,408), 900 us in [884,736, 901,120): mean of middles
// (400 x 99,328 + 320 x 397,312 + 80 x 892,928) / 800 = 297.88 us, residual 0.7 %.
inline Run steady_run() {
    Run run = detail::new_run("eth0", 10, 1);
    detail::add_board_facts(run);
    for (Window& window : run.windows) {
        QueueWindow queue =
            detail::whole(0, 800, 14'546, {{400, 100'000}, {320, 400'000}, {80, 900'000}}, 9);
        queue.segments = 8000;
        queue.wire_bytes = 800 * 15'140;
        queue.last_progress_ns = window.end_ns;
        window.queues.push_back(queue);
        window.kernel_tx_packets = 8000;
    }
    return run;
}

// 1,000 packets of 1,000 bytes a second, 1 ms each. At 1.5 s 64 packets fill the ring, the driver
// stops the queue, and for 1 s nothing completes. 3,000 + 64 packets; area 3,000 x 1 ms + 64 x 1 s
// = 67 packet s in 4 s: 16.75 packets, 16,750 bytes. Stopped 1 s of 4 s = 25 %. Middles of buckets:
// 1,007,616 ns and 998,244,352 ns: (3,000 x 1,007,616 + 64 x 998,244,352) / 4 s = 16.728, residual
// 0.1 %.
inline Run stall_run() {
    Run run = detail::new_run("eth0", 40, 1);
    const std::uint64_t stall_end = kStartNs + 2500 * detail::kMs;
    for (std::size_t i = 0; i < run.windows.size(); ++i) {
        Window& window = run.windows[i];
        const bool stalled = i >= 15 && i < 25;
        QueueWindow queue;
        if (!stalled) {
            queue = detail::whole(0, 100, 1000, {{100, detail::kMs}}, 2);
            queue.last_progress_ns = window.end_ns;
            window.kernel_tx_packets = 100;
        } else {
            queue.packets = queue.segments = i == 15 ? 64 : 0;
            queue.bytes = queue.wire_bytes = queue.packets * 1000;
            queue.in_flight_max = 64;
            queue.in_flight_end = 64;
            queue.in_flight_packet_ns = 64.0 * 100e6;
            queue.in_flight_byte_ns = 64'000.0 * 100e6;
            queue.last_progress_ns = kStartNs + 1500 * detail::kMs;
            queue.driver_stop.count = i == 15 ? 1 : 0;
            queue.driver_stop.stopped_ns = kWindowNs;
            queue.driver_stop.open = true;
        }
        if (i == 25) {
            detail::complete(queue, {{64, detail::kSecond}}, 1000);
            queue.gap_max_ns = detail::kSecond;
            queue.gap_max_end_ns = stall_end;
            window.kernel_tx_packets += 64;
        }
        // The longest so far, an open stop included.
        queue.driver_stop.longest_ns = i < 15 ? 0 : i < 25 ? (i - 14) * kWindowNs : detail::kSecond;
        window.queues.push_back(queue);
    }
    return run;
}

// The same traffic for 1 s; then 16 packets go in, the queue is stopped and nothing ever completes;
// the watchdog fires. In 2 s: area 1,000 x 1 ms + 16 x 1 s = 17 packet s, 8.5 packets; rate x
// latency 500 x 1.007616 ms = 0.504; residual 94.1 %, and the 16 packets in flight at the end stand
// for 16 / 17 = 94.1 % of the area: no verdict. An open stall of 1 s.
inline Run stopped_run() {
    Run run = detail::new_run("eth0", 20, 1);
    for (std::size_t i = 0; i < run.windows.size(); ++i) {
        Window& window = run.windows[i];
        QueueWindow queue;
        if (i < 10) {
            queue = detail::whole(0, 100, 1000, {{100, detail::kMs}}, 2);
            queue.last_progress_ns = window.end_ns;
            window.kernel_tx_packets = 100;
        } else {
            queue.packets = queue.segments = i == 10 ? 16 : 0;
            queue.bytes = queue.wire_bytes = queue.packets * 1000;
            queue.in_flight_max = 16;
            queue.in_flight_end = 16;
            queue.in_flight_packet_ns = 16.0 * 100e6;
            queue.in_flight_byte_ns = 16'000.0 * 100e6;
            queue.last_progress_ns = kStartNs + detail::kSecond;
            queue.oldest_ns = kStartNs + detail::kSecond;
            queue.driver_stop = {i == 10 ? 1U : 0U, kWindowNs, (i - 9) * kWindowNs, true};
            queue.watchdogs = i == 15 ? 1 : 0;
        }
        window.queues.push_back(queue);
    }
    return run;
}

// Nothing is sent.
inline Run idle_run() {
    return detail::new_run("eth0", 10, 1);
}

// A driver whose packets are freed where no tracepoint sees it: 10,000 a window are sent, none is
// seen to complete, 9,900 are found again when their skb is used anew. In flight grows by 100 a
// window: 1,000 at the end, average 500 by the trapezium of each window (50, 150, ... 950).
inline Run veth_run() {
    Run run = detail::new_run("veth0", 10, 1);
    for (std::size_t i = 0; i < run.windows.size(); ++i) {
        QueueWindow queue;
        queue.packets = queue.segments = 10'000;
        queue.bytes = queue.wire_bytes = 10'000 * 1000;
        queue.missed = 9900;
        queue.in_flight_end = static_cast<std::int64_t>(100 * (i + 1));
        queue.in_flight_max = 100 * (i + 1);
        queue.in_flight_packet_ns = (100.0 * static_cast<double>(i) + 50) * 100e6;
        queue.in_flight_byte_ns = queue.in_flight_packet_ns * 1000;
        run.windows[i].queues.push_back(queue);
        run.windows[i].kernel_tx_packets = 10'000;
    }
    return run;
}

// 7,000 packets a window pass the tracepoints, the kernel counts 10,000: 3,000 / 10,000 = 30 % are
// not seen. Latency 100 us: in flight 70,000 x 100 us = 7; bucket middle 99,328 ns, residual 0.7 %.
inline Run bypass_run() {
    Run run = detail::new_run("eth0", 20, 1);
    for (Window& window : run.windows) {
        QueueWindow queue = detail::whole(0, 7000, 1000, {{7000, 100'000}}, 12);
        queue.last_progress_ns = window.end_ns;
        window.queues.push_back(queue);
        window.kernel_tx_packets = 10'000;
    }
    return run;
}

// Queue 0: 8,000 packets/s of 1,000 bytes, 1 ms: 8 in flight, 64 Mb/s. Queue 1: 2,000 packets/s of
// 500 bytes, 2 ms: 4 in flight, 8 Mb/s; 3 of its packets are dropped in the last window and 5 are
// requeued in the first. Port: 12 in flight on average, 8,000 + 2,000 bytes... = 8 x 1,000 + 4 x
// 500 = 10,000 bytes. A second NAPI instance uses its whole budget in half of its polls.
inline Run two_queues_run() {
    Run run = detail::new_run("enp1s0", 5, 2);
    for (std::size_t i = 0; i < run.windows.size(); ++i) {
        Window& window = run.windows[i];
        window.queues.push_back(detail::whole(0, 800, 1000, {{800, detail::kMs}}, 16));
        window.queues.push_back(detail::whole(1, 200, 500, {{200, 2 * detail::kMs}}, 9));
        QueueWindow& second = window.queues.back();
        if (i == 0) {
            second.packets += 5;  // counted when given to the driver, and once more as requeued
            second.bytes += 5 * 500;
            second.requeued = 5;
            second.requeued_bytes = 5 * 500;
        }
        second.bql = true;
        second.bql_exact = i != 2;
        second.bql_byte_ns = second.in_flight_byte_ns * 1.5;  // 3,000 bytes on average: 50 % apart
        second.bql_max = 6000;
        second.bql_stop = {2, kWindowNs / 10, 6 * detail::kMs, false};  // 10 %; 10 stops
        second.dropped = i == 4 ? 3 : 0;
        window.kernel_tx_packets = 1000;
        window.napis.push_back(
            {.polls = 50, .work = 400, .budget = 50 * 64, .gap = {}, .irq_to_poll = {}});
        window.napis.push_back({.instance = 1,
                                .polls = 10,
                                .work = 320,
                                .budget = 10 * 64,
                                .exhausted = 5,
                                .gap = {},
                                .irq_to_poll = {}});
    }
    run.events = {{kStartNs + 150 * detail::kMs, EventKind::kLinkDown, ""},
                  {kStartNs + 250 * detail::kMs, EventKind::kLinkUp, "1000 Mb/s"},
                  {kStartNs + 300 * detail::kMs, EventKind::kLateWindow, "2 windows in one"},
                  {kStartNs + 400 * detail::kMs, EventKind::kQueuesChanged, "2"}};
    return run;
}

namespace detail {

// Two runs in one file, the second cut after 3 of its windows, with strings that mean harm.
inline Capture cut_capture() {
    Capture capture;
    capture.runs.push_back(bypass_run());
    Run cut = steady_run();
    cut.windows.resize(3);
    cut.ended = false;
    cut.end = {};
    cut.info.interface = "eth\x1b[31m0";
    cut.info.facts[0].value = std::string(
        "Board \xff\n\xe2\x80\xae"
        "drawkcab");
    capture.runs.push_back(cut);
    capture.file_bytes = 12'345;
    capture.used_bytes = 12'000;
    capture.cut = "the last chunk is not whole";
    return capture;
}

}  // namespace detail

inline std::vector<Scenario> scenarios() {
    std::vector<Scenario> all;
    all.push_back({"late_completion", detail::one(late_completion_run()), {}, false, false});
    all.push_back({"ring", detail::one(ring_run()), {}, false, false});
    all.push_back({"steady", detail::one(steady_run()), {}, false, false});
    all.push_back({"stall", detail::one(stall_run()), {}, false, true});
    all.push_back({"stopped", detail::one(stopped_run()), {}, false, true});
    all.push_back({"idle", detail::one(idle_run()), {}, false, false});
    all.push_back({"veth", detail::one(veth_run()), {}, false, false});
    all.push_back({"bypass", detail::one(bypass_run()), {}, false, false});
    all.push_back({"two_queues", detail::one(two_queues_run()), {}, true, true});
    all.push_back({"cut", detail::cut_capture(), {}, false, false});
    // The climb at the beginning is left out: 19 windows of exactly 225 packets.
    AnalysisParams lead_in;
    lead_in.lead_in_ns = kWindowNs;
    all.push_back({"lead_in", detail::one(late_completion_run()), lead_in, false, false});
    return all;
}

}  // namespace ringside::golden
