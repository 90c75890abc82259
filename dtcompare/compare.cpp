#include "dtcompare/compare.h"

#include <algorithm>

#include "dtcompare/around.h"
#include "dtcompare/judge.h"

namespace ringside::dt {

namespace {

constexpr std::size_t kMaxUnresolved = 20;

SideInfo describe_side(const LoadedTree& loaded, const std::optional<DriverChoice>& driver,
                       const References& references) {
    SideInfo side;
    side.name = loaded.name;
    side.part = loaded.part;
    side.kind = loaded.kind;
    side.model = loaded.tree.text(loaded.tree.root(), "model");
    side.overlays = loaded.overlays;
    side.notes = loaded.notes;
    side.numbering = guess_numbering(loaded.tree);
    side.driver = driver ? *driver : guess_driver(loaded, side.numbering);
    side.nodes = loaded.tree.size();
    side.properties = loaded.tree.property_count();
    for (const Problem& problem : references.problems()) {
        if (side.unresolved.size() == kMaxUnresolved) {
            side.unresolved.emplace_back("and more");
            break;
        }
        side.unresolved.push_back(loaded.tree.path(problem.node) + ": " +
                                  std::string(problem.property) + ": " + problem.what);
    }
    return side;
}

class Comparer {
  public:
    Comparer(const LoadedTree& a, const LoadedTree& b, const Options& options)
        : references_a_(a.tree),
          references_b_(b.tree),
          matching_(a.tree, b.tree),
          pair_{a.tree, b.tree, matching_},
          options_(options),
          scope_a_(a.tree.size()),
          scope_b_(b.tree.size()) {
        result_.a = describe_side(a, options.driver_a, references_a_);
        result_.b = describe_side(b, options.driver_b, references_b_);
        // Without a sign in the tree the driver's family is the best guess at the numbering.
        pair_.numbering_a = settle(result_.a);
        pair_.numbering_b = settle(result_.b);
    }

    Result<Comparison> run();

  private:
    static Numbering settle(SideInfo& side) {
        if (side.numbering == Numbering::kUnknown && !side.driver.guessed) {
            side.numbering =
                side.driver.driver == Driver::kVendor61 ? Numbering::kVendor : Numbering::kMainline;
        }
        return side.numbering;
    }
    [[nodiscard]] std::vector<std::pair<NodeId, NodeId>> controllers() const;
    [[nodiscard]] NodeId find_node(const Tree& tree) const;
    void add_controller(NodeId a, NodeId b);
    void add_around(ControllerResult& result, const ControllerView& view_a,
                    const ControllerView& view_b, const std::vector<int>& in_a,
                    const std::vector<int>& in_b);
    void add_elsewhere();
    void add_deltas();
    void conclude();

    References references_a_;
    References references_b_;
    Matching matching_;
    TreePair pair_;
    const Options& options_;
    std::vector<bool> scope_a_;
    std::vector<bool> scope_b_;
    Comparison result_;
};

NodeId Comparer::find_node(const Tree& tree) const {
    if (options_.node.starts_with('/')) {
        return tree.by_path(options_.node);
    }
    for (NodeId id = 0; id < tree.size(); ++id) {
        if (tree.label(id) == options_.node || tree.node(id).name == options_.node) {
            return id;
        }
    }
    return kNoNode;
}

// Pairs of controllers: a node that is one in either tree counts in both.
std::vector<std::pair<NodeId, NodeId>> Comparer::controllers() const {
    std::vector<std::pair<NodeId, NodeId>> pairs;
    for (const NodeId a : find_controllers(pair_.a)) {
        pairs.emplace_back(a, matching_.in_b(a));
    }
    for (const NodeId b : find_controllers(pair_.b)) {
        const NodeId a = matching_.in_a(b);
        const auto known = [&](const auto& pair) { return pair.second == b; };
        if (std::ranges::none_of(pairs, known)) {
            pairs.emplace_back(a, b);
        }
    }
    return pairs;
}

std::vector<NodeId> own_nodes(const ControllerView& view) {
    if (view.mac == kNoNode) {
        return {};
    }
    std::vector<NodeId> own = subtree(*view.tree, view.mac);
    for (const NodeId node : {view.axi, view.mtl_tx, view.mtl_rx, view.phy}) {
        if (node == kNoNode || std::ranges::find(own, node) != own.end()) {
            continue;
        }
        const auto below = subtree(*view.tree, node);
        own.insert(own.end(), below.begin(), below.end());
    }
    return own;
}

void Comparer::add_controller(NodeId a, NodeId b) {
    const ControllerView view_a =
        view_controller(pair_.a, a, pair_.numbering_a, result_.a.driver.driver);
    const ControllerView view_b =
        view_controller(pair_.b, b, pair_.numbering_b, result_.b.driver.driver);
    ControllerResult result = judge_controller(pair_, view_a, view_b);
    const auto in_a = distances(pair_.a, references_a_, own_nodes(view_a));
    const auto in_b = distances(pair_.b, references_b_, own_nodes(view_b));
    if (result.enabled_a && result.enabled_b) {
        add_around(result, view_a, view_b, in_a, in_b);
    }
    for (NodeId id = 0; id < in_a.size(); ++id) {
        scope_a_[id] = scope_a_[id] || in_a[id] != kFar;
    }
    for (NodeId id = 0; id < in_b.size(); ++id) {
        scope_b_[id] = scope_b_[id] || in_b[id] != kFar;
    }
    result_.controllers.push_back(std::move(result));
}

// Nodes whose every property the judge has looked at: they are facts already, or not worth one.
std::vector<NodeId> judged_nodes(const ControllerView& view) {
    std::vector<NodeId> nodes{view.mac, view.axi, view.mtl_tx, view.mtl_rx, view.phy, view.nic};
    for (const NodeId mtl : {view.mtl_tx, view.mtl_rx}) {
        const auto queues = view.queues(mtl);
        nodes.insert(nodes.end(), queues.begin(), queues.end());
    }
    return nodes;
}

void Comparer::add_around(ControllerResult& result, const ControllerView& view_a,
                          const ControllerView& view_b, const std::vector<int>& in_a,
                          const std::vector<int>& in_b) {
    const auto judged_a = judged_nodes(view_a);
    const auto judged_b = judged_nodes(view_b);
    const auto is_judged = [](const std::vector<NodeId>& judged, NodeId node) {
        return node != kNoNode && std::ranges::find(judged, node) != judged.end();
    };
    const auto add = [&](NodeId a, NodeId b, int hops) {
        if (is_judged(judged_a, a) || is_judged(judged_b, b)) {
            return;
        }
        ++result.around_nodes;
        NodeDifference difference = compare_nodes(pair_, a, b);
        difference.hops = hops;
        const bool alone = a == kNoNode || b == kNoNode;
        if (alone || !difference.properties.empty()) {
            result.around.push_back(std::move(difference));
        }
    };
    for (NodeId a = 0; a < in_a.size(); ++a) {
        const NodeId b = matching_.in_b(a);
        const int other = b == kNoNode ? kFar : in_b[b];
        if (in_a[a] != kFar) {
            // Reached on both sides: the nearer counts, whichever tree is A.
            add(a, b, other == kFar || std::abs(in_a[a]) <= std::abs(other) ? in_a[a] : other);
        }
    }
    for (NodeId b = 0; b < in_b.size(); ++b) {
        const NodeId a = matching_.in_a(b);
        if (in_b[b] != kFar && (a == kNoNode || in_a[a] == kFar)) {
            add(a, b, in_b[b]);
        }
    }
    std::ranges::stable_sort(result.around, [](const NodeDifference& x, const NodeDifference& y) {
        const auto key = [](const NodeDifference& d) {
            const auto path = [](const std::string& one, const std::string& other) {
                return one.empty() ? other : other.empty() ? one : std::min(one, other);
            };
            return std::pair(std::abs(d.hops), path(d.path_a, d.path_b));
        };
        return key(x) < key(y);
    });
}

void Comparer::add_elsewhere() {
    const auto add = [&](NodeId a, NodeId b) {
        NodeDifference difference = compare_nodes(pair_, a, b);
        if (a == kNoNode || b == kNoNode || !difference.properties.empty()) {
            result_.elsewhere.push_back(std::move(difference));
        }
    };
    for (NodeId a = 0; a < pair_.a.size(); ++a) {
        const NodeId b = matching_.in_b(a);
        const bool scoped = scope_a_[a] || (b != kNoNode && scope_b_[b]);
        if (!scoped && !pair_.a.is_bookkeeping(a)) {
            add(a, b);
        }
    }
    for (NodeId b = 0; b < pair_.b.size(); ++b) {
        if (matching_.in_a(b) == kNoNode && !scope_b_[b] && !pair_.b.is_bookkeeping(b)) {
            add(kNoNode, b);
        }
    }
}

void Comparer::add_deltas() {
    const auto a = static_cast<std::size_t>(result_.a.driver.driver);
    const auto b = static_cast<std::size_t>(result_.b.driver.driver);
    const bool stmmac = std::ranges::any_of(result_.controllers, [](const ControllerResult& c) {
        return (c.family & kStmmac) != 0 && c.enabled_a && c.enabled_b;
    });
    for (const DriverDelta& delta : driver_deltas()) {
        const bool known = delta.values[a] != "not read" && delta.values[b] != "not read";
        if (stmmac && known && delta.values[a] != delta.values[b]) {
            result_.cannot_show.push_back(&delta);
        }
    }
}

void Comparer::conclude() {
    result_.raw = count_raw(pair_, scope_a_, scope_b_);
    result_.equal = std::ranges::all_of(result_.controllers, [](const ControllerResult& c) {
        return c.count(FactClass::kTransmit) + c.count(FactClass::kNeutral) + c.around.size() == 0;
    });
    if (options_.all || result_.controllers.empty()) {
        result_.equal = result_.equal && result_.raw.elsewhere == 0 && result_.elsewhere.empty();
    }
    // The controller that has something to say first; disabled ones last.
    const auto rank = [](const ControllerResult& c) {
        const bool on = c.enabled_a || c.enabled_b;
        const std::string& path = c.path_a.empty()   ? c.path_b
                                  : c.path_b.empty() ? c.path_a
                                                     : std::min(c.path_a, c.path_b);
        const int best = c.facts.empty() || c.facts.front().fact_class != FactClass::kTransmit
                             ? 3
                             : static_cast<int>(c.facts.front().relevance);
        return std::tuple(!on, best, path);
    };
    std::ranges::stable_sort(
        result_.controllers,
        [&](const ControllerResult& x, const ControllerResult& y) { return rank(x) < rank(y); });
}

Result<Comparison> Comparer::run() {
    if (options_.node.empty()) {
        for (const auto& [a, b] : controllers()) {
            add_controller(a, b);
        }
    } else {
        NodeId a = find_node(pair_.a);
        NodeId b = find_node(pair_.b);
        if (a == kNoNode && b == kNoNode) {
            return fail(
                Error(ErrorCode::kUsage, "no node or label '" + options_.node + "' in either tree")
                    .hint("give a path such as /ethernet@fe1c0000, or a label"));
        }
        a = a == kNoNode ? matching_.in_a(b) : a;
        b = a == kNoNode ? b : matching_.in_b(a);
        add_controller(a, b);
    }
    if (options_.all) {
        add_elsewhere();
    }
    add_deltas();
    conclude();
    return std::move(result_);
}

}  // namespace

std::string_view fact_class_name(FactClass fact_class) {
    constexpr std::string_view kNames[] = {"transmit", "neutral", "equivalent"};
    return kNames[static_cast<std::size_t>(fact_class)];
}

std::size_t ControllerResult::count(FactClass fact_class) const {
    return static_cast<std::size_t>(std::ranges::count(facts, fact_class, &Fact::fact_class));
}

Result<Comparison> compare(const LoadedTree& a, const LoadedTree& b, const Options& options) {
    return Comparer(a, b, options).run();
}

}  // namespace ringside::dt
