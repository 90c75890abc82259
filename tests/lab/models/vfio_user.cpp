#include "tests/lab/models/vfio_user.h"

#include <fmt/format.h>
#include <linux/vfio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace ringside::lab {
namespace {

constexpr std::uint32_t kConfigRegion = VFIO_PCI_CONFIG_REGION_INDEX;

// The fixed part of each message. Same layout as the structures of linux/vfio.h where there is one.
struct DmaMap {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint64_t offset;
    std::uint64_t address;
    std::uint64_t size;
};
constexpr std::uint32_t kDmaMapWrite = 2;

struct DmaUnmap {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint64_t address;
    std::uint64_t size;
};
constexpr std::uint32_t kDmaUnmapAll = 2;

struct IrqSet {
    std::uint32_t argsz;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t start;
    std::uint32_t count;
};
static_assert(sizeof(IrqSet) == sizeof(vfio_irq_set));

struct RegionAccess {
    std::uint64_t offset;
    std::uint32_t region;
    std::uint32_t count;
};

// The structure at the beginning of the body; nothing if the body is shorter.
template <class T>
std::optional<T> read_as(const std::vector<std::byte>& body) {
    if (body.size() < sizeof(T)) {
        return std::nullopt;
    }
    T value;
    std::memcpy(&value, body.data(), sizeof value);
    return value;
}

template <class T>
std::vector<std::byte> as_bytes(const T& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

bool is_register_size(std::uint32_t size) {
    return size == 1 || size == 2 || size == 4 || size == 8;
}

}  // namespace

Result<VfioHeader> parse_vfio_header(std::span<const std::byte> bytes) {
    VfioHeader header;
    if (bytes.size() < sizeof header) {
        return fail(ErrorCode::kBadInput, fmt::format("a header of {} bytes", bytes.size()));
    }
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.size < sizeof header || header.size > kVfioMaxMessage) {
        return fail(ErrorCode::kBadInput, fmt::format("a message of {} bytes", header.size));
    }
    if ((header.flags & 0xf) != 0) {
        return fail(
            ErrorCode::kBadInput,
            fmt::format("a message of type {} where a command belongs", header.flags & 0xf));
    }
    return header;
}

VfioServer::Handler VfioServer::handler_of(VfioCommand command) {
    struct Row {
        VfioCommand command;
        Handler handler;
    };
    static constexpr std::array<Row, 10> kHandlers{{
        {VfioCommand::kVersion, &VfioServer::version},
        {VfioCommand::kDmaMap, &VfioServer::dma_map},
        {VfioCommand::kDmaUnmap, &VfioServer::dma_unmap},
        {VfioCommand::kDeviceGetInfo, &VfioServer::device_info},
        {VfioCommand::kDeviceGetRegionInfo, &VfioServer::region_info},
        {VfioCommand::kDeviceGetIrqInfo, &VfioServer::irq_info},
        {VfioCommand::kDeviceSetIrqs, &VfioServer::set_irqs},
        {VfioCommand::kRegionRead, &VfioServer::region_read},
        {VfioCommand::kRegionWrite, &VfioServer::region_write},
        {VfioCommand::kDeviceReset, &VfioServer::device_reset},
    }};
    const auto* row = std::find_if(kHandlers.begin(), kHandlers.end(),
                                   [&](const Row& each) { return each.command == command; });
    return row == kHandlers.end() ? nullptr : row->handler;
}

std::vector<std::byte> VfioServer::handle(VfioMessage message) {
    const Handler handler = handler_of(static_cast<VfioCommand>(message.header.command));
    const Answer answer = handler == nullptr ? Answer{{}, ENOTSUP} : (this->*handler)(message);
    if ((message.header.flags & kVfioFlagNoReply) != 0) {
        return {};
    }
    VfioHeader header = message.header;
    header.flags = kVfioFlagReply | (answer.error != 0 ? kVfioFlagError : 0);
    header.error = static_cast<std::uint32_t>(answer.error);
    header.size = static_cast<std::uint32_t>(sizeof header + answer.body.size());
    std::vector<std::byte> out = as_bytes(header);
    out.insert(out.end(), answer.body.begin(), answer.body.end());
    return out;
}

VfioServer::Answer VfioServer::version(VfioMessage& message) {
    struct Version {
        std::uint16_t major;
        std::uint16_t minor;
    };
    const auto client = read_as<Version>(message.body);
    if (!client || client->major != 0) {
        return {{}, EINVAL};
    }
    const std::string capabilities =
        fmt::format(R"({{"capabilities":{{"max_msg_fds":{},"max_data_xfer_size":{}}}}})",
                    kVfioMaxFds, kVfioMaxTransfer);
    Body body = as_bytes(*client);
    const auto text = std::as_bytes(std::span(capabilities.c_str(), capabilities.size() + 1));
    body.insert(body.end(), text.begin(), text.end());
    return {std::move(body)};
}

VfioServer::Answer VfioServer::dma_map(VfioMessage& message) {
    const auto map = read_as<DmaMap>(message.body);
    if (!map) {
        return {{}, EINVAL};
    }
    if (message.fds.empty()) {
        // Memory without a descriptor (a BAR of another device): reachable only by messages, which
        // no chip here needs. A DMA to it is an error of the guest and is logged as one.
        return {};
    }
    const Status mapped = memory_.map(map->address, map->size, message.fds[0].get(), map->offset,
                                      (map->flags & kDmaMapWrite) != 0);
    return {{}, mapped ? 0 : EINVAL};
}

VfioServer::Answer VfioServer::dma_unmap(VfioMessage& message) {
    const auto unmap = read_as<DmaUnmap>(message.body);
    if (!unmap) {
        return {{}, EINVAL};
    }
    if ((unmap->flags & kDmaUnmapAll) != 0) {
        memory_.unmap_all();
    } else {
        memory_.unmap(unmap->address, unmap->size);
    }
    return {message.body};
}

VfioServer::Answer VfioServer::device_info(VfioMessage&) {
    struct Info {  // vfio_device_info as of protocol 0.0: without cap_offset
        std::uint32_t argsz;
        std::uint32_t flags;
        std::uint32_t regions;
        std::uint32_t irqs;
    };
    return {as_bytes(Info{.argsz = sizeof(Info),
                          .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
                          .regions = VFIO_PCI_NUM_REGIONS,
                          .irqs = kIrqKinds})};
}

std::uint64_t VfioServer::region_size(std::uint32_t region) const {
    if (region == kConfigRegion) {
        return kConfigSize;
    }
    return device_.config().bar_size(region);
}

VfioServer::Answer VfioServer::region_info(VfioMessage& message) {
    auto info = read_as<vfio_region_info>(message.body);
    if (!info || info->index >= VFIO_PCI_NUM_REGIONS) {
        return {{}, EINVAL};
    }
    const std::uint64_t size = region_size(info->index);
    info->argsz = sizeof *info;
    info->cap_offset = 0;
    info->offset = 0;
    info->size = size;
    info->flags = size != 0 ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0;
    return {as_bytes(*info)};
}

VfioServer::Answer VfioServer::irq_info(VfioMessage& message) {
    auto info = read_as<vfio_irq_info>(message.body);
    if (!info || info->index >= kIrqKinds) {
        return {{}, EINVAL};
    }
    info->argsz = sizeof *info;
    info->count = interrupts_.counts().at(info->index);
    info->flags = VFIO_IRQ_INFO_EVENTFD;
    if (info->index == VFIO_PCI_INTX_IRQ_INDEX) {
        info->flags |= VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED;
    }
    return {as_bytes(*info)};
}

VfioServer::Answer VfioServer::set_irqs(VfioMessage& message) {
    const auto set = read_as<IrqSet>(message.body);
    if (!set) {
        return {{}, EINVAL};
    }
    if ((set->flags & VFIO_IRQ_SET_ACTION_UNMASK) != 0 && set->index == VFIO_PCI_INTX_IRQ_INDEX) {
        device_.intx_unmasked(clock_());
        return {};
    }
    if ((set->flags & VFIO_IRQ_SET_ACTION_TRIGGER) == 0) {
        return {};  // masking INTx: the client holds the line back itself
    }
    if (set->count == 0) {
        interrupts_.clear(set->index);
        return {{}, set->index < kIrqKinds ? 0 : EINVAL};
    }
    const Status done = interrupts_.set(set->index, set->start, set->count, std::move(message.fds));
    return {{}, done ? 0 : EINVAL};
}

std::uint64_t VfioServer::read_register(unsigned bar, std::uint64_t offset, unsigned size) {
    const std::uint64_t value = device_.read(bar, offset, size, clock_());
    if (trace_) {
        trace_(false, bar, offset, size, value);
    }
    return value;
}

void VfioServer::write_register(unsigned bar, std::uint64_t offset, unsigned size,
                                std::uint64_t value) {
    if (trace_) {
        trace_(true, bar, offset, size, value);
    }
    device_.write(bar, offset, size, value, clock_());
}

VfioServer::Answer VfioServer::region_read(VfioMessage& message) {
    const auto access = read_as<RegionAccess>(message.body);
    if (!access || access->count > kVfioMaxTransfer) {
        return {{}, EINVAL};
    }
    const std::uint64_t size = region_size(access->region);
    if (access->offset > size || access->count > size - access->offset) {
        return {{}, EINVAL};
    }
    Body body = as_bytes(*access);
    const std::size_t data = body.size();
    body.resize(data + access->count);
    if (access->region == kConfigRegion) {
        device_.config().read(access->offset, std::span(body).subspan(data));
    } else if (is_register_size(access->count)) {
        const std::uint64_t value = read_register(access->region, access->offset, access->count);
        std::memcpy(body.data() + data, &value, access->count);
    } else {
        return {{}, EINVAL};
    }
    return {std::move(body)};
}

VfioServer::Answer VfioServer::region_write(VfioMessage& message) {
    const auto access = read_as<RegionAccess>(message.body);
    if (!access || access->count != message.body.size() - sizeof *access) {
        return {{}, EINVAL};
    }
    const std::uint64_t size = region_size(access->region);
    if (access->offset > size || access->count > size - access->offset) {
        return {{}, EINVAL};
    }
    const auto data = std::span(message.body).subspan(sizeof *access);
    if (access->region == kConfigRegion) {
        device_.config().write(access->offset, data);
    } else if (is_register_size(access->count)) {
        std::uint64_t value = 0;
        std::memcpy(&value, data.data(), data.size());
        write_register(access->region, access->offset, access->count, value);
    } else {
        return {{}, EINVAL};
    }
    return {as_bytes(*access)};
}

VfioServer::Answer VfioServer::device_reset(VfioMessage&) {
    device_.reset(clock_());
    return {};
}

}  // namespace ringside::lab
