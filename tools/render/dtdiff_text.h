// A device-tree comparison as text.
#pragma once

#include <string>

#include "dtcompare/compare.h"
#include "tools/render/text.h"

namespace ringside {

struct DtdiffTextOptions {
    bool details = false;  // neutral and equivalent facts one by one, with their values
};

std::string dtdiff_text(const dt::Comparison& comparison, const DtdiffTextOptions& options,
                        const TextStyle& style);

}  // namespace ringside
