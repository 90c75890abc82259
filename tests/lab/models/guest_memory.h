// The guest's memory as a device sees it: DMA addresses, never pointers.
//
// Every access is checked against what the guest has mapped. What lies outside is a null pointer or
// an empty optional: the device decides what a bus error means to it, and nothing crashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/base/result.h"

namespace ringside::lab {

class GuestMemory {
  public:
    GuestMemory() = default;
    GuestMemory(const GuestMemory&) = delete;
    GuestMemory& operator=(const GuestMemory&) = delete;
    ~GuestMemory() { unmap_all(); }

    // Maps `size` bytes of the file from `offset` at DMA address `iova`. The file must be that long
    // (a map beyond its end would be a SIGBUS at the first access). The descriptor may be closed
    // afterwards. Errors: kBadInput (range, overlap, short file), kIo.
    Status map(std::uint64_t iova, std::uint64_t size, int fd, std::uint64_t offset, bool writable);
    // Memory of the caller's own, for tests. Must outlive this object. Errors: as map().
    Status add(std::uint64_t iova, std::span<std::byte> bytes);
    // Removes every region that lies within the range.
    void unmap(std::uint64_t iova, std::uint64_t size);
    void unmap_all();

    // All of [address, address + size), or null if any of it is not mapped (not writable).
    [[nodiscard]] const std::byte* readable(std::uint64_t address, std::uint64_t size) const;
    [[nodiscard]] std::byte* writable(std::uint64_t address, std::uint64_t size);

    // One little-endian word of a descriptor, ordered against the driver on another CPU: load is an
    // acquire and store a release. Empty or false if not mapped or not aligned.
    [[nodiscard]] std::optional<std::uint32_t> load32(std::uint64_t address) const;
    [[nodiscard]] bool store32(std::uint64_t address, std::uint32_t value);

    [[nodiscard]] std::size_t regions() const { return regions_.size(); }

  private:
    struct Region {
        std::uint64_t iova;
        std::uint64_t size;
        std::byte* bytes;
        bool writable;
        bool mapped;  // by us, so unmapped by us
    };

    [[nodiscard]] Status check_new(std::uint64_t iova, std::uint64_t size) const;
    [[nodiscard]] const Region* find(std::uint64_t address, std::uint64_t size) const;
    static void release(const Region& region);

    std::vector<Region> regions_;
};

}  // namespace ringside::lab
