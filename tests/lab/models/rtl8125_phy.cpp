#include "tests/lab/models/rtl8125_phy.h"

#include <linux/mii.h>

#include <algorithm>

namespace ringside::lab {
namespace {

// Clause 22 register n is at 0xa400 + 2 n (OCP_STD_PHY_BASE in r8169_main.c).
constexpr std::uint16_t phy(unsigned reg) {
    return static_cast<std::uint16_t>(0xa400 + 2 * reg);
}

constexpr std::uint16_t kState = 0xa420;    // low bits 3: LAN on (r8125: rtl8125_wait_phy_state)
constexpr std::uint16_t kSpeed = 0xa434;    // RTL_VND1_PHYSR, phy/realtek: speed and link
constexpr std::uint16_t kLpa2500 = 0xa5d6;  // RTL_LPADV_2500M
constexpr std::uint16_t kPma = 0xa616;      // PMA abilities: 2.5G
constexpr std::uint16_t kPatchRequest = 0xb820;  // r8125: rtl8125_set_phy_mcu_patch_request
constexpr std::uint16_t kPatchReady = 0xb800;
constexpr std::uint16_t kHeartbeat = 0xb87a;  // r8125 waits for bit 0 to go back to 0

struct Preset {
    std::uint16_t address;
    std::uint16_t value;
    bool read_only;
};
constexpr std::array<Preset, 12> kPresets{{
    {phy(MII_BMCR), BMCR_ANENABLE | BMCR_FULLDPLX | BMCR_SPEED1000, false},
    {phy(MII_PHYSID1), 0x001c, true},
    {phy(MII_PHYSID2), 0xc840, true},
    {phy(MII_ADVERTISE), 0x01e1, false},
    {phy(MII_LPA), 0xcde1, false},
    {phy(MII_CTRL1000), 0x0200, false},
    {phy(MII_STAT1000), 0x3800, false},
    {phy(MII_ESTATUS), ESTATUS_1000_TFULL, false},
    {kState, 0x0003, true},
    {kSpeed, 0x0210 | 0x8 | 0x4, true},  // 2500 Mb/s, full duplex, link
    {kLpa2500, 0x0020, false},
    {kPma, 0x2000, true},
}};
constexpr std::uint16_t kBmsr = 0x7949;  // 10/100 and extended status

}  // namespace

void Rtl8125Phy::reset() {
    words_.fill(0);
    for (const Preset& preset : kPresets) {
        words_.at(preset.address / 2) = preset.value;
    }
}

bool Rtl8125Phy::up() const {
    return cable_ && (stored(phy(MII_BMCR)) & BMCR_PDOWN) == 0;
}

std::uint16_t Rtl8125Phy::read(std::uint16_t address) const {
    switch (address) {
        case phy(MII_BMSR):
            return static_cast<std::uint16_t>(kBmsr |
                                              (up() ? BMSR_ANEGCOMPLETE | BMSR_LSTATUS : 0));
        case kSpeed:
        case kLpa2500:
        case phy(MII_LPA):
        case phy(MII_STAT1000):
            return up() ? stored(address) : std::uint16_t{0};
        case kHeartbeat:
            return stored(address) & 0xfffe;
        case kPatchReady:
            return (stored(kPatchRequest) & 0x10) != 0 ? 0x40 : 0;
        default:
            return stored(address);
    }
}

bool Rtl8125Phy::write(std::uint16_t address, std::uint16_t value) {
    const auto* preset =
        std::find_if(kPresets.begin(), kPresets.end(),
                     [address](const Preset& each) { return each.address == address; });
    if (preset != kPresets.end() && preset->read_only) {
        return false;
    }
    if (address != phy(MII_BMCR)) {
        words_.at(address / 2) = value;
        return false;
    }
    // Reset and the restart of negotiation are done at once.
    const bool was_up = up();
    const bool again = (value & (BMCR_RESET | BMCR_ANRESTART)) != 0;
    words_.at(address / 2) = static_cast<std::uint16_t>(value & ~(BMCR_RESET | BMCR_ANRESTART));
    return up() && (again || !was_up);
}

}  // namespace ringside::lab
