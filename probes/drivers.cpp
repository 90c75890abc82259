#include "probes/drivers.h"

#include <algorithm>
#include <array>

extern "C" {
#include "probes/bpf/events.h"  // the types of the skeletons
}
#include "igb.skel.h"
#include "r8125.skel.h"
#include "r8169.skel.h"
#include "stmmac.skel.h"
#include "txpath.skel.h"
#include "virtio_net.skel.h"

namespace ringside {

namespace {

template <class Skeleton>
std::span<const std::byte> elf_of() {
    std::size_t size = 0;
    const void* bytes = Skeleton::elf_bytes(&size);
    return {static_cast<const std::byte*>(bytes), size};
}

constexpr std::array kDrivers = {
    DriverRow{"st_gmac", "stmmac", elf_of<stmmac>, "5.10 to 7.2, also vendor trees"},
    DriverRow{"r8169", "r8169", elf_of<r8169>, "6.1 to 7.2"},
    DriverRow{"r8125", "r8125", elf_of<r8125>, "9.011 to 9.016"},
    DriverRow{"igb", "igb", elf_of<igb>, "6.1 to 7.2"},
    DriverRow{"virtio_net", "virtio_net", elf_of<virtio_net>, "6.1 to 7.2, split rings"},
};

}  // namespace

const DriverRow* find_driver(std::string_view driver) {
    const auto* const row = std::find_if(kDrivers.begin(), kDrivers.end(),
                                         [&](const DriverRow& r) { return r.driver == driver; });
    return row == kDrivers.end() ? nullptr : row;
}

std::span<const DriverRow> all_drivers() {
    return kDrivers;
}

std::span<const std::byte> skb_tier_elf() {
    return elf_of<txpath>();
}

}  // namespace ringside
