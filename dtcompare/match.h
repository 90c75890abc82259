// Which node of tree A is which node of tree B.
#pragma once

#include <string_view>
#include <vector>

#include "dtcompare/tree.h"

namespace ringside::dt {

// By which means a pair was found, strongest first.
enum class Means {
    kNone,
    kPath,         // same path
    kUnitAddress,  // same unit address, with the same registers or a common compatible
    kLabel,        // same label in both __symbols__
    kRole,  // the only candidate for the same job: same words, same compatible, same reference
};
std::string_view means_name(Means means);

class Matching {
  public:
    Matching(const Tree& a, const Tree& b);

    [[nodiscard]] NodeId in_b(NodeId a) const { return a == kNoNode ? kNoNode : to_b_[a]; }
    [[nodiscard]] NodeId in_a(NodeId b) const { return b == kNoNode ? kNoNode : to_a_[b]; }
    // How a node of A was paired; kNone when it was not.
    [[nodiscard]] Means means(NodeId a) const { return means_[a]; }

  private:
    [[nodiscard]] bool is_free(NodeId a, NodeId b) const {
        return to_b_[a] == kNoNode && to_a_[b] == kNoNode;
    }
    void pair(NodeId a, NodeId b, Means means);
    void pair_children(NodeId a, NodeId b);
    void pair_same_names(NodeId a, NodeId b);
    template <class Same>
    void pair_unique(NodeId a, NodeId b, Means means, Same same);
    void pair_labels();
    void pair_moved();
    void pair_moved_parents(NodeId a, NodeId b);
    void pair_by_reference();

    const Tree& a_;
    const Tree& b_;
    std::vector<NodeId> to_b_;
    std::vector<NodeId> to_a_;
    std::vector<Means> means_;
};

}  // namespace ringside::dt
