#include "dtcompare/effective.h"

#include <algorithm>

#include "dtcompare/meaning.h"
#include "dtcompare/resolve.h"

namespace ringside::dt {

namespace {

constexpr std::uint32_t kDefaultBurst = 8;

std::string burst_text(std::uint32_t length, bool times_8) {
    return std::to_string(length * (times_8 ? 8 : 1)) + " beats";
}

// Bounded before any arithmetic: the field has six bits, a tree can hold anything.
std::uint32_t burst_length(const ControllerView& view, std::string_view own) {
    const auto value = view.cell(view.mac, own);
    const std::uint32_t length =
        value ? *value : view.cell(view.mac, "snps,pbl").value_or(kDefaultBurst);
    return std::min<std::uint32_t>(length == 0 ? kDefaultBurst : length, 4096);
}

bool multiplies(const ControllerView& view) {
    return !view.has(view.mac, "snps,no-pbl-x8");
}

bool has_both_mtl(const ControllerView& view) {
    return view.mtl_tx != kNoNode && view.mtl_rx != kNoNode;
}

bool is_rockchip_gmac1000(const ControllerView& view) {
    return (view.family & kRockchip) != 0 && !view.is_gmac4();
}

std::string present_or_default(const ControllerView& view, const Knowledge& entry,
                               const Property* property, bool used) {
    if (!used) {
        return "unused in this phy-mode";
    }
    if (property == nullptr) {
        return std::string(default_of(entry, view.driver));
    }
    Knowledge plain = entry;
    plain.effective = nullptr;
    return effective_value(view, view.mac, plain, property);
}

// A bank by its address: gpio0@fdd60000 and gpio@fdd60000 are one.
std::string pin_text(const Tree& tree, const Reference& reference, bool active_low) {
    if (reference.target == kNoNode || reference.argument_count == 0) {
        return "none";
    }
    const std::string_view unit = unit_address(tree.node(reference.target).name);
    std::string bank =
        unit.empty() ? std::string(tree.node(reference.target).name) : "gpio@" + std::string(unit);
    return bank + " pin " + std::to_string(reference.arguments[0]) +
           (active_low ? " active-low" : " active-high");
}

std::optional<Reference> first_reference(const Tree& tree, NodeId node, std::string_view name) {
    const Property* property = node == kNoNode ? nullptr : tree.find(node, name);
    const RefBinding* binding = property == nullptr ? nullptr : ref_binding(name);
    if (binding == nullptr) {
        return std::nullopt;
    }
    const auto list = resolve(tree, node, *property, *binding);
    return list.empty() ? std::nullopt : std::optional<Reference>(list.front());
}

std::string delays_text(std::uint32_t assert_us, std::uint32_t deassert_us) {
    return ", " + std::to_string(assert_us) + " us low, " + std::to_string(deassert_us) +
           " us after";
}

struct AssignedClock {
    std::string clock;
    std::string parent;
    std::uint32_t rate = 0;
};

// What one node's assigned-clocks ask for.
std::vector<AssignedClock> assigned_by(const ControllerView& view, NodeId node) {
    const Tree& tree = *view.tree;
    const Property* clocks = tree.find(node, "assigned-clocks");
    if (clocks == nullptr) {
        return {};
    }
    const auto read = [&](const Property* property) {
        return property == nullptr ? std::vector<Reference>()
                                   : resolve(tree, node, *property, *ref_binding(property->name));
    };
    const auto list = read(clocks);
    const auto parents = read(tree.find(node, "assigned-clock-parents"));
    const Property* rates = tree.find(node, "assigned-clock-rates");
    std::vector<AssignedClock> found;
    for (std::size_t i = 0; i < list.size(); ++i) {
        AssignedClock clock;
        clock.clock = describe(tree, view.numbering, "clocks", list[i]);
        if (i < parents.size() && parents[i].target != kNoNode) {
            clock.parent = describe(tree, view.numbering, "clocks", parents[i]);
        }
        clock.rate = rates == nullptr ? 0 : read_cell(rates->bytes, i);
        found.push_back(std::move(clock));
    }
    return found;
}

std::string without_provider(std::string_view text) {
    return std::string(text.substr(0, text.find(" of ")));
}

}  // namespace

std::uint32_t queue_count(const ControllerView& view, bool transmit) {
    if (!has_both_mtl(view)) {
        return 1;
    }
    const auto value = view.cell(transmit ? view.mtl_tx : view.mtl_rx,
                                 transmit ? "snps,tx-queues-to-use" : "snps,rx-queues-to-use");
    return value.value_or(1);
}

std::uint32_t tx_pbl(const ControllerView& view) {
    return burst_length(view, "snps,txpbl");
}

std::uint32_t tx_burst_beats(const ControllerView& view) {
    return tx_pbl(view) * (multiplies(view) ? 8 : 1);
}

std::string effective_core(const ControllerView& view, NodeId, const Knowledge&, const Property*) {
    if ((view.family & kStmmac) == 0) {
        return "by " + std::string(view.tree->text(view.mac, "compatible"));
    }
    return view.is_gmac4() ? "GMAC4 or later" : "GMAC1000 or as the glue driver says";
}

std::string effective_tso(const ControllerView& view, NodeId, const Knowledge&,
                          const Property* property) {
    if (property == nullptr) {
        return "off";
    }
    if (!view.is_gmac4() && (view.family & kRockchip) != 0) {
        return "off (no GMAC4 core)";
    }
    if (view.has(view.mac, "snps,force_thresh_dma_mode")) {
        return "off (threshold mode ends checksum offload)";
    }
    if (view.driver == Driver::kMainline72 && tx_pbl(view) < 4) {
        return "off (txpbl below 4)";
    }
    return "on if the hardware has it";
}

std::string effective_tx_burst(const ControllerView& view, NodeId, const Knowledge&,
                               const Property*) {
    return burst_text(burst_length(view, "snps,txpbl"), multiplies(view));
}

std::string effective_rx_burst(const ControllerView& view, NodeId, const Knowledge&,
                               const Property*) {
    return burst_text(burst_length(view, "snps,rxpbl"), multiplies(view));
}

std::string effective_mixed_burst(const ControllerView& view, NodeId, const Knowledge&,
                                  const Property* property) {
    if (view.has(view.mac, "snps,fixed-burst")) {
        return "off (fixed-burst wins)";
    }
    return property == nullptr ? "off" : "on";
}

std::string effective_axi_node(const ControllerView& view, NodeId, const Knowledge&,
                               const Property*) {
    return view.axi == kNoNode ? "reset values kept" : "limits and bursts are programmed";
}

std::string effective_axi_limit(const ControllerView& view, NodeId, const Knowledge& entry,
                                const Property*) {
    if (view.axi == kNoNode) {
        return "reset value";
    }
    return std::to_string(view.cell(view.axi, entry.property).value_or(1));
}

std::string effective_axi_bursts(const ControllerView& view, NodeId, const Knowledge&,
                                 const Property* property) {
    if (view.axi == kNoNode) {
        return "reset value";
    }
    if (property == nullptr) {
        return view.driver == Driver::kMainline72 ? "undefined" : "none";
    }
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(cell_count(property->bytes), 7); ++i) {
        const std::uint32_t burst = read_cell(property->bytes, i);
        if (burst != 0) {
            text += (text.empty() ? "" : " ") + std::to_string(burst);
        }
    }
    return text.empty() ? "none" : text;
}

std::string effective_tx_queues(const ControllerView& view, NodeId, const Knowledge&,
                                const Property*) {
    const std::string count = std::to_string(queue_count(view, true));
    return has_both_mtl(view) || (view.mtl_tx == kNoNode && view.mtl_rx == kNoNode)
               ? count
               : count + " (one MTL reference is missing: both are skipped)";
}

std::string effective_rx_queues(const ControllerView& view, NodeId, const Knowledge&,
                                const Property*) {
    return std::to_string(queue_count(view, false));
}

// Not programmed with one queue, so it is as good as absent then.
std::string effective_scheduler(const ControllerView& view, NodeId, const Knowledge& entry,
                                const Property* property) {
    const bool several = queue_count(view, entry.place == Place::kMtlTx) > 1;
    return property != nullptr && several ? "on" : "off";
}

// A queue that one side does not have differs by the count, not by each of its settings.
std::string effective_queue_mode(const ControllerView& view, NodeId node, const Knowledge& entry,
                                 const Property* property) {
    const bool weight = entry.property == "snps,weight";
    const bool several = queue_count(view, entry.place == Place::kTxQueue) > 1;
    if (property == nullptr || (weight && !several)) {
        return std::string(default_of(entry, view.driver));
    }
    Knowledge plain = entry;
    plain.effective = nullptr;
    return effective_value(view, node, plain, property);
}

std::string effective_fifo(const ControllerView& view, NodeId, const Knowledge& entry,
                           const Property* property) {
    if (is_rockchip_gmac1000(view) && (mask(view.driver) & kSince618) != 0) {
        return entry.property == "tx-fifo-depth" ? "2048 (set by the driver)"
                                                 : "4096 (set by the driver)";
    }
    if (property == nullptr || read_cell(property->bytes, 0) == 0) {
        return "what the hardware says";
    }
    return std::to_string(read_cell(property->bytes, 0));
}

std::string effective_tx_delay(const ControllerView& view, NodeId, const Knowledge& entry,
                               const Property* property) {
    const std::string_view mode = view.phy_mode();
    return present_or_default(view, entry, property, mode == "rgmii" || mode == "rgmii-rxid");
}

std::string effective_rx_delay(const ControllerView& view, NodeId, const Knowledge& entry,
                               const Property* property) {
    const std::string_view mode = view.phy_mode();
    return present_or_default(view, entry, property, mode == "rgmii" || mode == "rgmii-txid");
}

std::string effective_phy_mode(const ControllerView& view, NodeId, const Knowledge&,
                               const Property*) {
    const std::string_view mode = view.phy_mode();
    return mode.empty() ? "none: probe fails" : std::string(mode);
}

std::string effective_php_grf(const ControllerView& view, NodeId, const Knowledge&,
                              const Property*) {
    // Each driver looks for its own spelling only.
    const std::string_view own =
        view.driver == Driver::kVendor61 ? "rockchip,php_grf" : "rockchip,php-grf";
    const auto reference = first_reference(*view.tree, view.mac, own);
    if (reference && reference->target != kNoNode) {
        return std::string(view.tree->node(reference->target).name);
    }
    const bool needed = view.tree->compatible_with(view.mac, "rockchip,rk3588-gmac");
    return needed ? "not found by this driver: probe fails" : "not used";
}

std::string effective_speed(const ControllerView& view, NodeId, const Knowledge&,
                            const Property* property) {
    const std::uint32_t speed = property == nullptr ? 0 : read_cell(property->bytes, 0);
    (void)view;
    return speed == 0 || speed >= 1000 ? "no cap" : "at most " + std::to_string(speed) + " Mb/s";
}

std::string effective_reset(const ControllerView& view, NodeId, const Knowledge&, const Property*) {
    const Tree& tree = *view.tree;
    if (const auto own = first_reference(tree, view.phy, "reset-gpios")) {
        return pin_text(tree, *own, own->argument_count > 1 && (own->arguments[1] & 1U) != 0) +
               delays_text(view.cell(view.phy, "reset-assert-us").value_or(0),
                           view.cell(view.phy, "reset-deassert-us").value_or(0));
    }
    if (const auto old = first_reference(tree, view.mac, "snps,reset-gpio")) {
        const Property* delays = tree.find(view.mac, "snps,reset-delays-us");
        const Bytes bytes = delays == nullptr ? Bytes() : delays->bytes;
        const bool low = view.has(view.mac, "snps,reset-active-low") ||
                         (old->argument_count > 1 && (old->arguments[1] & 1U) != 0);
        return pin_text(tree, *old, low) + delays_text(read_cell(bytes, 1), read_cell(bytes, 2));
    }
    return "none";
}

std::string effective_rates(const ControllerView& view, NodeId, const Knowledge&, const Property*) {
    const Tree& tree = *view.tree;
    // Clocks the controller uses, and those its own node sets; then who else sets one of them.
    constexpr std::size_t kMaxClocks = 64;
    std::vector<std::string> own;
    if (const Property* clocks = tree.find(view.mac, "clocks")) {
        for (const Reference& clock : resolve(tree, view.mac, *clocks, *ref_binding("clocks"))) {
            if (own.size() < kMaxClocks) {
                own.push_back(describe(tree, view.numbering, "clocks", clock));
            }
        }
    }
    std::vector<std::string> words;
    for (NodeId id = 0; id < tree.size(); ++id) {
        for (const AssignedClock& clock : assigned_by(view, id)) {
            if (id != view.mac && std::ranges::find(own, clock.clock) == own.end()) {
                continue;
            }
            words.push_back(
                without_provider(clock.clock) +
                (clock.parent.empty() ? "" : " from " + without_provider(clock.parent)) +
                (clock.rate == 0 ? "" : " at " + std::to_string(clock.rate) + " Hz"));
        }
    }
    std::ranges::sort(words);
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : ", ") + word;
    }
    return text.empty() ? "as the boot loader left it" : text;
}

std::string effective_iommu(const ControllerView& view, NodeId node, const Knowledge& entry,
                            const Property*) {
    const auto reference = first_reference(*view.tree, node, entry.property);
    if (!reference || reference->target == kNoNode) {
        return "direct";
    }
    const std::string name(view.tree->node(reference->target).name);
    // An IOMMU that is switched off translates nothing.
    return view.tree->enabled(reference->target) ? "translated by " + name : "direct";
}

std::string effective_queue_lines(const ControllerView& view, NodeId, const Knowledge&,
                                  const Property* property) {
    const auto names = property == nullptr ? std::nullopt : read_strings(property->bytes);
    const bool per_queue =
        names && std::ranges::any_of(*names, [](std::string_view name) {
            return name.starts_with("tx-queue-") || name.starts_with("rx-queue-");
        });
    (void)view;
    return per_queue ? "a line for each queue" : "one line for all queues";
}

std::string effective_presence(const ControllerView& view, NodeId, const Knowledge&,
                               const Property* property) {
    (void)view;
    return property == nullptr ? "absent" : "present";
}

}  // namespace ringside::dt
