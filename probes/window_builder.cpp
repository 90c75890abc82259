#include "probes/window_builder.h"

#include <algorithm>
#include <span>

#include "probes/cells.h"

namespace ringside {

namespace {

SparseHistogram sparse(std::span<const __u32> counts) {
    SparseHistogram result;
    for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
        if (counts[bucket] != 0) {
            result.emplace_back(static_cast<std::uint16_t>(bucket), counts[bucket]);
        }
    }
    return result;
}

// Stopped time from the beginning of the recording until `until_ns`.
std::uint64_t stopped_until(const rs_stop& stop, std::uint64_t until_ns) {
    if (stop.begins == stop.ends) {
        return stop.closed_ns;
    }
    return stop.base_ns + (until_ns > stop.begin_ns ? until_ns - stop.begin_ns : 0);
}

}  // namespace

double WindowBuilder::Level::change(std::uint64_t until_ns) {
    const std::uint64_t area = (in * until_ns - in_t) - (out * until_ns - out_t);
    const auto change = static_cast<std::int64_t>(area - last_area);
    last_area = area;
    return static_cast<double>(change);
}

double WindowBuilder::Level::step(std::uint64_t until_ns) {
    // Slightly below zero when an event of this window was counted in the one before.
    return std::max(change(until_ns), 0.0);
}

StopFigures WindowBuilder::build_stop(const rs_stop& raw, Stop& before, std::uint64_t end_ns) {
    StopFigures figures;
    // The state is read about a millisecond after the end of the window: never count backwards.
    const std::uint64_t stopped_ns = std::max(before.stopped_ns, stopped_until(raw, end_ns));
    figures.count = raw.begins - before.begins;
    figures.stopped_ns = stopped_ns - before.stopped_ns;
    figures.open = raw.begins != raw.ends;
    figures.longest_ns = raw.longest_ns;
    if (figures.open && end_ns > raw.begin_ns) {
        figures.longest_ns =
            std::max(figures.longest_ns, static_cast<std::uint64_t>(end_ns - raw.begin_ns));
    }
    before.begins = raw.begins;
    before.stopped_ns = stopped_ns;
    return figures;
}

// Two CPUs may step on each other while they bring our sums up to date with the kernel's own two
// counters, which are always right. What is lost so stays lost, but how much is known: the drift of
// our level from the kernel's. A window in which the drift stood still is corrected exactly.
void WindowBuilder::build_bql(const RawQueue& raw, Totals& totals, std::uint64_t length_ns,
                              std::uint64_t end_ns, QueueWindow& window) {
    const rs_queue& state = raw.state;
    const std::int64_t drift_before = totals.bql_drift;
    const auto start_bytes = static_cast<double>(std::max<std::int64_t>(totals.bql_bytes(), 0));
    Level& level = totals.bql;
    level.in = state.bql_in;
    level.in_t = state.bql_in_t;
    level.out = state.bql_out;
    level.out_t = state.bql_out_t;
    if (state.bql_seen != 0) {
        totals.bql_drift =
            level.value() - static_cast<std::int32_t>(state.bql_in_last - state.bql_out_last);
    }
    window.bql = state.bql_in != 0;
    window.bql_max = std::max<std::uint64_t>(
        raw.xmit.max_bql_bytes, window.bql ? static_cast<std::uint64_t>(start_bytes) : 0);

    const auto length = static_cast<double>(length_ns);
    const auto drifted = static_cast<double>(totals.bql_drift) * length;
    const double area = level.change(end_ns) - drifted;
    // A count from one CPU with the time sum of another leaves no drift, but an area that is off by
    // bytes times the age of the clock. An honest one lies between nothing and the highest level,
    // give or take what moved until the state was read.
    const double highest = static_cast<double>(window.bql_max) * length;
    window.bql_exact = totals.bql_drift == drift_before && area >= -highest && area <= 2 * highest;
    const auto end_bytes = static_cast<double>(std::max<std::int64_t>(totals.bql_bytes(), 0));
    window.bql_byte_ns =
        window.bql_exact ? std::max(area, 0.0) : (start_bytes + end_bytes) / 2 * length;
}

RingWindow WindowBuilder::build_ring(const RawQueue& raw, Totals& totals, std::uint64_t end_ns) {
    RingWindow ring;
    ring.size = raw.ring.size;
    ring.descriptors = raw.xmit.descriptors.n;
    ring.taken = raw.done.descriptors.n;
    ring.batches = raw.done.batches;
    ring.batch_max = raw.done.max_batch;
    ring.batches_by_irq = raw.done.batches_by[RS_BY_IRQ];
    ring.batches_by_timer = raw.done.batches_by[RS_BY_TIMER];
    ring.timers = raw.state.timers - totals.timers;
    totals.timers = raw.state.timers;
    ring.bypassed = raw.xmit.bypassed;
    ring.resets = raw.ring.epoch - totals.resets;
    ring.reset_packets = raw.ring.lost.packets - totals.lost.packets;
    totals.resets = raw.ring.epoch;

    Level& level = totals.descriptors;
    const std::int64_t used_start = level.value();
    level.in += raw.xmit.descriptors.n;
    level.in_t += raw.xmit.descriptors.n_t;
    level.out += raw.done.descriptors.n + (raw.ring.lost_descriptors.n - totals.lost_descriptors.n);
    level.out_t +=
        raw.done.descriptors.n_t + (raw.ring.lost_descriptors.n_t - totals.lost_descriptors.n_t);
    totals.lost_descriptors = raw.ring.lost_descriptors;
    ring.used_end = level.value();
    ring.used_max = std::max<std::uint64_t>(
        raw.xmit.max_used,
        static_cast<std::uint64_t>(std::max({std::int64_t{0}, used_start, ring.used_end})));
    ring.used_ns = level.step(end_ns);
    return ring;
}

QueueWindow WindowBuilder::build_queue(const RawQueue& raw, std::uint64_t start_ns,
                                       std::uint64_t end_ns) {
    Totals& totals = totals_[raw.queue];
    const rs_xmit_cell& xmit = raw.xmit;
    const rs_done_cell& done = raw.done;

    const std::int64_t in_flight_start = totals.packets.value();
    totals.packets.in += xmit.sent.packets;
    totals.packets.in_t += xmit.sent.packets_t;
    totals.bytes.in += xmit.sent.bytes;
    totals.bytes.in_t += xmit.sent.bytes_t;
    rs_flow lost{};  // in this window
    add_step(raw.ring.lost, totals.lost, lost);
    for (const rs_flow* out : {&xmit.returned, &xmit.stale, &done.completed, &done.dropped,
                               static_cast<const rs_flow*>(&lost)}) {
        totals.packets.out += out->packets;
        totals.packets.out_t += out->packets_t;
        totals.bytes.out += out->bytes;
        totals.bytes.out_t += out->bytes_t;
    }

    QueueWindow window;
    if (raw.has_ring) {
        window.ring = build_ring(raw, totals, end_ns);
        totals.lost = raw.ring.lost;
    }
    window.queue = raw.queue;
    window.packets = xmit.packets;
    window.bytes = xmit.bytes;
    window.segments = xmit.segments;
    window.wire_bytes = xmit.wire_bytes;
    window.requeued = xmit.requeued;
    window.requeued_bytes = xmit.requeued_bytes;
    window.errors = xmit.errors;
    window.completed = done.completed.packets;
    window.completed_bytes = done.completed.bytes;
    window.dropped = done.dropped.packets + xmit.swallowed;
    window.unpaired = xmit.unpaired;
    window.missed = xmit.stale.packets;
    // The programs see a maximum only when they transmit: packets that just wait count too.
    const std::int64_t waiting = std::max(in_flight_start, totals.packets.value());
    window.in_flight_end = totals.packets.value();
    window.in_flight_max = std::max<std::uint64_t>(
        xmit.max_in_flight, static_cast<std::uint64_t>(std::max<std::int64_t>(waiting, 0)));
    window.in_flight_packet_ns = totals.packets.step(end_ns);
    window.in_flight_byte_ns = totals.bytes.step(end_ns);
    window.last_progress_ns = raw.state.last_ns;
    window.oldest_ns = raw.oldest_ns;
    build_bql(raw, totals, end_ns - start_ns, end_ns, window);
    window.latency_ns = done.latency_ns;
    window.latency_max_ns = done.max_latency_ns;
    window.latency = sparse(done.latency);
    window.gap_max_ns = done.max_gap_ns;
    window.gap_max_end_ns = done.max_gap_end_ns;
    window.driver_stop =
        build_stop(raw.state.stop[RS_STOP_DRIVER], totals.stop[RS_STOP_DRIVER], end_ns);
    window.bql_stop = build_stop(raw.state.stop[RS_STOP_BQL], totals.stop[RS_STOP_BQL], end_ns);
    window.watchdogs = raw.state.watchdogs - totals.watchdogs;
    totals.watchdogs = raw.state.watchdogs;
    return window;
}

Window WindowBuilder::build(const RawWindow& raw) {
    Window window;
    window.start_ns = raw.start_ns;
    window.end_ns = raw.end_ns;
    window.irqs = raw.irqs;
    for (const RawQueue& queue : raw.queues) {
        window.queues.push_back(build_queue(queue, raw.start_ns, raw.end_ns));
    }
    for (const RawNapi& napi : raw.napis) {
        window.napis.push_back({.instance = napi.instance,
                                .polls = napi.cell.polls,
                                .work = napi.cell.work,
                                .budget = napi.cell.budget,
                                .exhausted = napi.cell.exhausted,
                                .gap_ns = napi.cell.gap_ns,
                                .gap_max_ns = napi.cell.max_gap_ns,
                                .gap = sparse(napi.cell.gap),
                                .irq_polls = napi.cell.irq_polls,
                                .irq_to_poll_ns = napi.cell.irq_to_poll_ns,
                                .irq_to_poll_max_ns = napi.cell.max_irq_to_poll_ns,
                                .irq_to_poll = sparse(napi.cell.irq_to_poll)});
    }
    return window;
}

}  // namespace ringside
