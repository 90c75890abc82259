// What a property says, in words that do not depend on how its tree is encoded, and whether two
// properties say the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtcompare/match.h"
#include "dtcompare/numbers.h"
#include "dtcompare/resolve.h"
#include "dtcompare/tree.h"

namespace ringside::dt {

// Why two properties with different bytes say the same. Bits, because several can hold at once.
enum Encoding : std::uint32_t {
    kPhandleNumber = 1U << 0U,
    kClockNumber = 1U << 1U,
    kResetNumber = 1U << 2U,
    kInterruptWidth = 1U << 3U,
    kSpelling = 1U << 4U,       // - and _ in the property's name
    kOrder = 1U << 5U,          // a list in another order, read by name
    kConsumerNames = 1U << 6U,  // numbers of two numberings, equal by the consumer's clock-names
    kPinGroup = 1U << 7U,       // other groups, the same pins with the same settings
    kStatusWord = 1U << 8U,     // ok and okay
    kCellWidth = 1U << 9U,      // the same address in another number of cells
    kRenamedNode = 1U << 10U,   // a path to the same node under another name
    kBookkeeping = 1U << 11U,   // phandle, __symbols__, __fixups__
};
struct EncodingName {
    Encoding bit;
    std::string_view name;
};
const std::vector<EncodingName>& encoding_names();

enum class Sameness {
    kIdentical,   // same bytes, and no reference in them that means something else
    kEquivalent,  // encoding only
    kDifferent,
};

struct PropertyVerdict {
    Sameness sameness = Sameness::kIdentical;
    std::uint32_t encodings = 0;
};

// Both trees with what is needed to read their numbers and to know a node of one in the other.
struct TreePair {
    const Tree& a;
    const Tree& b;
    const Matching& matching;
    Numbering numbering_a = Numbering::kUnknown;
    Numbering numbering_b = Numbering::kUnknown;
};

// Names that differ only in - and _ are one property.
bool same_spelling(std::string_view a, std::string_view b);
// The property of that name or of a spelling variant of it.
const Property* find_spelled(const Tree& tree, NodeId node, std::string_view name);

PropertyVerdict compare_property(const TreePair& pair, NodeId node_a, const Property& a,
                                 NodeId node_b, const Property& b);

// What the two trees say about one reference each; `named` says that both sides gave it the same
// name. Nothing when they differ.
std::optional<std::uint32_t> same_reference(const TreePair& pair, std::string_view property,
                                            const Reference& a, const Reference& b, bool named);

// One reference in words: "CLK_GMAC_125M of clock-controller@fd7c0000", "SPI 234 level-high",
// "gpio@fec40000 pin 15 active-low".
std::string describe(const Tree& tree, Numbering numbering, std::string_view property,
                     const Reference& reference);
// The pins of a pinctrl-N property, sorted: "3-18 function 1 bias-disable".
std::vector<std::string> describe_pins(const Tree& tree, NodeId node, const Property& property);
// A whole property in words, at most about `limit` characters.
std::string describe(const Tree& tree, Numbering numbering, NodeId node, const Property& property,
                     std::size_t limit = 120);

}  // namespace ringside::dt
