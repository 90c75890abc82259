// An analysis as text for a terminal or a mail.
#pragma once

#include <string>

#include "analyzers/analysis.h"
#include "tools/render/text.h"

namespace ringside {

struct AnalysisTextOptions {
    bool windows = false;  // a table of every window
    bool verbose = false;  // why this tier, which hooks, misses per program
};

// Ends with a newline; no line is wider than the style's width. Nothing foreign reaches it
// unchecked.
std::string analysis_text(const CaptureAnalysis& capture, const AnalysisTextOptions& options,
                          const TextStyle& style);

}  // namespace ringside
