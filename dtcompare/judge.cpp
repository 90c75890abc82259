#include "dtcompare/judge.h"

#include <algorithm>
#include <functional>

#include "dtcompare/effective.h"
#include "dtcompare/resolve.h"

namespace ringside::dt {

namespace {

constexpr std::string_view kAbsentText = "absent";

// The same place of a controller in both trees.
struct NodePlace {
    Place place;
    NodeId a;
    NodeId b;
    std::string prefix;  // "queue1/" where there are several
};

struct ClockWeight {
    std::string_view name;
    Relevance transmit;
};
// By clock-names of stmmac and its Rockchip glue. What is not listed is not known to matter.
constexpr ClockWeight kStmmacClocks[] = {
    {"stmmaceth", Relevance::kMedium},     {"aclk_mac", Relevance::kMedium},
    {"pclk_mac", Relevance::kMedium},      {"mac_clk_tx", Relevance::kMedium},
    {"clk_mac_speed", Relevance::kMedium},
};

class Judge {
  public:
    Judge(const TreePair& pair, const ControllerView& a, const ControllerView& b)
        : pair_(pair), a_(a), b_(b) {}

    ControllerResult run();

  private:
    void identify();
    void judge_places();
    void judge_place(const NodePlace& place);
    void judge_entry(const NodePlace& place, const Knowledge& entry);
    void judge_part(const NodePlace& place, const Knowledge& entry);
    void judge_clocks(const NodePlace& place, const Knowledge& entry, const Property& a,
                      const Property& b);
    void judge_others(const NodePlace& place);
    void judge_other(const NodePlace& place, const Property* a, const Property* b);
    void judge_alias();
    void judge_status();
    void judge_rules();
    void add_queue_places(std::vector<NodePlace>& places, bool transmit) const;
    [[nodiscard]] std::vector<NodePlace> places() const;
    [[nodiscard]] Fact start_fact(const NodePlace& place, std::string_view property,
                                  const Property* a, const Property* b) const;
    [[nodiscard]] bool is_known(Place place, std::string_view property) const;
    void sort();

    const TreePair& pair_;
    const ControllerView& a_;
    const ControllerView& b_;
    ControllerResult result_;
};

std::string written(const ControllerView& view, NodeId node, const Property* property) {
    return property == nullptr ? std::string(kAbsentText)
                               : describe(*view.tree, view.numbering, node, *property, 400);
}

std::string path_of(const Tree& tree, NodeId node) {
    return node == kNoNode ? std::string() : tree.path(node);
}

Fact Judge::start_fact(const NodePlace& place, std::string_view property, const Property* a,
                       const Property* b) const {
    Fact fact;
    fact.property = place.prefix + std::string(property);
    fact.node_a = path_of(pair_.a, place.a);
    fact.node_b = path_of(pair_.b, place.b);
    fact.written_a = written(a_, place.a, a);
    fact.written_b = written(b_, place.b, b);
    return fact;
}

bool Judge::is_known(Place place, std::string_view property) const {
    return find_knowledge(place, property, a_.family | b_.family) != nullptr;
}

void Judge::identify() {
    result_.path_a = path_of(pair_.a, a_.mac);
    result_.path_b = path_of(pair_.b, b_.mac);
    result_.means = a_.mac == kNoNode ? Means::kNone : pair_.matching.means(a_.mac);
    result_.family = a_.family | b_.family;
    const ControllerView& either = a_.mac == kNoNode ? b_ : a_;
    result_.compatible = written(either, either.mac, either.tree->find(either.mac, "compatible"));
    result_.enabled_a = a_.mac != kNoNode && pair_.a.enabled(a_.mac);
    result_.enabled_b = b_.mac != kNoNode && pair_.b.enabled(b_.mac);
    result_.alias_a = alias_of(pair_.a, a_.mac);
    result_.alias_b = alias_of(pair_.b, b_.mac);
}

void Judge::add_queue_places(std::vector<NodePlace>& places, bool transmit) const {
    const auto in_a = a_.queues(transmit ? a_.mtl_tx : a_.mtl_rx);
    const auto in_b = b_.queues(transmit ? b_.mtl_tx : b_.mtl_rx);
    for (std::size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
        const NodeId a = i < in_a.size() ? in_a[i] : kNoNode;
        const NodeId b = i < in_b.size() ? in_b[i] : kNoNode;
        const std::string_view name = a != kNoNode ? pair_.a.node(a).name : pair_.b.node(b).name;
        places.push_back({transmit ? Place::kTxQueue : Place::kRxQueue, a, b,
                          std::string(transmit ? "tx " : "rx ") + std::string(name) + "/"});
    }
}

std::vector<NodePlace> Judge::places() const {
    if ((result_.family & (kPcieFamily | kPciePort)) != 0) {
        return {{Place::kPcie, a_.mac, b_.mac, ""}, {Place::kNic, a_.nic, b_.nic, "NIC/"}};
    }
    std::vector<NodePlace> places{{Place::kMac, a_.mac, b_.mac, ""},
                                  {Place::kMtlTx, a_.mtl_tx, b_.mtl_tx, ""},
                                  {Place::kMtlRx, a_.mtl_rx, b_.mtl_rx, ""},
                                  {Place::kAxi, a_.axi, b_.axi, "axi/"},
                                  {Place::kPhy, a_.phy, b_.phy, "phy/"}};
    add_queue_places(places, true);
    add_queue_places(places, false);
    return places;
}

// A reference whose node merely has another phandle is not worth a word.
bool is_same(const PropertyVerdict& verdict) {
    return verdict.sameness != Sameness::kDifferent &&
           (verdict.encodings & ~std::uint32_t{kPhandleNumber}) == 0;
}

// Where a meaning stands in other properties than the entry's own.
std::string moved_text(const ControllerView& view, const Knowledge& entry, const Property* own) {
    if (own == nullptr && entry.property == "reset-gpios" &&
        view.has(view.mac, "snps,reset-gpio")) {
        return "snps,reset-gpio on the MAC";
    }
    return {};
}

void Judge::judge_clocks(const NodePlace& place, const Knowledge& entry, const Property& a,
                         const Property& b) {
    const RefBinding& binding = *ref_binding("clocks");
    const auto in_a = resolve(pair_.a, place.a, a, binding);
    const auto in_b = resolve(pair_.b, place.b, b, binding);
    std::vector<std::string_view> names;
    for (const auto* list : {&in_a, &in_b}) {
        for (const Reference& clock : *list) {
            if (std::ranges::find(names, clock.name) == names.end()) {
                names.push_back(clock.name);
            }
        }
    }
    const auto clock_in = [](const std::vector<Reference>& list, std::string_view name) {
        const auto it = std::ranges::find(list, name, &Reference::name);
        return it == list.end() ? nullptr : &*it;
    };
    const auto text = [](const ControllerView& view, const Reference* clock) {
        return clock == nullptr ? std::string(kAbsentText)
                                : describe(*view.tree, view.numbering, "clocks", *clock);
    };
    for (const std::string_view name : names) {
        const Reference* clock_a = clock_in(in_a, name);
        const Reference* clock_b = clock_in(in_b, name);
        if (clock_a != nullptr && clock_b != nullptr &&
            same_reference(pair_, "clocks", *clock_a, *clock_b, true)) {
            continue;
        }
        Fact fact =
            start_fact(place, name.empty() ? "clocks" : "clocks: " + std::string(name), &a, &b);
        fact.entry = &entry;
        fact.written_a = fact.effective_a = text(a_, clock_a);
        fact.written_b = fact.effective_b = text(b_, clock_b);
        fact.relevance = entry.transmit;
        if ((result_.family & kStmmac) != 0) {
            const auto* weight = std::ranges::find(kStmmacClocks, name, &ClockWeight::name);
            fact.relevance = weight == std::end(kStmmacClocks) ? Relevance::kLow : weight->transmit;
        }
        fact.fact_class =
            fact.relevance == Relevance::kLow ? FactClass::kNeutral : FactClass::kTransmit;
        result_.facts.push_back(std::move(fact));
    }
}

void Judge::judge_entry(const NodePlace& place, const Knowledge& entry) {
    const Property* a = find_spelled(pair_.a, place.a, entry.property);
    const Property* b = find_spelled(pair_.b, place.b, entry.property);
    Fact fact = start_fact(place, entry.property, a, b);
    fact.entry = &entry;
    fact.effective_a = effective_value(a_, place.a, entry, a);
    fact.effective_b = effective_value(b_, place.b, entry, b);

    std::optional<PropertyVerdict> verdict;
    if (a != nullptr && b != nullptr) {
        verdict = compare_property(pair_, place.a, *a, place.b, *b);
        if (a->name != b->name) {
            verdict->encodings |= kSpelling;
            verdict->sameness = std::max(verdict->sameness, Sameness::kEquivalent);
        }
    }
    const bool by_reference = verdict && entry.effective == nullptr &&
                              entry.type == ValueType::kReferences &&
                              fact.effective_a != "not read" && fact.effective_b != "not read";
    const bool same_effect = by_reference ? verdict->sameness != Sameness::kDifferent
                                          : fact.effective_a == fact.effective_b;
    const bool same_text = verdict ? is_same(*verdict) : a == nullptr && b == nullptr;
    if (same_effect && same_text) {
        result_.same += a != nullptr ? 1 : 0;
        return;
    }
    if (!same_effect && by_reference && entry.property == "clocks") {
        judge_clocks(place, entry, *a, *b);
        return;
    }
    if (verdict && verdict->sameness == Sameness::kEquivalent) {
        fact.how = encoding_words(verdict->encodings);
    }
    for (const auto& [view, own, side] : {std::tuple{&a_, a, "A: "}, std::tuple{&b_, b, "B: "}}) {
        const std::string moved = moved_text(*view, entry, own);
        if (!moved.empty()) {
            fact.how.push_back(std::string(side) + moved);
        }
    }
    fact.relevance = entry.transmit;
    fact.fact_class = same_effect                         ? FactClass::kEquivalent
                      : entry.transmit == Relevance::kLow ? FactClass::kNeutral
                                                          : FactClass::kTransmit;
    result_.facts.push_back(std::move(fact));
}

void Judge::judge_other(const NodePlace& place, const Property* a, const Property* b) {
    const std::string_view name = a != nullptr ? a->name : b->name;
    if (is_bookkeeping_property(name) || name == "status" || is_known(place.place, name)) {
        return;
    }
    Fact fact = start_fact(place, name, a, b);
    if (a != nullptr && b != nullptr) {
        const PropertyVerdict verdict = compare_property(pair_, place.a, *a, place.b, *b);
        if (is_same(verdict) && a->name == b->name) {
            ++result_.same;
            return;
        }
        if (verdict.sameness != Sameness::kDifferent) {
            fact.fact_class = FactClass::kEquivalent;
            fact.how = encoding_words(verdict.encodings | (a->name == b->name ? 0U : kSpelling));
        }
    }
    fact.effective_a = fact.written_a;
    fact.effective_b = fact.written_b;
    result_.facts.push_back(std::move(fact));
}

void Judge::judge_others(const NodePlace& place) {
    if (place.a != kNoNode) {
        for (const Property& property : pair_.a.properties(place.a)) {
            judge_other(place, &property, find_spelled(pair_.b, place.b, property.name));
        }
    }
    if (place.b != kNoNode) {
        for (const Property& property : pair_.b.properties(place.b)) {
            if (find_spelled(pair_.a, place.a, property.name) == nullptr) {
                judge_other(place, nullptr, &property);
            }
        }
    }
}

// A property that is judged within another one, which found no difference in effect: say that it is
// written differently.
void Judge::judge_part(const NodePlace& place, const Knowledge& entry) {
    const Property* a = find_spelled(pair_.a, place.a, entry.property);
    const Property* b = find_spelled(pair_.b, place.b, entry.property);
    if (a == nullptr && b == nullptr) {
        return;
    }
    const bool same =
        a != nullptr && b != nullptr && is_same(compare_property(pair_, place.a, *a, place.b, *b));
    const bool said = std::ranges::any_of(result_.facts, [&](const Fact& fact) {
        return fact.entry != nullptr && fact.entry->property == entry.part_of;
    });
    if (same || said) {
        result_.same += same ? 1 : 0;
        return;
    }
    Fact fact = start_fact(place, entry.property, a, b);
    fact.entry = &entry;
    fact.fact_class = FactClass::kEquivalent;
    fact.relevance = entry.transmit;
    fact.effective_a = fact.written_a;
    fact.effective_b = fact.written_b;
    fact.how.push_back("judged with " + std::string(entry.part_of));
    result_.facts.push_back(std::move(fact));
}

void Judge::judge_place(const NodePlace& place) {
    if (place.a == kNoNode && place.b == kNoNode) {
        return;
    }
    for (const Knowledge& entry : knowledge()) {
        if (entry.place == place.place && (entry.families & result_.family) != 0 &&
            entry.part_of.empty()) {
            judge_entry(place, entry);
        }
    }
    judge_others(place);
}

void Judge::judge_alias() {
    if (result_.alias_a == result_.alias_b) {
        return;
    }
    Fact fact;
    fact.property = "alias";
    fact.node_a = result_.path_a;
    fact.node_b = result_.path_b;
    fact.written_a = result_.alias_a.empty() ? kAbsentText : result_.alias_a;
    fact.written_b = result_.alias_b.empty() ? kAbsentText : result_.alias_b;
    fact.effective_a = fact.written_a;
    fact.effective_b = fact.written_b;
    fact.how.emplace_back("numbers the interface, says nothing about the port");
    result_.facts.push_back(std::move(fact));
}

void Judge::judge_status() {
    if (result_.enabled_a == result_.enabled_b) {
        return;
    }
    Fact fact;
    fact.property = "status";
    fact.node_a = result_.path_a;
    fact.node_b = result_.path_b;
    const auto text = [](const std::string& path, bool enabled) {
        return std::string(path.empty() ? "no such node" : enabled ? "enabled" : "disabled");
    };
    fact.written_a = fact.effective_a = text(result_.path_a, result_.enabled_a);
    fact.written_b = fact.effective_b = text(result_.path_b, result_.enabled_b);
    fact.how.emplace_back("one side has no such port, so nothing else is judged");
    result_.facts.push_back(std::move(fact));
}

void Judge::judge_rules() {
    for (const Rule& rule : rules()) {
        const auto test = [&](const ControllerView& view) {
            return (rule.families & view.family) != 0 && (rule.drivers & mask(view.driver)) != 0
                       ? rule.holds(view)
                       : std::nullopt;
        };
        RuleFinding finding{&rule, test(a_), test(b_)};
        if (finding.detail_a || finding.detail_b) {
            result_.rules.push_back(std::move(finding));
        }
    }
}

void Judge::judge_places() {
    for (const NodePlace& place : places()) {
        judge_place(place);
    }
    // After all places: what a part belongs to may stand in another one.
    for (const NodePlace& place : places()) {
        for (const Knowledge& entry : knowledge()) {
            if (!entry.part_of.empty() && entry.place == place.place &&
                (entry.families & result_.family) != 0) {
                judge_part(place, entry);
            }
        }
    }
    judge_alias();
    judge_rules();
}

void Judge::sort() {
    // The table's order among equals; what is not in the table comes last, by name. Nothing here
    // depends on which tree is A.
    const auto key = [](const Fact& fact) {
        const std::size_t row = fact.entry == nullptr
                                    ? knowledge().size()
                                    : static_cast<std::size_t>(fact.entry - knowledge().data());
        return std::tuple(fact.fact_class, fact.relevance, row, std::cref(fact.property).get());
    };
    std::ranges::stable_sort(result_.facts,
                             [&](const Fact& x, const Fact& y) { return key(x) < key(y); });
}

ControllerResult Judge::run() {
    identify();
    if (result_.enabled_a && result_.enabled_b) {
        judge_places();
    } else {
        judge_status();
    }
    sort();
    return std::move(result_);
}

}  // namespace

bool is_bookkeeping_property(std::string_view name) {
    return name == "phandle" || name == "linux,phandle" || name == "name";
}

std::vector<std::string> encoding_words(std::uint32_t bits) {
    std::vector<std::string> words;
    for (const EncodingName& encoding : encoding_names()) {
        if ((bits & encoding.bit) != 0) {
            words.emplace_back(encoding.name);
        }
    }
    return words;
}

ControllerResult judge_controller(const TreePair& pair, const ControllerView& a,
                                  const ControllerView& b) {
    return Judge(pair, a, b).run();
}

}  // namespace ringside::dt
