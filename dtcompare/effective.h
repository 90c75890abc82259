// Values that follow from more than one property. Named in the knowledge table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dtcompare/knowledge.h"

namespace ringside::dt {

std::string effective_core(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_tso(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_tx_burst(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_rx_burst(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_mixed_burst(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_axi_node(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_axi_limit(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_axi_bursts(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_tx_queues(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_rx_queues(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_scheduler(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_fifo(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_tx_delay(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_rx_delay(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_phy_mode(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_php_grf(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_speed(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_reset(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_rates(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_iommu(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_queue_lines(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_presence(const ControllerView&, NodeId, const Knowledge&, const Property*);
std::string effective_queue_mode(const ControllerView&, NodeId, const Knowledge&, const Property*);

// Shared with the rules.
std::uint32_t queue_count(const ControllerView& view, bool transmit);
// Beats of one transmit burst: txpbl, else pbl, else 8; times 8 unless no-pbl-x8.
std::uint32_t tx_burst_beats(const ControllerView& view);
std::uint32_t tx_pbl(const ControllerView& view);

}  // namespace ringside::dt
