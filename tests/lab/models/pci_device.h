// One PCI function behind the transport: what vfio_user.h serves and a chip model implements.
//
// No call may block or wait: QEMU gives up on a register access after five seconds, and the guest's
// CPU stands still meanwhile. What takes time is done by advance().
#pragma once

#include <cstdint>
#include <optional>

#include "tests/lab/models/pci_config.h"

namespace ringside::lab {

class PciDevice {
  public:
    PciDevice() = default;
    PciDevice(const PciDevice&) = delete;
    PciDevice& operator=(const PciDevice&) = delete;
    virtual ~PciDevice() = default;

    [[nodiscard]] virtual PciConfig& config() = 0;
    // Register access of 1, 2, 4 or 8 bytes, within the size of the BAR.
    virtual std::uint64_t read(unsigned bar, std::uint64_t offset, unsigned size,
                               std::uint64_t now_ns) = 0;
    virtual void write(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value,
                       std::uint64_t now_ns) = 0;
    // Function reset: as after power-on.
    virtual void reset(std::uint64_t now_ns) = 0;
    // The guest has unmasked its INTx line: a level that is still high must be sent again.
    virtual void intx_unmasked(std::uint64_t now_ns) = 0;
    // Does what is due; returns when there will be something due next, if anything will.
    virtual std::optional<std::uint64_t> advance(std::uint64_t now_ns) = 0;
};

}  // namespace ringside::lab
