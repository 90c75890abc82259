// The processors of a host, what they are and how their clock is governed. All from a Sysroot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/sysroot.h"

namespace ringside {

// "0-3,8" -> {0, 1, 2, 3, 8}; an empty list is empty. Sorted, without repetition.
// Errors: kBadInput (not a list, or a CPU number from 65536 on).
Result<std::vector<unsigned>> parse_cpu_list(std::string_view text);
// {0, 1, 2, 3, 8} -> "0-3,8". Takes sorted numbers.
std::string format_cpu_list(const std::vector<unsigned>& cpus);

struct CpuModel {
    unsigned cpu = 0;
    std::string
        model;  // "Cortex-A55", "AMD EPYC"; "implementer 0x41 part 0xd99" when not in the table

    bool operator==(const CpuModel&) const = default;
};

// From the text of /proc/cpuinfo, any architecture, any shape. A CPU without a recognised line is
// left out. On Arm the part number decides, not the "model name" (which is the architecture there).
std::vector<CpuModel> parse_cpuinfo(std::string_view text);

// CPUs that are online: /sys/devices/system/cpu/online, else those in /proc/cpuinfo. Errors:
// kNotFound.
Result<std::vector<unsigned>> online_cpus(const Sysroot& root);

// One cpufreq policy: CPUs that share a clock. Frequencies in kHz as the kernel gives them; what
// could not be read is none.
struct CpuFrequency {
    unsigned policy = 0;
    std::string cpus;                         // "0-3"
    std::string governor;                     // "schedutil"
    std::string driver;                       // "cpufreq-dt"
    std::optional<std::int64_t> current_khz;  // at the moment of reading
    std::optional<std::int64_t> min_khz;      // allowed now (scaling_min_freq)
    std::optional<std::int64_t> max_khz;
    std::optional<std::int64_t> hardware_max_khz;
};

// By policy number; empty when the kernel does not govern the clocks (virtual machines).
std::vector<CpuFrequency> cpu_frequencies(const Sysroot& root);

// The board or machine: the device tree's model, else vendor and product from DMI, never a serial
// number. Errors: kNotFound.
struct MachineModel {
    std::string model;
    std::string source;  // path it was read from
};
Result<MachineModel> machine_model(const Sysroot& root);

}  // namespace ringside
