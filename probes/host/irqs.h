// Interrupts: what /proc/interrupts says, which of its lines serve an interface, and where they may
// run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/sysroot.h"

namespace ringside {

// One row of /proc/interrupts. A field that the row does not have is empty.
struct IrqLine {
    std::optional<unsigned> number;  // Linux interrupt number; none for "NMI", "IPI0", "Err"
    std::string label;               // as written before the colon: "59", "NMI"
    // In the order of Interrupts::cpus; shorter for rows with one total ("Err:") or a cut one.
    std::vector<std::uint64_t> counts;
    std::string chip;                // "GICv3", "PCI-MSIX-0000:00:04.0", "MIPS GIC"
    std::string hwirq;               // "524288"; the number the chip knows it by
    std::string trigger;             // "Level", "edge", "Edge-fasteoi", "msi-x"
    std::vector<std::string> names;  // one for each device that shares it
    std::string description;         // of rows without a number: "Non-maskable interrupts"

    [[nodiscard]] std::uint64_t total() const;
    bool operator==(const IrqLine&) const = default;
};

struct Interrupts {
    std::vector<unsigned> cpus;  // CPU ids from the header: online ones only, ids may have gaps
    std::vector<IrqLine> lines;
};

// Takes any text. Rows that were wrapped are joined, prefixes of the kernel log are cut off, lines
// that are not rows are passed over, rows beyond the 65,536th too. Without a header `cpus` is empty
// and a row's counts are its leading numbers. At most as many counts as CPUs are kept for each row.
Interrupts parse_interrupts(std::string_view text);

// Errors: of Sysroot::read (/proc/interrupts, up to 32 MiB: 512 CPUs make megabytes).
Result<Interrupts> read_interrupts(const Sysroot& root);

// Whether an action's name says that it belongs to this interface: the interface's name as a whole
// token, at the start or behind "<driver>-": "eth1", "eth1-TxRx-0", "eth1:tx-0", "i40e-eth1-0",
// but not "eth10". `others` are all interfaces: of two that fit, the longer name wins ("eth1-2").
bool irq_name_is_of(std::string_view irq_name, std::string_view interface,
                    const std::vector<std::string>& others, std::string_view driver = {});

// The rows that serve an interface, in the order of `interrupts`: by name, by the device's list of
// MSI vectors, by the device's own name ("virtio2-output.0", "mlx5_comp0@pci:0000:01:00.0"). A
// vector that names another interface (two ports of one device) is left out. When nothing is found
// so, the device's `irq` file is asked. Empty for devices without interrupts (tun, veth).
// The sysroot must show this interface: see check_sysfs().
std::vector<IrqLine> interface_irqs(const Interrupts& interrupts, std::string_view interface,
                                    const Sysroot& root);

// Lists of CPUs as the kernel writes them ("0-3"); an Error where the file cannot be read: a number
// listed by the device may have no folder in /proc/irq.
struct IrqAffinity {
    Result<std::string> allowed;    // smp_affinity_list: what was asked for
    Result<std::string> effective;  // effective_affinity_list: where it goes
};
IrqAffinity irq_affinity(unsigned number, const Sysroot& root);

}  // namespace ringside
