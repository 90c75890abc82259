// The configuration space of one PCI Express endpoint: header, PM, MSI, PCIe and, if asked for,
// MSI-X with its table in BAR 4. QEMU sizes the BARs and runs the MSI-X table itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringside::lab {

constexpr std::size_t kConfigSize = 4096;
constexpr unsigned kBars = 6;
constexpr unsigned kMsixBar = 4;
constexpr std::uint64_t kMsixBarSize = 16384;

enum class BarKind : std::uint8_t { kNone, kIo, kMemory64 };

struct PciBar {
    BarKind kind = BarKind::kNone;
    std::uint64_t size = 0;
};

struct PciIdentity {
    std::uint16_t vendor = 0;
    std::uint16_t device = 0;
    std::uint8_t revision = 0;
    std::uint16_t subsystem_vendor = 0;
    std::uint16_t subsystem = 0;
    std::array<PciBar, kBars> bars{};
    std::uint32_t msix_vectors = 0;  // 0: no MSI-X capability
};

class PciConfig {
  public:
    explicit PciConfig(const PciIdentity& identity);

    // Within kConfigSize; the caller checks. Writes reach only what a driver may change.
    void read(std::size_t offset, std::span<std::byte> out) const;
    void write(std::size_t offset, std::span<const std::byte> bytes);

    [[nodiscard]] std::uint64_t bar_size(unsigned bar) const;
    [[nodiscard]] const PciIdentity& identity() const { return identity_; }

  private:
    template <class T>
    void put(std::size_t offset, T value);

    PciIdentity identity_;
    std::array<std::byte, kConfigSize> bytes_{};
};

}  // namespace ringside::lab
