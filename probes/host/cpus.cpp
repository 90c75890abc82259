#include "probes/host/cpus.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ringside {

namespace {

constexpr unsigned kMaxCpu = 65'535;
constexpr std::size_t kCpuinfoLimit = 16u << 20;
constexpr std::string_view kBlank = " \t\r\n";

struct Part {
    std::uint32_t implementer;
    std::uint32_t part;
    std::string_view name;
};

// Main ID register values, as in the kernel's arch/arm64/include/asm/cputype.h.
constexpr std::array kParts = {
    Part{0x41, 0xb76, "ARM1176"},       Part{0x41, 0xc05, "Cortex-A5"},
    Part{0x41, 0xc07, "Cortex-A7"},     Part{0x41, 0xc08, "Cortex-A8"},
    Part{0x41, 0xc09, "Cortex-A9"},     Part{0x41, 0xc0d, "Cortex-A17"},
    Part{0x41, 0xc0e, "Cortex-A17"},    Part{0x41, 0xc0f, "Cortex-A15"},
    Part{0x41, 0xd01, "Cortex-A32"},    Part{0x41, 0xd02, "Cortex-A34"},
    Part{0x41, 0xd03, "Cortex-A53"},    Part{0x41, 0xd04, "Cortex-A35"},
    Part{0x41, 0xd05, "Cortex-A55"},    Part{0x41, 0xd06, "Cortex-A65"},
    Part{0x41, 0xd07, "Cortex-A57"},    Part{0x41, 0xd08, "Cortex-A72"},
    Part{0x41, 0xd09, "Cortex-A73"},    Part{0x41, 0xd0a, "Cortex-A75"},
    Part{0x41, 0xd0b, "Cortex-A76"},    Part{0x41, 0xd0c, "Neoverse-N1"},
    Part{0x41, 0xd0d, "Cortex-A77"},    Part{0x41, 0xd0e, "Cortex-A76AE"},
    Part{0x41, 0xd40, "Neoverse-V1"},   Part{0x41, 0xd41, "Cortex-A78"},
    Part{0x41, 0xd42, "Cortex-A78AE"},  Part{0x41, 0xd44, "Cortex-X1"},
    Part{0x41, 0xd46, "Cortex-A510"},   Part{0x41, 0xd47, "Cortex-A710"},
    Part{0x41, 0xd48, "Cortex-X2"},     Part{0x41, 0xd49, "Neoverse-N2"},
    Part{0x41, 0xd4b, "Cortex-A78C"},   Part{0x41, 0xd4d, "Cortex-A715"},
    Part{0x41, 0xd4e, "Cortex-X3"},     Part{0x41, 0xd4f, "Neoverse-V2"},
    Part{0x41, 0xd80, "Cortex-A520"},   Part{0x41, 0xd81, "Cortex-A720"},
    Part{0x41, 0xd82, "Cortex-X4"},     Part{0x41, 0xd87, "Cortex-A725"},
    Part{0x42, 0x516, "ThunderX2"},     Part{0x43, 0x0a1, "ThunderX"},
    Part{0x43, 0x0af, "ThunderX2"},     Part{0x48, 0xd01, "Kunpeng-920"},
    Part{0x51, 0x800, "Kryo-2xx-Gold"}, Part{0x51, 0x801, "Kryo-2xx-Silver"},
    Part{0x51, 0x804, "Kryo-4xx-Gold"}, Part{0x51, 0x805, "Kryo-4xx-Silver"},
    Part{0xc0, 0xac3, "Ampere-1"},      Part{0xc0, 0xac4, "Ampere-1A"},
};

// Keys of /proc/cpuinfo that name a model, by architecture, best first.
constexpr std::array<std::string_view, 4> kModelKeys = {"model name", "cpu model", "cpu", "uarch"};

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
    if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) {
        text.remove_prefix(2);
    }
    T value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc() || at != end) {
        return std::nullopt;
    }
    return value;
}

// What was seen of one CPU, from its "processor" line to the next.
struct Block {
    std::optional<unsigned> cpu;
    std::optional<std::uint32_t> implementer;
    std::optional<std::uint32_t> part;
    std::array<std::string, kModelKeys.size()> models;
};

std::string part_name(std::uint32_t implementer, std::uint32_t part) {
    for (const Part& entry : kParts) {
        if (entry.implementer == implementer && entry.part == part) {
            return std::string(entry.name);
        }
    }
    const auto hex = [](std::uint32_t value) {
        std::array<char, 8> digits{};
        const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
        return "0x" + std::string(digits.data(), result.ptr);
    };
    return "implementer " + hex(implementer) + " part " + hex(part);
}

std::string model_of(const Block& block) {
    if (block.implementer && block.part) {
        return part_name(*block.implementer, *block.part);
    }
    const auto first = std::find_if(block.models.begin(), block.models.end(),
                                    [](const std::string& model) { return !model.empty(); });
    return first == block.models.end() ? std::string() : *first;
}

void take_line(Block& block, std::string_view key, std::string_view value) {
    if (key == "CPU implementer") {
        block.implementer = number<std::uint32_t>(value, 16);
    } else if (key == "CPU part") {
        block.part = number<std::uint32_t>(value, 16);
    } else if (const auto at = std::find(kModelKeys.begin(), kModelKeys.end(), key);
               at != kModelKeys.end()) {
        block.models[static_cast<std::size_t>(at - kModelKeys.begin())] =
            std::string(value.substr(0, 128));
    }
}

void finish(const Block& block, std::vector<CpuModel>& models) {
    std::string model = model_of(block);
    if (block.cpu && !model.empty()) {
        models.push_back({*block.cpu, std::move(model)});
    }
}

std::optional<std::int64_t> optional_int(const Sysroot& root, const std::string& path) {
    const auto value = root.read_int(path);
    return value ? std::optional(*value) : std::nullopt;
}

std::string folded_cpu_list(std::string text) {
    // related_cpus is "0 1 2 3", not a list with commas.
    std::replace(text.begin(), text.end(), ' ', ',');
    const auto cpus = parse_cpu_list(text);
    return cpus ? format_cpu_list(*cpus) : std::string();
}

}  // namespace

Result<std::vector<unsigned>> parse_cpu_list(std::string_view text) {
    std::vector<bool> seen;
    text = trim(text);
    while (!text.empty()) {
        const std::string_view item = trim(text.substr(0, text.find(',')));
        text.remove_prefix(std::min(text.size(), text.find(',') == std::string_view::npos
                                                     ? text.size()
                                                     : text.find(',') + 1));
        const auto dash = item.find('-');
        const auto first = number<unsigned>(item.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : number<unsigned>(item.substr(dash + 1));
        if (!first || !last || *first > *last || *last > kMaxCpu) {
            return fail(ErrorCode::kBadInput,
                        "not a list of CPUs: '" + std::string(item.substr(0, 40)) + "'");
        }
        seen.resize(std::max(seen.size(), std::size_t{*last} + 1));
        std::fill(seen.begin() + *first, seen.begin() + *last + 1, true);
    }
    std::vector<unsigned> cpus;
    for (unsigned cpu = 0; cpu < seen.size(); ++cpu) {
        if (seen[cpu]) {
            cpus.push_back(cpu);
        }
    }
    return cpus;
}

std::string format_cpu_list(const std::vector<unsigned>& cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size();) {
        std::size_t end = i + 1;
        while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) {
            ++end;
        }
        text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
        if (end - i > 1) {
            text += "-" + std::to_string(cpus[end - 1]);
        }
        i = end;
    }
    return text;
}

std::vector<CpuModel> parse_cpuinfo(std::string_view text) {
    std::vector<CpuModel> models;
    Block block;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) {
            continue;
        }
        const std::string_view key = trim(line.substr(0, colon));
        const std::string_view value = trim(line.substr(colon + 1));
        // 32-bit Arm ends with "Processor" or "Hardware" lines of the machine: only numbers count.
        const auto cpu = key == "processor" ? number<unsigned>(value) : std::nullopt;
        if (cpu && *cpu <= kMaxCpu) {
            finish(block, models);
            block = Block{};
            block.cpu = cpu;
        } else {
            take_line(block, key, value);
        }
    }
    finish(block, models);
    return models;
}

Result<std::vector<unsigned>> online_cpus(const Sysroot& root) {
    if (const auto line = root.read_line("/sys/devices/system/cpu/online")) {
        if (auto cpus = parse_cpu_list(*line); cpus && !cpus->empty()) {
            return cpus;
        }
    }
    const auto text = root.read("/proc/cpuinfo", kCpuinfoLimit);
    if (!text) {
        return fail(text.error());
    }
    std::vector<unsigned> cpus;
    for (const CpuModel& model : parse_cpuinfo(*text)) {
        cpus.push_back(model.cpu);
    }
    std::sort(cpus.begin(), cpus.end());
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
    if (cpus.empty()) {
        return fail(ErrorCode::kNotFound, "neither sysfs nor /proc/cpuinfo lists a CPU");
    }
    return cpus;
}

std::vector<CpuFrequency> cpu_frequencies(const Sysroot& root) {
    constexpr std::string_view kFolder = "/sys/devices/system/cpu/cpufreq";
    constexpr std::string_view kPrefix = "policy";
    std::vector<CpuFrequency> policies;
    for (const std::string& name : root.list(kFolder)) {
        if (!name.starts_with(kPrefix)) {
            continue;
        }
        const auto policy = number<unsigned>(std::string_view(name).substr(kPrefix.size()));
        if (!policy) {
            continue;
        }
        const std::string folder = std::string(kFolder) + "/" + name;
        policies.push_back({*policy,
                            folded_cpu_list(root.read_line(folder + "/related_cpus").value_or("")),
                            root.read_line(folder + "/scaling_governor").value_or(""),
                            root.read_line(folder + "/scaling_driver").value_or(""),
                            optional_int(root, folder + "/scaling_cur_freq"),
                            optional_int(root, folder + "/scaling_min_freq"),
                            optional_int(root, folder + "/scaling_max_freq"),
                            optional_int(root, folder + "/cpuinfo_max_freq")});
    }
    std::sort(policies.begin(), policies.end(),
              [](const CpuFrequency& a, const CpuFrequency& b) { return a.policy < b.policy; });
    return policies;
}

Result<MachineModel> machine_model(const Sysroot& root) {
    for (const std::string path :
         {"/proc/device-tree/model", "/sys/firmware/devicetree/base/model"}) {
        if (auto model = root.read_line(path); model && !model->empty()) {
            return MachineModel{std::move(*model), path};
        }
    }
    // Not product_serial, product_uuid, board_serial, chassis_*: they name one machine, not a
    // model.
    constexpr std::string_view kDmi = "/sys/class/dmi/id/";
    std::string text;
    for (const std::string_view name : {"sys_vendor", "product_name"}) {
        const std::string part = root.read_line(std::string(kDmi) + std::string(name)).value_or("");
        text += (text.empty() || part.empty() ? "" : " ") + part;
    }
    if (text.empty()) {
        return fail(ErrorCode::kNotFound, "neither a device tree model nor DMI product names");
    }
    return MachineModel{std::move(text), std::string(kDmi) + "sys_vendor, product_name"};
}

}  // namespace ringside
