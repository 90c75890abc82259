// The interrupts of one PCI function: an eventfd for each vector, given by the client.
#pragma once

#include <linux/vfio.h>

#include <array>
#include <cstdint>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside::lab {

// The most vectors of a function: RTL8125 has 32 messages, and no model here has more.
constexpr std::uint32_t kMaxVectors = 32;
constexpr std::uint32_t kIrqKinds = VFIO_PCI_NUM_IRQS;  // INTx, MSI, MSI-X, error, request

class Interrupts {
  public:
    // How many vectors the function has of each kind, indexed by VFIO_PCI_*_IRQ_INDEX.
    using Counts = std::array<std::uint32_t, kIrqKinds>;

    void set_counts(const Counts& counts) { counts_ = counts; }
    [[nodiscard]] const Counts& counts() const { return counts_; }

    // Gives vectors [start, start + count) of a kind their eventfds; a missing one is taken away.
    // Errors: kBadInput (no such kind or vector).
    Status set(std::uint32_t kind, std::uint32_t start, std::uint32_t count,
               std::vector<UniqueFd> eventfds);
    // Takes away every eventfd of a kind.
    void clear(std::uint32_t kind);

    // Sends a message by the best kind that is set up: MSI-X has a vector each, MSI and INTx one
    // for all. Returns whether one went out.
    bool send(std::uint32_t vector);

  private:
    [[nodiscard]] bool in_use(std::uint32_t kind) const;

    Counts counts_{};
    std::array<std::array<UniqueFd, kMaxVectors>, kIrqKinds> eventfds_;
};

}  // namespace ringside::lab
