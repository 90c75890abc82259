// The BPF side of a recording: open, set constants, load, attach, read windows, detach.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/base/result.h"
#include "probes/raw_window.h"

namespace ringside {

// One program and what became of it.
struct Hook {
    std::string name;   // tracepoint
    std::string how;    // "tp_btf", "raw_tp", or "-" when it is not attached
    std::string gives;  // what is seen through it
    std::string why;    // why it is not attached; empty when it is
    bool required = false;
};

struct TracerOptions {
    unsigned ifindex = 0;
    std::uint32_t netns_inum = 0;
    unsigned num_queues = 1;  // TX queues to keep figures for, at most RS_MAX_QUEUES
};

struct TracerEnd {
    // Runs that the kernel skipped because the program was already active on that CPU.
    std::vector<std::pair<std::string, std::uint64_t>> program_misses;
    std::uint64_t queue_beyond = 0;
    std::uint64_t napi_beyond = 0;
    std::uint64_t lost_pairs = 0;  // packets in flight by count that the flight table does not hold
};

class Tracer {
  public:
    // True when this build has the BPF programs in it.
    static bool built_in();

    // Loads and attaches the skb tier. Optional hooks that are refused are listed, not an error.
    // Errors: kNoRights, kUnsupported (no BTF, program refused: the message holds the kernel's
    // reason).
    static Result<Tracer> start(const TracerOptions& options);
    // Tries every hook one by one and attaches none for longer than it takes to see that it works.
    static Result<std::vector<Hook>> try_hooks();

    Tracer(Tracer&&) noexcept;
    Tracer& operator=(Tracer&&) noexcept;
    ~Tracer();  // detaches

    [[nodiscard]] const std::vector<Hook>& hooks() const;
    // CLOCK_BOOTTIME when the programs were attached, ns.
    [[nodiscard]] std::uint64_t start_ns() const;

    // Follows the device under another ifindex; 0 watches nothing. Queue state starts anew.
    void retarget(unsigned ifindex);
    // Ends the current window, begins the next and returns the ended one. Takes about 1 ms. With
    // `look` the flight table is read through for every queue; without, only for queues in which
    // packets wait and none left.
    RawWindow end_window(bool look);
    // Detaches; the last window must have been ended before.
    TracerEnd finish();

  private:
    struct Impl;
    explicit Tracer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace ringside
