#include "dtcompare/controller.h"

#include <algorithm>

namespace ringside::dt {

namespace {

struct FamilyRule {
    std::string_view part;  // of a compatible
    FamilyMask family;
};
constexpr FamilyRule kFamilies[] = {
    {"rockchip,", kStmmac | kRockchip},
    {"allwinner,", kStmmac | kSun8i},
    {"amlogic,", kStmmac | kMeson},
};

// Endings and parts of compatibles that the stmmac driver and its glue drivers bind to.
constexpr std::string_view kStmmacParts[] = {"snps,dwmac", "snps,dwxgmac", "dwmac",  "-gmac",
                                             "stmmac",     "ethqos",       "dwc-qos"};

bool is_stmmac(std::string_view compatible) {
    return std::ranges::any_of(kStmmacParts, [&](std::string_view part) {
        return compatible.find(part) != std::string_view::npos;
    });
}

bool is_allwinner_emac(std::string_view compatible) {
    return compatible.starts_with("allwinner,sun") && compatible.ends_with("-emac") &&
           compatible != "allwinner,sun4i-a10-emac";
}

bool is_pcie_port(const Tree& tree, NodeId node) {
    return tree.text(node, "device_type") == "pci";
}

// A PCI function that is a NIC: it was given an address, or it is named as one.
NodeId nic_below(const Tree& tree, NodeId node, int depth = 0) {
    constexpr int kMaxBridges = 4;
    for (NodeId c = tree.node(node).first_child; c != kNoNode && depth < kMaxBridges;
         c = tree.node(c).next_sibling) {
        if (tree.has(c, "local-mac-address") || tree.has(c, "mac-address") ||
            base_name(tree.node(c).name) == "ethernet") {
            return c;
        }
        const NodeId below = nic_below(tree, c, depth + 1);
        if (below != kNoNode) {
            return below;
        }
    }
    return kNoNode;
}

bool is_below_pci(const Tree& tree, NodeId node) {
    for (NodeId n = tree.node(node).parent; n != kNoNode; n = tree.node(n).parent) {
        if (is_pcie_port(tree, n)) {
            return true;
        }
    }
    return false;
}

bool is_mac(const Tree& tree, NodeId node) {
    const Property* compatible = tree.find(node, "compatible");
    if (compatible == nullptr) {
        return false;
    }
    const std::string_view base = base_name(tree.node(node).name);
    const bool has_mode = tree.has(node, "phy-mode") || tree.has(node, "phy-connection-type");
    const auto words = read_strings(compatible->bytes);
    const bool known =
        words && std::ranges::any_of(*words, [](std::string_view word) {
            return (is_stmmac(word) && !word.ends_with("-mdio")) || is_allwinner_emac(word);
        });
    return base == "ethernet" || (known && tree.has(node, "reg")) ||
           (has_mode && tree.has(node, "reg") && base != "port");
}

NodeId referred(const Tree& tree, NodeId node, std::string_view property) {
    const auto phandle = tree.cell(node, property);
    return phandle ? tree.by_phandle(*phandle) : kNoNode;
}

NodeId find_mdio(const Tree& tree, NodeId mac) {
    for (NodeId c = tree.node(mac).first_child; c != kNoNode; c = tree.node(c).next_sibling) {
        if (base_name(tree.node(c).name) == "mdio" || tree.compatible_with(c, "snps,dwmac-mdio")) {
            return c;
        }
    }
    return kNoNode;
}

NodeId find_phy(const Tree& tree, NodeId mac, NodeId mdio) {
    for (const std::string_view name : {"phy-handle", "phy", "phy-device"}) {
        const NodeId phy = referred(tree, mac, name);
        if (phy != kNoNode) {
            return phy;
        }
    }
    // Without a reference the driver scans the bus: an only child is what it finds.
    const NodeId only = mdio == kNoNode ? kNoNode : tree.node(mdio).first_child;
    return only != kNoNode && tree.node(only).next_sibling == kNoNode ? only : kNoNode;
}

}  // namespace

std::string_view ControllerView::phy_mode() const {
    const std::string_view mode = tree->text(mac, "phy-mode");
    return mode.empty() ? tree->text(mac, "phy-connection-type") : mode;
}

bool ControllerView::is_gmac4() const {
    const Property* compatible = tree->find(mac, "compatible");
    const auto words = compatible == nullptr ? std::nullopt : read_strings(compatible->bytes);
    return words && std::ranges::any_of(*words, [](std::string_view word) {
               return word.starts_with("snps,dwmac-4.") || word.starts_with("snps,dwmac-5.") ||
                      word.starts_with("snps,dwxgmac");
           });
}

std::vector<NodeId> ControllerView::queues(NodeId mtl) const {
    std::vector<NodeId> found;
    if (mtl == kNoNode) {
        return found;
    }
    for (NodeId c = tree->node(mtl).first_child; c != kNoNode; c = tree->node(c).next_sibling) {
        if (tree->node(c).name.starts_with("queue")) {
            found.push_back(c);
        }
    }
    return found;
}

FamilyMask controller_family(const Tree& tree, NodeId node) {
    if (is_pcie_port(tree, node)) {
        return nic_below(tree, node) == kNoNode ? kPciePort : kPcieFamily;
    }
    if (!is_mac(tree, node)) {
        return 0;
    }
    FamilyMask family = kMacFamily;
    const auto words = read_strings(tree.find(node, "compatible")->bytes);
    if (!words) {
        return family;
    }
    for (const std::string_view word : *words) {
        if (!is_stmmac(word) && !is_allwinner_emac(word)) {
            continue;
        }
        family |= kStmmac;
        for (const FamilyRule& rule : kFamilies) {
            if (word.starts_with(rule.part)) {
                family |= rule.family;
            }
        }
    }
    return family;
}

std::vector<NodeId> find_controllers(const Tree& tree) {
    std::vector<NodeId> found;
    for (NodeId id = 1; id < tree.size(); ++id) {
        const FamilyMask family = controller_family(tree, id);
        if (family != 0 && family != kPciePort && !is_below_pci(tree, id) &&
            !tree.is_bookkeeping(id)) {
            found.push_back(id);
        }
    }
    return found;
}

ControllerView view_controller(const Tree& tree, NodeId node, Numbering numbering, Driver driver) {
    ControllerView view;
    view.tree = &tree;
    view.numbering = numbering;
    view.driver = driver;
    view.mac = node;
    if (node == kNoNode) {
        return view;
    }
    view.family = controller_family(tree, node);
    if ((view.family & (kPcieFamily | kPciePort)) != 0) {
        view.nic = nic_below(tree, node);
        return view;
    }
    view.axi = referred(tree, node, "snps,axi-config");
    view.mtl_tx = referred(tree, node, "snps,mtl-tx-config");
    view.mtl_rx = referred(tree, node, "snps,mtl-rx-config");
    view.mdio = find_mdio(tree, node);
    view.phy = find_phy(tree, node, view.mdio);
    view.fixed_link = tree.child(node, "fixed-link");
    return view;
}

std::string alias_of(const Tree& tree, NodeId node) {
    const NodeId aliases = tree.child(tree.root(), "aliases");
    if (aliases == kNoNode || node == kNoNode) {
        return {};
    }
    for (const Property& alias : tree.properties(aliases)) {
        if (!alias.name.starts_with("ethernet")) {
            continue;
        }
        for (NodeId n = tree.by_path(first_string(alias.bytes)); n != kNoNode;
             n = tree.node(n).parent) {
            if (n == node) {
                return std::string(alias.name);
            }
        }
    }
    return {};
}

}  // namespace ringside::dt
