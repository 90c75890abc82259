// What the BPF programs counted in one window, as read from the maps: sums over CPUs, nothing
// concluded.
#pragma once

#include <cstdint>
#include <vector>

extern "C" {
#include "probes/bpf/events.h"
}

namespace ringside {

struct RawQueue {
    std::uint32_t queue = 0;
    rs_xmit_cell xmit{};  // counts of this window; max_* of this window
    rs_done_cell done{};
    rs_queue state{};             // as it stood when the window was read
    std::uint64_t oldest_ns = 0;  // start of the oldest packet in flight; 0: none, or not looked
    bool has_ring = false;        // ring tier: `ring` is valid
    rs_ring ring{};
};

struct RawNapi {
    std::uint32_t instance = 0;
    rs_napi_cell cell{};  // counts of this window
};

struct RawWindow {
    std::uint64_t start_ns = 0;  // CLOCK_BOOTTIME
    std::uint64_t end_ns = 0;
    std::vector<RawQueue> queues;  // queues that have carried a packet since tracing began
    std::vector<RawNapi> napis;
    std::uint64_t irqs = 0;  // hard interrupts of the device
};

}  // namespace ringside
