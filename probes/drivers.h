// The driver table: for which drivers the descriptor ring itself can be read, and by which BPF
// object. A new driver is one row here and one file in probes/bpf (docs/adding-a-driver.md).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ringside {

struct DriverRow {
    std::string_view driver;  // as `ethtool -i` says
    const char* object;       // name of the BPF object, at most 15 characters
    std::span<const std::byte> (*elf)();
    std::string_view known;  // which versions have been read: for doctor and docs
};

// Null for a driver whose ring is not known.
const DriverRow* find_driver(std::string_view driver);
std::span<const DriverRow> all_drivers();

// The programs of the skb tier: any driver.
std::span<const std::byte> skb_tier_elf();

}  // namespace ringside
