// Properties in words.
#include <algorithm>
#include <charconv>

#include "dtcompare/meaning.h"

namespace ringside::dt {

namespace {

std::string hex(std::uint32_t value) {
    char text[16] = "0x";
    const auto end = std::to_chars(text + 2, text + sizeof(text), value, 16);
    return {text, end.ptr};
}

std::string arguments(const Reference& reference, std::size_t from = 0) {
    std::string text;
    for (std::size_t i = from; i < reference.argument_count; ++i) {
        text += ' ' + std::to_string(reference.arguments[i]);
    }
    return text;
}

std::string interrupt_text(const Tree& tree, const Reference& reference) {
    const bool gic =
        tree.text(reference.target, "compatible").starts_with("arm,gic") ||
        tree.text(reference.target, "compatible").find("-gic") != std::string_view::npos;
    if (!gic || reference.argument_count < 3) {
        return std::string(tree.node(reference.target).name) + arguments(reference);
    }
    constexpr std::string_view kTypes[] = {"SPI", "PPI", "ESPI", "EPPI"};
    struct Trigger {
        std::uint32_t flag;
        std::string_view name;
    };
    constexpr Trigger kTriggers[] = {
        {1, "edge-rising"}, {2, "edge-falling"}, {4, "level-high"}, {8, "level-low"}};
    const std::uint32_t type = reference.arguments[0];
    std::string text = type < std::size(kTypes) ? std::string(kTypes[type]) : std::to_string(type);
    text += ' ' + std::to_string(reference.arguments[1]);
    const std::uint32_t flags = reference.arguments[2] & 0xfU;
    for (const Trigger& trigger : kTriggers) {
        if (flags == trigger.flag) {
            text += ' ';
            text += trigger.name;
        }
    }
    if (reference.argument_count > 3 && reference.arguments[3] != 0) {
        text += " partition";
    }
    return text;
}

bool is_gpio(std::string_view property) {
    return property.ends_with("gpios") || property.ends_with("gpio");
}

std::string numbered_text(const Tree& tree, Numbering numbering, NumberKind kind,
                          const Reference& reference) {
    const std::string provider(tree.node(reference.target).name);
    const NumberTable* table = number_table(tree, reference.target, kind);
    if (table != nullptr && reference.argument_count == 1) {
        if (const NumberRow* row = number_row(*table, reference.arguments[0], numbering)) {
            std::string text = std::string(row->name) + " of " + provider;
            if (table->register_and_bit && row->vendor != NumberRow::kNone) {
                text += " (register " + std::to_string(row->vendor / 16) + " bit " +
                        std::to_string(row->vendor % 16) + ")";
            }
            return text;
        }
    }
    if (reference.argument_count == 0) {
        const std::string_view name = tree.text(reference.target, "clock-output-names");
        return name.empty() ? provider : std::string(name);
    }
    return provider + arguments(reference);
}

// Settings of a pin, as they stand in its configuration node.
std::string settings_text(const Tree& tree, NodeId node) {
    std::vector<std::string> words;
    for (const Property& property : tree.properties(node)) {
        if (property.name == "phandle" || property.name == "linux,phandle") {
            continue;
        }
        std::string word(property.name);
        if (property.bytes.size() == 4) {
            word += ' ' + std::to_string(read_cell(property.bytes, 0));
        }
        words.push_back(std::move(word));
    }
    std::ranges::sort(words);
    std::string text;
    for (const std::string& word : words) {
        text += ' ' + word;
    }
    return text;
}

std::string value_text(Bytes bytes) {
    if (bytes.empty()) {
        return "present";
    }
    if (const auto words = read_strings(bytes)) {
        std::string text;
        for (const std::string_view word : *words) {
            text += (text.empty() ? "" : ", ") + std::string(word);
        }
        return text;
    }
    std::string text;
    if (bytes.size() % 4 == 0) {
        for (std::size_t i = 0; i < std::min<std::size_t>(cell_count(bytes), 64); ++i) {
            text += (i == 0 ? "" : " ") + hex(read_cell(bytes, i));
        }
        return text;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 64); ++i) {
        text += i == 0 ? "" : " ";
        text += kDigits[bytes[i] >> 4U];
        text += kDigits[bytes[i] & 0xfU];
    }
    return text;
}

void add_group(const Tree& tree, NodeId group, std::vector<std::string>& pins, int depth) {
    constexpr int kMaxGroupDepth = 4;
    constexpr std::size_t kMaxPins = 4096;
    if (depth > kMaxGroupDepth) {
        return;
    }
    for (const Property& property : tree.properties(group)) {
        if (pins.size() >= kMaxPins) {
            return;
        }
        const RefBinding* binding = ref_binding(property.name);
        if (binding == nullptr || binding->form != RefForm::kPins) {
            if (property.name != "phandle" && property.name != "linux,phandle") {
                pins.push_back(std::string(property.name) + " " + value_text(property.bytes));
            }
            continue;
        }
        for (const Reference& pin : resolve(tree, group, property, *binding)) {
            pins.push_back(describe(tree, Numbering::kUnknown, property.name, pin));
        }
    }
    for (NodeId c = tree.node(group).first_child; c != kNoNode; c = tree.node(c).next_sibling) {
        add_group(tree, c, pins, depth + 1);
    }
}

}  // namespace

std::string describe(const Tree& tree, Numbering numbering, std::string_view property,
                     const Reference& reference) {
    if (reference.target == kNoNode) {
        return "none";
    }
    const std::string target(tree.node(reference.target).name);
    if (property == "interrupts" || property == "interrupts-extended") {
        return interrupt_text(tree, reference);
    }
    if (property == "clocks" || property.starts_with("assigned-clock")) {
        return numbered_text(tree, numbering, NumberKind::kClock, reference);
    }
    if (property == "resets") {
        return numbered_text(tree, numbering, NumberKind::kReset, reference);
    }
    if (property == "power-domains") {
        return numbered_text(tree, numbering, NumberKind::kPowerDomain, reference);
    }
    if (property == "rockchip,pins") {
        return std::to_string(reference.before[0]) + '-' + std::to_string(reference.before[1]) +
               " function " + std::to_string(reference.before[2]) +
               settings_text(tree, reference.target);
    }
    if (is_gpio(property) && reference.argument_count == 2) {
        return target + " pin " + std::to_string(reference.arguments[0]) +
               ((reference.arguments[1] & 1U) != 0 ? " active-low" : " active-high");
    }
    std::string text;
    for (std::size_t i = 0; i < reference.before_count; ++i) {
        text += hex(reference.before[i]) + ' ';
    }
    text += reference.before_count > 0 ? "-> " : "";
    const std::string_view name = tree.text(reference.target, "regulator-name");
    return text + (name.empty() ? target : std::string(name)) + arguments(reference);
}

std::vector<std::string> describe_pins(const Tree& tree, NodeId node, const Property& property) {
    std::vector<std::string> pins;
    const RefBinding* binding = ref_binding(property.name);
    if (binding != nullptr) {
        for (const Reference& group : resolve(tree, node, property, *binding)) {
            if (group.target != kNoNode) {
                add_group(tree, group.target, pins, 0);
            }
        }
    }
    std::ranges::sort(pins);
    return pins;
}

std::string describe(const Tree& tree, Numbering numbering, NodeId node, const Property& property,
                     std::size_t limit) {
    const RefBinding* binding = property.bytes.size() < 4 ? nullptr : ref_binding(property.name);
    const auto references =
        binding == nullptr ? std::vector<Reference>() : resolve(tree, node, property, *binding);
    std::string text;
    if (references.empty()) {
        text = value_text(property.bytes);
    } else if (binding->property == "pinctrl-") {
        for (const std::string& pin : describe_pins(tree, node, property)) {
            text += (text.empty() ? "" : "; ") + pin;
        }
    } else {
        for (const Reference& reference : references) {
            text += text.empty() ? "" : ", ";
            text += describe(tree, numbering, property.name, reference);
        }
    }
    if (text.size() > limit) {
        text.resize(limit - 3);
        text += "...";
    }
    return text;
}

}  // namespace ringside::dt
