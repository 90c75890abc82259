// DWMAC 5.10: the transmit channels, their scheduler, and the receive ring of channel 0.
#include <algorithm>
#include <cstring>

#include "tests/lab/models/dwmac5.h"
#include "tests/lab/models/dwmac5_regs.h"

namespace ringside::lab {
namespace {

std::uint64_t address_of(std::uint32_t high, std::uint32_t low) {
    return std::uint64_t{high} << 32 | low;
}

}  // namespace

struct Dwmac5::Tso {
    std::uint32_t mss = 0;
    std::uint32_t header = 0;
    std::uint32_t payload = 0;
};

std::uint32_t Dwmac5::ring_size(unsigned channel) const {
    return (reg(channel, dwmac::kTxRingLength) & dwmac::kRingLengthMask) + 1;
}

std::uint32_t Dwmac5::stride(unsigned channel) const {
    const bool enhanced = (reg(channel, dwmac::kTxControl) & dwmac::kEdse) != 0;
    return enhanced ? dwmac::kEnhancedBytes : dwmac::kDescBytes;
}

std::uint32_t Dwmac5::tail_index(unsigned channel) const {
    const std::uint32_t bytes = reg(channel, dwmac::kTxTail) - reg(channel, dwmac::kTxBase);
    return bytes / stride(channel) % ring_size(channel);
}

std::optional<Dwmac5::Descriptor> Dwmac5::descriptor(unsigned channel, std::uint32_t index) const {
    const std::uint32_t size = stride(channel);
    Descriptor descriptor;
    descriptor.address =
        address_of(reg(channel, dwmac::kTxBaseHigh), reg(channel, dwmac::kTxBase)) +
        std::uint64_t{size} * index + (size - dwmac::kDescBytes);
    const std::optional<std::uint32_t> des3 = machine_.memory.load32(descriptor.address + 12);
    const std::byte* bytes = machine_.memory.readable(descriptor.address, dwmac::kDescBytes);
    if (!des3 || bytes == nullptr) {
        return std::nullopt;
    }
    descriptor.des3 = *des3;
    std::memcpy(&descriptor.des0, bytes, 4);
    std::memcpy(&descriptor.des1, bytes + 4, 4);
    std::memcpy(&descriptor.des2, bytes + 8, 4);
    return descriptor;
}

void Dwmac5::suspend(unsigned channel) {
    channels_.at(channel).suspended = true;
    if (machine_.faults.tbu()) {
        set_status(channel, dwmac::kTbu);
    }
}

void Dwmac5::halt(unsigned channel, std::string_view what, std::uint64_t now_ns) {
    channels_.at(channel).halted = true;
    tx_.error(channel, what, now_ns);
    set_status(channel, dwmac::kFbe);
    update_lines(channel, false, now_ns);
}

bool Dwmac5::add_data(TxFrame& frame, const Descriptor& descriptor, Tso& tso,
                      std::uint64_t now_ns) {
    // With 40-bit addresses the second buffer of a descriptor is not used: TDES1 is the high half.
    const std::uint32_t length = descriptor.des2 & dwmac::kBuffer1Mask;
    const bool first = (descriptor.des3 & dwmac::kFirst) != 0;
    if (first != (frame.bytes == 0 && frame.head.empty())) {
        halt(frame.queue, "FIRST_DESCRIPTOR is not where a frame begins", now_ns);
        return false;
    }
    if (!gather(frame.head, address_of(descriptor.des1, descriptor.des0), length)) {
        halt(frame.queue, "TX buffer is not mapped", now_ns);
        return false;
    }
    if (first && (descriptor.des3 & dwmac::kTse) != 0) {
        tso.header = length;
        tso.payload = descriptor.des3 & dwmac::kTsoPayloadMask;
    }
    frame.bytes += length;
    frame.wants_interrupt =
        frame.wants_interrupt || (descriptor.des2 & dwmac::kInterruptOnCompletion) != 0;
    return true;
}

std::optional<TxFrame> Dwmac5::fetch_from(unsigned channel, std::uint64_t now_ns) {
    Channel& state = channels_.at(channel);
    if ((reg(channel, dwmac::kTxControl) & dwmac::kStartTx) == 0 || state.suspended ||
        state.halted || machine_.faults.queue(channel).stalled) {
        return std::nullopt;
    }
    const std::uint32_t ring = ring_size(channel);
    const std::uint32_t tail = tail_index(channel);
    TxFrame frame;
    frame.queue = channel;
    frame.first = state.next % ring;
    frame.wants_interrupt = false;
    Tso tso{.mss = state.mss};
    // The tail is an index of the ring, so a chain without end comes to it.
    for (bool last = false; !last; ++frame.descriptors) {
        const std::uint32_t index = (frame.first + frame.descriptors) % ring;
        const std::optional<Descriptor> next = descriptor(channel, index);
        if (!next) {
            halt(channel, "TX descriptor is not mapped", now_ns);
            return std::nullopt;
        }
        if (index == tail || (next->des3 & dwmac::kOwn) == 0) {
            suspend(channel);
            return std::nullopt;
        }
        if ((next->des3 & dwmac::kContext) != 0) {
            tso.mss = (next->des3 & dwmac::kMssValid) != 0 ? next->des2 & dwmac::kMssMask : tso.mss;
            continue;
        }
        if (!add_data(frame, *next, tso, now_ns)) {
            return std::nullopt;
        }
        last = (next->des3 & dwmac::kLast) != 0;
    }
    if (tso.payload != 0) {
        frame.payload = tso.payload;
        frame.segments = tso.mss != 0 ? (tso.payload + tso.mss - 1) / tso.mss : 1;
        frame.bytes = tso.payload + frame.segments * tso.header;
    }
    state.mss = tso.mss;
    state.next = (frame.first + frame.descriptors) % ring;
    set_reg(channel, dwmac::kCurrentTxDesc,
            reg(channel, dwmac::kTxBase) + state.next * stride(channel));
    return frame;
}

std::optional<TxFrame> Dwmac5::fetch_strict(std::uint64_t now_ns) {
    for (unsigned channel = kMaxQueues; channel-- != 0;) {
        if (std::optional<TxFrame> frame = fetch_from(channel, now_ns)) {
            return frame;
        }
    }
    return std::nullopt;
}

// Each queue may send as many frames as its weight before the next has its turn.
std::optional<TxFrame> Dwmac5::fetch_round_robin(std::uint64_t now_ns) {
    constexpr std::uint32_t kWeightMask = 0x7f;
    for (unsigned tried = 0; tried <= kMaxQueues; ++tried) {
        if (channels_.at(turn_).credit != 0) {
            if (std::optional<TxFrame> frame = fetch_from(turn_, now_ns)) {
                --channels_.at(turn_).credit;
                return frame;
            }
        }
        turn_ = (turn_ + 1) % kMaxQueues;
        const auto weight =
            registers_.get<std::uint32_t>(dwmac::kMtlTxqWeight + dwmac::kMtlQueueStep * turn_);
        channels_.at(turn_).credit = std::max(1U, weight & kWeightMask);
    }
    return std::nullopt;
}

std::optional<TxFrame> Dwmac5::fetch_frame(std::uint64_t now_ns) {
    const std::uint32_t programmed =
        registers_.get<std::uint32_t>(dwmac::kMtlOperationMode) >> dwmac::kSchedulerShift &
        dwmac::kSchedulerMask;
    const std::uint32_t scheduler = machine_.faults.scheduler().value_or(programmed);
    return scheduler == dwmac::kSchedulerStrict ? fetch_strict(now_ns) : fetch_round_robin(now_ns);
}

// The write-back format: the length bits are gone (bit 15 would read as "error summary").
bool Dwmac5::write_back(const TxFrame& frame) {
    const std::uint32_t ring = ring_size(frame.queue);
    for (std::uint32_t i = 0; i < frame.descriptors; ++i) {
        const std::optional<Descriptor> done = descriptor(frame.queue, (frame.first + i) % ring);
        if (!done) {
            return false;
        }
        constexpr std::uint32_t kKept = dwmac::kContext | dwmac::kFirst | dwmac::kLast;
        if (!machine_.memory.store32(done->address + 8, 0) ||
            !machine_.memory.store32(done->address + 12, done->des3 & kKept)) {
            return false;
        }
    }
    return true;
}

bool Dwmac5::receive(Bytes frame, std::uint64_t now_ns) {
    if ((reg(0, dwmac::kRxControl) & dwmac::kStartRx) == 0) {
        return false;
    }
    pad_received(frame);
    const std::uint32_t ring = (reg(0, dwmac::kRxRingLength) & dwmac::kRingLengthMask) + 1;
    const std::uint64_t address = address_of(reg(0, dwmac::kRxBaseHigh), reg(0, dwmac::kRxBase)) +
                                  std::uint64_t{dwmac::kDescBytes} * (rx_next_ % ring);
    const std::optional<std::uint32_t> des3 = machine_.memory.load32(address + 12);
    std::byte* bytes = machine_.memory.writable(address, dwmac::kDescBytes);
    if (!des3 || bytes == nullptr || (*des3 & dwmac::kOwn) == 0) {
        set_status(0, dwmac::kRbu);
        return false;
    }
    std::array<std::uint32_t, 2> buffer{};
    std::memcpy(buffer.data(), bytes, sizeof buffer);
    std::byte* data = machine_.memory.writable(address_of(buffer[1], buffer[0]), frame.size());
    if (data == nullptr) {
        set_status(0, dwmac::kRbu);
        return false;
    }
    std::memcpy(data, frame.data(), frame.size());
    std::memset(bytes, 0, 12);
    const auto size = static_cast<std::uint32_t>(frame.size());
    if (!machine_.memory.store32(address + 12, dwmac::kFirst | dwmac::kLast | size)) {
        return false;
    }
    rx_next_ = (rx_next_ + 1) % ring;
    set_status(0, dwmac::kRi);
    update_lines(0, false, now_ns);
    return true;
}

}  // namespace ringside::lab
