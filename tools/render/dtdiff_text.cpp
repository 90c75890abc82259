#include "tools/render/dtdiff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "analyzers/base/units.h"
#include "dtcompare/meaning.h"

namespace ringside {

namespace {

using dt::Comparison;
using dt::ControllerResult;
using dt::Fact;
using dt::FactClass;

constexpr std::size_t kShortValue = 14;   // longer values get a line of their own
constexpr std::size_t kListLimit = 12;    // longer lists end with "and N more"; -v has them whole
constexpr std::size_t kValueLimit = 200;  // per value with -v
constexpr std::size_t kLabelWidth = 18;

std::string last_part(std::string_view path) {
    return path.size() < 2 ? std::string(path) : std::string(path.substr(path.rfind('/') + 1));
}

// As written, unless the driver makes something else of it.
std::string shown_value(const std::string& written, const std::string& effective) {
    if (effective.empty() || effective == written) {
        return written;
    }
    return written == "absent" ? effective + " (absent)" : effective;
}

class Printer {
  public:
    Printer(const DtdiffTextOptions& options, const TextStyle& style)
        : options_(options), style_(style) {}

    std::string print(const Comparison& comparison);

  private:
    void side(char letter, const dt::SideInfo& side);
    void controller(const ControllerResult& result);
    void transmit(const ControllerResult& result);
    void transmit_fact(std::size_t number, const Fact& fact);
    void short_facts(const ControllerResult& result, FactClass fact_class, std::string_view name);
    void fact_details(const Fact& fact);
    void traps(const ControllerResult& result);
    void around(const ControllerResult& result);
    void node_details(const dt::NodeDifference& node);
    void raw(const Comparison& comparison);
    void elsewhere(const Comparison& comparison);
    void cannot_show(const Comparison& comparison);

    void line(std::string_view text) { out_ += fit(clean(text), style_.width, style_) + "\n"; }
    // A label in a column of its own, the text wrapped beside it.
    void labelled(std::string_view label, std::string_view text) {
        out_ += wrap(fmt::format("{:<{}}", label, kLabelWidth), clean(text), kLabelWidth, style_);
    }
    void indented(std::string_view first, std::string_view text, std::size_t indent) {
        out_ += wrap(std::string(first), clean(text), indent, style_);
    }
    void heading(std::string_view text) {
        out_ += paint(clean(text), Paint::kHeading, style_) + "\n";
    }
    [[nodiscard]] std::string clean(std::string_view text) const { return printable(text, style_); }

    const DtdiffTextOptions& options_;
    const TextStyle& style_;
    std::string out_;
};

std::string driver_text(const dt::DriverChoice& driver) {
    std::string text = driver.label;
    if (driver.nearest) {
        text += fmt::format(", read as {}", dt::driver_name(driver.driver));
    }
    return text + fmt::format(" ({})", driver.how);
}

void Printer::side(char letter, const dt::SideInfo& side) {
    std::string text = last_part(side.name);
    if (!side.part.empty()) {
        text += fmt::format(" [{}: {}]", dt::source_kind_name(side.kind), side.part);
    }
    if (!side.model.empty()) {
        text += "  " + side.model;
    }
    text += "  " + driver_text(side.driver);
    indented(fmt::format("{} ", letter), text, 2);
    for (const std::string& overlay : side.overlays) {
        indented("  ", "with overlay " + last_part(overlay), 2);
    }
    for (const std::string& note : side.notes) {
        indented("  note: ", note, 8);
    }
    if (!side.unresolved.empty()) {
        indented("  note: ",
                 fmt::format("{} references cannot be followed, the first: {}",
                             side.unresolved.size(), side.unresolved.front()),
                 8);
    }
}

std::string state(bool enabled, const std::string& path) {
    return path.empty() ? "absent" : enabled ? "okay" : "disabled";
}

void Printer::transmit_fact(std::size_t number, const Fact& fact) {
    const std::string a = shown_value(fact.written_a, fact.effective_a);
    const std::string b = shown_value(fact.written_b, fact.effective_b);
    const std::string rank = fmt::format("[{}, unproven]", dt::relevance_name(fact.relevance));
    if (a.size() <= kShortValue && b.size() <= kShortValue) {
        const std::string text = fmt::format("  {}  {:<24} {:>8} {:>8}  {}", number,
                                             clean(fact.property), clean(a), clean(b), rank);
        out_ += paint(fit(text, style_.width, style_), Paint::kFinding, style_) + "\n";
    } else {
        const std::string text = fmt::format("  {}  {}  {}", number, clean(fact.property), rank);
        out_ += paint(fit(text, style_.width, style_), Paint::kFinding, style_) + "\n";
        indented("     A: ", a, 8);
        indented("     B: ", b, 8);
    }
    if (fact.entry != nullptr) {
        indented("     ", fact.entry->why, 5);
        if (!fact.entry->check.empty()) {
            indented("     check: ", fact.entry->check, 12);
        }
    }
}

void Printer::transmit(const ControllerResult& result) {
    if (result.count(FactClass::kTransmit) == 0) {
        line("can bear on transmit: nothing");
        return;
    }
    out_ += fmt::format("{:<28} {:>9} {:>8}\n", "can bear on transmit", "A", "B");
    std::size_t number = 0;
    for (const Fact& fact : result.facts) {
        if (fact.fact_class == FactClass::kTransmit) {
            transmit_fact(++number, fact);
        }
    }
    line("A difference between trees is not a cause: trace both systems to decide.");
}

void Printer::fact_details(const Fact& fact) {
    indented("  ", fact.property, 2);
    const auto value = [&](std::string_view letter, const std::string& written,
                           const std::string& effective) {
        indented(fmt::format("    {} ", letter),
                 fit(clean(shown_value(written, effective)), kValueLimit, style_), 6);
    };
    value("A", fact.written_a, fact.effective_a);
    value("B", fact.written_b, fact.effective_b);
    if (!fact.how.empty()) {
        indented("      ", fmt::format("{}", fmt::join(fact.how, "; ")), 6);
    }
    if (fact.entry != nullptr && fact.fact_class == FactClass::kNeutral) {
        indented("      bears on transmit: ", fact.entry->why, 6);
    }
}

void Printer::short_facts(const ControllerResult& result, FactClass fact_class,
                          std::string_view name) {
    const std::size_t count = result.count(fact_class);
    if (options_.details && count > 0) {
        line(fmt::format("{}: {}", name, count));
        for (const Fact& fact : result.facts) {
            if (fact.fact_class == fact_class) {
                fact_details(fact);
            }
        }
        return;
    }
    std::vector<std::string> words;
    for (const Fact& fact : result.facts) {
        if (fact.fact_class != fact_class) {
            continue;
        }
        if (words.size() == kListLimit) {
            words.push_back(fmt::format("and {} more (-v)", count - kListLimit));
            break;
        }
        const bool moved = std::ranges::any_of(
            fact.how, [](const std::string& how) { return how.find(": ") == 1; });
        words.push_back(fact.property + (moved ? " (moved)" : ""));
    }
    labelled(name, count == 0 ? "none" : fmt::format("{}: {}", count, fmt::join(words, ", ")));
}

void Printer::traps(const ControllerResult& result) {
    for (const dt::RuleFinding& finding : result.rules) {
        const std::string_view where = finding.detail_a && finding.detail_b ? "A and B"
                                       : finding.detail_a                   ? "A"
                                                                            : "B";
        // What holds on both sides cannot be the difference; it is worth a line all the same.
        const std::string& detail = finding.detail_b ? *finding.detail_b : *finding.detail_a;
        labelled("trap in " + std::string(where),
                 fmt::format("{}: {} ({})", finding.rule->id, finding.rule->title, detail));
    }
}

void Printer::node_details(const dt::NodeDifference& node) {
    const std::string& path = node.path_a.empty() ? node.path_b : node.path_a;
    const char* only = node.path_a.empty() ? " only in B" : node.path_b.empty() ? " only in A" : "";
    indented(
        "  ",
        fmt::format("{}{}{}", path, only, node.disabled_a && node.disabled_b ? " (disabled)" : ""),
        2);
    for (const dt::PropertyDifference& property : node.properties) {
        indented("    ", fmt::format("{}: {} | {}", property.name, property.a, property.b), 6);
    }
}

void Printer::around(const ControllerResult& result) {
    if (result.around.empty()) {
        labelled("around it", fmt::format("{} nodes, no difference", result.around_nodes));
        return;
    }
    if (options_.details) {
        line(fmt::format("around it: {} of {} nodes differ", result.around.size(),
                         result.around_nodes));
        std::ranges::for_each(result.around, [&](const auto& node) { node_details(node); });
        return;
    }
    std::vector<std::string> words;
    for (const dt::NodeDifference& node : result.around) {
        if (words.size() == kListLimit) {
            words.push_back(fmt::format("and {} more (-v)", result.around.size() - kListLimit));
            break;
        }
        const bool in_a = !node.path_a.empty();
        const bool in_b = !node.path_b.empty();
        words.push_back(last_part(in_a ? node.path_a : node.path_b) + (in_a && in_b ? ""
                                                                       : in_a       ? " (A only)"
                                                                                    : " (B only)"));
    }
    labelled("around it", fmt::format("{} of {} nodes differ: {}", result.around.size(),
                                      result.around_nodes, fmt::join(words, ", ")));
}

void Printer::controller(const ControllerResult& result) {
    const std::string path = result.path_a.empty() ? result.path_b : result.path_a;
    heading(fit(
        fmt::format("{}  {}  {} | {}", last_part(path), result.compatible,
                    state(result.enabled_a, result.path_a), state(result.enabled_b, result.path_b)),
        style_.width, style_));
    if (result.path_a != result.path_b && !result.path_a.empty() && !result.path_b.empty()) {
        indented(
            "matched by ",
            fmt::format("{}: {} | {}", dt::means_name(result.means), result.path_a, result.path_b),
            2);
    }
    if (!result.enabled_a && !result.enabled_b) {
        line("disabled on both sides: not judged");
        out_ += "\n";
        return;
    }
    transmit(result);
    short_facts(result, FactClass::kNeutral, "neutral");
    short_facts(result, FactClass::kEquivalent, "equal in effect");
    labelled("same", fmt::format("{} properties", result.same));
    traps(result);
    around(result);
    out_ += "\n";
}

void Printer::raw(const Comparison& comparison) {
    const dt::RawCounts& raw = comparison.raw;
    std::vector<std::pair<std::size_t, std::string_view>> kinds;
    for (std::size_t i = 0; i < raw.by_encoding.size(); ++i) {
        if (raw.by_encoding[i] > 0) {
            kinds.emplace_back(raw.by_encoding[i], dt::encoding_names()[i].name);
        }
    }
    std::ranges::stable_sort(kinds, std::greater<>(),
                             &std::pair<std::size_t, std::string_view>::first);
    std::vector<std::string> words;
    for (const auto& [count, name] : kinds) {
        words.push_back(fmt::format("{} {}", name, format_count(count)));
    }
    labelled("raw differences",
             fmt::format("{}: {} explained as encoding{}, {} here, {} elsewhere{}",
                         format_count(raw.total), format_count(raw.encoding),
                         words.empty() ? "" : fmt::format(" ({})", fmt::join(words, ", ")),
                         format_count(raw.in_scope), format_count(raw.elsewhere),
                         raw.elsewhere > 0 && comparison.elsewhere.empty() ? " (--all)" : ""));
}

void Printer::elsewhere(const Comparison& comparison) {
    if (comparison.elsewhere.empty()) {
        return;
    }
    line(fmt::format("elsewhere: {} nodes differ", comparison.elsewhere.size()));
    std::ranges::for_each(comparison.elsewhere, [&](const auto& node) { node_details(node); });
}

void Printer::cannot_show(const Comparison& comparison) {
    const auto a = static_cast<std::size_t>(comparison.a.driver.driver);
    const auto b = static_cast<std::size_t>(comparison.b.driver.driver);
    std::vector<std::string> words;
    for (const dt::DriverDelta* delta : comparison.cannot_show) {
        words.push_back(
            fmt::format("{}: {} | {}", delta->item, delta->values[a], delta->values[b]));
    }
    if (words.empty()) {
        return;
    }
    line("trees cannot show what these two drivers do by themselves (A | B):");
    for (const std::string& word : words) {
        indented("  ", word, 4);
    }
}

std::string Printer::print(const Comparison& comparison) {
    side('A', comparison.a);
    side('B', comparison.b);
    out_ += "\n";
    if (comparison.controllers.empty()) {
        line("no Ethernet controller in either tree; --node PATH or --all shows the rest");
        out_ += "\n";
    }
    for (const ControllerResult& result : comparison.controllers) {
        controller(result);
    }
    elsewhere(comparison);
    cannot_show(comparison);
    raw(comparison);
    return std::move(out_);
}

}  // namespace

std::string dtdiff_text(const Comparison& comparison, const DtdiffTextOptions& options,
                        const TextStyle& style) {
    return Printer(options, style).print(comparison);
}

}  // namespace ringside
