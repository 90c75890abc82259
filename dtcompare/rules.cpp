#include "dtcompare/rules.h"

#include <algorithm>

#include "dtcompare/effective.h"
#include "dtcompare/meaning.h"

namespace ringside::dt {

namespace {

using Detail = std::optional<std::string>;

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

bool starts_or_is_id(std::string_view mode, std::string_view delay) {
    return mode == "rgmii-id" || mode == delay;
}

Detail one_mtl_reference(const ControllerView& view) {
    if ((view.mtl_tx == kNoNode) == (view.mtl_rx == kNoNode)) {
        return std::nullopt;
    }
    const std::string_view missing =
        view.mtl_tx == kNoNode ? "snps,mtl-tx-config" : "snps,mtl-rx-config";
    return std::string(missing) + " is missing, so the settings of both directions are skipped";
}

Detail queue_children(const ControllerView& view) {
    if (view.mtl_tx == kNoNode || view.mtl_rx == kNoNode) {
        return std::nullopt;
    }
    std::string text;
    for (const bool transmit : {true, false}) {
        const std::size_t children = view.queues(transmit ? view.mtl_tx : view.mtl_rx).size();
        const std::uint32_t count = queue_count(view, transmit);
        if (children != count) {
            text += (text.empty() ? "" : "; ") + number(count) + (transmit ? " TX" : " RX") +
                    " queues asked for, " + number(children) + " queue nodes";
        }
    }
    return text.empty() ? Detail() : Detail(text);
}

Detail tso_threshold(const ControllerView& view) {
    return view.has(view.mac, "snps,tso") && view.has(view.mac, "snps,force_thresh_dma_mode")
               ? Detail("snps,tso together with snps,force_thresh_dma_mode")
               : std::nullopt;
}

Detail tso_burst(const ControllerView& view) {
    const std::uint32_t pbl = tx_pbl(view);
    return view.has(view.mac, "snps,tso") && pbl < 4
               ? Detail("TX burst length " + number(pbl) + ", at least 4 is needed")
               : std::nullopt;
}

Detail tso_core(const ControllerView& view) {
    return view.has(view.mac, "snps,tso") && !view.is_gmac4()
               ? Detail("no snps,dwmac-4.x or later among the compatibles")
               : std::nullopt;
}

// The property if it is there and not zero, as "tx_delay 0x30".
std::string delay_text(const ControllerView& view, NodeId node, std::string_view name) {
    const auto value = view.cell(node, name);
    if (!value || *value == 0) {
        return {};
    }
    return std::string(name) + " " + number(*value);
}

Detail double_delay(const ControllerView& view) {
    struct Delay {
        std::string_view property;
        std::string_view phy_adds;  // in this mode, and in rgmii-id, the PHY delays too
    };
    constexpr Delay kDelays[] = {
        {"tx_delay", "rgmii-txid"},
        {"rx_delay", "rgmii-rxid"},
        {"tx-internal-delay-ps", "rgmii-txid"},
        {"rx-internal-delay-ps", "rgmii-rxid"},
        {"allwinner,tx-delay-ps", "rgmii-txid"},
        {"allwinner,rx-delay-ps", "rgmii-rxid"},
        {"amlogic,tx-delay-ns", "rgmii-txid"},
    };
    const std::string_view mode = view.phy_mode();
    std::string text;
    for (const Delay& delay : kDelays) {
        const std::string found = delay_text(view, view.mac, delay.property);
        if (!found.empty() && starts_or_is_id(mode, delay.phy_adds)) {
            text += (text.empty() ? "" : ", ") + found;
        }
    }
    return text.empty() ? Detail() : Detail(std::string(mode) + " with " + text + " on the MAC");
}

Detail avb_cap(const ControllerView& view) {
    std::string text;
    const auto queues = view.queues(view.mtl_tx);
    for (const NodeId queue : queues) {
        if (view.has(queue, "snps,avb-algorithm")) {
            const auto slope = view.cell(queue, "snps,idle_slope");
            text += (text.empty() ? "" : ", ") + std::string(view.tree->node(queue).name) +
                    " idle_slope " + number(slope.value_or(0));
        }
    }
    return text.empty() ? Detail() : Detail(text);
}

Detail no_checksum_queue(const ControllerView& view) {
    std::string text;
    for (const NodeId queue : view.queues(view.mtl_tx)) {
        if (view.has(queue, "snps,coe-unsupported")) {
            text += (text.empty() ? "" : ", ") + std::string(view.tree->node(queue).name);
        }
    }
    return text.empty() ? Detail() : Detail(text);
}

Detail fifo_split(const ControllerView& view) {
    const std::uint32_t queues = queue_count(view, true);
    if (queues < 2) {
        return std::nullopt;
    }
    const auto depth = view.cell(view.mac, "tx-fifo-depth");
    if (depth && *depth != 0) {
        return number(*depth) + " bytes by " + number(queues) +
               " queues: " + number(*depth / queues) + " each";
    }
    return "by " + number(queues) + " queues; the size is what the hardware says";
}

Detail burst_against_fifo(const ControllerView& view) {
    // A burst is beats times the width of the bus; 8 bytes is the narrowest of the known GMAC4s.
    constexpr std::uint64_t kBusBytes = 8;
    const auto depth = view.cell(view.mac, "tx-fifo-depth");
    if (!depth || *depth == 0) {
        return std::nullopt;
    }
    const std::uint64_t share = *depth / std::max<std::uint32_t>(queue_count(view, true), 1);
    const std::uint64_t burst = tx_burst_beats(view) * kBusBytes;
    return burst * 2 > share ? Detail("a burst of " + number(burst) + " bytes (64-bit bus) and " +
                                      number(share) + " bytes of FIFO per queue")
                             : std::nullopt;
}

Detail one_line(const ControllerView& view) {
    if (queue_count(view, true) < 2) {
        return std::nullopt;
    }
    const Property* names = view.tree->find(view.mac, "interrupt-names");
    const auto words = names == nullptr ? std::nullopt : read_strings(names->bytes);
    const bool per_queue = words && std::ranges::any_of(*words, [](std::string_view word) {
                               return word.starts_with("tx-queue-");
                           });
    return per_queue ? Detail()
                     : Detail(number(queue_count(view, true)) + " TX queues, no tx-queue-N line");
}

Detail old_core_burst(const ControllerView& view) {
    const bool known = view.tree->compatible_with(view.mac, "rockchip,rk3399-gmac") ||
                       view.tree->compatible_with(view.mac, "rockchip,rk3328-gmac");
    return known && !view.has(view.mac, "snps,txpbl") && !view.has(view.mac, "snps,pbl")
               ? Detail("neither snps,txpbl nor snps,pbl")
               : std::nullopt;
}

bool is_burst(std::uint32_t beats) {
    return beats >= 4 && beats <= 256 && (beats & (beats - 1)) == 0;
}

Detail bad_bursts(const ControllerView& view) {
    if (view.axi == kNoNode) {
        return std::nullopt;
    }
    const Property* blen = view.tree->find(view.axi, "snps,blen");
    if (blen == nullptr) {
        return "snps,axi-config without snps,blen";
    }
    bool any = false;
    for (std::size_t i = 0; i < std::min<std::size_t>(cell_count(blen->bytes), 7); ++i) {
        const std::uint32_t beats = read_cell(blen->bytes, i);
        if (beats != 0 && !is_burst(beats)) {
            return "snps,blen has " + number(beats) + ": no power of two from 4 to 256";
        }
        any = any || beats != 0;
    }
    return any ? Detail() : Detail("snps,blen has only zeros");
}

Detail php_grf(const ControllerView& view) {
    const bool vendor = view.driver == Driver::kVendor61;
    const std::string_view own = vendor ? "rockchip,php_grf" : "rockchip,php-grf";
    const std::string_view other = vendor ? "rockchip,php-grf" : "rockchip,php_grf";
    return !view.has(view.mac, own) && view.has(view.mac, other)
               ? Detail("the tree has " + std::string(other) + ", the driver reads " +
                        std::string(own))
               : std::nullopt;
}

Detail clock_direction(const ControllerView& view) {
    return view.phy_mode().starts_with("rgmii") && !view.has(view.mac, "clock_in_out")
               ? Detail("clock_in_out is absent: input is taken, with an error message")
               : std::nullopt;
}

Detail speed_cap(const ControllerView& view) {
    for (const NodeId node : {view.mac, view.phy}) {
        const auto speed = view.cell(node, "max-speed");
        if (speed && *speed != 0 && *speed < 1000) {
            return "max-speed " + number(*speed) + " in " + view.tree->path(node);
        }
    }
    return std::nullopt;
}

Detail pause_fifo(const ControllerView& view) {
    const auto depth = view.cell(view.mac, "rx-fifo-depth");
    const std::uint32_t queues = std::max<std::uint32_t>(queue_count(view, false), 1);
    return depth && *depth != 0 && *depth / queues < 4096
               ? Detail(number(*depth / queues) + " bytes of RX FIFO per queue, 4096 are needed")
               : std::nullopt;
}

Detail both_bursts(const ControllerView& view) {
    return view.has(view.mac, "snps,fixed-burst") && view.has(view.mac, "snps,mixed-burst")
               ? Detail("both snps,fixed-burst and snps,mixed-burst")
               : std::nullopt;
}

constexpr Rule kRules[] = {
    {"DT-MTL-ONE-REFERENCE", kStmmac, kAnyDriver, Relevance::kHigh,
     "one of the two MTL references is missing", "one queue, whatever the nodes say",
     "ethtool -l IFACE", "stmmac_platform.c stmmac_mtl_setup", one_mtl_reference},
    {"DT-MTL-QUEUE-CHILDREN", kStmmac, kAnyDriver, Relevance::kHigh,
     "queue count and queueN children do not agree", "probe fails: no interface", "dmesg",
     "stmmac_platform.c stmmac_mtl_setup", queue_children},
    {"DT-SPEED-CAP", kMacFamily, kAnyDriver, Relevance::kHigh, "the link is capped below 1000 Mb/s",
     "a cap on the link", "ethtool IFACE", "drivers/net/phy/phy-core.c of_set_phy_supported",
     speed_cap},
    {"DT-RGMII-DOUBLE-DELAY", kMacFamily, kAnyDriver, Relevance::kHigh,
     "MAC and PHY may both delay the same signal",
     "twice the delay costs CRC errors; mainline dwmac-rk ignores its value in this mode, other "
     "kernels program it",
     "CRC errors on both ends; dmesg for a line that names both delays",
     "dwmac-rk.c rk3588_set_to_rgmii; phy/realtek", double_delay},
    {"DT-TSO-THRESHOLD", kStmmac, kAnyDriver, Relevance::kHigh, "threshold mode turns TSO off",
     "no checksum offload, so no TSO: the CPU builds each segment", "ethtool -k IFACE",
     "stmmac_main.c stmmac_hw_init, stmmac_set_gso_features", tso_threshold},
    {"DT-TSO-BURST", kStmmac, kOnly72, Relevance::kHigh, "a short TX burst turns TSO off",
     "the CPU builds each segment", "ethtool -k IFACE", "stmmac_main.c stmmac_set_gso_features",
     tso_burst},
    {"DT-TSO-CORE", kRockchip, kAnyDriver, Relevance::kMedium, "snps,tso without a GMAC4 core",
     "no effect: there is no TSO on this core", "ethtool -k IFACE", "dwmac-rk.c rk_gmac_probe",
     tso_core},
    {"DT-AVB-CAP", kStmmac, kAnyDriver, Relevance::kHigh, "a TX queue is paced by the AVB shaper",
     "the queue sends no faster than its idle slope", "ethtool -S IFACE per queue; tc qdisc show",
     "stmmac_main.c stmmac_configure_cbs", avb_cap},
    {"DT-QUEUE-NO-CHECKSUM", kStmmac, kAnyDriver, Relevance::kHigh,
     "a TX queue without checksum offload", "no TSO on that queue", "ethtool -k IFACE",
     "stmmac_main.c stmmac_xmit", no_checksum_queue},
    {"DT-BURST-FIFO", kStmmac, kAnyDriver, Relevance::kMedium,
     "a burst takes more than half of a queue's FIFO",
     "the FIFO cannot hold a burst while it sends another", "ethtool -S IFACE for tx underflow",
     "dwmac4_dma.c dwmac4_dma_init_tx_chan, dwmac4_dma_tx_chan_op_mode", burst_against_fifo},
    {"DT-OLD-CORE-BURST", kRockchip, kAnyDriver, Relevance::kMedium,
     "RK3399 or RK3328 with the default TX burst",
     "public reports: transmit stalls for frames above about 1498 bytes; txpbl 4 cured them",
     "ethtool -K IFACE tx off as a test", "dwmac1000_dma.c dwmac1000_dma_init", old_core_burst},
    {"DT-AXI-BURSTS", kStmmac, kAnyDriver, Relevance::kMedium,
     "the AXI burst list says nothing usable", "6.12 sets no burst, 7.2 may reject the list",
     "dmesg", "stmmac_platform.c stmmac_axi_setup; stmmac_main.c stmmac_axi_blen_to_mask",
     bad_bursts},
    {"DT-PHP-GRF-SPELLING", kRockchip, kAnyDriver, Relevance::kHigh,
     "written for the other driver family", "this driver does not find its registers: no interface",
     "dmesg", "dwmac-rk.c rk_gmac_setup", php_grf},
    {"DT-CLOCK-DIRECTION", kRockchip, kAnyDriver, Relevance::kMedium, "no clock_in_out",
     "a board that feeds the clock from the SoC has no TX clock then", "dmesg",
     "dwmac-rk.c rk_gmac_setup", clock_direction},
    {"DT-FIFO-SPLIT", kStmmac, kAnyDriver, Relevance::kLow, "the TX FIFO is split",
     "bulk TCP has one share: GSO packets all go to queue 0", "ethtool -L IFACE tx 1 rx 1",
     "stmmac_main.c stmmac_dma_operation_mode, stmmac_select_queue", fifo_split},
    {"DT-QUEUES-ONE-LINE", kStmmac, kAnyDriver, Relevance::kLow,
     "several queues, one interrupt line", "all of them are served on one CPU", "/proc/interrupts",
     "stmmac_platform.c stmmac_get_platform_resources", one_line},
    {"DT-PAUSE-FIFO", kStmmac, kAnyDriver, Relevance::kLow,
     "an RX queue too small for pause frames", "receive overflow instead of a pause; lost ACKs",
     "ethtool -a IFACE; ethtool -S IFACE", "dwmac4_dma.c dwmac4_dma_rx_chan_op_mode", pause_fifo},
    {"DT-FIXED-AND-MIXED", kStmmac, kAnyDriver, Relevance::kLow,
     "fixed burst makes mixed burst void", "bus use only", "", "dwmac4_dma.c dwmac4_dma_init",
     both_bursts},
};

}  // namespace

std::span<const Rule> rules() {
    return kRules;
}

}  // namespace ringside::dt
