#include "tests/lab/models/pci_config.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <cstring>

namespace ringside::lab {
namespace {

// Where the capabilities are, each pointing at the next.
constexpr std::uint8_t kPm = 0x40;
constexpr std::uint8_t kMsi = 0x50;
constexpr std::uint8_t kPcie = 0x70;
constexpr std::uint8_t kMsix = 0xb0;

constexpr std::uint8_t kClassNetwork = 0x02;
constexpr std::uint32_t kMsixPbaOffset = 0x800;

// What a driver may write; the rest of the header identifies the function.
struct Range {
    std::size_t begin;
    std::size_t end;
};
constexpr std::array<Range, 6> kWritable{{
    {PCI_COMMAND, PCI_STATUS},
    {PCI_CACHE_LINE_SIZE, PCI_LATENCY_TIMER + 1},
    {PCI_BASE_ADDRESS_0, PCI_CARDBUS_CIS},
    {PCI_INTERRUPT_LINE, PCI_INTERRUPT_PIN},
    {kPm + PCI_PM_CTRL, kPm + PCI_PM_SIZEOF},
    {kMsi + PCI_MSI_FLAGS, kConfigSize},
}};

bool may_write(std::size_t offset) {
    return std::any_of(kWritable.begin(), kWritable.end(), [offset](const Range& range) {
        return offset >= range.begin && offset < range.end;
    });
}

}  // namespace

template <class T>
void PciConfig::put(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
}

PciConfig::PciConfig(const PciIdentity& identity) : identity_(identity) {
    if (identity.msix_vectors != 0) {
        identity_.bars[kMsixBar] = {BarKind::kMemory64, kMsixBarSize};
    }
    put<std::uint16_t>(PCI_VENDOR_ID, identity.vendor);
    put<std::uint16_t>(PCI_DEVICE_ID, identity.device);
    put<std::uint16_t>(PCI_STATUS, PCI_STATUS_CAP_LIST);
    put<std::uint8_t>(PCI_REVISION_ID, identity.revision);
    put<std::uint8_t>(PCI_CLASS_DEVICE + 1, kClassNetwork);
    for (unsigned bar = 0; bar < kBars; ++bar) {
        const std::size_t offset = PCI_BASE_ADDRESS_0 + 4 * bar;
        if (identity_.bars[bar].kind == BarKind::kIo) {
            put<std::uint32_t>(offset, PCI_BASE_ADDRESS_SPACE_IO);
        } else if (identity_.bars[bar].kind == BarKind::kMemory64) {
            put<std::uint32_t>(offset, PCI_BASE_ADDRESS_MEM_TYPE_64);
        }
    }
    put<std::uint16_t>(PCI_SUBSYSTEM_VENDOR_ID, identity.subsystem_vendor);
    put<std::uint16_t>(PCI_SUBSYSTEM_ID, identity.subsystem);
    put<std::uint8_t>(PCI_CAPABILITY_LIST, kPm);
    put<std::uint8_t>(PCI_INTERRUPT_PIN, 1);

    put<std::uint8_t>(kPm, PCI_CAP_ID_PM);
    put<std::uint8_t>(kPm + PCI_CAP_LIST_NEXT, kMsi);
    put<std::uint16_t>(kPm + PCI_PM_PMC, 3);

    put<std::uint8_t>(kMsi, PCI_CAP_ID_MSI);
    put<std::uint8_t>(kMsi + PCI_CAP_LIST_NEXT, kPcie);
    put<std::uint16_t>(kMsi + PCI_MSI_FLAGS, PCI_MSI_FLAGS_64BIT);

    put<std::uint8_t>(kPcie, PCI_CAP_ID_EXP);
    put<std::uint8_t>(kPcie + PCI_CAP_LIST_NEXT, identity.msix_vectors != 0 ? kMsix : 0);
    put<std::uint16_t>(kPcie + PCI_EXP_FLAGS, 2);  // endpoint, capability version 2
    put<std::uint32_t>(kPcie + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_RBER | 0xfc0);
    put<std::uint16_t>(kPcie + PCI_EXP_DEVCTL, 0x2810);
    put<std::uint32_t>(kPcie + PCI_EXP_LNKCAP, 0x0007dc11);  // 2.5 GT/s, one lane
    put<std::uint16_t>(kPcie + PCI_EXP_LNKSTA, 0x1011);

    if (identity.msix_vectors != 0) {
        put<std::uint8_t>(kMsix, PCI_CAP_ID_MSIX);
        put<std::uint16_t>(kMsix + PCI_MSIX_FLAGS,
                           static_cast<std::uint16_t>(identity.msix_vectors - 1));
        put<std::uint32_t>(kMsix + PCI_MSIX_TABLE, kMsixBar);
        put<std::uint32_t>(kMsix + PCI_MSIX_PBA, kMsixPbaOffset | kMsixBar);
    }
}

void PciConfig::read(std::size_t offset, std::span<std::byte> out) const {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
}

void PciConfig::write(std::size_t offset, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (may_write(offset + i)) {
            bytes_[offset + i] = bytes[i];
        }
    }
}

std::uint64_t PciConfig::bar_size(unsigned bar) const {
    return bar < kBars ? identity_.bars[bar].size : 0;
}

}  // namespace ringside::lab
