// A guest without a machine: memory, eventfds that count, a log that is read back, and no clock but
// the one the test turns.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lab/models/nic.h"

namespace ringside::lab {

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000'000;

class Guest {
  public:
    static constexpr std::uint64_t kBase = 0x1'0000'0000;  // above 4 GiB: both address halves count
    static constexpr std::uint64_t kSize = 4U << 20;
    static constexpr std::uint64_t kNowhere = 0x7777'0000'0000;

    Guest() : bytes_(kSize) {
        EXPECT_TRUE(memory.add(kBase, bytes_));
        std::vector<UniqueFd> fds;
        for (std::uint32_t i = 0; i < kMaxVectors; ++i) {
            eventfds_[i] = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
            fds.emplace_back(eventfds_[i]);
        }
        EXPECT_TRUE(interrupts.set(VFIO_PCI_MSIX_IRQ_INDEX, 0, kMaxVectors, std::move(fds)));
    }

    [[nodiscard]] Machine machine() {
        return {.memory = memory, .interrupts = interrupts, .faults = faults, .log = log};
    }

    // A piece of memory of its own, 256-byte aligned, zeroed.
    std::uint64_t allocate(std::uint64_t size) {
        const std::uint64_t at = next_;
        next_ += (size + 255) / 256 * 256;
        EXPECT_LE(next_, kBase + kSize);
        return at;
    }
    std::uint64_t place(BytesView bytes) {
        const std::uint64_t at = allocate(bytes.size());
        std::memcpy(&bytes_.at(at - kBase), bytes.data(), bytes.size());
        return at;
    }
    void put32(std::uint64_t address, std::uint32_t value) {
        std::memcpy(&bytes_.at(address - kBase), &value, sizeof value);
    }
    [[nodiscard]] std::uint32_t get32(std::uint64_t address) const {
        std::uint32_t value = 0;
        std::memcpy(&value, &bytes_.at(address - kBase), sizeof value);
        return value;
    }
    [[nodiscard]] Bytes get(std::uint64_t address, std::size_t size) const {
        const auto at = bytes_.begin() + static_cast<std::ptrdiff_t>(address - kBase);
        return {at, at + static_cast<std::ptrdiff_t>(size)};
    }

    // Messages of a vector since the last call.
    std::uint64_t messages(unsigned vector = 0) {
        std::uint64_t count = 0;
        return ::read(eventfds_.at(vector), &count, sizeof count) == sizeof count ? count : 0;
    }

    // The events of a kind that were logged, in order.
    [[nodiscard]] std::vector<nlohmann::json> logged(std::string_view event) const {
        std::vector<nlohmann::json> found;
        std::string_view text = log.buffered();
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            nlohmann::json line = nlohmann::json::parse(text.substr(0, end));
            if (line.at("e") == event) {
                found.push_back(std::move(line));
            }
            text.remove_prefix(end + 1);
        }
        return found;
    }
    [[nodiscard]] std::vector<std::uint64_t> times(std::string_view event) const {
        std::vector<std::uint64_t> times;
        for (const nlohmann::json& line : logged(event)) {
            times.push_back(line.at("t"));
        }
        return times;
    }

    void knob(Nic& nic, std::string_view line, std::uint64_t now_ns = 0) {
        const Result<Command> command = parse_command(line);
        ASSERT_TRUE(command) << line;
        nic.control(*command, line, now_ns);
    }

    GuestMemory memory;
    Interrupts interrupts;
    Faults faults;
    TruthLog log;

  private:
    std::vector<std::byte> bytes_;
    std::array<int, kMaxVectors> eventfds_{};
    std::uint64_t next_ = kBase;
};

// Bytes from numbers, for short frames.
inline Bytes bytes_of(std::initializer_list<unsigned> values) {
    Bytes bytes;
    for (const unsigned value : values) {
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

// A frame of `size` bytes that the peer has nothing to say to.
inline Bytes plain_frame(std::size_t size) {
    Bytes frame(size, std::byte{0x5a});
    frame[12] = std::byte{0x88};
    frame[13] = std::byte{0xb5};  // the EtherType for experiments
    return frame;
}

// "Who has 10.0.0.2?" of 10.0.0.1 at 02:00:00:00:00:01.
inline Bytes arp_request() {
    return bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,  1, 0x08, 0x06,
                     0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0,  0, 0,    1,
                     10,   0,    0,    1,    0,    0,    0, 0, 0, 0, 10, 0, 0,    2});
}

}  // namespace ringside::lab
