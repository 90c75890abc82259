// RTL8125B: configuration space, registers, interrupts. The rings are in rtl8125_rings.cpp.
#include "tests/lab/models/rtl8125.h"

#include <linux/vfio.h>

#include <algorithm>
#include <cstring>

#include "tests/lab/models/rtl8125_regs.h"

namespace ringside::lab {
namespace {

constexpr unsigned kRegisterBar = 2;
constexpr unsigned kIoBar = 0;  // the first 256 registers again
constexpr std::array<std::uint8_t, 6> kMacAddress{0x00, 0xe0, 0x4c, 0x81, 0x25, 0x0b};

PciIdentity identity() {
    PciIdentity identity{.vendor = 0x10ec,
                         .device = 0x8125,
                         .revision = 0x05,
                         .subsystem_vendor = 0x10ec,
                         .subsystem = 0x0123,
                         .bars = {},
                         .msix_vectors = kMaxVectors};
    identity.bars[kIoBar] = {BarKind::kIo, 256};
    identity.bars[kRegisterBar] = {BarKind::kMemory64, 65536};
    return identity;
}

// GPHY_OCP and OCPDR: bit 31 is "write" or "done", then the address in words, then the data.
std::uint16_t ocp_address(std::uint32_t value) {
    return static_cast<std::uint16_t>((value >> 15) & 0xfffe);
}

}  // namespace

Rtl8125::Rtl8125(const Machine& machine) : Nic(machine, kTxQueues), config_(identity()) {
    machine_.interrupts.set_counts({1, 1, kMaxVectors, 0, 0});
    machine_.faults.set_rate_kbps(kWireKbps);
    power_on(0);
}

void Rtl8125::power_on(std::uint64_t now_ns) {
    registers_.clear();
    mac_.fill(0);
    phy_.reset();
    for (std::uint32_t i = 0; i < kMacAddress.size(); ++i) {
        registers_.set<std::uint8_t>(rtl::kMac0 + i, kMacAddress[i]);
        registers_.set<std::uint8_t>(rtl::kMac0Backup + i, kMacAddress[i]);
    }
    registers_.set<std::uint32_t>(rtl::kTxConfig, rtl::kXidRtl8125b);
    isr_v2_ = imr_v2_ = 0;
    line_ = false;
    reset_rings(now_ns);
}

void Rtl8125::reset(std::uint64_t now_ns) {
    machine_.log.write(now_ns, "reset", {{"what", "device"}});
    config_ = PciConfig(identity());
    power_on(now_ns);
}

void Rtl8125::reset_rings(std::uint64_t now_ns) {
    for (unsigned q = 0; q < kTxQueues; ++q) {
        tx_.forget(q, now_ns);
        registers_.set<std::uint16_t>(rtl::kSwTailPtr + 4 * q, 0);
        registers_.set<std::uint16_t>(rtl::kHwCloPtr + 4 * q, 0);
    }
    rings_ = {};
    rx_next_ = 0;
    peer_.forget();
}

// ---------------------------------------------------------------- interrupts

bool Rtl8125::v2() const {
    return (registers_.get<std::uint8_t>(rtl::kIntCfg0) & rtl::kIntCfg0EnableV2) != 0;
}

void Rtl8125::update_line(std::uint64_t now_ns) {
    const auto status = registers_.get<std::uint32_t>(rtl::kIntrStatus) &
                        registers_.get<std::uint32_t>(rtl::kIntrMask);
    const bool was = line_;
    line_ = status != 0;
    // With MSI a message stands for the rise of the line; another status bit on top sends none.
    if (line_ && !was) {
        send_message(0, status, now_ns);
    }
}

void Rtl8125::intx_unmasked(std::uint64_t now_ns) {
    if (line_) {
        send_message(0, registers_.get<std::uint32_t>(rtl::kIntrStatus), now_ns);
    }
}

void Rtl8125::send_v2(std::uint32_t bits, std::uint64_t now_ns) {
    const std::uint32_t due = bits & isr_v2_ & imr_v2_;
    for (unsigned vector = 0; vector < 32; ++vector) {
        if ((due & 1U << vector) != 0) {
            send_message(vector, isr_v2_, now_ns);
        }
    }
}

void Rtl8125::raise(std::uint32_t legacy, unsigned v2_bit, std::uint64_t now_ns) {
    if (v2()) {
        isr_v2_ |= 1U << v2_bit;
        send_v2(1U << v2_bit, now_ns);
    } else {
        registers_.set<std::uint32_t>(rtl::kIntrStatus,
                                      registers_.get<std::uint32_t>(rtl::kIntrStatus) | legacy);
        update_line(now_ns);
    }
}

void Rtl8125::write_interrupt_mask(std::uint32_t value, std::uint64_t now_ns) {
    registers_.set<std::uint32_t>(rtl::kIntrMask, value);
    update_line(now_ns);
}

void Rtl8125::write_interrupt_status(std::uint32_t value, std::uint64_t now_ns) {
    registers_.set<std::uint32_t>(rtl::kIntrStatus,
                                  registers_.get<std::uint32_t>(rtl::kIntrStatus) & ~value);
    update_line(now_ns);
}

void Rtl8125::write_imr_clear(std::uint32_t value, std::uint64_t) {
    imr_v2_ &= ~value;
}
void Rtl8125::write_isr_v2(std::uint32_t value, std::uint64_t) {
    isr_v2_ &= ~value;
}
void Rtl8125::write_imr_set(std::uint32_t value, std::uint64_t now_ns) {
    const std::uint32_t fresh = value & ~imr_v2_;
    imr_v2_ |= value;
    send_v2(fresh, now_ns);
}

void Rtl8125::link_changed(std::uint64_t now_ns) {
    phy_.set_cable(machine_.faults.link());
    raise(rtl::kLinkChg, rtl::kV2Link, now_ns);
}

// ---------------------------------------------------------------- registers

Rtl8125::WriteHandler Rtl8125::handler_of(std::uint64_t offset) {
    static constexpr std::array<WriteRule, 18> kRules{{
        {rtl::kCounterAddrLow, &Rtl8125::write_counter_address},
        {rtl::kTxDescStartAddrLow, &Rtl8125::write_tx_base_q0},
        {rtl::kChipCmd, &Rtl8125::write_chip_command},
        {rtl::kIntrMask, &Rtl8125::write_interrupt_mask},
        {rtl::kIntrStatus, &Rtl8125::write_interrupt_status},
        {rtl::kTxConfig, &Rtl8125::write_tx_config},
        {rtl::kCsiar, &Rtl8125::write_csi},
        {rtl::kEphyar, &Rtl8125::write_ephy},
        {rtl::kTxPoll, &Rtl8125::write_tx_poll},
        {rtl::kOcpdr, &Rtl8125::write_mac_ocp},
        {rtl::kGphyOcp, &Rtl8125::write_phy_ocp},
        {rtl::kRxDescAddrLow, &Rtl8125::write_rx_base},
        {rtl::kImrV2Clear, &Rtl8125::write_imr_clear},
        {rtl::kIsrV2, &Rtl8125::write_isr_v2},
        {rtl::kImrV2Set, &Rtl8125::write_imr_set},
        {rtl::kTnpdsQ1Low, &Rtl8125::write_tx_base_q1},
        {rtl::kSwTailPtr, &Rtl8125::write_tail_q0},
        {rtl::kSwTailPtr + 4, &Rtl8125::write_tail_q1},
    }};
    const auto* rule = std::find_if(kRules.begin(), kRules.end(), [offset](const WriteRule& each) {
        return each.offset == offset;
    });
    return rule == kRules.end() ? nullptr : rule->handler;
}

std::uint64_t Rtl8125::read(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t) {
    if (bar != kRegisterBar && bar != kIoBar) {
        return 0;
    }
    const std::uint64_t stored = registers_.read(offset, size);
    switch (offset) {
        case rtl::kMcu:
            return rtl::kMcuIdle;
        case rtl::kIntrMitigate:
            return stored | rtl::kRxTxEmpty;
        case rtl::kPhyStatus:
            return phy_.up() ? rtl::kPhyStatusUp : 0;
        case rtl::kIsrV2:
            return isr_v2_;
        case rtl::kImrV2Set:
        case rtl::kImrV2Clear:
            return imr_v2_;
        default:
            return stored;
    }
}

void Rtl8125::write(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value,
                    std::uint64_t now_ns) {
    if (bar != kRegisterBar && bar != kIoBar) {
        return;
    }
    if (const WriteHandler handler = handler_of(offset)) {
        (this->*handler)(static_cast<std::uint32_t>(value), now_ns);
        if (size == 8) {  // a 64-bit address in one write: the high half has no handler
            registers_.write(offset + 4, 4, value >> 32);
        }
        return;
    }
    registers_.write(offset, size, value);
}

void Rtl8125::write_chip_command(std::uint32_t value, std::uint64_t now_ns) {
    auto command = static_cast<std::uint8_t>(value);
    if ((command & rtl::kCmdReset) != 0) {
        machine_.log.write(now_ns, "reset", {{"what", "chip"}});
        reset_rings(now_ns);
        registers_.set<std::uint32_t>(rtl::kIntrMask, 0);
        registers_.set<std::uint32_t>(rtl::kIntrStatus, 0);
        isr_v2_ = imr_v2_ = 0;
        line_ = false;
    }
    // Reset and stop are done at once: the bits that ask for them read back as 0.
    command &= static_cast<std::uint8_t>(~(rtl::kCmdReset | rtl::kStopReq));
    registers_.set<std::uint8_t>(rtl::kChipCmd, command);
}

void Rtl8125::write_tx_config(std::uint32_t value, std::uint64_t) {
    registers_.set<std::uint32_t>(rtl::kTxConfig, (value & ~rtl::kXidMask) | rtl::kXidRtl8125b);
}

// CSIAR and EPHYAR: the driver sets bit 31 to write and waits for it to clear, and the other way
// round to read. Nothing behind them matters here.
void Rtl8125::write_csi(std::uint32_t value, std::uint64_t) {
    registers_.set<std::uint32_t>(rtl::kCsiar, value ^ rtl::kOcpFlag);
}
void Rtl8125::write_ephy(std::uint32_t value, std::uint64_t) {
    registers_.set<std::uint32_t>(rtl::kEphyar, value ^ rtl::kOcpFlag);
}

void Rtl8125::write_mac_ocp(std::uint32_t value, std::uint64_t) {
    std::uint16_t& word = mac_.at(ocp_address(value) / 2);
    if ((value & rtl::kOcpFlag) != 0) {
        word = static_cast<std::uint16_t>(value);
    }
    registers_.set<std::uint32_t>(rtl::kOcpdr, (value & 0x7fff'0000) | word);
}

void Rtl8125::write_phy_ocp(std::uint32_t value, std::uint64_t now_ns) {
    const std::uint16_t address = ocp_address(value);
    if ((value & rtl::kOcpFlag) != 0) {
        const bool link = phy_.write(address, static_cast<std::uint16_t>(value));
        registers_.set<std::uint32_t>(rtl::kGphyOcp, value & ~rtl::kOcpFlag);
        if (link) {
            raise(rtl::kLinkChg, rtl::kV2Link, now_ns);
        }
    } else {
        registers_.set<std::uint32_t>(rtl::kGphyOcp,
                                      rtl::kOcpFlag | (value & 0x7fff'0000) | phy_.read(address));
    }
}

void Rtl8125::write_counter_address(std::uint32_t value, std::uint64_t) {
    constexpr std::uint32_t kCommands = rtl::kCounterDump | rtl::kCounterReset;
    registers_.set<std::uint32_t>(rtl::kCounterAddrLow, value & ~kCommands);
    if ((value & rtl::kCounterDump) != 0) {
        dump_counters();
    }
}

void Rtl8125::dump_counters() {
    constexpr std::uint64_t kAlign = 64;
    constexpr std::size_t kSize = 64;  // struct rtl8169_counters; the first two are the frames
    const std::uint64_t address =
        registers_.get<std::uint64_t>(rtl::kCounterAddrLow) & ~(kAlign - 1);
    std::byte* counters = machine_.memory.writable(address, kSize);
    if (counters == nullptr) {
        return;
    }
    std::uint64_t sent = 0;
    for (unsigned q = 0; q < kTxQueues; ++q) {
        sent += tx_.counters(q).segments;
    }
    std::memset(counters, 0, kSize);
    std::memcpy(counters, &sent, sizeof sent);
    std::memcpy(counters + sizeof sent, &rx_frames_, sizeof rx_frames_);
}

}  // namespace ringside::lab
