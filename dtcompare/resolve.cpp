#include "dtcompare/resolve.h"

#include <algorithm>
#include <unordered_map>

namespace ringside::dt {

namespace {

constexpr std::string_view kNoNames;

constexpr RefBinding list(std::string_view property, std::string_view cells, std::string_view names,
                          int default_cells = -1) {
    return {property, cells, names, RefForm::kList, default_cells};
}
constexpr RefBinding phandles(std::string_view property, std::string_view names = kNoNames) {
    return {property, {}, names, RefForm::kPhandles, 0};
}

constexpr RefBinding kBindings[] = {
    list("clocks", "#clock-cells", "clock-names"),
    list("assigned-clocks", "#clock-cells", kNoNames),
    list("assigned-clock-parents", "#clock-cells", kNoNames),
    list("resets", "#reset-cells", "reset-names"),
    list("power-domains", "#power-domain-cells", "power-domain-names"),
    list("interrupts-extended", "#interrupt-cells", "interrupt-names"),
    list("dmas", "#dma-cells", "dma-names"),
    list("mboxes", "#mbox-cells", "mbox-names"),
    list("hwlocks", "#hwlock-cells", "hwlock-names"),
    list("phys", "#phy-cells", "phy-names"),
    list("iommus", "#iommu-cells", "iommu-names"),
    list("msi-parent", "#msi-cells", kNoNames, 0),
    list("interconnects", "#interconnect-cells", kNoNames),
    list("io-channels", "#io-channel-cells", "io-channel-names"),
    list("thermal-sensors", "#thermal-sensor-cells", kNoNames),
    list("cooling-device", "#cooling-cells", kNoNames),
    list("pwms", "#pwm-cells", "pwm-names"),
    list("sound-dai", "#sound-dai-cells", kNoNames, 0),
    list("nvmem-cells", "#nvmem-cell-cells", "nvmem-cell-names", 0),
    list("trigger-sources", "#trigger-source-cells", kNoNames, 0),
    list("gpio-ranges", "", kNoNames, 3),
    list("gpios", "#gpio-cells", kNoNames),
    list("gpio", "#gpio-cells", kNoNames),
    {"interrupts", "#interrupt-cells", "interrupt-names", RefForm::kInterrupts, -1},
    {"interrupt-map", "#interrupt-cells", kNoNames, RefForm::kInterruptMap, -1},
    {"iommu-map", "#iommu-cells", kNoNames, RefForm::kMap, 1},
    {"msi-map", "#msi-cells", kNoNames, RefForm::kMap, 1},
    {"rockchip,pins", {}, kNoNames, RefForm::kPins, 0},
    phandles("interrupt-parent"),
    phandles("phy-handle"),
    phandles("phy"),
    phandles("phy-device"),
    phandles("pcs-handle", "pcs-handle-names"),
    phandles("sfp"),
    phandles("snps,axi-config"),
    phandles("snps,mtl-rx-config"),
    phandles("snps,mtl-tx-config"),
    phandles("rockchip,grf"),
    phandles("rockchip,php-grf"),
    phandles("rockchip,php_grf"),
    phandles("rockchip,pipe-grf"),
    phandles("rockchip,pipe-phy-grf"),
    phandles("rockchip,phy-grf"),
    phandles("rockchip,pmu"),
    phandles("rockchip,pmu-grf"),
    phandles("ethernet"),
    phandles("syscon"),
    phandles("mdio-parent-bus"),
    phandles("operating-points-v2"),
    phandles("required-opps"),
    phandles("next-level-cache"),
    phandles("cpu-idle-states"),
    phandles("domain-idle-states"),
    phandles("cpu"),
    phandles("cpus"),
    phandles("affinity"),
    phandles("trip"),
    phandles("remote-endpoint"),
    phandles("memory-region", "memory-region-names"),
    phandles("pm_qos"),
    phandles("nvmem"),
    phandles("leds"),
    phandles("ddc-i2c-bus"),
    phandles("mmc-pwrseq"),
    phandles("interrupt-affinity"),
};

// Families by their ending. "gpio-ranges" and the like end differently and are not references of
// this kind; "nr-gpios" counts.
constexpr RefBinding kEndings[] = {
    list("-gpios", "#gpio-cells", kNoNames),
    list("-gpio", "#gpio-cells", kNoNames),
    phandles("-supply"),
};
constexpr std::string_view kNotReferences[] = {
    "nr-gpios", "snps,nr-gpios", "apm,nr-gpios", "ngpios", "gpio-hog", "gpios-states",
};

constexpr RefBinding kPinctrl = phandles("pinctrl-");

// Maps written before #iommu-cells was respected have one base cell whatever the provider says, and
// one provider throughout: that is how the kernel knows them too (drivers/of/base.c, since 7.x).
bool is_one_cell_map(Bytes bytes) {
    const std::size_t cells = cell_count(bytes);
    if (cells % 4 != 0) {
        return false;
    }
    for (std::size_t i = 5; i < cells; i += 4) {
        if (read_cell(bytes, i) != read_cell(bytes, 1)) {
            return false;
        }
    }
    return true;
}

// Interrupt maps without the parent's unit address, read by these controllers' own drivers (the
// kernel lists them in drivers/of/irq.c, of_irq_imap_abusers).
bool leaves_out_parent_unit(const Tree& tree, NodeId node) {
    constexpr std::string_view kControllers[] = {
        "fsl,ls1021a-extirq", "fsl,ls1043a-extirq", "fsl,ls1088a-extirq",
        "fsl,ls2080a-extirq", "fsl,lx2160a-extirq", "renesas,rza1-irqc",
    };
    return std::any_of(std::begin(kControllers), std::end(kControllers),
                       [&](std::string_view name) { return tree.compatible_with(node, name); });
}

// Where a reference's name is used for something else: paths in /aliases, lines of a hog's own
// parent.
bool is_other_use(const Tree& tree, NodeId node, std::string_view property) {
    const Property* found = tree.find(node, property);
    return (property == "gpios" && tree.has(node, "gpio-hog")) ||
           // Some bindings put a register offset behind the syscon's phandle.
           (property == "syscon" && found != nullptr && found->bytes.size() != 4) ||
           (tree.node(node).parent == tree.root() &&
            (tree.node(node).name == "aliases" || tree.node(node).name == "chosen"));
}

bool is_pinctrl_state(std::string_view property) {
    constexpr std::string_view kStart = "pinctrl-";
    return property.starts_with(kStart) && property.size() > kStart.size() &&
           std::all_of(property.begin() + kStart.size(), property.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
}

// Reads one property from left to right and stops at the first thing that does not fit.
class Reader {
  public:
    Reader(const Tree& tree, NodeId node, const Property& property, const RefBinding& binding,
           std::vector<Problem>* problems)
        : tree_(tree), node_(node), property_(property), binding_(binding), problems_(problems) {}

    std::vector<Reference> run();

  private:
    [[nodiscard]] std::size_t left() const { return cell_count(property_.bytes) - at_; }
    std::uint32_t take() { return read_cell(property_.bytes, at_++); }
    bool problem(std::string what);
    bool take_cells(std::array<std::uint32_t, kMaxArguments>& into, std::uint8_t& count,
                    std::uint32_t cells);
    bool take_target(Reference& reference, std::uint32_t& phandle);
    bool argument_cells(NodeId provider, std::uint32_t& cells);
    bool read_one(Reference& reference);
    bool read_interrupt(Reference& reference);
    bool read_mapped_interrupt(Reference& reference);
    bool read_map_entry(Reference& reference);
    void add_names();

    const Tree& tree_;
    NodeId node_;
    const Property& property_;
    const RefBinding& binding_;
    std::vector<Problem>* problems_;
    std::size_t at_ = 0;
    NodeId parent_ = kNoNode;  // interrupt parent, looked up once
    std::uint32_t parent_cells_ = 0;
    std::vector<Reference> references_;
};

bool Reader::problem(std::string what) {
    if (problems_ != nullptr) {
        problems_->push_back({node_, property_.name, std::move(what)});
    }
    return false;
}

bool Reader::take_cells(std::array<std::uint32_t, kMaxArguments>& into, std::uint8_t& count,
                        std::uint32_t cells) {
    if (cells > kMaxArguments) {
        return problem("a specifier of " + std::to_string(cells) + " cells");
    }
    if (cells > left()) {
        return problem("ends in the middle of a specifier");
    }
    for (std::uint32_t i = 0; i < cells; ++i) {
        into[i] = take();
    }
    count = static_cast<std::uint8_t>(cells);
    return true;
}

bool Reader::take_target(Reference& reference, std::uint32_t& phandle) {
    if (left() == 0) {
        return problem("ends in the middle of a specifier");
    }
    phandle = take();
    if (phandle == 0 || phandle == 0xffffffffU) {
        return true;  // an empty slot, or one that an overlay still has to fill
    }
    reference.target = tree_.by_phandle(phandle);
    return reference.target != kNoNode ||
           problem("phandle " + std::to_string(phandle) + " belongs to no node");
}

bool Reader::argument_cells(NodeId provider, std::uint32_t& cells) {
    const auto found = tree_.cell(provider, binding_.cells);
    if (!found && binding_.default_cells < 0) {
        return problem(tree_.path(provider) + " has no " + std::string(binding_.cells));
    }
    cells = found.value_or(static_cast<std::uint32_t>(std::max(binding_.default_cells, 0)));
    return true;
}

bool Reader::read_interrupt(Reference& reference) {
    if (parent_ == kNoNode) {
        parent_ = interrupt_parent(tree_, node_);
        if (parent_ == kNoNode) {
            return problem("has no interrupt parent");
        }
        if (!argument_cells(parent_, parent_cells_)) {
            return false;
        }
        if (parent_cells_ == 0) {
            return problem(tree_.path(parent_) + " has #interrupt-cells of 0");
        }
    }
    reference.target = parent_;
    return take_cells(reference.arguments, reference.argument_count, parent_cells_);
}

bool Reader::read_mapped_interrupt(Reference& reference) {
    const std::uint32_t child_cells = tree_.cell(node_, "#address-cells").value_or(0) +
                                      tree_.cell(node_, "#interrupt-cells").value_or(1);
    std::uint32_t phandle = 0;
    if (!take_cells(reference.before, reference.before_count, child_cells) ||
        !take_target(reference, phandle)) {
        return false;
    }
    if (reference.target == kNoNode) {
        return problem("an interrupt mapped to nowhere");
    }
    std::uint32_t cells = 0;
    if (!argument_cells(reference.target, cells)) {
        return false;
    }
    const std::uint32_t unit = leaves_out_parent_unit(tree_, node_)
                                   ? 0
                                   : tree_.cell(reference.target, "#address-cells").value_or(0);
    if (cells > kMaxArguments || unit > kMaxArguments) {
        return problem("a specifier of more than " + std::to_string(kMaxArguments) + " cells");
    }
    return take_cells(reference.arguments, reference.argument_count, unit + cells);
}

bool Reader::read_map_entry(Reference& reference) {
    std::uint32_t phandle = 0;
    if (!take_cells(reference.before, reference.before_count, 1) ||
        !take_target(reference, phandle)) {
        return false;
    }
    std::uint32_t base = 1;
    if (reference.target != kNoNode && !is_one_cell_map(property_.bytes) &&
        !argument_cells(reference.target, base)) {
        return false;
    }
    return base < kMaxArguments
               ? take_cells(reference.arguments, reference.argument_count, base + 1)
               : problem("a specifier of more than " + std::to_string(kMaxArguments) + " cells");
}

bool Reader::read_one(Reference& reference) {
    std::uint32_t phandle = 0;
    switch (binding_.form) {
        case RefForm::kInterrupts:
            return read_interrupt(reference);
        case RefForm::kInterruptMap:
            return read_mapped_interrupt(reference);
        case RefForm::kMap:
            return read_map_entry(reference);
        case RefForm::kPins:
            return take_cells(reference.before, reference.before_count, 3) &&
                   take_target(reference, phandle);
        case RefForm::kPhandles:
            return take_target(reference, phandle);
        case RefForm::kList:
            break;
    }
    std::uint32_t cells = 0;
    return take_target(reference, phandle) &&
           (reference.target == kNoNode ||
            (argument_cells(reference.target, cells) &&
             take_cells(reference.arguments, reference.argument_count, cells)));
}

void Reader::add_names() {
    const Property* names = binding_.names.empty() ? nullptr : tree_.find(node_, binding_.names);
    const auto words = names == nullptr ? std::nullopt : read_strings(names->bytes);
    if (!words) {
        return;
    }
    for (std::size_t i = 0; i < std::min(words->size(), references_.size()); ++i) {
        references_[i].name = (*words)[i];
    }
}

std::vector<Reference> Reader::run() {
    if (is_other_use(tree_, node_, property_.name)) {
        return {};
    }
    if (property_.bytes.size() % 4 != 0) {
        problem("its length is not a whole number of cells");
        return {};
    }
    references_.reserve(
        std::min(kMaxReferences, binding_.form == RefForm::kPhandles ? left() : left() / 2));
    while (left() > 0) {
        if (references_.size() == kMaxReferences) {
            problem("more than " + std::to_string(kMaxReferences) + " references");
            break;
        }
        Reference reference;
        if (!read_one(reference)) {
            break;
        }
        references_.push_back(reference);
    }
    add_names();
    return std::move(references_);
}

}  // namespace

const RefBinding* ref_binding(std::string_view property) {
    static const auto* const kByName = [] {
        auto* map = new std::unordered_map<std::string_view, const RefBinding*>();
        for (const RefBinding& binding : kBindings) {
            map->emplace(binding.property, &binding);
        }
        for (const std::string_view name : kNotReferences) {
            map->emplace(name, nullptr);
        }
        return map;
    }();
    const auto it = kByName->find(property);
    if (it != kByName->end()) {
        return it->second;
    }
    if (is_pinctrl_state(property)) {
        return &kPinctrl;
    }
    for (const RefBinding& ending : kEndings) {
        if (property.size() > ending.property.size() && property.ends_with(ending.property)) {
            return &ending;
        }
    }
    return nullptr;
}

std::vector<Reference> resolve(const Tree& tree, NodeId node, const Property& property,
                               const RefBinding& binding, std::vector<Problem>* problems) {
    return Reader(tree, node, property, binding, problems).run();
}

NodeId interrupt_parent(const Tree& tree, NodeId node) {
    for (NodeId n = node; n != kNoNode; n = tree.node(n).parent) {
        if (const auto phandle = tree.cell(n, "interrupt-parent")) {
            return tree.by_phandle(*phandle);
        }
        if (n != node && (tree.has(n, "interrupt-controller") || tree.has(n, "interrupt-map"))) {
            return n;
        }
    }
    return kNoNode;
}

std::vector<Problem> check_references(const Tree& tree) {
    std::vector<Problem> problems;
    for (NodeId id = 0; id < tree.size(); ++id) {
        if (tree.is_bookkeeping(id)) {
            continue;
        }
        for (const Property& property : tree.properties(id)) {
            if (const RefBinding* binding = ref_binding(property.name)) {
                resolve(tree, id, property, *binding, &problems);
            }
        }
    }
    return problems;
}

}  // namespace ringside::dt
