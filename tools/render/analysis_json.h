// An analysis as JSON: docs/schema/analysis.schema.json.
#pragma once

#include <string>

#include "analyzers/analysis.h"

namespace ringside {

struct AnalysisJsonOptions {
    bool windows = false;  // every window of the port and of each queue
};

// One document, ends with a newline. Bytes of foreign strings that are not UTF-8 become U+FFFD; a
// number that is not finite becomes null.
std::string analysis_json(const CaptureAnalysis& capture, const AnalysisJsonOptions& options);

}  // namespace ringside
