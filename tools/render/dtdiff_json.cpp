#include "tools/render/dtdiff_json.h"

#include <nlohmann/json.hpp>

#include "dtcompare/meaning.h"

namespace ringside {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

// Text from a tree can hold any byte; JSON is UTF-8. Nothing is thrown for it: see dump() below.
Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

std::string_view numbering_name(dt::Numbering numbering) {
    switch (numbering) {
        case dt::Numbering::kVendor:
            return "vendor";
        case dt::Numbering::kMainline:
            return "mainline";
        case dt::Numbering::kUnknown:
            break;
    }
    return "unknown";
}

Json side_json(const dt::SideInfo& side) {
    return {{"name", side.name},
            {"kind", dt::source_kind_name(side.kind)},
            {"part", text_or_null(side.part)},
            {"model", text_or_null(side.model)},
            {"overlays", side.overlays},
            {"driver",
             {{"asked", side.driver.label},
              {"used", dt::driver_name(side.driver.driver)},
              {"how", side.driver.how},
              {"guessed", side.driver.guessed}}},
            {"numbering", numbering_name(side.numbering)},
            {"node_count", side.nodes},
            {"property_count", side.properties},
            {"notes", side.notes},
            {"unresolved", side.unresolved}};
}

Json fact_json(const dt::Fact& fact) {
    Json json{{"property", fact.property},
              {"class", dt::fact_class_name(fact.fact_class)},
              {"relevance", dt::relevance_name(fact.relevance)},
              {"node", {{"a", text_or_null(fact.node_a)}, {"b", text_or_null(fact.node_b)}}},
              {"written", {{"a", fact.written_a}, {"b", fact.written_b}}},
              {"effective", {{"a", fact.effective_a}, {"b", fact.effective_b}}},
              {"how", fact.how}};
    const dt::Knowledge* entry = fact.entry;
    json["why"] = entry == nullptr ? Json(nullptr) : Json(entry->why);
    json["check"] = entry == nullptr || entry->check.empty() ? Json(nullptr) : Json(entry->check);
    json["source"] = entry == nullptr ? Json(nullptr) : Json(entry->source);
    return json;
}

Json rule_json(const dt::RuleFinding& finding) {
    const auto detail = [](const std::optional<std::string>& text) {
        return text ? Json(*text) : Json(nullptr);
    };
    return {{"id", finding.rule->id},
            {"relevance", dt::relevance_name(finding.rule->transmit)},
            {"title", finding.rule->title},
            {"why", finding.rule->why},
            {"check", finding.rule->check},
            {"source", finding.rule->source},
            {"detail", {{"a", detail(finding.detail_a)}, {"b", detail(finding.detail_b)}}}};
}

Json node_json(const dt::NodeDifference& node) {
    Json differences = Json::array();
    for (const dt::PropertyDifference& property : node.properties) {
        differences.push_back({{"name", property.name}, {"a", property.a}, {"b", property.b}});
    }
    return {{"path", {{"a", text_or_null(node.path_a)}, {"b", text_or_null(node.path_b)}}},
            {"matched_by", dt::means_name(node.means)},
            {"hops", node.hops},
            {"disabled", {{"a", node.disabled_a}, {"b", node.disabled_b}}},
            {"encoding_only", node.explained},
            {"differences", differences}};
}

template <class List, class Convert>
Json array_of(const List& list, Convert convert) {
    Json array = Json::array();
    for (const auto& item : list) {
        array.push_back(convert(item));
    }
    return array;
}

Json controller_json(const dt::ControllerResult& result) {
    return {{"path", {{"a", text_or_null(result.path_a)}, {"b", text_or_null(result.path_b)}}},
            {"matched_by", dt::means_name(result.means)},
            {"compatible", result.compatible},
            {"enabled", {{"a", result.enabled_a}, {"b", result.enabled_b}}},
            {"alias", {{"a", text_or_null(result.alias_a)}, {"b", text_or_null(result.alias_b)}}},
            {"facts", array_of(result.facts, fact_json)},
            {"rules", array_of(result.rules, rule_json)},
            {"around", array_of(result.around, node_json)},
            {"around_nodes", result.around_nodes},
            {"same_properties", result.same}};
}

Json raw_json(const dt::RawCounts& raw) {
    Json kinds = Json::object();
    for (std::size_t i = 0; i < raw.by_encoding.size(); ++i) {
        kinds[std::string(dt::encoding_names()[i].name)] = raw.by_encoding[i];
    }
    return {{"total", raw.total},
            {"encoding", raw.encoding},
            {"in_scope", raw.in_scope},
            {"elsewhere", raw.elsewhere},
            {"by_encoding", kinds}};
}

}  // namespace

std::string dtdiff_json(const dt::Comparison& comparison) {
    const auto a = static_cast<std::size_t>(comparison.a.driver.driver);
    const auto b = static_cast<std::size_t>(comparison.b.driver.driver);
    const Json json{
        {"schema", "ringside.dtdiff"},
        {"schema_version", kSchemaVersion},
        {"equal", comparison.equal},
        {"proves_cause", false},  // a tree never does; the field says so to whoever reads only this
        {"a", side_json(comparison.a)},
        {"b", side_json(comparison.b)},
        {"controllers", array_of(comparison.controllers, controller_json)},
        {"elsewhere", array_of(comparison.elsewhere, node_json)},
        {"raw_differences", raw_json(comparison.raw)},
        {"trees_cannot_show", array_of(comparison.cannot_show, [&](const dt::DriverDelta* delta) {
             return Json{{"item", delta->item},
                         {"a", delta->values[a]},
                         {"b", delta->values[b]},
                         {"transmit", delta->transmit},
                         {"source", delta->source}};
         })}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ringside
