// Turns what the BPF programs counted into the figures of a window. Pure arithmetic: no kernel
// needed.
#pragma once

#include <cstdint>
#include <map>

#include "analyzers/capture/records.h"
#include "probes/raw_window.h"

namespace ringside {

class WindowBuilder {
  public:
    // Windows must be given in order, without gaps.
    Window build(const RawWindow& raw);

  private:
    // Running totals of something that enters and leaves; see probes/bpf/events.h for the
    // arithmetic.
    struct Level {
        std::uint64_t in = 0, in_t = 0, out = 0, out_t = 0;
        std::uint64_t last_area = 0;

        [[nodiscard]] std::int64_t value() const { return static_cast<std::int64_t>(in - out); }
        // Area under the level since the last call, unit * ns; step: never below zero.
        double change(std::uint64_t until_ns);
        double step(std::uint64_t until_ns);
    };
    struct Stop {
        std::uint64_t begins = 0;
        std::uint64_t stopped_ns = 0;
    };
    struct Totals {
        Level packets, bytes, bql, descriptors;
        std::uint32_t resets = 0;
        rs_flow lost{};
        rs_level lost_descriptors{};
        std::int64_t bql_drift = 0;  // our level less the kernel's

        [[nodiscard]] std::int64_t bql_bytes() const { return bql.value() - bql_drift; }
        Stop stop[RS_STOP_REASONS];
        std::uint32_t watchdogs = 0;
        std::uint64_t timers = 0;
    };

    QueueWindow build_queue(const RawQueue& raw, std::uint64_t start_ns, std::uint64_t end_ns);
    static StopFigures build_stop(const rs_stop& raw, Stop& before, std::uint64_t end_ns);
    static RingWindow build_ring(const RawQueue& raw, Totals& totals, std::uint64_t end_ns);
    static void build_bql(const RawQueue& raw, Totals& totals, std::uint64_t length_ns,
                          std::uint64_t end_ns, QueueWindow& window);

    std::map<std::uint32_t, Totals> totals_;
};

}  // namespace ringside
