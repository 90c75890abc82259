// RTL8125B: the transmit and receive rings.
#include <cstring>

#include "tests/lab/models/rtl8125.h"
#include "tests/lab/models/rtl8125_regs.h"

namespace ringside::lab {
namespace {

// More than the longest frame of either driver (MAX_SKB_FRAGS + 1); a chain without end stops here.
constexpr std::uint32_t kMostDescriptors = 64;

}  // namespace

bool Rtl8125::no_close() const {
    return (registers_.get<std::uint32_t>(rtl::kTxConfig) & rtl::kTxConfigNoClose) != 0;
}

std::uint64_t Rtl8125::descriptor(unsigned queue, std::uint32_t index) const {
    const std::uint32_t base = queue == 0 ? rtl::kTxDescStartAddrLow : rtl::kTnpdsQ1Low;
    const std::uint64_t size = (mac_.at(rtl::kMacTxDescFormat / 2) & 1) != 0 ? 32 : 16;
    return (registers_.get<std::uint64_t>(base) & ~(rtl::kRingAlign - 1)) + size * index;
}

void Rtl8125::write_tx_base_q0(std::uint32_t value, std::uint64_t) {
    registers_.set<std::uint32_t>(rtl::kTxDescStartAddrLow, value);
    rings_[0].next = 0;
}
void Rtl8125::write_tx_base_q1(std::uint32_t value, std::uint64_t) {
    registers_.set<std::uint32_t>(rtl::kTnpdsQ1Low, value);
    rings_[1].next = 0;
}
void Rtl8125::write_rx_base(std::uint32_t value, std::uint64_t) {
    registers_.set<std::uint32_t>(rtl::kRxDescAddrLow, value);
    rx_next_ = 0;
}

void Rtl8125::write_tx_poll(std::uint32_t value, std::uint64_t now_ns) {
    for (unsigned q = 0; q < kTxQueues; ++q) {
        if ((value & 1U << q) != 0) {
            tx_.doorbell(q, 0, now_ns);
        }
    }
}

void Rtl8125::write_tail(unsigned queue, std::uint32_t value, std::uint64_t now_ns) {
    registers_.set<std::uint16_t>(rtl::kSwTailPtr + 4 * queue, static_cast<std::uint16_t>(value));
    tx_.doorbell(queue, value & 0xffff, now_ns);
}
void Rtl8125::write_tail_q0(std::uint32_t value, std::uint64_t now_ns) {
    write_tail(0, value, now_ns);
}
void Rtl8125::write_tail_q1(std::uint32_t value, std::uint64_t now_ns) {
    write_tail(1, value, now_ns);
}

void Rtl8125::halt(unsigned queue, std::string_view what, std::uint64_t now_ns) {
    rings_.at(queue).halted = true;
    tx_.error(queue, what, now_ns);
}

std::optional<std::uint32_t> Rtl8125::add_descriptor(TxFrame& frame, std::uint64_t address,
                                                     std::uint64_t now_ns) {
    const std::optional<std::uint32_t> opts1 = machine_.memory.load32(address);
    const std::byte* rest = machine_.memory.readable(address, rtl::kRxDescBytes);
    if (!opts1 || rest == nullptr) {
        halt(frame.queue, "TX descriptor is not mapped", now_ns);
        return std::nullopt;
    }
    if (!no_close() && (*opts1 & rtl::kDescOwn) == 0) {
        return opts1;  // the driver's: the frame is not whole yet
    }
    std::uint32_t opts2 = 0;
    std::uint64_t buffer = 0;
    std::memcpy(&opts2, rest + 4, sizeof opts2);
    std::memcpy(&buffer, rest + 8, sizeof buffer);
    if (((*opts1 & rtl::kFirstFrag) != 0) != (frame.descriptors == 0)) {
        halt(frame.queue, "FirstFrag is not where a frame begins", now_ns);
        return std::nullopt;
    }
    const std::uint32_t length = *opts1 & rtl::kTxLengthMask;
    if (!gather(frame.head, buffer, length)) {
        halt(frame.queue, "TX buffer is not mapped", now_ns);
        return std::nullopt;
    }
    frame.bytes += length;
    ++frame.descriptors;
    if ((*opts1 & rtl::kLastFrag) != 0) {
        apply_tso(frame, *opts1, opts2);
    } else if (frame.descriptors == kMostDescriptors) {
        halt(frame.queue, "a frame without LastFrag", now_ns);
        return std::nullopt;
    }
    return opts1;
}

void Rtl8125::apply_tso(TxFrame& frame, std::uint32_t opts1, std::uint32_t opts2) {
    const std::uint32_t mss = opts2 >> rtl::kMssShift & rtl::kMssMask;
    if ((opts1 & (rtl::kGiantSendV4 | rtl::kGiantSendV6)) == 0 || mss == 0) {
        return;
    }
    const std::uint32_t transport = opts1 >> rtl::kTransportShift & rtl::kTransportMask;
    const auto offset = static_cast<std::uint32_t>(be(frame.head, transport + 12, 1).value_or(0));
    const std::uint32_t header = transport + (offset >> 4) * 4;
    if (header >= frame.bytes) {
        return;
    }
    frame.payload = frame.bytes - header;
    frame.segments = (frame.payload + mss - 1) / mss;
    frame.bytes = frame.payload + frame.segments * header;
}

std::optional<TxFrame> Rtl8125::fetch_from(unsigned queue, std::uint64_t now_ns) {
    TxRing& ring = rings_.at(queue);
    if (ring.halted || machine_.faults.queue(queue).stalled) {
        return std::nullopt;
    }
    TxFrame frame;
    frame.queue = queue;
    frame.first = ring.next;
    const auto tail = registers_.get<std::uint16_t>(rtl::kSwTailPtr + 4 * queue);
    for (std::uint32_t index = ring.next;;) {
        const auto fetched = static_cast<std::uint16_t>(ring.fetched + frame.descriptors);
        if (no_close() && fetched == tail) {
            return std::nullopt;
        }
        const std::uint32_t before = frame.descriptors;
        const std::optional<std::uint32_t> opts1 =
            add_descriptor(frame, descriptor(queue, index), now_ns);
        if (!opts1 || frame.descriptors == before) {
            return std::nullopt;
        }
        index = (*opts1 & rtl::kRingEnd) != 0 ? 0 : index + 1;
        if ((*opts1 & rtl::kLastFrag) != 0) {
            ring.next = index;
            ring.fetched = static_cast<std::uint16_t>(ring.fetched + frame.descriptors);
            return frame;
        }
    }
}

std::optional<TxFrame> Rtl8125::fetch_frame(std::uint64_t now_ns) {
    if ((registers_.get<std::uint8_t>(rtl::kChipCmd) & rtl::kCmdTxEnb) == 0) {
        return std::nullopt;
    }
    for (unsigned i = 0; i < kTxQueues; ++i) {
        const unsigned queue = (first_queue_ + i) % kTxQueues;
        const std::uint32_t base = queue == 0 ? rtl::kTxDescStartAddrLow : rtl::kTnpdsQ1Low;
        if (registers_.get<std::uint64_t>(base) == 0) {
            continue;  // a queue the driver does not use
        }
        if (std::optional<TxFrame> frame = fetch_from(queue, now_ns)) {
            first_queue_ = (queue + 1) % kTxQueues;
            return frame;
        }
    }
    return std::nullopt;
}

bool Rtl8125::write_back(const TxFrame& frame) {
    TxRing& ring = rings_.at(frame.queue);
    if (no_close()) {
        const std::uint32_t pointer = rtl::kHwCloPtr + 4 * frame.queue;
        if (!ring.withheld) {
            registers_.set<std::uint16_t>(
                pointer, static_cast<std::uint16_t>(registers_.get<std::uint16_t>(pointer) +
                                                    frame.descriptors));
        }
        return true;
    }
    std::uint32_t index = frame.first;
    for (std::uint32_t i = 0; i < frame.descriptors; ++i) {
        const std::uint64_t address = descriptor(frame.queue, index);
        const std::optional<std::uint32_t> opts1 = machine_.memory.load32(address);
        if (!opts1 || !machine_.memory.store32(address, *opts1 & ~rtl::kDescOwn)) {
            return false;
        }
        index = (*opts1 & rtl::kRingEnd) != 0 ? 0 : index + 1;
    }
    return true;
}

// A pointer cannot leave one frame out: it stays in front of it until the chip is reset.
void Rtl8125::withhold(const TxFrame& frame) {
    rings_.at(frame.queue).withheld = true;
}

void Rtl8125::tx_event(unsigned queue, std::uint64_t now_ns) {
    raise(rtl::kTxOk, rtl::kV2TxQ0 + rtl::kV2TxStep * queue, now_ns);
}

bool Rtl8125::receive(Bytes frame, std::uint64_t now_ns) {
    if ((registers_.get<std::uint8_t>(rtl::kChipCmd) & rtl::kCmdRxEnb) == 0) {
        return false;
    }
    constexpr std::uint64_t kIpv4Tcp = 0x0800;
    const bool tcp = be(frame, 12, 2) == kIpv4Tcp && be(frame, 23, 1) == 6U;
    pad_received(frame);
    const std::uint64_t base =
        registers_.get<std::uint64_t>(rtl::kRxDescAddrLow) & ~(rtl::kRingAlign - 1);
    const std::uint64_t address = base + std::uint64_t{rtl::kRxDescBytes} * rx_next_;
    const std::optional<std::uint32_t> opts1 = machine_.memory.load32(address);
    std::byte* rest = machine_.memory.writable(address, rtl::kRxDescBytes);
    if (!opts1 || rest == nullptr || (*opts1 & rtl::kDescOwn) == 0 ||
        (*opts1 & rtl::kRxLengthMask) < frame.size()) {
        return false;
    }
    std::uint64_t buffer = 0;
    std::memcpy(&buffer, rest + 8, sizeof buffer);
    std::byte* bytes = machine_.memory.writable(buffer, frame.size());
    if (bytes == nullptr) {
        return false;
    }
    std::memcpy(bytes, frame.data(), frame.size());
    std::memset(rest + 4, 0, 4);  // opts2: no VLAN tag
    const std::uint32_t end = *opts1 & rtl::kRingEnd;
    const std::uint32_t done = end | rtl::kFirstFrag | rtl::kLastFrag |
                               (tcp ? rtl::kRxProtoTcp : 0) |
                               static_cast<std::uint32_t>(frame.size());
    if (!machine_.memory.store32(address, done)) {
        return false;
    }
    rx_next_ = end != 0 ? 0 : rx_next_ + 1;
    ++rx_frames_;
    raise(rtl::kRxOk, rtl::kV2RxQ0, now_ns);
    return true;
}

}  // namespace ringside::lab
