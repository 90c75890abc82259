// The knowledge table and the rules, for reading.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/base/result.h"
#include "tools/render/text.h"

namespace ringside {

// One line for each property, then one for each rule.
std::string knowledge_list(const TextStyle& style);
// All that is known about one property or one rule. Errors: kUsage when nothing is.
Result<std::string> knowledge_of(std::string_view name, const TextStyle& style);
// The same as JSON; an empty name means everything.
Result<std::string> knowledge_json(std::string_view name);
// docs/dt-knowledge.md.
std::string knowledge_markdown();

}  // namespace ringside
