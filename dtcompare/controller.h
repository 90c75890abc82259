// Ethernet controllers in a tree, and the nodes that belong to one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dtcompare/driver.h"
#include "dtcompare/numbers.h"
#include "dtcompare/tree.h"

namespace ringside::dt {

// What kind of controller it is, as far as knowledge depends on it. Bits: Rockchip's is also
// stmmac's.
using FamilyMask = std::uint8_t;
constexpr FamilyMask kMacFamily = 1U << 0U;   // any MAC
constexpr FamilyMask kStmmac = 1U << 1U;      // driven by stmmac
constexpr FamilyMask kRockchip = 1U << 2U;    // with Rockchip's glue
constexpr FamilyMask kSun8i = 1U << 3U;       // with Allwinner's
constexpr FamilyMask kMeson = 1U << 4U;       // with Amlogic's
constexpr FamilyMask kPcieFamily = 1U << 5U;  // a PCIe port with a NIC behind it
constexpr FamilyMask kPciePort = 1U << 6U;    // a PCIe port that may have one

// One controller of one tree: its nodes, found by reference or by place. kNoNode where absent.
struct ControllerView {
    const Tree* tree = nullptr;
    Numbering numbering = Numbering::kUnknown;
    Driver driver = Driver::kMainline618;
    FamilyMask family = 0;
    NodeId mac = kNoNode;  // or the PCIe port
    NodeId axi = kNoNode;
    NodeId mtl_tx = kNoNode;
    NodeId mtl_rx = kNoNode;
    NodeId mdio = kNoNode;
    NodeId phy = kNoNode;
    NodeId fixed_link = kNoNode;
    NodeId nic = kNoNode;  // the device behind a PCIe port

    [[nodiscard]] std::string_view phy_mode() const;
    // Synopsys core with several queues and TSO: dwmac 4.00 and later, xgmac.
    [[nodiscard]] bool is_gmac4() const;
    // Children "queueN" of an MTL node, by number.
    [[nodiscard]] std::vector<NodeId> queues(NodeId mtl) const;
    [[nodiscard]] bool has(NodeId node, std::string_view property) const {
        return node != kNoNode && tree->has(node, property);
    }
    [[nodiscard]] std::optional<std::uint32_t> cell(NodeId node, std::string_view property) const {
        return node == kNoNode ? std::nullopt : tree->cell(node, property);
    }
};

FamilyMask controller_family(const Tree& tree, NodeId node);

// Nodes of `tree` that are Ethernet controllers, disabled ones too, in tree order.
std::vector<NodeId> find_controllers(const Tree& tree);

ControllerView view_controller(const Tree& tree, NodeId node, Numbering numbering, Driver driver);

// "ethernet0" when /aliases names the node or something below it; numbering only, never an
// identity.
std::string alias_of(const Tree& tree, NodeId node);

}  // namespace ringside::dt
