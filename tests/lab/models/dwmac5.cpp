// DWMAC 5.10: configuration space, registers, MDIO, interrupts. The rings are in dwmac5_rings.cpp.
#include "tests/lab/models/dwmac5.h"

#include "tests/lab/models/dwmac5_regs.h"

namespace ringside::lab {
namespace {

constexpr unsigned kRegisterBar = 0;
constexpr unsigned kPhyAddress = 1;

PciIdentity identity(bool msix) {
    PciIdentity identity{.vendor = 0x8086,
                         .device = 0x4b30,  // Elkhart Lake RGMII 1G: no SerDes, no ACPI needed
                         .revision = 0x11,
                         .subsystem_vendor = 0x8086,
                         .subsystem = 0x4b30,
                         .bars = {},
                         .msix_vectors = msix ? kMaxVectors : 0};
    identity.bars[kRegisterBar] = {BarKind::kMemory64, 65536};
    return identity;
}

// What GMAC4_VERSION and GMAC_HW_FEATURE0 to 2 say: user id 0x30 and core 5.10 as on RK3588; RGMII,
// checksums both ways, MDIO, 10/100/1000; TSO, AV, 40-bit addresses, 16 KiB FIFOs; the queues.
constexpr std::uint32_t kCoreVersion = 0x3051;
constexpr std::uint32_t kFeature0 = 1U << 28 | 1U << 16 | 1U << 14 | 1U << 5 | 7;
constexpr std::uint32_t kFeature1 =
    1U << 24 | 1U << 20 | 1U << 18 | 1U << 16 | 1U << 14 | 7U << 6 | 7;
constexpr std::uint32_t feature2(std::uint32_t queues) {
    const std::uint32_t last = queues - 1;
    return last << 18 | last << 12 | last << 6 | last;  // TX and RX channels, TX and RX queues
}

bool is_read_only(std::uint64_t offset) {
    return (offset >= dwmac::kVersion && offset <= dwmac::kHwFeature3) ||
           offset == dwmac::kDmaStatus;
}

}  // namespace

Dwmac5::Dwmac5(const Machine& machine, const Dwmac5Options& options)
    : Nic(machine, kMaxQueues), options_(options), config_(identity(options.msix)) {
    machine_.interrupts.set_counts({1, 1, options.msix ? kMaxVectors : 0, 0, 0});
    power_on(0);
}

void Dwmac5::power_on(std::uint64_t now_ns) {
    phy_.reset();
    soft_reset(now_ns);
}

void Dwmac5::reset(std::uint64_t now_ns) {
    machine_.log.write(now_ns, "reset", {{"what", "device"}});
    config_ = PciConfig(identity(options_.msix));
    power_on(now_ns);
}

void Dwmac5::soft_reset(std::uint64_t now_ns) {
    registers_.clear();
    registers_.set<std::uint32_t>(dwmac::kVersion, kCoreVersion);
    registers_.set<std::uint32_t>(dwmac::kHwFeature0, kFeature0);
    registers_.set<std::uint32_t>(dwmac::kHwFeature0 + 4, kFeature1);
    registers_.set<std::uint32_t>(dwmac::kHwFeature0 + 8, feature2(options_.queues));
    for (unsigned channel = 0; channel < kMaxQueues; ++channel) {
        tx_.forget(channel, now_ns);
    }
    channels_ = {};
    rx_next_ = 0;
    peer_.forget();
}

// ---------------------------------------------------------------- interrupts

std::uint32_t Dwmac5::reg(unsigned channel, std::uint32_t offset) const {
    return registers_.get<std::uint32_t>(dwmac::kChannels + dwmac::kChannelStep * channel + offset);
}

void Dwmac5::set_reg(unsigned channel, std::uint32_t offset, std::uint32_t value) {
    registers_.set<std::uint32_t>(dwmac::kChannels + dwmac::kChannelStep * channel + offset, value);
}

void Dwmac5::set_status(unsigned channel, std::uint32_t bits) {
    set_reg(channel, dwmac::kStatus, reg(channel, dwmac::kStatus) | bits);
}

void Dwmac5::update_lines(unsigned channel, bool again, std::uint64_t now_ns) {
    constexpr std::uint32_t kNormal = dwmac::kTi | dwmac::kTbu | dwmac::kRi;
    const std::uint32_t enabled = reg(channel, dwmac::kInterruptEnable);
    const std::uint32_t wanted = reg(channel, dwmac::kStatus) & enabled;
    const std::uint32_t normal = (enabled & dwmac::kNis) != 0 ? wanted & kNormal : 0;
    const std::uint32_t abnormal = (enabled & dwmac::kAis) != 0 ? wanted & dwmac::kFbe : 0;
    set_status(channel, (normal != 0 ? dwmac::kNis : 0) | (abnormal != 0 ? dwmac::kAis : 0));

    Channel& lines = channels_.at(channel);
    const auto update = [&](bool& line, bool high, unsigned vector) {
        if (high && (again || !line)) {
            send_message(options_.msix ? vector : 0, reg(channel, dwmac::kStatus), now_ns);
        }
        line = high;
    };
    // The vectors as intel_mgbe_common_data lays them out: msi_rx_base_vec 0, msi_tx_base_vec 1.
    update(lines.rx_line, (normal & dwmac::kRi) != 0, 2 * channel);
    update(lines.tx_line, (normal & ~dwmac::kRi) != 0 || abnormal != 0, 2 * channel + 1);
}

void Dwmac5::intx_unmasked(std::uint64_t now_ns) {
    for (unsigned channel = 0; channel < kMaxQueues; ++channel) {
        update_lines(channel, true, now_ns);
    }
}

void Dwmac5::tx_event(unsigned queue, std::uint64_t now_ns) {
    set_status(queue, dwmac::kTi);
    update_lines(queue, false, now_ns);
}

void Dwmac5::link_changed(std::uint64_t) {
    phy_.set_cable(machine_.faults.link());
}

void Dwmac5::tbu_changed() {
    for (unsigned channel = 0; channel < kMaxQueues; ++channel) {
        const std::uint32_t others = reg(channel, dwmac::kStatus) & ~dwmac::kTbu;
        set_reg(channel, dwmac::kStatus, others);
    }
}

// ---------------------------------------------------------------- registers

std::uint64_t Dwmac5::read(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t) {
    if (bar != kRegisterBar) {
        return 0;
    }
    if (offset == dwmac::kDmaStatus) {
        std::uint32_t pending = 0;
        for (unsigned channel = 0; channel < kMaxQueues; ++channel) {
            const Channel& lines = channels_.at(channel);
            pending |= lines.rx_line || lines.tx_line ? 1U << channel : 0;
        }
        return pending;
    }
    return registers_.read(offset, size);
}

void Dwmac5::write(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value,
                   std::uint64_t now_ns) {
    // The core has 32-bit registers and takes nothing else.
    if (bar != kRegisterBar || size != 4 || offset % 4 != 0 || is_read_only(offset)) {
        return;
    }
    const auto word = static_cast<std::uint32_t>(value);
    constexpr std::uint64_t kChannelsEnd = dwmac::kChannels + dwmac::kChannelStep * kMaxQueues;
    if (offset >= dwmac::kChannels && offset < kChannelsEnd) {
        const auto within = static_cast<std::uint32_t>(offset - dwmac::kChannels);
        write_channel(within / dwmac::kChannelStep, within % dwmac::kChannelStep, word, now_ns);
    } else if (offset == dwmac::kMdioAddress && (word & dwmac::kMdioBusy) != 0) {
        mdio(word);
    } else if (offset == dwmac::kDmaBusMode && (word & dwmac::kSoftwareReset) != 0) {
        machine_.log.write(now_ns, "reset", {{"what", "chip"}});
        soft_reset(now_ns);
    } else if (offset == dwmac::kVlanTag) {
        registers_.set<std::uint32_t>(offset, word & ~1U);  // done at once: not busy
    } else {
        registers_.set<std::uint32_t>(offset, word);
    }
}

void Dwmac5::write_channel(unsigned channel, std::uint32_t offset, std::uint32_t value,
                           std::uint64_t now_ns) {
    const std::uint32_t old = reg(channel, offset);
    if (offset == dwmac::kStatus) {  // write 1 to clear
        set_reg(channel, offset, old & ~value);
        update_lines(channel, true, now_ns);
        return;
    }
    if (offset == dwmac::kCurrentTxDesc) {
        return;
    }
    set_reg(channel, offset, value);
    switch (offset) {
        case dwmac::kInterruptEnable:
            update_lines(channel, false, now_ns);
            break;
        case dwmac::kTxBase:
            channels_.at(channel).next = 0;
            break;
        case dwmac::kRxBase:
            rx_next_ = channel == 0 ? 0 : rx_next_;
            break;
        case dwmac::kTxControl:
            write_tx_control(channel, old, value, now_ns);
            break;
        case dwmac::kTxTail:
            channels_.at(channel).suspended = false;
            tx_.doorbell(channel, tail_index(channel), now_ns);
            break;
        default:
            break;
    }
}

void Dwmac5::write_tx_control(unsigned channel, std::uint32_t old, std::uint32_t value,
                              std::uint64_t now_ns) {
    const bool was_on = (old & dwmac::kStartTx) != 0;
    const bool on = (value & dwmac::kStartTx) != 0;
    if (was_on && !on) {
        tx_.forget(channel, now_ns);
    } else if (on && !was_on) {
        channels_.at(channel).halted = false;
        channels_.at(channel).suspended = false;
    }
}

void Dwmac5::mdio(std::uint32_t command) {
    const std::uint32_t phy = command >> dwmac::kMdioPhyShift & 31;
    const std::uint32_t reg = command >> dwmac::kMdioRegShift & 31;
    const std::uint32_t operation = command >> dwmac::kMdioOpShift & 3;
    const bool ours = phy == kPhyAddress && (command & dwmac::kMdioClause45) == 0;
    if (operation == dwmac::kMdioRead) {
        registers_.set<std::uint32_t>(dwmac::kMdioData, ours ? phy_.read(reg) : 0xffffU);
    } else if (operation == dwmac::kMdioWrite && ours) {
        phy_.write(reg, registers_.get<std::uint16_t>(dwmac::kMdioData));
    }
    registers_.set<std::uint32_t>(dwmac::kMdioAddress, command & ~dwmac::kMdioBusy);
}

}  // namespace ringside::lab
