// Durations as users write them: "30s", "200ms", "2m", "1h", "1.5s".
#pragma once

#include <cstdint>
#include <string_view>

#include "analyzers/base/result.h"

namespace ringside {

// A number, with or without decimals, and one of the units ns, us, ms, s, m, h; "0" needs no unit.
// No sign, no blanks, nothing finer than 1 ns. Errors: kUsage, with examples in the hint.
Result<std::uint64_t> parse_duration_ns(std::string_view text);

}  // namespace ringside
