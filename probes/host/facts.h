// The host and one of its interfaces as a flat list of facts with stable names: docs/host-facts.md.
#pragma once

#include <vector>

#include "analyzers/base/sysroot.h"
#include "analyzers/capture/records.h"
#include "probes/host/device_figures.h"
#include "probes/host/interface.h"

namespace ringside {

// Never fails: what cannot be read is in the list as absent, with the reason. Settings and counts
// at the moment of the call. No hardware or IP addresses, serial numbers or host names are read
// into it. From a /sys that belongs to another network namespace nothing about the interface is
// taken.
std::vector<Fact> collect_facts(const Interface& interface, const Sysroot& root);

// The same from values that were read before: what tests and captured hosts use.
std::vector<Fact> facts_of(const Interface& interface, const DeviceFigures& device,
                           const Sysroot& root);

}  // namespace ringside
