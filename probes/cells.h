// Reads the counter cells that the BPF programs write (probes/bpf/events.h): steps since the last
// read, summed over CPUs.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "probes/raw_window.h"

namespace ringside {

inline void add_step(std::uint64_t now, std::uint64_t before, __u64& sum) {
    sum += now - before;
}

inline void add_step(const rs_flow& now, const rs_flow& before, rs_flow& sum) {
    add_step(now.packets, before.packets, sum.packets);
    add_step(now.packets_t, before.packets_t, sum.packets_t);
    add_step(now.bytes, before.bytes, sum.bytes);
    add_step(now.bytes_t, before.bytes_t, sum.bytes_t);
}

inline void add_step(const rs_level& now, const rs_level& before, rs_level& sum) {
    add_step(now.n, before.n, sum.n);
    add_step(now.n_t, before.n_t, sum.n_t);
}

inline void add_step(std::span<const __u32> now, std::span<const __u32> before,
                     std::span<__u32> sum) {
    for (std::size_t i = 0; i < now.size(); ++i) {
        sum[i] += now[i] - before[i];
    }
}

inline void add_step(const rs_xmit_cell& now, const rs_xmit_cell& before, rs_xmit_cell& sum) {
    add_step(now.sent, before.sent, sum.sent);
    add_step(now.packets, before.packets, sum.packets);
    add_step(now.bytes, before.bytes, sum.bytes);
    add_step(now.segments, before.segments, sum.segments);
    add_step(now.wire_bytes, before.wire_bytes, sum.wire_bytes);
    add_step(now.unpaired, before.unpaired, sum.unpaired);
    add_step(now.errors, before.errors, sum.errors);
    add_step(now.requeued, before.requeued, sum.requeued);
    add_step(now.requeued_bytes, before.requeued_bytes, sum.requeued_bytes);
    add_step(now.returned, before.returned, sum.returned);
    add_step(now.stale, before.stale, sum.stale);
    add_step(now.descriptors, before.descriptors, sum.descriptors);
    add_step(now.bypassed, before.bypassed, sum.bypassed);
    add_step(now.swallowed, before.swallowed, sum.swallowed);
    sum.max_used = std::max(sum.max_used, now.max_used);
    sum.max_in_flight = std::max(sum.max_in_flight, now.max_in_flight);
    sum.max_bql_bytes = std::max(sum.max_bql_bytes, now.max_bql_bytes);
}

inline void add_step(const rs_done_cell& now, const rs_done_cell& before, rs_done_cell& sum) {
    add_step(now.completed, before.completed, sum.completed);
    add_step(now.dropped, before.dropped, sum.dropped);
    add_step(now.latency_ns, before.latency_ns, sum.latency_ns);
    add_step(now.descriptors, before.descriptors, sum.descriptors);
    add_step(now.batches, before.batches, sum.batches);
    for (int by = 0; by < RS_WAKEUPS; ++by) {
        add_step(now.batches_by[by], before.batches_by[by], sum.batches_by[by]);
    }
    sum.max_batch = std::max(sum.max_batch, now.max_batch);
    add_step(std::span(now.latency), std::span(before.latency), std::span(sum.latency));
    sum.max_latency_ns = std::max(sum.max_latency_ns, now.max_latency_ns);
    if (now.max_gap_ns > sum.max_gap_ns) {
        sum.max_gap_ns = now.max_gap_ns;
        sum.max_gap_end_ns = now.max_gap_end_ns;
    }
}

inline void add_step(const rs_napi_cell& now, const rs_napi_cell& before, rs_napi_cell& sum) {
    add_step(now.polls, before.polls, sum.polls);
    add_step(now.work, before.work, sum.work);
    add_step(now.budget, before.budget, sum.budget);
    add_step(now.exhausted, before.exhausted, sum.exhausted);
    add_step(now.gap_ns, before.gap_ns, sum.gap_ns);
    add_step(std::span(now.gap), std::span(before.gap), std::span(sum.gap));
    sum.max_gap_ns = std::max(sum.max_gap_ns, now.max_gap_ns);
    add_step(now.irq_polls, before.irq_polls, sum.irq_polls);
    add_step(now.irq_to_poll_ns, before.irq_to_poll_ns, sum.irq_to_poll_ns);
    sum.max_irq_to_poll_ns = std::max(sum.max_irq_to_poll_ns, now.max_irq_to_poll_ns);
    add_step(std::span(now.irq_to_poll), std::span(before.irq_to_poll), std::span(sum.irq_to_poll));
}

inline void clear_maxima(rs_xmit_cell& cell) {
    cell.max_in_flight = cell.max_bql_bytes = cell.max_used = 0;
}
inline void clear_maxima(rs_done_cell& cell) {
    cell.max_latency_ns = cell.max_gap_ns = cell.max_gap_end_ns = cell.max_batch = 0;
}
inline void clear_maxima(rs_napi_cell& cell) {
    cell.max_gap_ns = cell.max_irq_to_poll_ns = 0;
}

// A mapped array of cells and what was read from it last.
template <class Cell>
class CellReader {
  public:
    CellReader() = default;
    explicit CellReader(std::span<Cell> live) : live_(live), before_(live.size()) {}

    // Adds what came since the last read of this cell to `sum`.
    void read(std::size_t index, Cell& sum) {
        const Cell now = live_[index];
        add_step(now, before_[index], sum);
        before_[index] = now;
        clear_maxima(live_[index]);
    }

  private:
    std::span<Cell> live_;
    std::vector<Cell> before_;
};

// Memory shared with a BPF map.
class MappedCells {
  public:
    MappedCells() = default;
    MappedCells(void* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
    MappedCells(MappedCells&& other) noexcept
        : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    MappedCells& operator=(MappedCells&& other) noexcept {
        std::swap(at_, other.at_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~MappedCells() {
        if (at_ != nullptr) {
            ::munmap(at_, bytes_);
        }
    }
    template <class Cell>
    [[nodiscard]] std::span<Cell> as(std::size_t count) const {
        return std::span<Cell>(static_cast<Cell*>(at_), count);
    }

  private:
    void* at_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace ringside
