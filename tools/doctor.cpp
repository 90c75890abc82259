// ringside doctor: what this kernel, this build and this user may see, found by trying.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyzers/base/sysroot.h"
#include "probes/host/ethtool.h"
#include "probes/host/interface.h"
#include "probes/tracer.h"
#include "tools/command.h"
#include "tools/render/text.h"

namespace ringside {

namespace {

struct Tier {
    std::string name;
    bool available = false;
    std::string gives;
    std::string why;  // why not
};

// Everything that is printed, text or JSON.
struct Diagnosis {
    std::optional<Interface> interface;
    std::string interface_problem;  // why it cannot be traced
    std::string interface_remark;
    std::string link;  // "1000 Mb/s full", empty when unknown
    std::string kernel;
    std::string machine;
    bool btf = false;
    std::string lockdown;
    std::vector<Tier> tiers;
    std::string ring_layout;  // where the driver keeps its indices; empty without a ring tier
    std::vector<Hook> hooks;
    std::string hooks_problem;
    std::string hint;

    [[nodiscard]] bool can_trace() const {
        return interface_problem.empty() &&
               std::any_of(tiers.begin(), tiers.end(), [](const Tier& t) { return t.available; });
    }
};

std::string lockdown_mode(const Sysroot& root) {
    const Result<std::string> line = root.read_line("/sys/kernel/security/lockdown");
    if (!line) {
        return "not known";
    }
    // "none [integrity] confidentiality": the one in brackets is in force.
    const auto open = line->find('[');
    const auto close = line->find(']');
    return open == std::string::npos || close == std::string::npos || close < open
               ? *line
               : line->substr(open + 1, close - open - 1);
}

std::string link_text(const std::string& name) {
    const Result<Ethtool> ethtool = Ethtool::open(name);
    if (!ethtool) {
        return {};
    }
    const Result<LinkSettings> link = ethtool->link();
    if (!link || !link->speed_mbps) {
        return {};
    }
    static constexpr const char* kDuplex[] = {"half", "full", "unknown duplex"};
    return fmt::format("{} Mb/s {}", *link->speed_mbps,
                       kDuplex[static_cast<std::size_t>(link->duplex)]);
}

Status look_at_interface(const std::string& name, Diagnosis& diagnosis) {
    Result<Interface> found = find_interface(name);
    if (!found) {
        return fail(found.error());
    }
    if (const Status ok = check_traceable(*found); !ok) {
        diagnosis.interface_problem = ok.error().line();
    }
    diagnosis.interface_remark = remark(*found);
    diagnosis.link = link_text(found->name);
    diagnosis.interface = std::move(*found);
    return {};
}

void look_at_ring(Diagnosis& diagnosis) {
    Tier ring{.name = "ring",
              .available = false,
              .gives = "descriptors in use, latency by ring index, batches, resets",
              .why = {}};
    if (!diagnosis.interface) {
        ring.why = "depends on the driver: name an interface";
    } else if (const Result<RingLayout> layout = Tracer::try_ring(diagnosis.interface->driver);
               layout) {
        ring.available = true;
        diagnosis.ring_layout =
            fmt::format("head at {}, tail at {}", layout->head_offset, layout->tail_offset);
        if (layout->stride != 0) {
            diagnosis.ring_layout += fmt::format(", {} bytes to the next queue", layout->stride);
        }
    } else {
        ring.why = layout.error().message();
    }
    diagnosis.tiers.push_back(std::move(ring));
}

// Hooks that only the driver's own programs have.
void add_ring_hooks(Diagnosis& diagnosis) {
    if (diagnosis.ring_layout.empty()) {
        return;
    }
    const Result<std::vector<Hook>> more = Tracer::try_hooks(diagnosis.interface->driver);
    if (!more) {
        return;  // the tier's own line says why
    }
    for (const Hook& hook : *more) {
        const auto same = [&](const Hook& known) { return known.name == hook.name; };
        if (std::none_of(diagnosis.hooks.begin(), diagnosis.hooks.end(), same)) {
            diagnosis.hooks.push_back(hook);
        }
    }
}

void look_at_hooks(Diagnosis& diagnosis) {
    Tier skb{.name = "skb",
             .available = true,
             .gives = "packets and bytes in flight, latency by skb, stops, BQL, NAPI",
             .why = {}};
    Result<std::vector<Hook>> hooks = Tracer::try_hooks();
    if (!hooks) {
        skb.available = false;
        skb.why = hooks.error().message();
        diagnosis.hooks_problem = hooks.error().message();
        diagnosis.hint = hooks.error().hint();
    } else {
        diagnosis.hooks = std::move(*hooks);
        add_ring_hooks(diagnosis);
        for (const Hook& hook : diagnosis.hooks) {
            if (hook.required && hook.how == "-" && skb.available) {
                skb.available = false;
                skb.why = hook.name + ": " + hook.why;
                diagnosis.hint = "run as root on a kernel with BTF (CONFIG_DEBUG_INFO_BTF=y)";
            }
        }
    }
    diagnosis.tiers.push_back(std::move(skb));
}

std::string render_text(const Diagnosis& d, const GlobalOptions& global) {
    const TextStyle style = text_style(global);
    const auto clean = [&style](std::string_view foreign) { return printable(foreign, style); };
    std::string text;
    if (d.interface) {
        text += fmt::format(
            "{}  {}  {}  {} TX {}\n", clean(d.interface->name),
            d.interface->driver.empty() ? "driver not known" : clean(d.interface->driver),
            d.link.empty() ? "link speed not known" : d.link,
            std::max(1U, d.interface->real_tx_queues),
            d.interface->real_tx_queues > 1 ? "queues" : "queue");
        if (!d.interface_problem.empty()) {
            text += wrap("cannot be traced: ", clean(d.interface_problem), 2, style);
        }
        if (!d.interface_remark.empty()) {
            text += wrap("note: ", clean(d.interface_remark), 6, style);
        }
    }
    text += fmt::format("kernel {} {}, BTF {}, lockdown {}, live tracing in this build: {}\n\n",
                        d.kernel, d.machine, d.btf ? "yes" : "no", d.lockdown,
                        Tracer::built_in() ? "yes" : "no");
    text += fmt::format("{:<10}{:<12}{}\n", "tier", "available", "gives");
    for (const Tier& tier : d.tiers) {
        text += fmt::format("{:<10}{:<12}{}\n", tier.name, tier.available ? "yes" : "no",
                            tier.available ? tier.gives : tier.why);
    }
    if (!d.ring_layout.empty()) {
        text += fmt::format("\nring of {}: {} (bytes in its private data)\n",
                            clean(d.interface->driver), d.ring_layout);
    }
    if (!d.hooks.empty()) {
        text +=
            fmt::format("\n{:<22}{:<8}{:<10}{}\n", "hook", "how", "needed", "gives, or why not");
        for (const Hook& hook : d.hooks) {
            text += fmt::format("{:<22}{:<8}{:<10}{}\n", hook.name, hook.how,
                                hook.required ? "yes" : "optional",
                                hook.why.empty() ? hook.gives : clean(hook.why));
        }
    }
    if (!d.hint.empty()) {
        text += "\n" + wrap("to fix: ", clean(d.hint), 8, style);
    } else if (d.can_trace() && d.interface && !global.quiet) {
        text += fmt::format("\nNext: ringside trace {} -- CMD\n", clean(d.interface->name));
    }
    return text;
}

std::string render_json(const Diagnosis& d) {
    using Json = nlohmann::ordered_json;
    Json document = {{"schema", "ringside.doctor"},
                     {"schema_version", 1},
                     {"tool_version", RINGSIDE_VERSION},
                     {"kernel", d.kernel},
                     {"machine", d.machine},
                     {"btf", d.btf},
                     {"lockdown", d.lockdown},
                     {"live_tracing_built", Tracer::built_in()},
                     {"interface", nullptr},
                     {"tiers", Json::array()},
                     {"ring_layout", d.ring_layout.empty() ? Json() : Json(d.ring_layout)},
                     {"hooks", Json::array()},
                     {"hint", d.hint}};
    if (d.interface) {
        document["interface"] = {{"name", d.interface->name},
                                 {"driver", d.interface->driver},
                                 {"kind", d.interface->kind},
                                 {"tx_queues", d.interface->real_tx_queues},
                                 {"link", d.link},
                                 {"problem", d.interface_problem},
                                 {"remark", d.interface_remark}};
    }
    for (const Tier& tier : d.tiers) {
        document["tiers"].push_back({{"name", tier.name},
                                     {"available", tier.available},
                                     {"gives", tier.gives},
                                     {"why_not", tier.why}});
    }
    for (const Hook& hook : d.hooks) {
        document["hooks"].push_back({{"name", hook.name},
                                     {"how", hook.how},
                                     {"required", hook.required},
                                     {"gives", hook.gives},
                                     {"why_not", hook.why}});
    }
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ExitCode> run_doctor(const std::string& interface, const GlobalOptions& global) {
    Diagnosis diagnosis;
    if (!interface.empty()) {
        if (Status ok = look_at_interface(interface, diagnosis); !ok) {
            return fail(ok.error());
        }
    }
    utsname name{};
    if (::uname(&name) == 0) {
        diagnosis.kernel = name.release;
        diagnosis.machine = name.machine;
    }
    const Sysroot root;
    diagnosis.btf = root.exists("/sys/kernel/btf/vmlinux");
    diagnosis.lockdown = lockdown_mode(root);
    look_at_ring(diagnosis);
    look_at_hooks(diagnosis);
    if (Status ok =
            print_result(global.json ? render_json(diagnosis) : render_text(diagnosis, global));
        !ok) {
        return fail(ok.error());
    }
    return diagnosis.can_trace() ? ExitCode::kOk : ExitCode::kFindings;
}

}  // namespace

void register_doctor(CLI::App& app, CommandLine& line) {
    auto interface = std::make_shared<std::string>();
    CLI::App* command =
        app.add_subcommand("doctor", "Say what this kernel allows to be seen, and what is missing");
    command->add_option("IFACE", *interface, "Interface to look at as well");
    command->footer(
        "Every hook is tried, none is guessed from a version. Exit code 1: live tracing cannot "
        "work.");
    command->callback([interface, &line] {
        line.run = [interface, &line] { return run_doctor(*interface, line.global); };
    });
}

}  // namespace ringside
