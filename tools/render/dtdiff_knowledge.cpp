#include "tools/render/dtdiff_knowledge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "dtcompare/driver.h"
#include "dtcompare/knowledge.h"
#include "dtcompare/meaning.h"
#include "dtcompare/rules.h"

namespace ringside {

namespace {

using Json = nlohmann::ordered_json;

std::string drivers_text(dt::DriverMask drivers) {
    if (drivers == dt::kAnyDriver) {
        return "all";
    }
    std::string text;
    for (std::size_t i = 0; i < dt::kDriverCount; ++i) {
        const auto driver = static_cast<dt::Driver>(i);
        if ((drivers & dt::mask(driver)) != 0) {
            text += (text.empty() ? "" : ", ") + std::string(dt::driver_name(driver));
        }
    }
    return text.empty() ? "none" : text;
}

// "vendor-6.1: line off; others: 0x30"
std::string defaults_text(const dt::Knowledge& entry) {
    std::string text;
    dt::DriverMask rest = dt::kAnyDriver;
    for (const dt::Default& value : entry.defaults) {
        if ((value.drivers & rest) == 0) {
            continue;
        }
        const auto drivers = static_cast<dt::DriverMask>(value.drivers & rest);
        rest = static_cast<dt::DriverMask>(rest & ~value.drivers);
        text += text.empty() ? "" : "; ";
        if (drivers != dt::kAnyDriver) {
            text += drivers_text(drivers) + ": ";
        }
        text += value.value;
    }
    return text.empty() ? "-" : text;
}

Json entry_json(const dt::Knowledge& entry) {
    Json defaults = Json::object();
    for (std::size_t i = 0; i < dt::kDriverCount; ++i) {
        const auto driver = static_cast<dt::Driver>(i);
        const std::string_view value = dt::default_of(entry, driver);
        defaults[std::string(dt::driver_name(driver))] =
            value.empty() ? Json(nullptr) : Json(value);
    }
    return {{"property", entry.property},
            {"place", dt::place_name(entry.place)},
            {"type", dt::type_name(entry.type)},
            {"unit", entry.unit},
            {"relevance", dt::relevance_name(entry.transmit)},
            {"effect", entry.effect},
            {"why", entry.why},
            {"default", defaults},
            {"read_by", drivers_text(entry.read_by)},
            {"judged_with", entry.part_of.empty() ? Json(nullptr) : Json(entry.part_of)},
            {"check", entry.check},
            {"source", entry.source}};
}

Json rule_json(const dt::Rule& rule) {
    return {{"id", rule.id},
            {"relevance", dt::relevance_name(rule.transmit)},
            {"title", rule.title},
            {"why", rule.why},
            {"drivers", drivers_text(rule.drivers)},
            {"check", rule.check},
            {"source", rule.source}};
}

std::vector<const dt::Rule*> find_rules(std::string_view id) {
    std::vector<const dt::Rule*> found;
    for (const dt::Rule& rule : dt::rules()) {
        if (id.empty() || rule.id == id) {
            found.push_back(&rule);
        }
    }
    return found;
}

std::vector<const dt::Knowledge*> find_entries(std::string_view name) {
    std::vector<const dt::Knowledge*> found;
    if (!name.empty()) {
        return dt::find_knowledge(name);
    }
    for (const dt::Knowledge& entry : dt::knowledge()) {
        found.push_back(&entry);
    }
    return found;
}

Error unknown(std::string_view name) {
    Error error(ErrorCode::kUsage, fmt::format("nothing is known about '{}'", name));
    std::string near;
    for (const dt::Knowledge& entry : dt::knowledge()) {
        if (!name.empty() && entry.property.find(name) != std::string_view::npos) {
            near += (near.empty() ? "" : ", ") + std::string(entry.property);
        }
    }
    return std::move(error.hint(near.empty() ? "ringside dtdiff --list-knowledge lists what is"
                                             : "perhaps: " + near));
}

// A table cell of Markdown: its own separator must not appear.
std::string cell(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        escaped += c == '|' ? std::string("\\|") : std::string(1, c);
    }
    return escaped.empty() ? "-" : escaped;
}

}  // namespace

std::string knowledge_list(const TextStyle& style) {
    Table table;
    table.column("property", Table::Align::kLeft);
    table.column("place", Table::Align::kLeft);
    table.column("transmit", Table::Align::kLeft);
    table.column("effect", Table::Align::kLeft);
    for (const dt::Knowledge& entry : dt::knowledge()) {
        table.row({std::string(entry.property), std::string(dt::place_name(entry.place)),
                   std::string(dt::relevance_name(entry.transmit)), std::string(entry.effect)});
    }
    Table traps;
    traps.column("rule", Table::Align::kLeft);
    traps.column("transmit", Table::Align::kLeft);
    traps.column("what holds", Table::Align::kLeft);
    for (const dt::Rule& rule : dt::rules()) {
        traps.row({std::string(rule.id), std::string(dt::relevance_name(rule.transmit)),
                   std::string(rule.title)});
    }
    return table.text(0, style) + "\n" + traps.text(0, style) +
           "\nringside dtdiff --explain NAME says where it was read and what the defaults are.\n";
}

Result<std::string> knowledge_of(std::string_view name, const TextStyle& style) {
    const auto entries = find_entries(name);
    const auto traps = find_rules(name);
    if (name.empty() || (entries.empty() && traps.empty())) {
        return fail(unknown(name));
    }
    std::string out;
    const auto row = [&](std::string_view label, std::string_view text) {
        if (!text.empty()) {
            out += wrap(fmt::format("  {:<10}", label), text, 12, style);
        }
    };
    for (const dt::Knowledge* entry : entries) {
        out += fmt::format("{}  ({}, {}{})\n", entry->property, dt::place_name(entry->place),
                           dt::type_name(entry->type),
                           entry->unit.empty() ? "" : fmt::format(", {}", entry->unit));
        row("effect", entry->effect);
        row("transmit", fmt::format("{}: {}", dt::relevance_name(entry->transmit), entry->why));
        row("default", defaults_text(*entry));
        row("read by", drivers_text(entry->read_by));
        row("judged", entry->part_of.empty() ? "" : fmt::format("with {}", entry->part_of));
        row("check", entry->check);
        row("source", entry->source);
    }
    for (const dt::Rule* rule : traps) {
        out += fmt::format("{}\n", rule->id);
        row("holds", rule->title);
        row("transmit", fmt::format("{}: {}", dt::relevance_name(rule->transmit), rule->why));
        row("drivers", drivers_text(rule->drivers));
        row("check", rule->check);
        row("source", rule->source);
    }
    return out;
}

Result<std::string> knowledge_json(std::string_view name) {
    const auto entries = find_entries(name);
    const auto traps = find_rules(name);
    if (entries.empty() && traps.empty()) {
        return fail(unknown(name));
    }
    Json json{{"schema", "ringside.dtdiff.knowledge"},
              {"schema_version", 1},
              {"properties", Json::array()},
              {"rules", Json::array()}};
    for (const dt::Knowledge* entry : entries) {
        json["properties"].push_back(entry_json(*entry));
    }
    for (const dt::Rule* rule : traps) {
        json["rules"].push_back(rule_json(*rule));
    }
    return json.dump(2) + "\n";
}

std::string knowledge_markdown() {
    std::string out =
        "# What the device tree tells an Ethernet controller\n\n"
        "The knowledge table of `ringside dtdiff`, as `--explain` prints it. A unit test compares "
        "this file\nwith the table; `RINGSIDE_UPDATE_DOCS=1` makes it write the file anew.\n\n"
        "Transmit: high can cost tens of percent by itself, medium some under conditions, low none "
        "or only\nreceive, latency and link. Files without a folder are in "
        "drivers/net/ethernet/stmicro/stmmac.\n";
    constexpr std::size_t kPlaces = 9;
    for (std::size_t i = 0; i < kPlaces; ++i) {
        const auto place = static_cast<dt::Place>(i);
        out += fmt::format(
            "\n## {}\n\n| property | type | transmit | effect | why | default if absent "
            "| read by | source |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
            dt::place_name(place));
        for (const dt::Knowledge& entry : dt::knowledge()) {
            if (entry.place == place) {
                out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", entry.property,
                                   dt::type_name(entry.type), dt::relevance_name(entry.transmit),
                                   cell(entry.effect), cell(entry.why), cell(defaults_text(entry)),
                                   drivers_text(entry.read_by), cell(entry.source));
            }
        }
    }
    out +=
        "\n## Rules\n\n| id | transmit | what holds | why | drivers | check | source |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const dt::Rule& rule : dt::rules()) {
        out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", rule.id,
                           dt::relevance_name(rule.transmit), cell(rule.title), cell(rule.why),
                           drivers_text(rule.drivers), cell(rule.check), cell(rule.source));
    }
    out += "\n## What no tree shows\n\n| item |";
    for (std::size_t i = 0; i < dt::kDriverCount; ++i) {
        out += fmt::format(" {} |", dt::driver_name(static_cast<dt::Driver>(i)));
    }
    out += " source |\n| --- |";
    for (std::size_t i = 0; i <= dt::kDriverCount; ++i) {
        out += " --- |";
    }
    out += "\n";
    for (const dt::DriverDelta& delta : dt::driver_deltas()) {
        out += fmt::format("| {} | {} | {} |\n", delta.item, fmt::join(delta.values, " | "),
                           cell(delta.source));
    }
    return out;
}

}  // namespace ringside
