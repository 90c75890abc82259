// The fields of each message of docs/capture.proto and where they are in records.h. Internal to
// analyzers/capture. One description serves both directions, F is a writer or a reader of fields: a
// field cannot be written and then not be read.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "analyzers/capture/records.h"

namespace ringside::capture {

using ProgramMisses = std::pair<std::string, std::uint64_t>;

template <class R, class T>
concept Like = std::same_as<std::remove_const_t<R>, T>;

template <class F, Like<Fact> R>
void fields(F& f, R& r) {
    f.text(1, r.name);
    f.fact_value(2, 3, r.value);
    f.text(4, r.source);
    f.text(5, r.absent);
}

template <class F, Like<RunInfo> R>
void fields(F& f, R& r) {
    f.text(1, r.tool_version);
    f.text(2, r.interface);
    f.text(3, r.tier);
    f.text(4, r.tier_why);
    f.texts(5, r.hooks);
    f.texts(6, r.command);
    f.number(7, r.window_ns);
    f.number(8, r.start_boottime_ns);
    f.zigzag(9, r.start_unix_ns);
    f.number(10, r.num_queues);
    f.messages(11, r.facts);
}

template <class F, Like<StopFigures> R>
void fields(F& f, R& r) {
    f.number(1, r.count);
    f.number(2, r.stopped_ns);
    f.number(3, r.longest_ns);
    f.flag(4, r.open);
}

template <class F, Like<RingWindow> R>
void fields(F& f, R& r) {
    f.number(1, r.size);
    f.number(2, r.descriptors);
    f.number(3, r.taken);
    f.real(4, r.used_ns);
    f.number(5, r.used_max);
    f.zigzag(6, r.used_end);
    f.number(7, r.batches);
    f.number(8, r.batch_max);
    f.number(9, r.bypassed);
    f.number(10, r.resets);
    f.number(11, r.reset_packets);
    f.number(12, r.batches_by_irq);
    f.number(13, r.batches_by_timer);
    f.number(14, r.timers);
}

template <class F, Like<QueueWindow> R>
void fields(F& f, R& r) {
    f.number(1, r.queue);
    f.number(2, r.packets);
    f.number(3, r.bytes);
    f.number(4, r.segments);
    f.number(5, r.wire_bytes);
    f.number(6, r.requeued);
    f.number(7, r.requeued_bytes);
    f.number(8, r.errors);
    f.number(9, r.completed);
    f.number(10, r.completed_bytes);
    f.number(11, r.dropped);
    f.number(12, r.unpaired);
    f.number(13, r.missed);
    f.zigzag(14, r.in_flight_end);
    f.number(15, r.in_flight_max);
    f.real(16, r.in_flight_packet_ns);
    f.real(17, r.in_flight_byte_ns);
    f.time(18, r.last_progress_ns);
    f.time(19, r.oldest_ns);
    f.flag(20, r.bql);
    f.unset_flag(21, r.bql_exact);
    f.real(22, r.bql_byte_ns);
    f.number(23, r.bql_max);
    f.number(24, r.latency_ns);
    f.number(25, r.latency_max_ns);
    f.histogram(26, r.latency);
    f.number(27, r.gap_max_ns);
    f.time(28, r.gap_max_end_ns);
    f.message(29, r.driver_stop);
    f.message(30, r.bql_stop);
    f.number(31, r.watchdogs);
    f.message(32, r.ring);
}

template <class F, Like<NapiWindow> R>
void fields(F& f, R& r) {
    f.number(1, r.instance);
    f.number(2, r.polls);
    f.number(3, r.work);
    f.number(4, r.budget);
    f.number(5, r.exhausted);
    f.number(6, r.gap_ns);
    f.number(7, r.gap_max_ns);
    f.histogram(8, r.gap);
    f.number(9, r.irq_polls);
    f.number(10, r.irq_to_poll_ns);
    f.number(11, r.irq_to_poll_max_ns);
    f.histogram(12, r.irq_to_poll);
}

template <class F, Like<Window> R>
void fields(F& f, R& r) {
    f.time(1, r.start_ns);
    f.time(2, r.end_ns);
    f.messages(3, r.queues);
    f.messages(4, r.napis);
    f.flag(5, r.kernel_counters);
    f.number(6, r.kernel_tx_packets);
    f.number(7, r.kernel_tx_bytes);
    f.number(8, r.kernel_tx_dropped);
    f.number(9, r.kernel_tx_errors);
    f.number(10, r.irqs);
}

template <class F, Like<Event> R>
void fields(F& f, R& r) {
    f.time(1, r.time_ns);
    f.event_kind(2, r.kind);
    f.text(3, r.text);
}

template <class F, Like<ProgramMisses> R>
void fields(F& f, R& r) {
    f.text(1, r.first);
    f.number(2, r.second);
}

template <class F, Like<RunEnd> R>
void fields(F& f, R& r) {
    f.number(1, r.end_ns);
    f.text(2, r.reason);
    f.messages(3, r.program_misses);
    f.number(4, r.queue_beyond);
    f.number(5, r.napi_beyond);
    f.flag(6, r.command_ran);
    f.zigzag(7, r.command_exit);
    f.zigzag(8, r.command_signal);
    f.number(9, r.recorder_cpu_ns);
    f.number(10, r.lost_pairs);
    f.number(11, r.ring_odd);
}

}  // namespace ringside::capture
