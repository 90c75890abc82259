// Driver families and versions whose reading of a tree is known, and how a tree's is guessed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dtcompare/load.h"
#include "dtcompare/numbers.h"

namespace ringside::dt {

// The stmmac drivers that were read, property by property. "vendor" is Rockchip's 6.1 kernel.
enum class Driver : std::uint8_t {
    kVendor61,
    kMainline61,
    kMainline612,
    kMainline618,
    kMainline72
};
constexpr std::size_t kDriverCount = 5;

using DriverMask = std::uint8_t;
constexpr DriverMask mask(Driver driver) {
    return static_cast<DriverMask>(1U << static_cast<unsigned>(driver));
}
constexpr DriverMask kVendor = mask(Driver::kVendor61);
constexpr DriverMask kAnyDriver = (1U << kDriverCount) - 1U;
constexpr DriverMask kMainline = kAnyDriver & ~kVendor;
constexpr DriverMask kSince618 = mask(Driver::kMainline618) | mask(Driver::kMainline72);
constexpr DriverMask kSince612 = kSince618 | mask(Driver::kMainline612);
constexpr DriverMask kOnly72 = mask(Driver::kMainline72);

std::string_view driver_name(Driver driver);  // "mainline-6.18"

struct DriverChoice {
    Driver driver = Driver::kMainline618;
    std::string label;  // what is printed: the version as asked for or guessed
    std::string how;    // "--driver-b", "guessed from bootargs", "assumed"
    bool guessed = false;
    bool nearest =
        false;  // the version itself was not read; the nearest older one that was is used
};

// "mainline-6.18", "vendor-6.1", also versions between those known. Errors: kUsage.
Result<DriverChoice> parse_driver(std::string_view text);

// By the running kernel for a live tree, by the version in the file's path, by marks of a vendor's
// tree (bootargs, spellings, nodes that only a vendor kernel reads, the numbering of clocks).
DriverChoice guess_driver(const LoadedTree& loaded, Numbering numbering);

// What differs between drivers and stands in no tree.
struct DriverDelta {
    std::string_view item;
    bool transmit;  // can bear on transmit
    std::array<std::string_view, kDriverCount> values;
    std::string_view source;
};
std::span<const DriverDelta> driver_deltas();

}  // namespace ringside::dt
