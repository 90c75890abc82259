// The comparison as values: what differs in effect, what only looks different, what is around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtcompare/controller.h"
#include "dtcompare/driver.h"
#include "dtcompare/knowledge.h"
#include "dtcompare/load.h"
#include "dtcompare/match.h"
#include "dtcompare/rules.h"

namespace ringside::dt {

enum class FactClass {
    kTransmit,    // differs in effect and can bear on transmit throughput
    kNeutral,     // differs, and is not known to bear on it
    kEquivalent,  // written differently, same effect
};
std::string_view fact_class_name(FactClass fact_class);

// One property, judged.
struct Fact {
    const Knowledge* entry = nullptr;  // null: not in the knowledge table
    FactClass fact_class = FactClass::kNeutral;
    Relevance relevance = Relevance::kLow;
    std::string property;  // with the queue's or clock's name in front where there are several
    std::string node_a;    // path; empty when the side has no such node
    std::string node_b;
    std::string written_a;  // in words; "absent"
    std::string written_b;
    std::string effective_a;  // what the driver works with
    std::string effective_b;
    std::vector<std::string> how;  // why it is equivalent, or how the sides were brought together
};

struct RuleFinding {
    const Rule* rule = nullptr;
    std::optional<std::string> detail_a;  // holds for A
    std::optional<std::string> detail_b;
};

struct PropertyDifference {
    std::string name;
    std::string a;  // in words; "absent"
    std::string b;
};

// A node that the controller refers to, or that refers to it, or (with all) any other.
struct NodeDifference {
    std::string path_a;  // empty: only in B
    std::string path_b;
    Means means = Means::kNone;
    int hops = 0;  // references from the controller; negative: refers to it; 0: elsewhere
    bool disabled_a = false;
    bool disabled_b = false;
    std::size_t explained = 0;  // encoding only
    std::vector<PropertyDifference> properties;
};

struct ControllerResult {
    std::string path_a;
    std::string path_b;
    Means means = Means::kNone;
    std::string compatible;
    FamilyMask family = 0;
    bool enabled_a = false;
    bool enabled_b = false;
    std::string alias_a;
    std::string alias_b;
    std::vector<Fact> facts;  // transmit first, then neutral, then equivalent; ranked
    std::vector<RuleFinding> rules;
    std::vector<NodeDifference> around;  // nodes that differ
    std::size_t around_nodes = 0;        // nodes looked at
    std::size_t same = 0;                // properties that are the same on both sides

    [[nodiscard]] std::size_t count(FactClass fact_class) const;
};

struct SideInfo {
    std::string name;
    std::string part;
    SourceKind kind = SourceKind::kBlob;
    std::string model;
    std::vector<std::string> overlays;
    std::vector<std::string> notes;
    DriverChoice driver;
    Numbering numbering = Numbering::kUnknown;
    std::size_t nodes = 0;
    std::size_t properties = 0;
    std::vector<std::string> unresolved;  // references that cannot be followed
};

// Properties whose bytes differ between paired nodes, or that one side lacks.
struct RawCounts {
    std::size_t total = 0;
    std::size_t encoding = 0;              // same meaning
    std::size_t in_scope = 0;              // not encoding, in a controller or around it
    std::size_t elsewhere = 0;             // not encoding, not in scope
    std::vector<std::size_t> by_encoding;  // as encoding_names(); one property can count twice
};

struct Comparison {
    SideInfo a;
    SideInfo b;
    std::vector<ControllerResult> controllers;
    std::vector<NodeDifference> elsewhere;  // with Options::all
    std::vector<const DriverDelta*> cannot_show;
    RawCounts raw;

    // Nothing in the scope that was asked for differs in effect.
    bool equal = true;
};

struct Options {
    std::optional<DriverChoice> driver_a;
    std::optional<DriverChoice> driver_b;
    std::string node;  // path or label: this node and what it refers to, instead of the controllers
    bool all = false;  // list what differs elsewhere too
};

// Errors: kUsage when Options::node names nothing in either tree.
Result<Comparison> compare(const LoadedTree& a, const LoadedTree& b, const Options& options = {});

}  // namespace ringside::dt
