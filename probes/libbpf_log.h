// What libbpf and the kernel's verifier said, turned into the reason of an error.
#pragma once

#include <string>

#include "analyzers/base/error.h"

namespace ringside {

// Collects libbpf's warnings from its construction on. libbpf has one print callback for the whole
// process, so there is one text for the whole process.
class LibbpfLog {
  public:
    LibbpfLog();
    // The line that tells most, without verifier statistics; empty when nothing was said.
    [[nodiscard]] static std::string last_reason();
};

// What was refused, why, and what to do about it.
Error refused(int error_number, const std::string& what);

}  // namespace ringside
