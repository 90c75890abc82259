#include "tests/lab/models/interrupts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace ringside::lab {

Status Interrupts::set(std::uint32_t kind, std::uint32_t start, std::uint32_t count,
                       std::vector<UniqueFd> eventfds) {
    if (kind >= kIrqKinds || start > kMaxVectors || count > kMaxVectors - start) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("no such interrupts: kind {}, {} from {}", kind, count, start));
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        eventfds_[kind][start + i] = i < eventfds.size() ? std::move(eventfds[i]) : UniqueFd();
    }
    return {};
}

void Interrupts::clear(std::uint32_t kind) {
    if (kind < kIrqKinds) {
        for (UniqueFd& fd : eventfds_[kind]) {
            fd.reset();
        }
    }
}

bool Interrupts::in_use(std::uint32_t kind) const {
    return std::any_of(eventfds_[kind].begin(), eventfds_[kind].end(),
                       [](const UniqueFd& fd) { return static_cast<bool>(fd); });
}

bool Interrupts::send(std::uint32_t vector) {
    std::uint32_t kind = VFIO_PCI_INTX_IRQ_INDEX;
    if (in_use(VFIO_PCI_MSIX_IRQ_INDEX)) {
        kind = VFIO_PCI_MSIX_IRQ_INDEX;
    } else if (in_use(VFIO_PCI_MSI_IRQ_INDEX)) {
        kind = VFIO_PCI_MSI_IRQ_INDEX;
    }
    const std::uint32_t slot = kind == VFIO_PCI_MSIX_IRQ_INDEX ? vector : 0;
    if (slot >= kMaxVectors || !eventfds_[kind][slot]) {
        return false;
    }
    const std::uint64_t one = 1;
    return ::write(eventfds_[kind][slot].get(), &one, sizeof one) == sizeof one;
}

}  // namespace ringside::lab
