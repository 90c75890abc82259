// The registers of a BAR as plain little-endian bytes. Offsets are checked by whoever calls: the
// transport lets no access through that leaves the BAR, a chip uses its own constants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringside::lab {

template <std::size_t Size>
class RegisterFile {
  public:
    template <class T>
    [[nodiscard]] T get(std::size_t offset) const {
        T value{};
        std::memcpy(&value, &bytes_.at(offset + sizeof value - 1) - (sizeof value - 1),
                    sizeof value);
        return value;
    }
    template <class T>
    void set(std::size_t offset, T value) {
        std::memcpy(&bytes_.at(offset + sizeof value - 1) - (sizeof value - 1), &value,
                    sizeof value);
    }
    // An access of `size` bytes as the bus makes it.
    [[nodiscard]] std::uint64_t read(std::size_t offset, std::size_t size) const {
        std::uint64_t value = 0;
        if (offset <= Size && size <= Size - offset && size <= sizeof value) {
            std::memcpy(&value, bytes_.data() + offset, size);
        }
        return value;
    }
    void write(std::size_t offset, std::size_t size, std::uint64_t value) {
        if (offset <= Size && size <= Size - offset && size <= sizeof value) {
            std::memcpy(bytes_.data() + offset, &value, size);
        }
    }
    void clear() { bytes_.fill(std::byte{}); }

  private:
    std::array<std::byte, Size> bytes_{};
};

}  // namespace ringside::lab
