// Traps: combinations of properties that do something the text does not show. Each is judged on one
// tree; the comparison says on which side it holds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dtcompare/controller.h"
#include "dtcompare/driver.h"
#include "dtcompare/knowledge.h"

namespace ringside::dt {

struct Rule {
    std::string_view id;
    FamilyMask families;
    DriverMask drivers;
    Relevance transmit;
    std::string_view title;   // what holds
    std::string_view why;     // what that does to transmit
    std::string_view check;   // what confirms or refutes it on the board
    std::string_view source;  // file and function
    // The detail when it holds for this tree; nothing otherwise.
    std::optional<std::string> (*holds)(const ControllerView& view);
};

std::span<const Rule> rules();

}  // namespace ringside::dt
