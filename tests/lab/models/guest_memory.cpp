#include "tests/lab/models/guest_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <limits>

namespace ringside::lab {

static_assert(std::endian::native == std::endian::little, "descriptors are read as they are");

Status GuestMemory::check_new(std::uint64_t iova, std::uint64_t size) const {
    if (size == 0 || size > std::numeric_limits<std::uint64_t>::max() - iova) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("no such range of DMA addresses: {:#x} + {:#x}", iova, size));
    }
    for (const Region& region : regions_) {
        if (iova < region.iova + region.size && region.iova < iova + size) {
            return fail(ErrorCode::kBadInput,
                        fmt::format("{:#x} + {:#x} overlaps what is mapped", iova, size));
        }
    }
    return {};
}

Status GuestMemory::map(std::uint64_t iova, std::uint64_t size, int fd, std::uint64_t offset,
                        bool writable) {
    if (Status good = check_new(iova, size); !good) {
        return good;
    }
    struct stat info {};
    if (::fstat(fd, &info) != 0) {
        return fail(Error::from_errno(errno, "fstat of guest memory"));
    }
    const auto length = static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0));
    if (offset > length || size > length - offset) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("the guest memory file has {:#x} bytes, not {:#x} + {:#x}", length,
                                offset, size));
    }
    const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void* bytes = ::mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (bytes == MAP_FAILED) {
        return fail(Error::from_errno(errno, fmt::format("mmap of {:#x} bytes", size)));
    }
    regions_.push_back({iova, size, static_cast<std::byte*>(bytes), writable, true});
    return {};
}

Status GuestMemory::add(std::uint64_t iova, std::span<std::byte> bytes) {
    if (Status good = check_new(iova, bytes.size()); !good) {
        return good;
    }
    regions_.push_back({iova, bytes.size(), bytes.data(), true, false});
    return {};
}

void GuestMemory::release(const Region& region) {
    if (region.mapped) {
        ::munmap(region.bytes, region.size);
    }
}

void GuestMemory::unmap(std::uint64_t iova, std::uint64_t size) {
    std::erase_if(regions_, [&](const Region& region) {
        const bool within =
            region.iova >= iova && region.size <= size && region.iova - iova <= size - region.size;
        if (within) {
            release(region);
        }
        return within;
    });
}

void GuestMemory::unmap_all() {
    for (const Region& region : regions_) {
        release(region);
    }
    regions_.clear();
}

const GuestMemory::Region* GuestMemory::find(std::uint64_t address, std::uint64_t size) const {
    for (const Region& region : regions_) {
        if (address >= region.iova && size <= region.size &&
            address - region.iova <= region.size - size) {
            return &region;
        }
    }
    return nullptr;
}

const std::byte* GuestMemory::readable(std::uint64_t address, std::uint64_t size) const {
    const Region* region = find(address, size);
    return region == nullptr ? nullptr : region->bytes + (address - region->iova);
}

std::byte* GuestMemory::writable(std::uint64_t address, std::uint64_t size) {
    const Region* region = find(address, size);
    return region == nullptr || !region->writable ? nullptr
                                                  : region->bytes + (address - region->iova);
}

std::optional<std::uint32_t> GuestMemory::load32(std::uint64_t address) const {
    const Region* region = find(address, sizeof(std::uint32_t));
    if (region == nullptr) {
        return std::nullopt;
    }
    std::byte* word = region->bytes + (address - region->iova);
    if (std::bit_cast<std::uintptr_t>(word) % alignof(std::uint32_t) != 0) {
        return std::nullopt;
    }
    return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(word))
        .load(std::memory_order_acquire);
}

bool GuestMemory::store32(std::uint64_t address, std::uint32_t value) {
    std::byte* word = writable(address, sizeof value);
    if (word == nullptr || std::bit_cast<std::uintptr_t>(word) % alignof(std::uint32_t) != 0) {
        return false;
    }
    std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(word))
        .store(value, std::memory_order_release);
    return true;
}

}  // namespace ringside::lab
