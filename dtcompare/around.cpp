#include "dtcompare/around.h"

#include <algorithm>

#include "dtcompare/judge.h"

namespace ringside::dt {

namespace {

constexpr int kMaxHops = 2;

struct Edge {
    NodeId from;
    NodeId to;
};

// Lists per node, one behind the other: `key` is the node a list belongs to, `value` what is in it.
template <class Key, class Value>
void group(const std::vector<Edge>& edges, std::size_t nodes, Key key, Value value,
           std::vector<std::uint32_t>& start, std::vector<NodeId>& list) {
    start.assign(nodes + 1, 0);
    for (const Edge& edge : edges) {
        ++start[key(edge) + 1];
    }
    for (std::size_t i = 1; i <= nodes; ++i) {
        start[i] += start[i - 1];
    }
    list.resize(edges.size());
    std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
    for (const Edge& edge : edges) {
        list[next[key(edge)]++] = value(edge);
    }
}

std::string text_or_absent(const Tree& tree, Numbering numbering, NodeId node,
                           const Property* property) {
    return property == nullptr ? "absent" : describe(tree, numbering, node, *property);
}

// Calls `visit(a, b)` for each property of two paired nodes, null for the side that lacks it.
template <class Visit>
void for_each_property(const TreePair& pair, NodeId a, NodeId b, Visit visit) {
    std::size_t seen_b = 0;
    for (const Property& property : pair.a.properties(a)) {
        const Property* other = find_spelled(pair.b, b, property.name);
        seen_b += other != nullptr && other->name == property.name ? 1 : 0;
        visit(&property, other);
    }
    if (seen_b == pair.b.properties(b).size()) {
        return;
    }
    for (const Property& property : pair.b.properties(b)) {
        if (find_spelled(pair.a, a, property.name) == nullptr) {
            visit(nullptr, &property);
        }
    }
}

struct Difference {
    bool raw = false;  // the bytes or the names differ
    bool meaning = false;
    std::uint32_t encodings = 0;
};

// Of two properties with one name the first counts, as in the kernel.
bool is_shadowed(const Tree& tree, NodeId node, const Property* property) {
    return property != nullptr && tree.find(node, property->name) != property;
}

Difference compare_pair(const TreePair& pair, NodeId node_a, const Property* a, NodeId node_b,
                        const Property* b) {
    const std::string_view name = a != nullptr ? a->name : b->name;
    const bool same_bytes = a != nullptr && b != nullptr && a->name == b->name &&
                            std::ranges::equal(a->bytes, b->bytes);
    if (is_bookkeeping_property(name)) {
        const bool shadowed = is_shadowed(pair.a, node_a, a) || is_shadowed(pair.b, node_b, b);
        return {!same_bytes && !shadowed, false, kBookkeeping};
    }
    if (a == nullptr || b == nullptr) {
        return {true, true, 0};
    }
    const PropertyVerdict verdict = compare_property(pair, node_a, *a, node_b, *b);
    if ((!same_bytes || verdict.sameness == Sameness::kDifferent) &&
        (is_shadowed(pair.a, node_a, a) || is_shadowed(pair.b, node_b, b))) {
        return {};
    }
    if (verdict.sameness == Sameness::kDifferent) {
        return {true, true, 0};
    }
    return {!same_bytes || verdict.sameness == Sameness::kEquivalent, false,
            verdict.encodings | (a->name == b->name ? 0U : std::uint32_t{kSpelling})};
}

class Counter {
  public:
    Counter() { counts_.by_encoding.assign(encoding_names().size(), 0); }

    void add(const Difference& difference, bool in_scope) {
        if (!difference.raw) {
            return;
        }
        ++counts_.total;
        if (difference.meaning) {
            ++(in_scope ? counts_.in_scope : counts_.elsewhere);
            return;
        }
        ++counts_.encoding;
        for (std::size_t i = 0; i < encoding_names().size(); ++i) {
            counts_.by_encoding[i] += (difference.encodings & encoding_names()[i].bit) != 0 ? 1 : 0;
        }
    }
    // A node without a partner: all its properties differ.
    void add_alone(const Tree& tree, NodeId node, bool in_scope) {
        const bool bookkeeping = tree.is_bookkeeping(node);
        for (const Property& property : tree.properties(node)) {
            const bool noise = bookkeeping || is_bookkeeping_property(property.name);
            add({true, !noise, noise ? std::uint32_t{kBookkeeping} : 0U}, in_scope);
        }
    }
    RawCounts take() { return std::move(counts_); }

  private:
    RawCounts counts_;
};

}  // namespace

References::References(const Tree& tree) {
    std::vector<Edge> edges;
    edges.reserve(tree.size());
    for (NodeId id = 0; id < tree.size(); ++id) {
        if (tree.is_bookkeeping(id)) {
            continue;
        }
        for (const Property& property : tree.properties(id)) {
            const RefBinding* binding =
                property.bytes.size() < 4 ? nullptr : ref_binding(property.name);
            if (binding == nullptr) {
                continue;
            }
            const bool pins = binding->property == "pinctrl-" || binding->form == RefForm::kPins;
            for (const Reference& reference : resolve(tree, id, property, *binding, &problems_)) {
                if (reference.target != kNoNode && !pins) {
                    edges.push_back({id, reference.target});
                }
            }
        }
    }
    const auto from = [](const Edge& edge) { return edge.from; };
    const auto to = [](const Edge& edge) { return edge.to; };
    group(edges, tree.size(), from, to, from_start_, from_);
    group(edges, tree.size(), to, from, to_start_, to_);
}

std::span<const NodeId> References::from(NodeId node) const {
    return {from_.data() + from_start_[node], from_start_[node + 1] - from_start_[node]};
}

std::span<const NodeId> References::to(NodeId node) const {
    return {to_.data() + to_start_[node], to_start_[node + 1] - to_start_[node]};
}

std::vector<NodeId> subtree(const Tree& tree, NodeId node) {
    std::vector<NodeId> nodes{node};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (NodeId c = tree.node(nodes[i]).first_child; c != kNoNode;
             c = tree.node(c).next_sibling) {
            nodes.push_back(c);
        }
    }
    return nodes;
}

std::vector<int> distances(const Tree& tree, const References& references,
                           const std::vector<NodeId>& own) {
    std::vector<int> distance(tree.size(), kFar);
    for (const NodeId node : own) {
        distance[node] = 0;
    }
    std::vector<NodeId> front = own;
    for (int hop = 1; hop <= kMaxHops; ++hop) {
        std::vector<NodeId> next;
        for (const NodeId node : front) {
            for (const NodeId target : references.from(node)) {
                if (distance[target] == kFar) {
                    distance[target] = hop;
                    next.push_back(target);
                }
            }
        }
        front = std::move(next);
    }
    for (const NodeId node : own) {
        for (const NodeId source : references.to(node)) {
            if (distance[source] == kFar) {
                distance[source] = -1;
            }
        }
    }
    return distance;
}

NodeDifference compare_nodes(const TreePair& pair, NodeId a, NodeId b) {
    NodeDifference difference;
    difference.path_a = a == kNoNode ? "" : pair.a.path(a);
    difference.path_b = b == kNoNode ? "" : pair.b.path(b);
    difference.disabled_a = a != kNoNode && !pair.a.enabled(a);
    difference.disabled_b = b != kNoNode && !pair.b.enabled(b);
    if (a == kNoNode || b == kNoNode) {
        return difference;
    }
    difference.means = pair.matching.means(a);
    for_each_property(pair, a, b, [&](const Property* x, const Property* y) {
        const Difference found = compare_pair(pair, a, x, b, y);
        difference.explained += found.raw && !found.meaning ? 1 : 0;
        if (found.meaning) {
            difference.properties.push_back({std::string(x != nullptr ? x->name : y->name),
                                             text_or_absent(pair.a, pair.numbering_a, a, x),
                                             text_or_absent(pair.b, pair.numbering_b, b, y)});
        }
    });
    std::ranges::sort(difference.properties, {}, &PropertyDifference::name);
    return difference;
}

RawCounts count_raw(const TreePair& pair, const std::vector<bool>& scope_a,
                    const std::vector<bool>& scope_b) {
    Counter counter;
    for (NodeId a = 0; a < pair.a.size(); ++a) {
        const NodeId b = pair.matching.in_b(a);
        if (b == kNoNode) {
            counter.add_alone(pair.a, a, scope_a[a]);
            continue;
        }
        if (pair.a.is_bookkeeping(a)) {
            continue;  // counted below as far as one side has more of it
        }
        for_each_property(pair, a, b, [&](const Property* x, const Property* y) {
            counter.add(compare_pair(pair, a, x, b, y), scope_a[a] || scope_b[b]);
        });
    }
    for (NodeId b = 0; b < pair.b.size(); ++b) {
        if (pair.matching.in_a(b) == kNoNode) {
            counter.add_alone(pair.b, b, scope_b[b]);
        }
    }
    return counter.take();
}

}  // namespace ringside::dt
