// What stands around a controller: the nodes it refers to and those that refer to it; and the count
// of raw differences over whole trees.
#pragma once

#include <vector>

#include "dtcompare/compare.h"
#include "dtcompare/meaning.h"
#include "dtcompare/resolve.h"

namespace ringside::dt {

// All references of a tree, in both directions. References to pin groups are left out: pins are
// compared by what they set.
class References {
  public:
    explicit References(const Tree& tree);

    [[nodiscard]] std::span<const NodeId> from(NodeId node) const;
    [[nodiscard]] std::span<const NodeId> to(NodeId node) const;
    [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

  private:
    std::vector<std::uint32_t> from_start_;
    std::vector<NodeId> from_;
    std::vector<std::uint32_t> to_start_;
    std::vector<NodeId> to_;
    std::vector<Problem> problems_;
};

// Nodes reached, each with its distance: 0 the controller's own, 1 and 2 referred to, -1 refers to
// it. kFar: not reached.
constexpr int kFar = 1000;
std::vector<int> distances(const Tree& tree, const References& references,
                           const std::vector<NodeId>& own);
// A node with everything below it.
std::vector<NodeId> subtree(const Tree& tree, NodeId node);

// How two nodes differ; nothing in `properties` when they do not.
NodeDifference compare_nodes(const TreePair& pair, NodeId a, NodeId b);

// Counts raw differences over both trees. `scope_a`, `scope_b`: per node, in the scope of a
// controller.
RawCounts count_raw(const TreePair& pair, const std::vector<bool>& scope_a,
                    const std::vector<bool>& scope_b);

}  // namespace ringside::dt
