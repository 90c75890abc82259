// What only the running kernel tells about an interface: ethtool and netlink. The other half of the
// facts comes from files, see facts.h; kept apart so that the facts can be made from captured
// values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyzers/base/result.h"
#include "probes/host/ethtool.h"
#include "probes/host/interface.h"

namespace ringside {

// Each is a value or the reason why there is none.
struct DeviceFigures {
    Result<DriverInfo> driver;
    Result<RingSizes> rings;
    Result<Coalesce> coalesce;
    Result<Channels> channels;
    Result<LinkSettings> link;
    Result<Pause> pause;
    Result<Eee> eee;
    Result<std::vector<Feature>> features;
    // Kinds of the qdiscs below the root (of the queues of mq), and how many there are of each.
    Result<std::map<std::string, unsigned>> leaf_qdiscs;
    std::string arch;  // "aarch64", as `uname -m`
};

// In the network namespace of the calling thread. Never fails as a whole.
DeviceFigures read_device(const Interface& interface);

// Errors: kNoRights, kIo.
Result<std::map<std::string, unsigned>> leaf_qdiscs(unsigned ifindex);

}  // namespace ringside
