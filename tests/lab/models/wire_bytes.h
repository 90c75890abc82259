// Frames as bytes in network order: bounds-checked reading, appending, the Internet checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ringside::lab {

using Bytes = std::vector<std::byte>;
using BytesView = std::span<const std::byte>;

// `size` bytes (1 to 8) at `offset` as a number; nothing if the frame is too short.
inline std::optional<std::uint64_t> be(BytesView bytes, std::size_t offset, std::size_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    for (const std::byte byte : bytes.subspan(offset, size)) {
        value = value << 8 | std::to_integer<std::uint64_t>(byte);
    }
    return value;
}

inline void append_be(Bytes& out, std::uint64_t value, unsigned size) {
    for (unsigned shift = 8 * size; shift != 0; shift -= 8) {
        out.push_back(static_cast<std::byte>(value >> (shift - 8)));
    }
}

inline void append(Bytes& out, BytesView bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void put_be16(Bytes& out, std::size_t offset, std::uint16_t value) {
    out.at(offset) = static_cast<std::byte>(value >> 8);
    out.at(offset + 1) = static_cast<std::byte>(value);
}

// The sum of RFC 1071 over the bytes, folded and inverted; `start` is what a pseudo header adds.
inline std::uint16_t internet_checksum(BytesView bytes, std::uint64_t start = 0) {
    std::uint64_t sum = start;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        sum += std::to_integer<std::uint64_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<std::uint16_t>(~sum);
}

}  // namespace ringside::lab
