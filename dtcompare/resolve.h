// From cells to things: which node a property refers to, with which arguments, under which name.
// What is a reference is known by the property's name and the provider's #*-cells, never guessed
// from a number that happens to be a phandle.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "dtcompare/tree.h"

namespace ringside::dt {

// How a property's cells are to be read.
enum class RefForm {
    kList,          // phandle, then as many cells as the provider's `cells` says; repeated
    kPhandles,      // phandles only
    kInterrupts,    // no phandle: the inherited interrupt parent is meant
    kMap,           // id, phandle, base, length (iommu-map, msi-map)
    kInterruptMap,  // child unit and interrupt, phandle, parent unit and interrupt
    kPins,          // Rockchip: bank, pin, function, phandle of the configuration
};

struct RefBinding {
    std::string_view property;  // or its ending, for the families "-gpios", "-gpio", "-supply"
    std::string_view cells;     // the provider's cell-count property
    std::string_view names;     // property with one name per entry; empty: no such
    RefForm form;
    int default_cells;  // when the provider has none; -1: an error
};

// The binding of a property; null when it holds no references.
const RefBinding* ref_binding(std::string_view property);

constexpr std::size_t kMaxArguments = 12;
constexpr std::size_t kMaxReferences = 4096;  // per property; the largest known has 409

struct Reference {
    NodeId target = kNoNode;  // kNoNode: an empty slot (phandle 0), or dangling
    std::uint8_t before_count = 0;
    std::uint8_t argument_count = 0;
    std::array<std::uint32_t, kMaxArguments> before{};     // cells in front of the phandle (maps)
    std::array<std::uint32_t, kMaxArguments> arguments{};  // cells behind it
    std::string_view name;                                 // from the names property
};

// A reference that cannot be followed. The rest of the property is not read.
struct Problem {
    NodeId node;
    std::string_view property;
    std::string what;
};

// All references of one property. A problem is added to `problems` when that is not null.
std::vector<Reference> resolve(const Tree& tree, NodeId node, const Property& property,
                               const RefBinding& binding, std::vector<Problem>* problems = nullptr);

// The node that interrupts of `node` go to: its own or the nearest inherited interrupt-parent, or
// the nearest interrupt controller above. kNoNode when there is none.
NodeId interrupt_parent(const Tree& tree, NodeId node);

// Every reference of the tree followed. Empty for a sound tree.
std::vector<Problem> check_references(const Tree& tree);

}  // namespace ringside::dt
