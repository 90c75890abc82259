#include "tests/lab/models/mdio_phy.h"

#include <linux/mii.h>

namespace ringside::lab {
namespace {

constexpr std::uint16_t kBmsr = 0x7949;     // 10/100 and extended status
constexpr std::uint16_t kPartner = 0xcde1;  // 10/100 full duplex, pause
constexpr std::uint16_t kPartner1000 = 0x3800;

}  // namespace

void MdioPhy::reset() {
    words_.fill(0);
    words_[MII_BMCR] = BMCR_ANENABLE | BMCR_FULLDPLX | BMCR_SPEED1000;
    words_[MII_PHYSID1] = 0x0d1f;
    words_[MII_PHYSID2] = 0x5880;
    words_[MII_ADVERTISE] = 0x01e1;
    words_[MII_CTRL1000] = ADVERTISE_1000FULL;
    words_[MII_ESTATUS] = ESTATUS_1000_TFULL;
}

bool MdioPhy::up() const {
    return cable_ && (words_[MII_BMCR] & BMCR_PDOWN) == 0;
}

std::uint16_t MdioPhy::read(unsigned reg) const {
    switch (reg) {
        case MII_BMSR:
            return static_cast<std::uint16_t>(kBmsr |
                                              (up() ? BMSR_ANEGCOMPLETE | BMSR_LSTATUS : 0));
        case MII_LPA:
            return up() ? kPartner : std::uint16_t{0};
        case MII_STAT1000:
            return up() ? kPartner1000 : std::uint16_t{0};
        default:
            return words_.at(reg % words_.size());
    }
}

void MdioPhy::write(unsigned reg, std::uint16_t value) {
    if (reg == MII_PHYSID1 || reg == MII_PHYSID2 || reg >= words_.size()) {
        return;
    }
    // Reset and the restart of negotiation are done at once.
    words_.at(reg) = reg == MII_BMCR
                         ? static_cast<std::uint16_t>(value & ~(BMCR_RESET | BMCR_ANRESTART))
                         : value;
}

}  // namespace ringside::lab
