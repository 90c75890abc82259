// The BPF side of a recording: open, set constants, load, attach, read windows, detach.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/base/result.h"
#include "probes/hooks.h"
#include "probes/raw_window.h"

namespace ringside {

enum class TierChoice {
    kBest,  // ring where the driver's ring can be read, else skb, and say why
    kRing,  // ring or an error
    kSkb,
};

struct TracerOptions {
    unsigned ifindex = 0;
    std::uint32_t netns_inum = 0;
    unsigned num_queues = 1;     // TX queues to keep figures for, at most RS_MAX_QUEUES
    std::string driver = {};     // as `ethtool -i` says
    unsigned ring_size_max = 0;  // descriptors that `ethtool -G` could set; 0: not known
    TierChoice tier = TierChoice::kBest;
};

// Where this kernel keeps a driver's ring indices: bytes from the start of its private data.
struct RingLayout {
    std::uint32_t head_offset = 0;
    std::uint32_t tail_offset = 0;
    std::uint32_t stride = 0;  // from one queue to the next; 0: one queue, or found by pointers
};

struct TracerEnd {
    // Runs that the kernel skipped because the program was already active on that CPU.
    std::vector<std::pair<std::string, std::uint64_t>> program_misses;
    std::uint64_t queue_beyond = 0;
    std::uint64_t napi_beyond = 0;
    std::uint64_t lost_pairs = 0;  // packets in flight by count that the flight table does not hold
    std::uint64_t ring_odd = 0;    // ring indices read that cannot be
};

class Tracer {
  public:
    // True when this build has the BPF programs in it.
    static bool built_in();

    // Loads and attaches. Optional hooks that are refused are listed, not an error.
    // Errors: kNoRights, kUnsupported (no BTF, program refused, a tier that was asked for by name:
    // the message holds the reason).
    static Result<Tracer> start(const TracerOptions& options);
    // Loads the programs that read the ring of `driver`, attaches nothing. The error says why there
    // is no ring tier for it on this kernel.
    static Result<RingLayout> try_ring(const std::string& driver);
    // Tries every hook one by one and attaches none for longer than it takes to see that it works:
    // those of the skb tier, or with a driver those of its ring tier.
    static Result<std::vector<Hook>> try_hooks(const std::string& driver = {});

    Tracer(Tracer&&) noexcept;
    Tracer& operator=(Tracer&&) noexcept;
    ~Tracer();  // detaches

    [[nodiscard]] const std::string& tier() const;      // "ring" or "skb"
    [[nodiscard]] const std::string& tier_why() const;  // why this one and no other
    [[nodiscard]] const std::vector<Hook>& hooks() const;
    // CLOCK_BOOTTIME when the programs were attached, ns.
    [[nodiscard]] std::uint64_t start_ns() const;

    // The device's interrupts, by Linux number, in place of those named before. Numbers from
    // RS_MAX_IRQ on are left out.
    void watch_irqs(std::span<const unsigned> irqs);
    // Follows the device under another ifindex; 0 watches nothing. Queue state starts anew. In the
    // ring tier the driver must be the same one.
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
