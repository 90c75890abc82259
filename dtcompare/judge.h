// Judges one controller: every known property, then every other one of its nodes.
#pragma once

#include "dtcompare/compare.h"
#include "dtcompare/meaning.h"

namespace ringside::dt {

// Fills in identity, facts and rules. Either view may have no node (the controller is in one tree
// only).
ControllerResult judge_controller(const TreePair& pair, const ControllerView& a,
                                  const ControllerView& b);

// Names of the encodings in a set of bits.
std::vector<std::string> encoding_words(std::uint32_t bits);

// phandle and the like: always encoding, never a fact.
bool is_bookkeeping_property(std::string_view name);

}  // namespace ringside::dt
