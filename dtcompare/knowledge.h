// What is known about the properties that tell an Ethernet controller something: effect, default,
// bearing on transmit, and where in the kernel that was read. Data; docs/dt-knowledge.md is checked
// against it by a test.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "dtcompare/controller.h"
#include "dtcompare/driver.h"

namespace ringside::dt {

// Which node of a controller a property stands in.
enum class Place {
    kMac,
    kAxi,
    kMtlTx,
    kMtlRx,
    kTxQueue,  // each queueN child
    kRxQueue,
    kPhy,
    kPcie,
    kNic,
};
std::string_view place_name(Place place);

enum class ValueType { kFlag, kNumber, kText, kReferences, kCells, kNode };
std::string_view type_name(ValueType type);

// How much a difference can do to transmit throughput.
enum class Relevance {
    kHigh,    // can cost tens of percent by itself
    kMedium,  // can cost some, under conditions
    kLow,     // none, or receive, latency and link only
};
std::string_view relevance_name(Relevance relevance);

struct Default {
    DriverMask drivers = 0;
    std::string_view value;
};

struct Knowledge;
// The value the driver works with. Equal texts on both sides are equal in effect.
using EffectiveValue = std::string (*)(const ControllerView& view, NodeId node,
                                       const Knowledge& entry, const Property* property);

struct Knowledge {
    std::string_view property;  // with '-'; spelling variants with '_' match too
    Place place;
    FamilyMask families;
    ValueType type;
    std::string_view unit;
    Relevance transmit;
    std::string_view effect;
    std::string_view why;  // one line: how it bears on transmit
    std::array<Default, 3> defaults;
    std::string_view source;  // file and function
    std::string_view check;   // what to look at on the board; empty: nothing cheap
    DriverMask read_by = kAnyDriver;
    EffectiveValue effective = nullptr;  // null: the value as written, or the default
    std::string_view part_of = {};       // judged within this other entry, never by itself
};

std::span<const Knowledge> knowledge();
// Entries for a property, all places. A name written with '_' finds the one with '-'.
std::vector<const Knowledge*> find_knowledge(std::string_view property);
const Knowledge* find_knowledge(Place place, std::string_view property, FamilyMask family);

// The default's text for a driver; empty when none is known.
std::string_view default_of(const Knowledge& entry, Driver driver);

// The effective value of an entry at a node (kNoNode: the place does not exist on that side).
std::string effective_value(const ControllerView& view, NodeId node, const Knowledge& entry,
                            const Property* property);

}  // namespace ringside::dt
