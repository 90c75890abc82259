#include "dtcompare/match.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "dtcompare/resolve.h"

namespace ringside::dt {

namespace {

bool same_bytes(const Property* a, const Property* b) {
    return a != nullptr && b != nullptr &&
           std::equal(a->bytes.begin(), a->bytes.end(), b->bytes.begin(), b->bytes.end());
}

bool share_compatible(const Tree& a, NodeId node_a, const Tree& b, NodeId node_b) {
    const Property* compatible = a.find(node_a, "compatible");
    const auto words = compatible == nullptr ? std::nullopt : read_strings(compatible->bytes);
    return words && std::any_of(words->begin(), words->end(), [&](std::string_view word) {
               return b.compatible_with(node_b, word);
           });
}

bool same_address(const Tree& a, NodeId node_a, const Tree& b, NodeId node_b) {
    const std::string_view unit = unit_address(a.node(node_a).name);
    return !unit.empty() && unit == unit_address(b.node(node_b).name) &&
           (share_compatible(a, node_a, b, node_b) ||
            same_bytes(a.find(node_a, "reg"), b.find(node_b, "reg")));
}

// "cluster0-opp-table" and "opp-table-cluster0": the same words in another order.
std::string sorted_words(std::string_view name) {
    std::vector<std::string> words(1);
    for (const char c : name) {
        if (c == '-' || c == '_' || c == '@') {
            words.emplace_back();
        } else {
            words.back() += c;
        }
    }
    std::sort(words.begin(), words.end());
    std::string joined;
    for (const std::string& word : words) {
        joined += word + '-';
    }
    return joined;
}

// A node without unit address has a job of its own when nothing beside it has its compatible.
bool same_job(const Tree& a, NodeId node_a, const Tree& b, NodeId node_b) {
    const std::string_view name_a = a.node(node_a).name;
    const std::string_view name_b = b.node(node_b).name;
    if (!unit_address(name_a).empty() || !unit_address(name_b).empty()) {
        return false;
    }
    return sorted_words(name_a) == sorted_words(name_b) ||
           same_bytes(a.find(node_a, "compatible"), b.find(node_b, "compatible"));
}

}  // namespace

std::string_view means_name(Means means) {
    switch (means) {
        case Means::kNone:
            return "one side only";
        case Means::kPath:
            return "path";
        case Means::kUnitAddress:
            return "unit address";
        case Means::kLabel:
            return "label";
        case Means::kRole:
            return "role";
    }
    return "";
}

Matching::Matching(const Tree& a, const Tree& b)
    : a_(a),
      b_(b),
      to_b_(a.size(), kNoNode),
      to_a_(b.size(), kNoNode),
      means_(a.size(), Means::kNone) {
    pair(a.root(), b.root(), Means::kPath);
    pair_labels();
    pair_moved();
    pair_by_reference();
}

void Matching::pair(NodeId a, NodeId b, Means means) {
    to_b_[a] = b;
    to_a_[b] = a;
    means_[a] = means;
    pair_children(a, b);
}

void Matching::pair_same_names(NodeId a, NodeId b) {
    // Trees of one family keep the order, so the search goes on from the last hit.
    NodeId next = b_.node(b).first_child;
    for (NodeId child = a_.node(a).first_child; child != kNoNode;
         child = a_.node(child).next_sibling) {
        const std::string_view name = a_.node(child).name;
        NodeId found = kNoNode;
        for (NodeId c = next; c != kNoNode && found == kNoNode; c = b_.node(c).next_sibling) {
            found = b_.node(c).name == name ? c : kNoNode;
        }
        if (found == kNoNode) {
            found = b_.child(b, name);
        }
        if (found != kNoNode && is_free(child, found)) {
            pair(child, found, Means::kPath);
            next = b_.node(found).next_sibling;
        }
    }
}

// Pairs free children for which `same` holds, unless one has two candidates.
template <class Same>
void Matching::pair_unique(NodeId a, NodeId b, Means means, Same same) {
    const auto free_match = [&](NodeId from, NodeId in, bool forward) {
        NodeId found = kNoNode;
        const Tree& tree = forward ? b_ : a_;
        for (NodeId c = tree.node(in).first_child; c != kNoNode; c = tree.node(c).next_sibling) {
            const bool hit =
                forward ? is_free(from, c) && same(from, c) : is_free(c, from) && same(c, from);
            if (hit) {
                if (found != kNoNode) {
                    return kNoNode;
                }
                found = c;
            }
        }
        return found;
    };
    for (NodeId child = a_.node(a).first_child; child != kNoNode;
         child = a_.node(child).next_sibling) {
        if (to_b_[child] != kNoNode) {
            continue;
        }
        const NodeId found = free_match(child, b, true);
        if (found != kNoNode && free_match(found, a, false) == child) {
            pair(child, found, means);
        }
    }
}

void Matching::pair_children(NodeId a, NodeId b) {
    if (a_.node(a).first_child == kNoNode || b_.node(b).first_child == kNoNode) {
        return;
    }
    pair_same_names(a, b);
    const auto all_paired = [](const Tree& tree, NodeId parent, const std::vector<NodeId>& to) {
        for (NodeId c = tree.node(parent).first_child; c != kNoNode;
             c = tree.node(c).next_sibling) {
            if (to[c] == kNoNode) {
                return false;
            }
        }
        return true;
    };
    if (all_paired(a_, a, to_b_) || all_paired(b_, b, to_a_)) {
        return;
    }
    pair_unique(a, b, Means::kUnitAddress,
                [this](NodeId x, NodeId y) { return same_address(a_, x, b_, y); });
    pair_unique(a, b, Means::kRole, [this](NodeId x, NodeId y) { return same_job(a_, x, b_, y); });
}

void Matching::pair_labels() {
    if (!a_.has_symbols() || !b_.has_symbols()) {
        return;
    }
    std::unordered_map<std::string_view, NodeId> labels;
    for (NodeId b = 0; b < b_.size(); ++b) {
        if (to_a_[b] == kNoNode && !b_.label(b).empty()) {
            labels.emplace(b_.label(b), b);
        }
    }
    for (NodeId a = 0; a < a_.size(); ++a) {
        const auto it = labels.find(a_.label(a));
        if (to_b_[a] == kNoNode && it != labels.end() && is_free(a, it->second)) {
            pair(a, it->second, Means::kLabel);
        }
    }
}

// Nodes below a bus that was renamed or split: the same name with a unit address, once in each
// tree.
void Matching::pair_moved() {
    struct Seen {
        NodeId node;
        bool twice;
    };
    const auto index = [](const Tree& tree, const std::vector<NodeId>& to) {
        std::unordered_map<std::string_view, Seen> names;
        for (NodeId id = 0; id < tree.size(); ++id) {
            const std::string_view name = tree.node(id).name;
            if (to[id] == kNoNode && !unit_address(name).empty()) {
                const auto [it, fresh] = names.emplace(name, Seen{id, false});
                it->second.twice = !fresh;
            }
        }
        return names;
    };
    const auto in_a = index(a_, to_b_);
    const auto in_b = index(b_, to_a_);
    for (const auto& [name, seen] : in_a) {
        const auto it = in_b.find(name);
        if (seen.twice || it == in_b.end() || it->second.twice ||
            !is_free(seen.node, it->second.node) ||
            !same_address(a_, seen.node, b_, it->second.node)) {
            continue;
        }
        pair(seen.node, it->second.node, Means::kUnitAddress);
        pair_moved_parents(seen.node, it->second.node);
    }
}

void Matching::pair_moved_parents(NodeId a, NodeId b) {
    for (a = a_.node(a).parent, b = b_.node(b).parent;
         a != kNoNode && b != kNoNode && is_free(a, b);
         a = a_.node(a).parent, b = b_.node(b).parent) {
        pair(a, b, Means::kRole);
    }
}

// What a pair refers to by the same property is a pair too: the PHY, the queue and AXI settings.
void Matching::pair_by_reference() {
    constexpr std::string_view kRoles[] = {"phy-handle",         "snps,mtl-tx-config",
                                           "snps,mtl-rx-config", "snps,axi-config",
                                           "phy-supply",         "operating-points-v2"};
    for (NodeId a = 0; a < a_.size(); ++a) {
        const NodeId b = to_b_[a];
        if (b == kNoNode) {
            continue;
        }
        for (const std::string_view role : kRoles) {
            const auto from = a_.cell(a, role);
            const auto to = from ? b_.cell(b, role) : std::nullopt;
            const NodeId x = to ? a_.by_phandle(*from) : kNoNode;
            const NodeId y = to ? b_.by_phandle(*to) : kNoNode;
            if (x != kNoNode && y != kNoNode && is_free(x, y)) {
                pair(x, y, Means::kRole);
            }
        }
    }
}

}  // namespace ringside::dt
