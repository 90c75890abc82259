#include "dtcompare/knowledge.h"

#include <algorithm>

#include "dtcompare/meaning.h"

namespace ringside::dt {

namespace {

std::string number_text(const Property& property, std::string_view unit) {
    if (property.bytes.size() != 4) {
        return "malformed";
    }
    const std::uint32_t value = read_cell(property.bytes, 0);
    return unit == "hex" ? [&] {
        constexpr char kDigits[] = "0123456789abcdef";
        std::string text;
        for (std::uint32_t rest = value; rest != 0 || text.empty(); rest /= 16) {
            text.insert(text.begin(), kDigits[rest % 16]);
        }
        return "0x" + text;
    }()
                         : std::to_string(value) + (unit.empty() ? "" : " " + std::string(unit));
}

std::string written_value(const ControllerView& view, NodeId node, const Knowledge& entry,
                          const Property& property) {
    switch (entry.type) {
        case ValueType::kFlag:
            return "on";
        case ValueType::kNumber:
            return number_text(property, entry.unit);
        case ValueType::kText:
        case ValueType::kReferences:
        case ValueType::kCells:
        case ValueType::kNode:
            break;
    }
    return describe(*view.tree, view.numbering, node, property, 200);
}

}  // namespace

std::string_view place_name(Place place) {
    constexpr std::string_view kNames[] = {"MAC",         "AXI node",  "MTL TX node",
                                           "MTL RX node", "TX queue",  "RX queue",
                                           "PHY",         "PCIe port", "NIC"};
    return kNames[static_cast<std::size_t>(place)];
}

std::string_view type_name(ValueType type) {
    constexpr std::string_view kNames[] = {"flag", "u32", "string", "reference", "cells", "node"};
    return kNames[static_cast<std::size_t>(type)];
}

std::string_view relevance_name(Relevance relevance) {
    constexpr std::string_view kNames[] = {"high", "medium", "low"};
    return kNames[static_cast<std::size_t>(relevance)];
}

std::vector<const Knowledge*> find_knowledge(std::string_view property) {
    std::vector<const Knowledge*> found;
    for (const Knowledge& entry : knowledge()) {
        if (same_spelling(entry.property, property)) {
            found.push_back(&entry);
        }
    }
    return found;
}

const Knowledge* find_knowledge(Place place, std::string_view property, FamilyMask family) {
    for (const Knowledge& entry : knowledge()) {
        if (entry.place == place && (entry.families & family) != 0 &&
            same_spelling(entry.property, property)) {
            return &entry;
        }
    }
    return nullptr;
}

std::string_view default_of(const Knowledge& entry, Driver driver) {
    for (const Default& value : entry.defaults) {
        if ((value.drivers & mask(driver)) != 0) {
            return value.value;
        }
    }
    return {};
}

std::string effective_value(const ControllerView& view, NodeId node, const Knowledge& entry,
                            const Property* property) {
    if (property != nullptr && (entry.read_by & mask(view.driver)) == 0) {
        return "not read";
    }
    if (entry.effective != nullptr) {
        return entry.effective(view, node, entry, property);
    }
    if (property != nullptr) {
        return written_value(view, node, entry, *property);
    }
    return std::string(default_of(entry, view.driver));
}

}  // namespace ringside::dt
