#include "dtcompare/meaning.h"

#include <algorithm>
#include <span>

namespace ringside::dt {

namespace {

using Lists = std::pair<std::vector<Reference>, std::vector<Reference>>;

std::optional<NumberKind> number_kind(std::string_view property) {
    if (property == "clocks" || property == "assigned-clocks" ||
        property == "assigned-clock-parents") {
        return NumberKind::kClock;
    }
    if (property == "resets") {
        return NumberKind::kReset;
    }
    if (property == "power-domains") {
        return NumberKind::kPowerDomain;
    }
    return std::nullopt;
}

bool same_text(const TreePair& pair, NodeId a, NodeId b, std::string_view property) {
    const std::string_view text = pair.a.text(a, property);
    return !text.empty() && text == pair.b.text(b, property);
}

// The same node, or two nodes that name the same thing (a fixed clock, a regulator).
bool same_target(const TreePair& pair, NodeId a, NodeId b) {
    if (a == kNoNode || b == kNoNode) {
        return a == b;
    }
    return pair.matching.in_b(a) == b || same_text(pair, a, b, "clock-output-names") ||
           same_text(pair, a, b, "regulator-name");
}

std::span<const std::uint32_t> arguments_of(const Reference& reference) {
    return {reference.arguments.data(), reference.argument_count};
}
std::span<const std::uint32_t> before_of(const Reference& reference) {
    return {reference.before.data(), reference.before_count};
}

// Specifiers that got longer with zeros say the same (the interrupt partition cell of the GIC).
bool same_but_longer(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
    if (a.size() > b.size()) {
        std::swap(a, b);
    }
    return std::equal(a.begin(), a.end(), b.begin()) &&
           std::all_of(b.begin() + static_cast<std::ptrdiff_t>(a.size()), b.end(),
                       [](std::uint32_t cell) { return cell == 0; });
}

std::optional<std::uint32_t> same_number(const TreePair& pair, NumberKind kind, const Reference& a,
                                         const Reference& b, bool named) {
    const bool equal = std::ranges::equal(arguments_of(a), arguments_of(b));
    const NumberTable* table_a = number_table(pair.a, a.target, kind);
    const NumberTable* table_b = number_table(pair.b, b.target, kind);
    if (table_a == nullptr || table_a != table_b || a.argument_count != 1 ||
        b.argument_count != 1) {
        return equal ? std::optional<std::uint32_t>(0) : std::nullopt;
    }
    const std::uint32_t bit = kind == NumberKind::kReset ? kResetNumber : kClockNumber;
    const NumberRow* row_a = number_row(*table_a, a.arguments[0], pair.numbering_a);
    const NumberRow* row_b = number_row(*table_b, b.arguments[0], pair.numbering_b);
    if (row_a != nullptr && row_b != nullptr) {
        return row_a == row_b ? std::optional<std::uint32_t>(equal ? 0 : bit) : std::nullopt;
    }
    if (pair.numbering_a == pair.numbering_b) {
        return equal ? std::optional<std::uint32_t>(0) : std::nullopt;
    }
    // Two numberings and no row: the consumer's own names are all there is, unless one number is
    // known.
    if (row_a == nullptr && row_b == nullptr && named) {
        return bit | kConsumerNames;
    }
    return std::nullopt;
}

bool is_interrupt(std::string_view property) {
    return property == "interrupts" || property == "interrupts-extended";
}

bool all_named(const std::vector<Reference>& list) {
    return !list.empty() &&
           std::ranges::none_of(list, [](const Reference& r) { return r.name.empty(); });
}

// Entry by entry. `named`: both lists carry the same names in the same order.
std::optional<std::uint32_t> same_in_order(const TreePair& pair, std::string_view property,
                                           const Lists& lists) {
    const auto& [a, b] = lists;
    if (a.size() != b.size()) {
        return std::nullopt;
    }
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const bool named = !a[i].name.empty() && a[i].name == b[i].name;
        const auto same = same_reference(pair, property, a[i], b[i], named);
        if (!same) {
            return std::nullopt;
        }
        bits |= *same;
    }
    return bits;
}

std::optional<std::uint32_t> same_by_name(const TreePair& pair, std::string_view property,
                                          const Lists& lists) {
    const auto& [a, b] = lists;
    if (a.size() != b.size() || !all_named(a) || !all_named(b)) {
        return std::nullopt;
    }
    std::uint32_t bits = kOrder;
    for (const Reference& reference : a) {
        const auto it = std::ranges::find(b, reference.name, &Reference::name);
        const auto same =
            it == b.end() ? std::nullopt : same_reference(pair, property, reference, *it, true);
        if (!same) {
            return std::nullopt;
        }
        bits |= *same;
    }
    return bits;
}

PropertyVerdict verdict(bool same_bytes, std::optional<std::uint32_t> encodings) {
    if (!encodings) {
        return {Sameness::kDifferent, 0};
    }
    if (same_bytes && (*encodings & ~std::uint32_t{kPhandleNumber}) == 0) {
        return {Sameness::kIdentical, 0};
    }
    return {Sameness::kEquivalent, *encodings};
}

// Its own phandle, or hidden behind another property of that name.
bool says_nothing(const Tree& tree, NodeId node, const Property& property) {
    return property.name == "phandle" || property.name == "linux,phandle" ||
           tree.find(node, property.name) != &property;
}

// A pin's settings, by value: which node holds them does not matter.
bool same_settings(const TreePair& pair, NodeId a, NodeId b) {
    if (a == kNoNode || b == kNoNode) {
        return a == b;
    }
    const auto covered = [](const Tree& tree, NodeId node, const Tree& other, NodeId in) {
        return std::ranges::all_of(tree.properties(node), [&](const Property& property) {
            const Property* found = other.find(in, property.name);
            return says_nothing(tree, node, property) ||
                   (found != nullptr && std::ranges::equal(found->bytes, property.bytes));
        });
    };
    return covered(pair.a, a, pair.b, b) && covered(pair.b, b, pair.a, a);
}

// One property of a pin group. A group that names pin groups itself is compared by its bytes and
// not followed: it could lead back to where it came from (found by fuzzing).
bool same_in_group(const TreePair& pair, NodeId a, const Property& x, NodeId b, const Property& y) {
    const RefBinding* binding = ref_binding(x.name);
    if (binding != nullptr && binding->property == "pinctrl-") {
        return std::ranges::equal(x.bytes, y.bytes);
    }
    return compare_property(pair, a, x, b, y).sameness != Sameness::kDifferent;
}

// Two pin groups node by node, without putting them into words.
bool same_group(const TreePair& pair, NodeId a, NodeId b, int depth = 0) {
    constexpr int kMaxGroupDepth = 4;
    if (a == kNoNode || b == kNoNode || depth > kMaxGroupDepth) {
        return a == b;
    }
    for (const Property& property : pair.a.properties(a)) {
        const Property* other = pair.b.find(b, property.name);
        if (!says_nothing(pair.a, a, property) &&
            (other == nullptr || !same_in_group(pair, a, property, b, *other))) {
            return false;
        }
    }
    if (!std::ranges::all_of(pair.b.properties(b), [&](const Property& property) {
            return says_nothing(pair.b, b, property) || pair.a.find(a, property.name) != nullptr;
        })) {
        return false;
    }
    NodeId x = pair.a.node(a).first_child;
    NodeId y = pair.b.node(b).first_child;
    for (; x != kNoNode && y != kNoNode;
         x = pair.a.node(x).next_sibling, y = pair.b.node(y).next_sibling) {
        if (!same_group(pair, x, y, depth + 1)) {
            return false;
        }
    }
    return x == y;
}

bool same_groups(const TreePair& pair, const Lists& lists) {
    const auto& [a, b] = lists;
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Reference& x, const Reference& y) {
                          return same_group(pair, x.target, y.target);
                      });
}

bool is_pinctrl(const RefBinding& binding) {
    return binding.property == "pinctrl-";
}

PropertyVerdict compare_references(const TreePair& pair, NodeId node_a, const Property& a,
                                   NodeId node_b, const Property& b, const RefBinding& binding,
                                   bool same_bytes) {
    const Lists lists{resolve(pair.a, node_a, a, binding), resolve(pair.b, node_b, b, binding)};
    if (lists.first.empty() || lists.second.empty()) {
        return {same_bytes ? Sameness::kIdentical : Sameness::kDifferent, 0};
    }
    auto same = same_in_order(pair, a.name, lists);
    if (!same) {
        same = same_by_name(pair, a.name, lists);
    }
    if (is_pinctrl(binding) && !(same && same_groups(pair, lists))) {
        const bool same_pins = describe_pins(pair.a, node_a, a) == describe_pins(pair.b, node_b, b);
        same = same_pins ? std::optional<std::uint32_t>(same.value_or(kPinGroup)) : std::nullopt;
    }
    // A reference that could not be followed to the end: only the bytes can tell.
    const std::size_t cells = binding.form == RefForm::kPhandles ? cell_count(a.bytes) : 0;
    if (same && cells > lists.first.size()) {
        same = same_bytes ? same : std::nullopt;
    }
    return verdict(same_bytes, same);
}

std::uint64_t read_number(Bytes bytes, std::size_t cell, std::uint32_t cells) {
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; i < cells; ++i) {
        value = (value << 32U) | read_cell(bytes, cell + i);
    }
    return value;
}

// reg as numbers, when its parent's cells make that possible.
std::optional<std::vector<std::uint64_t>> read_reg(const Tree& tree, NodeId node, Bytes bytes) {
    const NodeId parent = tree.node(node).parent;
    if (parent == kNoNode) {
        return std::nullopt;
    }
    const std::uint32_t address = tree.address_cells(parent);
    const std::uint32_t size = tree.size_cells(parent);
    if (address < 1 || address > 2 || size > 2 || cell_count(bytes) % (address + size) != 0) {
        return std::nullopt;
    }
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < cell_count(bytes); i += address + size) {
        numbers.push_back(read_number(bytes, i, address));
        numbers.push_back(read_number(bytes, i + address, size));
    }
    return numbers;
}

// reg entries by their reg-names: the same windows under the same names in another order.
bool same_windows(const TreePair& pair, NodeId node_a, NodeId node_b,
                  const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
    const Property* names_a = pair.a.find(node_a, "reg-names");
    const Property* names_b = pair.b.find(node_b, "reg-names");
    const auto words_a = names_a == nullptr ? std::nullopt : read_strings(names_a->bytes);
    const auto words_b = names_b == nullptr ? std::nullopt : read_strings(names_b->bytes);
    if (!words_a || !words_b || a.size() != b.size() || words_a->size() * 2 != a.size() ||
        words_b->size() * 2 != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < words_a->size(); ++i) {
        const auto it = std::ranges::find(*words_b, (*words_a)[i]);
        const auto j = static_cast<std::size_t>(it - words_b->begin());
        if (it == words_b->end() || a[2 * i] != b[2 * j] || a[2 * i + 1] != b[2 * j + 1]) {
            return false;
        }
    }
    return true;
}

bool same_words_in_any_order(Bytes a, Bytes b) {
    auto words_a = read_strings(a);
    auto words_b = read_strings(b);
    if (!words_a || !words_b || words_a->size() != words_b->size()) {
        return false;
    }
    std::ranges::sort(*words_a);
    std::ranges::sort(*words_b);
    return *words_a == *words_b;
}

std::optional<std::uint32_t> same_value(const TreePair& pair, NodeId node_a, const Property& a,
                                        NodeId node_b, const Property& b) {
    const auto okay = [](Bytes bytes) {
        return first_string(bytes) == "ok" || first_string(bytes) == "okay";
    };
    if (a.name == "status" && okay(a.bytes) && okay(b.bytes)) {
        return kStatusWord;
    }
    if (a.name == "reg") {
        const auto numbers_a = read_reg(pair.a, node_a, a.bytes);
        const auto numbers_b = read_reg(pair.b, node_b, b.bytes);
        if (numbers_a && numbers_b && *numbers_a == *numbers_b) {
            return kCellWidth;
        }
        if (numbers_a && numbers_b && same_windows(pair, node_a, node_b, *numbers_a, *numbers_b)) {
            return kOrder;
        }
    }
    if (a.name.ends_with("-names") && same_words_in_any_order(a.bytes, b.bytes)) {
        return kOrder;
    }
    if (pair.a.node(node_a).name == "aliases") {
        const NodeId target = pair.a.by_path(first_string(a.bytes));
        const NodeId partner = pair.matching.in_b(target);
        if (partner != kNoNode && partner == pair.b.by_path(first_string(b.bytes))) {
            return kRenamedNode;
        }
    }
    return std::nullopt;
}

bool is_flag_character(char c) {
    return c == '-' || c == '_';
}

}  // namespace

const std::vector<EncodingName>& encoding_names() {
    static const std::vector<EncodingName> kNames{
        {kPhandleNumber, "phandle numbers"},
        {kClockNumber, "clock numbers"},
        {kResetNumber, "reset numbers"},
        {kInterruptWidth, "interrupt cell width"},
        {kSpelling, "- and _ in names"},
        {kOrder, "order of named lists"},
        {kConsumerNames, "by clock-names only"},
        {kPinGroup, "pin groups"},
        {kStatusWord, "ok and okay"},
        {kCellWidth, "address cell width"},
        {kRenamedNode, "renamed nodes"},
        {kBookkeeping, "labels and phandles"},
    };
    return kNames;
}

std::optional<std::uint32_t> same_reference(const TreePair& pair, std::string_view property,
                                            const Reference& a, const Reference& b, bool named) {
    const bool settings = property == "rockchip,pins";
    const bool same =
        settings ? same_settings(pair, a.target, b.target) : same_target(pair, a.target, b.target);
    if (!same || !std::ranges::equal(before_of(a), before_of(b))) {
        return std::nullopt;
    }
    if (a.target == kNoNode) {
        return 0;
    }
    const std::uint32_t moved =
        pair.a.node(a.target).phandle == pair.b.node(b.target).phandle ? 0U : kPhandleNumber;
    if (const auto kind = number_kind(property)) {
        const auto number = same_number(pair, *kind, a, b, named);
        return number ? std::optional<std::uint32_t>(*number | moved) : std::nullopt;
    }
    if (a.argument_count != b.argument_count && is_interrupt(property)) {
        return same_but_longer(arguments_of(a), arguments_of(b))
                   ? std::optional<std::uint32_t>(moved | kInterruptWidth)
                   : std::nullopt;
    }
    return std::ranges::equal(arguments_of(a), arguments_of(b))
               ? std::optional<std::uint32_t>(moved)
               : std::nullopt;
}

bool same_spelling(std::string_view a, std::string_view b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return x == y || (is_flag_character(x) && is_flag_character(y));
           });
}

const Property* find_spelled(const Tree& tree, NodeId node, std::string_view name) {
    if (node == kNoNode) {
        return nullptr;
    }
    const Property* variant = nullptr;
    for (const Property& property : tree.properties(node)) {
        if (property.name == name) {
            return &property;
        }
        if (variant == nullptr && same_spelling(property.name, name)) {
            variant = &property;
        }
    }
    return variant;
}

PropertyVerdict compare_property(const TreePair& pair, NodeId node_a, const Property& a,
                                 NodeId node_b, const Property& b) {
    const bool same_bytes = std::ranges::equal(a.bytes, b.bytes);
    const RefBinding* binding = a.bytes.size() < 4 ? nullptr : ref_binding(a.name);
    if (binding != nullptr) {
        return compare_references(pair, node_a, a, node_b, b, *binding, same_bytes);
    }
    if (same_bytes) {
        return {Sameness::kIdentical, 0};
    }
    return verdict(false, same_value(pair, node_a, a, node_b, b));
}

}  // namespace ringside::dt
