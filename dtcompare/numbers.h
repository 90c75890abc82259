// Names for the numbers that clock, reset and power-domain specifiers carry. Vendor and mainline
// trees number the same lines differently (RK3588: 24 of 721 common clocks and no reset keep their
// number). The tables hold what an Ethernet controller, its PCIe port and their PHYs can refer to;
// a consumer's own clock-names must do for the rest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dtcompare/tree.h"

namespace ringside::dt {

enum class Numbering { kUnknown, kVendor, kMainline };
enum class NumberKind { kClock, kReset, kPowerDomain };

struct NumberRow {
    static constexpr std::uint32_t kNone = ~0U;
    std::string_view name;
    std::uint32_t vendor;
    std::uint32_t mainline;
};

struct NumberTable {
    std::string_view provider;  // compatible of the node that is referred to
    NumberKind kind;
    std::span<const NumberRow> rows;
    bool register_and_bit;  // the vendor's number is register x 16 + bit
};

std::span<const NumberTable> number_tables();

// The table for a provider node; null without one.
const NumberTable* number_table(const Tree& tree, NodeId provider, NumberKind kind);

// The row that a number means; null when the table does not have it or the numbering is not known
// and the two numberings disagree.
const NumberRow* number_row(const NumberTable& table, std::uint32_t number, Numbering numbering);

// Which numbering a tree uses, by votes: "ptp_ref" must be a PTP_REF clock in the right table.
// kUnknown when no node tells, or the votes are even.
Numbering guess_numbering(const Tree& tree);

}  // namespace ringside::dt
