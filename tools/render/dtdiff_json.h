// A device-tree comparison as JSON (docs/schema/dtdiff.schema.json).
#pragma once

#include <string>

#include "dtcompare/compare.h"

namespace ringside {

std::string dtdiff_json(const dt::Comparison& comparison);

}  // namespace ringside
