// Device-tree source, compiled by the system's dtc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "analyzers/base/result.h"

namespace ringside::dt {

// Runs dtc on the file, without a shell, bounded in time and output.
// Errors: kUnsupported (no dtc), kBadInput (with dtc's first message), kIo.
Result<std::vector<std::uint8_t>> compile_dts(const std::filesystem::path& path);

}  // namespace ringside::dt
