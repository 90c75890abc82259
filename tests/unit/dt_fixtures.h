// Device trees of tests/data/dt, compiled by dtc when a test asks for them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "dtcompare/compare.h"
#include "dtcompare/load_dts.h"

namespace ringside::dt {

inline std::filesystem::path fixture_path(const std::string& name) {
    return std::filesystem::path(RINGSIDE_TEST_DATA) / "dt" / name;
}

inline std::vector<std::uint8_t> fixture_blob(const std::string& name) {
    static auto* const kCache = new std::map<std::string, std::vector<std::uint8_t>>();
    auto& blob = (*kCache)[name];
    if (blob.empty()) {
        auto compiled = compile_dts(fixture_path(name));
        if (!compiled) {
            throw std::runtime_error(name + ": " + compiled.error().line());
        }
        blob = std::move(*compiled);
    }
    return blob;
}

inline LoadedTree fixture(const std::string& name) {
    auto loaded = load_bytes(fixture_blob(name + ".dts"), name);
    if (!loaded) {
        throw std::runtime_error(loaded.error().line());
    }
    return std::move(*loaded);
}

inline std::optional<DriverChoice> driver(const std::string& name) {
    if (name.empty()) {
        return std::nullopt;
    }
    auto parsed = parse_driver(name);
    if (!parsed) {
        throw std::runtime_error(parsed.error().line());
    }
    return *parsed;
}

inline Comparison compare_fixtures(const std::string& a, const std::string& b,
                                   const std::string& driver_a = "mainline-6.18",
                                   const std::string& driver_b = "mainline-6.18") {
    Options options;
    options.driver_a = driver(driver_a);
    options.driver_b = driver(driver_b);
    auto result = compare(fixture(a), fixture(b), options);
    if (!result) {
        throw std::runtime_error(result.error().line());
    }
    return std::move(*result);
}

// The controller that has something to say comes first.
inline const ControllerResult& port(const Comparison& comparison) {
    return comparison.controllers.front();
}

inline std::vector<std::string> properties(const ControllerResult& result, FactClass fact_class) {
    std::vector<std::string> names;
    for (const Fact& fact : result.facts) {
        if (fact.fact_class == fact_class) {
            names.push_back(fact.property);
        }
    }
    return names;
}

inline const Fact* find_fact(const ControllerResult& result, const std::string& property) {
    const auto it = std::ranges::find(result.facts, property, &Fact::property);
    return it == result.facts.end() ? nullptr : &*it;
}

inline std::vector<std::string> rule_ids(const ControllerResult& result, bool of_b) {
    std::vector<std::string> ids;
    for (const RuleFinding& finding : result.rules) {
        if (of_b ? finding.detail_b.has_value() : finding.detail_a.has_value()) {
            ids.emplace_back(finding.rule->id);
        }
    }
    return ids;
}

}  // namespace ringside::dt
