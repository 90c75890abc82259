#include "probes/host/facts.h"

#include <algorithm>
#include <cctype>

#include "probes/host/cpus.h"
#include "probes/host/fact_list.h"
#include "probes/host/irqs.h"

namespace ringside {

namespace {

// What is listed one by one; what is beyond is counted in a fact named "....omitted".
constexpr std::size_t kMaxCpus = 64;
constexpr unsigned kMaxQueues = 16;
constexpr std::size_t kMaxIrqs = 32;
constexpr std::size_t kMaxParameters = 64;
constexpr std::size_t kCpuinfoLimit = 16u << 20;

constexpr std::string_view kLinkSource = "netlink RTM_GETLINK";

FactValue number(std::uint32_t value) {
    return std::int64_t{value};
}

FactValue unless_zero(std::uint32_t value) {
    return value == 0 ? FactValue() : number(value);
}

constexpr std::string_view kNotSaid = "the driver does not say";
constexpr std::string_view kNoSpeed = "no link, or the driver does not know";

constexpr FactRow<DriverInfo> kDriver[] = {
    {"driver.name", [](const DriverInfo& d) { return FactValue(d.driver); }, kNotSaid},
    {"driver.version", [](const DriverInfo& d) { return FactValue(d.version); }, kNotSaid},
    {"driver.firmware", [](const DriverInfo& d) { return FactValue(d.firmware); }, kNotSaid},
    {"driver.bus", [](const DriverInfo& d) { return FactValue(d.bus); }, kNotSaid},
};

constexpr FactRow<RingSizes> kRings[] = {
    {"ring.tx.size", [](const RingSizes& r) { return unless_zero(r.tx); }, kNotSaid},
    {"ring.tx.max", [](const RingSizes& r) { return unless_zero(r.tx_max); }, kNotSaid},
    {"ring.rx.size", [](const RingSizes& r) { return unless_zero(r.rx); }, kNotSaid},
    {"ring.rx.max", [](const RingSizes& r) { return unless_zero(r.rx_max); }, kNotSaid},
};

constexpr FactRow<Coalesce> kCoalesce[] = {
    {"coalesce.tx_usecs", [](const Coalesce& c) { return number(c.tx_usecs); }, ""},
    {"coalesce.tx_frames", [](const Coalesce& c) { return number(c.tx_frames); }, ""},
    {"coalesce.rx_usecs", [](const Coalesce& c) { return number(c.rx_usecs); }, ""},
    {"coalesce.rx_frames", [](const Coalesce& c) { return number(c.rx_frames); }, ""},
    {"coalesce.adaptive_tx", [](const Coalesce& c) { return on_off(c.adaptive_tx); }, ""},
    {"coalesce.adaptive_rx", [](const Coalesce& c) { return on_off(c.adaptive_rx); }, ""},
};

constexpr FactRow<Channels> kChannels[] = {
    {"channels.tx", [](const Channels& c) { return number(c.tx); }, ""},
    {"channels.rx", [](const Channels& c) { return number(c.rx); }, ""},
    {"channels.combined", [](const Channels& c) { return number(c.combined); }, ""},
    {"channels.tx_max", [](const Channels& c) { return number(c.tx_max); }, ""},
    {"channels.rx_max", [](const Channels& c) { return number(c.rx_max); }, ""},
    {"channels.combined_max", [](const Channels& c) { return number(c.combined_max); }, ""},
};

FactValue duplex_name(Duplex duplex) {
    constexpr const char* kNames[] = {"half", "full", ""};
    return std::string(kNames[static_cast<std::size_t>(duplex)]);
}

constexpr FactRow<LinkSettings> kLink[] = {
    {"link.speed_mbps",
     [](const LinkSettings& l) { return l.speed_mbps ? number(*l.speed_mbps) : FactValue(); },
     kNoSpeed},
    {"link.duplex", [](const LinkSettings& l) { return duplex_name(l.duplex); }, kNoSpeed},
    {"link.autoneg", [](const LinkSettings& l) { return on_off(l.autoneg); }, ""},
};

constexpr FactRow<Pause> kPause[] = {
    {"pause.autoneg", [](const Pause& p) { return on_off(p.autoneg); }, ""},
    {"pause.rx", [](const Pause& p) { return on_off(p.rx); }, ""},
    {"pause.tx", [](const Pause& p) { return on_off(p.tx); }, ""},
};

constexpr FactRow<Eee> kEee[] = {
    {"eee.enabled", [](const Eee& e) { return on_off(e.enabled); }, ""},
    {"eee.active", [](const Eee& e) { return on_off(e.active); }, ""},
    {"eee.tx_lpi", [](const Eee& e) { return on_off(e.tx_lpi_enabled); }, ""},
    {"eee.tx_lpi_timer_us", [](const Eee& e) { return number(e.tx_lpi_timer_us); }, ""},
};

constexpr FactRow<Interface> kInterface[] = {
    {"queues.tx.allocated", [](const Interface& i) { return unless_zero(i.num_tx_queues); },
     "the kernel does not say"},
    {"link.kind", [](const Interface& i) { return FactValue(i.kind); },
     "hardware, or a driver without a link kind"},
    {"link.up", [](const Interface& i) { return on_off(i.up); }, ""},
    {"link.carrier", [](const Interface& i) { return on_off(i.carrier); }, ""},
    {"mtu", [](const Interface& i) { return number(i.mtu); }, ""},
    {"tx_queue_len", [](const Interface& i) { return number(i.tx_queue_len); }, ""},
    {"qdisc.kind", [](const Interface& i) { return FactValue(i.qdisc); },
     "the kernel does not say"},
};

constexpr FactRow<CpuFrequency> kFrequency[] = {
    {"cpus", [](const CpuFrequency& f) { return FactValue(f.cpus); }, "not readable"},
    {"governor", [](const CpuFrequency& f) { return FactValue(f.governor); }, "not readable"},
    {"driver", [](const CpuFrequency& f) { return FactValue(f.driver); }, "not readable"},
    {"cur_khz",
     [](const CpuFrequency& f) { return f.current_khz ? FactValue(*f.current_khz) : FactValue(); },
     "not readable"},
    {"min_khz",
     [](const CpuFrequency& f) { return f.min_khz ? FactValue(*f.min_khz) : FactValue(); },
     "not readable"},
    {"max_khz",
     [](const CpuFrequency& f) { return f.max_khz ? FactValue(*f.max_khz) : FactValue(); },
     "not readable"},
    {"hardware_max_khz",
     [](const CpuFrequency& f) {
         return f.hardware_max_khz ? FactValue(*f.hardware_max_khz) : FactValue();
     },
     "not readable"},
};

struct QueueFile {
    std::string_view prefix;  // of the name, before the queue number
    std::string_view suffix;
    std::string_view file;  // below queues/tx-N
    bool is_number;
};

constexpr QueueFile kQueueFiles[] = {
    {"bql.q", ".limit", "byte_queue_limits/limit", true},
    {"bql.q", ".limit_min", "byte_queue_limits/limit_min", true},
    {"bql.q", ".limit_max", "byte_queue_limits/limit_max", true},
    {"bql.q", ".hold_time", "byte_queue_limits/hold_time", true},
    {"queues.tx.q", ".timeouts", "tx_timeout", true},
    {"queues.tx.q", ".xps_cpus", "xps_cpus", false},
};

void add_omitted(FactList& facts, std::string name, std::size_t there_are, std::size_t limit,
                 std::string_view source) {
    if (there_are > limit) {
        facts.add(std::move(name), static_cast<std::int64_t>(there_are - limit), source);
    }
}

void add_kernel(FactList& facts, const DeviceFigures& device, const Sysroot& root) {
    facts.line("kernel.release", root, "/proc/sys/kernel/osrelease");
    facts.line("kernel.version", root, "/proc/sys/kernel/version");
    facts.add("kernel.arch", device.arch, "uname");
    const auto model = machine_model(root);
    if (model) {
        facts.add("machine.model", model->model, model->source);
    } else {
        facts.absent("machine.model", "/proc/device-tree/model", model.error().message());
    }
}

void add_cpus(FactList& facts, const Sysroot& root) {
    constexpr std::string_view kOnline = "/sys/devices/system/cpu/online";
    constexpr std::string_view kCpuinfo = "/proc/cpuinfo";
    const auto online = online_cpus(root);
    if (!online) {
        facts.absent("host.cpus", kOnline, reason(online.error()));
        facts.absent("host.cpu_list", kOnline, reason(online.error()));
        return;
    }
    facts.add("host.cpus", static_cast<std::int64_t>(online->size()), kOnline);
    facts.add("host.cpu_list", format_cpu_list(*online), kOnline);
    const auto models = parse_cpuinfo(root.read(kCpuinfo, kCpuinfoLimit).value_or(""));
    for (std::size_t i = 0; i < std::min(online->size(), kMaxCpus); ++i) {
        const unsigned cpu = (*online)[i];
        const auto found = std::find_if(models.begin(), models.end(),
                                        [&](const CpuModel& m) { return m.cpu == cpu; });
        facts.add("cpu." + std::to_string(cpu) + ".model",
                  found == models.end() ? FactValue() : FactValue(found->model), kCpuinfo,
                  "/proc/cpuinfo does not name it");
    }
    add_omitted(facts, "cpu.omitted", online->size(), kMaxCpus, kCpuinfo);
}

void add_frequencies(FactList& facts, const Sysroot& root) {
    constexpr std::string_view kSource = "/sys/devices/system/cpu/cpufreq";
    const std::vector<CpuFrequency> policies = cpu_frequencies(root);
    facts.add(
        "cpufreq.policies",
        policies.empty() ? FactValue() : FactValue(static_cast<std::int64_t>(policies.size())),
        kSource, "the kernel does not govern the CPU clocks here");
    for (std::size_t i = 0; i < std::min(policies.size(), kMaxCpus); ++i) {
        const std::string number = std::to_string(policies[i].policy);
        for (const FactRow<CpuFrequency>& row : kFrequency) {
            facts.add("cpufreq." + number + "." + std::string(row.name), row.get(policies[i]),
                      std::string(kSource) + "/policy" + number, row.if_none);
        }
    }
    add_omitted(facts, "cpufreq.omitted", policies.size(), kMaxCpus, kSource);
}

// A module parameter may hold what must not be recorded: six hex pairs, or four decimal numbers.
bool looks_like_address(std::string_view text) {
    const auto count = [&](char separator) {
        return std::count(text.begin(), text.end(), separator);
    };
    const bool hex = std::all_of(text.begin(), text.end(), [](char c) {
        return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '-' ||
               c == '.' || c == ',';
    });
    return hex && (count(':') >= 2 || count('-') == 5 || count('.') >= 3);
}

void add_module(FactList& facts, const std::string& folder, const Sysroot& root) {
    const std::string driver = folder + "/device/driver";
    const auto device_driver = root.link_name(driver);
    facts.add("driver.device", device_driver ? FactValue(*device_driver) : FactValue(), driver,
              "no device of a bus behind the interface");
    const auto module = root.link_name(driver + "/module");
    facts.add("driver.module", module ? FactValue(*module) : FactValue(), driver + "/module",
              "built in without parameters, or no driver of a bus");
    if (!module) {
        return;
    }
    const std::string parameters = "/sys/module/" + *module + "/parameters";
    const std::vector<std::string> names = root.list(parameters);
    for (std::size_t i = 0; i < std::min(names.size(), kMaxParameters); ++i) {
        const std::string path = parameters + "/" + names[i];
        const std::string name = "driver.param." + clean_text(names[i]);
        if (looks_like_address(root.read_line(path).value_or(""))) {
            facts.absent(name, path, "not recorded: it looks like an address");
        } else {
            facts.line(name, root, path);
        }
    }
    add_omitted(facts, "driver.param.omitted", names.size(), kMaxParameters, parameters);
}

// `sysfs` is the reason why files below `folder` must not be believed, or success.
void add_queues(FactList& facts, const Interface& interface, const Status& sysfs,
                const std::string& folder, const Sysroot& root) {
    const std::string queues = folder + "/queues";
    unsigned count = interface.real_tx_queues;
    if (sysfs) {
        count = real_tx_queues(root, interface.name).value_or(0);
    }
    facts.add("queues.tx.real", unless_zero(count), queues,
              sysfs ? "no queue folders" : reason(sysfs.error()));
    // One queue at least, so that the names are there with the reason.
    for (unsigned queue = 0; queue < std::clamp(count, 1u, kMaxQueues); ++queue) {
        const std::string number = std::to_string(queue);
        std::string queue_folder = queues;
        queue_folder += "/tx-";
        queue_folder += number;
        queue_folder += '/';
        for (const QueueFile& entry : kQueueFiles) {
            const std::string name = std::string(entry.prefix) + number + std::string(entry.suffix);
            const std::string path = queue_folder + std::string(entry.file);
            if (!sysfs) {
                facts.absent(name, path, reason(sysfs.error()));
            } else if (entry.is_number) {
                facts.number(name, root, path);
            } else {
                facts.line(name, root, path);
            }
        }
    }
    add_omitted(facts, "queues.tx.omitted", count, kMaxQueues, queues);
}

void add_offloads(FactList& facts, const Result<std::vector<Feature>>& features) {
    constexpr std::string_view kSource = "ioctl ETHTOOL_GFEATURES";
    const std::vector<Feature> groups =
        features ? offload_groups(*features) : std::vector<Feature>();
    for (const std::string_view name : offload_group_names()) {
        const auto group = std::find_if(groups.begin(), groups.end(),
                                        [&](const Feature& g) { return g.name == name; });
        FactValue value;
        if (group != groups.end()) {
            value = std::string(group->active ? "on" : "off") + (group->fixed ? " [fixed]" : "");
        }
        facts.add("offload." + std::string(name), std::move(value), kSource,
                  features ? "this kernel has no such feature" : reason(features.error()));
    }
}

// "cpu1=5 cpu4=1200": CPUs that never served it are left out.
std::string counts_text(const IrqLine& line, const std::vector<unsigned>& cpus) {
    std::string text;
    for (std::size_t i = 0; i < std::min(line.counts.size(), cpus.size()); ++i) {
        if (line.counts[i] != 0) {
            text += (text.empty() ? "cpu" : " cpu") + std::to_string(cpus[i]) + "=" +
                    std::to_string(line.counts[i]);
        }
    }
    return text.empty() ? "none" : text;
}

std::string names_text(const IrqLine& line) {
    std::string text;
    for (const std::string& name : line.names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

void add_irq(FactList& facts, const std::string& prefix, const IrqLine& line,
             const std::vector<unsigned>& cpus, const Sysroot& root) {
    constexpr std::string_view kSource = "/proc/interrupts";
    facts.add(prefix + "number", std::int64_t{line.number.value_or(0)}, kSource);
    facts.add(prefix + "name", names_text(line), kSource, "no handler");
    facts.add(prefix + "chip", line.chip, kSource);
    facts.add(prefix + "trigger", line.trigger, kSource, "not shown by this kernel");
    facts.add(prefix + "total", static_cast<std::int64_t>(line.total()), kSource);
    facts.add(prefix + "counts", counts_text(line, cpus), kSource);
    const std::string folder = "/proc/irq/" + line.label;
    const IrqAffinity affinity = irq_affinity(line.number.value_or(0), root);
    const auto list = [&](const char* name, const char* file, const Result<std::string>& value) {
        facts.add(prefix + name, value ? FactValue(*value) : FactValue(), folder + file,
                  value ? "the list is empty" : reason(value.error()));
    };
    list("affinity", "/smp_affinity_list", affinity.allowed);
    list("effective_affinity", "/effective_affinity_list", affinity.effective);
}

void add_irqs(FactList& facts, const Interface& interface, const Status& sysfs,
              const Sysroot& root) {
    constexpr std::string_view kSource = "/proc/interrupts";
    const auto interrupts = read_interrupts(root);
    if (!interrupts || !sysfs) {
        facts.absent("irq.count", kSource, reason(interrupts ? sysfs.error() : interrupts.error()));
        return;
    }
    const std::vector<IrqLine> lines = interface_irqs(*interrupts, interface.name, root);
    facts.add("irq.count", static_cast<std::int64_t>(lines.size()), kSource);
    for (std::size_t i = 0; i < std::min(lines.size(), kMaxIrqs); ++i) {
        add_irq(facts, "irq." + std::to_string(i) + ".", lines[i], interrupts->cpus, root);
    }
    add_omitted(facts, "irq.omitted", lines.size(), kMaxIrqs, kSource);
}

void add_leaf_qdiscs(FactList& facts, const Result<std::map<std::string, unsigned>>& kinds) {
    std::string text;
    if (kinds) {
        for (const auto& [kind, count] : *kinds) {
            text += (text.empty() ? "" : ", ") + kind + " x" + std::to_string(count);
        }
    }
    facts.add("qdisc.leaves", std::move(text), "netlink RTM_GETQDISC",
              kinds ? "the root qdisc has none below it" : reason(kinds.error()));
}

}  // namespace

std::vector<Fact> facts_of(const Interface& interface, const DeviceFigures& device,
                           const Sysroot& root) {
    const std::string folder = "/sys/class/net/" + interface.name;
    const Status sysfs = check_sysfs(interface, root);
    FactList facts;
    add_kernel(facts, device, root);
    add_cpus(facts, root);
    add_frequencies(facts, root);
    facts.table(device.driver, "ioctl ETHTOOL_GDRVINFO", kDriver);
    if (sysfs) {
        add_module(facts, folder, root);
    } else {
        facts.absent("driver.device", folder + "/device/driver", reason(sysfs.error()));
        facts.absent("driver.module", folder + "/device/driver/module", reason(sysfs.error()));
    }
    facts.table(Result<Interface>(interface), kLinkSource, kInterface);
    facts.table(device.link, "ioctl ETHTOOL_GLINKSETTINGS", kLink);
    add_queues(facts, interface, sysfs, folder, root);
    facts.table(device.channels, "ioctl ETHTOOL_GCHANNELS", kChannels);
    facts.table(device.rings, "ioctl ETHTOOL_GRINGPARAM", kRings);
    facts.table(device.coalesce, "ioctl ETHTOOL_GCOALESCE", kCoalesce);
    facts.table(device.pause, "ioctl ETHTOOL_GPAUSEPARAM", kPause);
    facts.table(device.eee, "ioctl ETHTOOL_GEEE", kEee);
    add_offloads(facts, device.features);
    add_leaf_qdiscs(facts, device.leaf_qdiscs);
    add_irqs(facts, interface, sysfs, root);
    return facts.take();
}

std::vector<Fact> collect_facts(const Interface& interface, const Sysroot& root) {
    return facts_of(interface, read_device(interface), root);
}

}  // namespace ringside
