#include "tests/lab/models/tx_path.h"

#include <algorithm>
#include <string>

namespace ringside::lab {
namespace {

// A frame that no wire would take: with rate 0 and an endless supply, advance() must still return.
constexpr unsigned kMostFramesAtOnce = 4096;

}  // namespace

void TxPath::doorbell(unsigned queue, std::uint64_t tail, std::uint64_t now_ns) {
    ++counters_.at(queue).doorbells;
    log_.write(now_ns, "doorbell", {{"q", queue}, {"tail", tail}});
}

void TxPath::error(unsigned queue, std::string_view what, std::uint64_t now_ns) {
    ++counters_.at(queue).errors;
    log_.write(now_ns, "error", {{"q", queue}, {"what", what}});
}

void TxPath::send(std::uint64_t now_ns) {
    if (wire_idle_ || !faults_.wire_open()) {
        wire_free_ns_ = std::max(wire_free_ns_, now_ns);
    }
    for (unsigned sent = 0; sent < kMostFramesAtOnce && faults_.wire_open(); ++sent) {
        if (wire_free_ns_ > now_ns) {
            return;
        }
        std::optional<TxFrame> frame = chip_.fetch_frame(now_ns);
        wire_idle_ = !frame;
        if (!frame) {
            return;
        }
        TxCounters& counters = counters_.at(frame->queue);
        frame->serial = ++counters.fetched;
        counters.tso += frame->payload != 0 ? 1 : 0;
        log_.write(now_ns, "fetch",
                   {{"q", frame->queue},
                    {"f", frame->serial},
                    {"i", frame->first},
                    {"n", frame->descriptors},
                    {"b", frame->bytes},
                    {"s", frame->segments},
                    {"ic", frame->wants_interrupt ? 1U : 0U}});
        wire_free_ns_ += faults_.wire_ns(frame->bytes, frame->segments);
        chip_.frame_on_wire(*frame, now_ns, wire_free_ns_);
        frame->done_at_ns = wire_free_ns_ + faults_.queue(frame->queue).delay_ns;
        frame->head.clear();
        std::deque<TxFrame>& flight = flight_.at(frame->queue);
        flight.push_back(std::move(*frame));
        counters.most_in_flight = std::max<std::uint64_t>(counters.most_in_flight, flight.size());
    }
}

void TxPath::complete(unsigned queue, std::uint64_t now_ns) {
    std::deque<TxFrame>& flight = flight_.at(queue);
    TxCounters& counters = counters_.at(queue);
    std::uint64_t frames = 0;
    bool interrupt = false;
    for (; !flight.empty() && flight.front().done_at_ns <= now_ns; flight.pop_front()) {
        const TxFrame& frame = flight.front();
        const bool never = faults_.take_never_done(queue);
        if (!never && !chip_.write_back(frame)) {
            error(queue, "write-back to memory that is not mapped", now_ns);
            continue;
        }
        log_.write(now_ns, never ? "never" : "done",
                   {{"q", queue},
                    {"f", frame.serial},
                    {"i", frame.first},
                    {"n", frame.descriptors},
                    {"b", frame.bytes}});
        if (never) {
            chip_.withhold(frame);
            ++counters.never_done;
            continue;
        }
        ++frames;
        ++counters.frames;
        counters.bytes += frame.bytes;
        counters.segments += frame.segments;
        interrupt = interrupt || frame.wants_interrupt;
    }
    if (!interrupt) {
        return;
    }
    if (faults_.take_event_drop(queue)) {
        ++counters.events_lost;
        log_.write(now_ns, "event_lost", {{"q", queue}, {"frames", frames}});
        return;
    }
    ++counters.events;
    log_.write(now_ns, "event", {{"q", queue}, {"frames", frames}});
    chip_.tx_event(queue, now_ns);
}

std::optional<std::uint64_t> TxPath::next_deadline() const {
    std::optional<std::uint64_t> next;
    const auto at = [&next](std::uint64_t when) { next = std::min(next.value_or(when), when); };
    for (const std::deque<TxFrame>& flight : flight_) {
        if (!flight.empty()) {
            at(flight.front().done_at_ns);
        }
    }
    if (!wire_idle_ && faults_.wire_open()) {
        at(wire_free_ns_);
    }
    return next;
}

std::optional<std::uint64_t> TxPath::advance(std::uint64_t now_ns) {
    send(now_ns);
    for (unsigned q = 0; q < kMaxQueues; ++q) {
        complete(q, now_ns);
    }
    return next_deadline();
}

void TxPath::forget(unsigned queue, std::uint64_t now_ns) {
    std::deque<TxFrame>& flight = flight_.at(queue);
    if (!flight.empty()) {
        counters_.at(queue).dropped += flight.size();
        log_.write(now_ns, "dropped", {{"q", queue}, {"frames", flight.size()}});
        flight.clear();
    }
}

void TxPath::log_counters(unsigned queues, std::uint64_t now_ns) {
    for (unsigned q = 0; q < queues; ++q) {
        const TxCounters& c = counters_.at(q);
        const std::string scope = "q" + std::to_string(q);
        log_.write(now_ns, "stat",
                   {{"scope", scope},
                    {"doorbells", c.doorbells},
                    {"fetched", c.fetched},
                    {"frames", c.frames},
                    {"bytes", c.bytes},
                    {"segments", c.segments},
                    {"tso", c.tso},
                    {"never_done", c.never_done},
                    {"dropped", c.dropped},
                    {"in_flight", flight_.at(q).size()},
                    {"most_in_flight", c.most_in_flight},
                    {"events", c.events},
                    {"events_lost", c.events_lost},
                    {"errors", c.errors}});
    }
}

}  // namespace ringside::lab
