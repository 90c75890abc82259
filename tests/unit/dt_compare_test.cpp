// The comparison as a whole: the R6S case, its control, and what must hold for any pair.
#include <gmock/gmock.h>

#include "dtcompare/meaning.h"
#include "tests/unit/dt_fixtures.h"

namespace ringside::dt {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

Comparison r6s() {
    return compare_fixtures("r6s-stock", "r6s-mainline", "vendor-6.1", "mainline-6.18");
}

TEST(DtR6s, RanksTheQueueCountsFirstAndNothingElse) {
    const Comparison comparison = r6s();
    const ControllerResult& gmac = port(comparison);
    EXPECT_EQ(gmac.path_a, "/ethernet@fe1c0000");
    EXPECT_THAT(properties(gmac, FactClass::kTransmit),
                ElementsAre("snps,tx-queues-to-use", "snps,rx-queues-to-use"));
    EXPECT_EQ(gmac.facts[0].effective_a, "1");
    EXPECT_EQ(gmac.facts[0].effective_b, "2");
    EXPECT_EQ(gmac.facts[0].relevance, Relevance::kHigh);
    EXPECT_EQ(gmac.facts[1].effective_a, "1");
    EXPECT_EQ(gmac.facts[1].effective_b, "2");
    EXPECT_FALSE(comparison.equal);
}

TEST(DtR6s, KnowsTheRestAsNeutralOrEquivalent) {
    const Comparison comparison = r6s();
    const ControllerResult& gmac = port(comparison);
    EXPECT_THAT(properties(gmac, FactClass::kNeutral),
                UnorderedElementsAre("snps,no-vlhash", "phy/compatible", "phy/pinctrl-0", "alias"));
    EXPECT_THAT(properties(gmac, FactClass::kEquivalent),
                UnorderedElementsAre("rockchip,php-grf", "clocks", "interrupts", "resets",
                                     "phy/reset-gpios"));
}

TEST(DtR6s, SaysHowEquivalentFactsWereBroughtTogether) {
    const Comparison comparison = r6s();
    const ControllerResult& gmac = port(comparison);
    EXPECT_THAT(find_fact(gmac, "clocks")->how, Contains("clock numbers"));
    EXPECT_THAT(find_fact(gmac, "clocks")->written_a, HasSubstr("CLK_GMAC1_PTP_REF"));
    EXPECT_THAT(find_fact(gmac, "resets")->how, Contains("reset numbers"));
    EXPECT_EQ(find_fact(gmac, "resets")->written_a, find_fact(gmac, "resets")->written_b);
    EXPECT_THAT(find_fact(gmac, "resets")->written_a, HasSubstr("register 32 bit 11"));
    EXPECT_THAT(find_fact(gmac, "interrupts")->how, Contains("interrupt cell width"));
    EXPECT_EQ(find_fact(gmac, "interrupts")->written_b, "SPI 234 level-high, SPI 233 level-high");
    EXPECT_THAT(find_fact(gmac, "rockchip,php-grf")->how, Contains("- and _ in names"));
    EXPECT_THAT(find_fact(gmac, "phy/reset-gpios")->how, Contains("A: snps,reset-gpio on the MAC"));
    EXPECT_EQ(find_fact(gmac, "phy/reset-gpios")->effective_a,
              "gpio@fec40000 pin 15 active-low, 20000 us low, 100000 us after");
}

TEST(DtR6s, FindsRenamedNodes) {
    const LoadedTree a = fixture("r6s-stock");
    const LoadedTree b = fixture("r6s-mainline");
    const Matching matching(a.tree, b.tree);
    const auto partner = [&](const char* path) {
        const NodeId found = matching.in_b(a.tree.by_path(path));
        return found == kNoNode ? std::string() : b.tree.path(found);
    };
    const auto means = [&](const char* path) { return matching.means(a.tree.by_path(path)); };
    EXPECT_EQ(partner("/ethernet@fe1c0000/mdio/phy@1"), "/ethernet@fe1c0000/mdio/ethernet-phy@1");
    EXPECT_EQ(means("/ethernet@fe1c0000/mdio/phy@1"), Means::kUnitAddress);
    EXPECT_EQ(partner("/saradc@fec10000"), "/adc@fec10000");
    EXPECT_EQ(means("/saradc@fec10000"), Means::kUnitAddress);
    EXPECT_EQ(partner("/cluster0-opp-table"), "/opp-table-cluster0");
    EXPECT_EQ(means("/cluster0-opp-table"), Means::kRole);
    EXPECT_EQ(means("/ethernet@fe1c0000"), Means::kPath);
    EXPECT_EQ(partner("/fiq-debugger"), "");
}

TEST(DtR6s, JudgesNoDisabledController) {
    const Comparison comparison = r6s();
    ASSERT_EQ(comparison.controllers.size(), 2U);
    const ControllerResult& off = comparison.controllers.back();
    EXPECT_EQ(off.path_a, "/ethernet@fe1b0000");
    EXPECT_FALSE(off.enabled_a);
    EXPECT_THAT(off.facts, IsEmpty());
    EXPECT_THAT(off.rules, IsEmpty());
}

TEST(DtR6s, MentionsWhatNoTreeShows) {
    const Comparison comparison = r6s();
    const auto has = [&](std::string_view item) {
        return std::ranges::any_of(comparison.cannot_show,
                                   [&](const DriverDelta* d) { return d->item == item; });
    };
    EXPECT_TRUE(has("default tx-usecs"));
    EXPECT_FALSE(has("default tx-frames"));  // 25 on both sides
}

TEST(DtR6s, GuessesTheDrivers) {
    const Comparison comparison = compare_fixtures("r6s-stock", "r6s-mainline", "", "");
    EXPECT_EQ(comparison.a.driver.driver, Driver::kVendor61);
    EXPECT_EQ(comparison.a.driver.how, "guessed from bootargs");
    EXPECT_EQ(comparison.b.driver.driver, Driver::kMainline618);
    EXPECT_EQ(comparison.b.driver.how, "assumed");
    EXPECT_EQ(comparison.a.numbering, Numbering::kVendor);
    EXPECT_EQ(comparison.b.numbering, Numbering::kMainline);
}

TEST(DtR5s, HasNothingThatBearsOnTransmit) {
    const Comparison comparison =
        compare_fixtures("r5s-stock", "r5s-mainline", "vendor-6.1", "mainline-6.18");
    EXPECT_THAT(properties(port(comparison), FactClass::kTransmit), IsEmpty());
    EXPECT_THAT(properties(port(comparison), FactClass::kNeutral),
                UnorderedElementsAre("clocks: pclk_xpcs", "clocks: clk_xpcs_eee", "phy-supply",
                                     "phy/interrupts"));
}

TEST(DtPcie, ComparesThePortOfANic) {
    const auto pcie = [](const Comparison& comparison) -> const ControllerResult& {
        return *std::ranges::find(comparison.controllers, "/pcie@fe180000",
                                  &ControllerResult::path_a);
    };
    // The IOMMU is named and switched off: DMA is direct on both sides.
    const Comparison direct = compare_fixtures("r6s-stock-pcie", "r6s-mainline-pcie-direct",
                                               "vendor-6.1", "mainline-6.12");
    ASSERT_EQ(direct.controllers.size(), 3U);
    EXPECT_THAT(properties(pcie(direct), FactClass::kTransmit), IsEmpty());
    EXPECT_EQ(find_fact(pcie(direct), "iommu-map")->fact_class, FactClass::kEquivalent);
    EXPECT_THAT(properties(pcie(direct), FactClass::kNeutral), Contains("power-domains"));
    EXPECT_THAT(properties(pcie(direct), FactClass::kNeutral), Not(Contains("reg")));

    const Comparison translated =
        compare_fixtures("r6s-stock-pcie", "r6s-mainline-pcie", "vendor-6.1", "mainline-6.18");
    EXPECT_THAT(properties(pcie(translated), FactClass::kTransmit), ElementsAre("iommu-map"));
    EXPECT_EQ(find_fact(pcie(translated), "iommu-map")->effective_b,
              "translated by iommu@fc900000");
}

std::vector<std::string> all_fixtures() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(fixture_path(""))) {
        const std::string name = entry.path().filename();
        if (name.ends_with(".dts") && !name.starts_with("overlay-")) {
            names.push_back(entry.path().stem());
        }
    }
    std::ranges::sort(names);
    return names;
}

// What holds for any pair, on every fixture.
class DtAnyTree : public ::testing::TestWithParam<std::string> {};

TEST_P(DtAnyTree, IsEqualToItself) {
    Options options;
    options.all = true;
    const auto result = compare(fixture(GetParam()), fixture(GetParam()), options);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->equal);
    EXPECT_EQ(result->raw.total, 0U);
    EXPECT_THAT(result->elsewhere, IsEmpty());
}

TEST_P(DtAnyTree, ResolvesAllReferences) {
    for (const Problem& problem : check_references(fixture(GetParam()).tree)) {
        ADD_FAILURE() << problem.property << ": " << problem.what;
    }
}

void expect_mirrored(const ControllerResult& x, const ControllerResult& y) {
    EXPECT_EQ(x.path_a, y.path_b);
    ASSERT_EQ(x.facts.size(), y.facts.size());
    for (std::size_t f = 0; f < x.facts.size(); ++f) {
        EXPECT_EQ(x.facts[f].property, y.facts[f].property);
        EXPECT_EQ(x.facts[f].fact_class, y.facts[f].fact_class);
        EXPECT_EQ(x.facts[f].effective_a, y.facts[f].effective_b);
        EXPECT_EQ(x.facts[f].written_b, y.facts[f].written_a);
    }
    ASSERT_EQ(x.around.size(), y.around.size());
    for (std::size_t n = 0; n < x.around.size(); ++n) {
        EXPECT_EQ(x.around[n].path_a, y.around[n].path_b);
        EXPECT_EQ(x.around[n].properties.size(), y.around[n].properties.size());
    }
    EXPECT_EQ(rule_ids(x, true), rule_ids(y, false));
    EXPECT_EQ(rule_ids(x, false), rule_ids(y, true));
}

TEST_P(DtAnyTree, MirrorsWhenSwapped) {
    for (const std::string other : {"r6s-stock", "r6s-mainline"}) {
        const Comparison forth = compare_fixtures(GetParam(), other, "mainline-7.2", "vendor-6.1");
        const Comparison back = compare_fixtures(other, GetParam(), "vendor-6.1", "mainline-7.2");
        EXPECT_EQ(forth.equal, back.equal);
        EXPECT_EQ(forth.raw.total, back.raw.total);
        EXPECT_EQ(forth.raw.encoding, back.raw.encoding);
        EXPECT_EQ(forth.raw.in_scope, back.raw.in_scope);
        EXPECT_EQ(forth.raw.by_encoding, back.raw.by_encoding);
        ASSERT_EQ(forth.controllers.size(), back.controllers.size());
        for (std::size_t c = 0; c < forth.controllers.size(); ++c) {
            expect_mirrored(forth.controllers[c], back.controllers[c]);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DtAnyTree, ::testing::ValuesIn(all_fixtures()),
                         [](const auto& param) {
                             std::string name = param.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

TEST(DtSame, IsEqualWithShuffledPhandles) {
    const Comparison comparison = compare_fixtures("r6s-mainline", "same-shuffled");
    EXPECT_TRUE(comparison.equal);
    EXPECT_GT(comparison.raw.total, 10U);
    EXPECT_EQ(comparison.raw.encoding, comparison.raw.total);
    EXPECT_THAT(port(comparison).facts, IsEmpty());
}

TEST(DtOptions, NodeChoosesTheScope) {
    Options options;
    options.node = "/ethernet@fe1b0000";
    const auto one = compare(fixture("r6s-stock"), fixture("r6s-mainline"), options);
    ASSERT_TRUE(one);
    ASSERT_EQ(one->controllers.size(), 1U);
    EXPECT_EQ(one->controllers[0].path_a, "/ethernet@fe1b0000");

    options.node = "gmac1";  // a label of one side only
    const auto labelled = compare(fixture("r6s-stock"), fixture("r6s-mainline"), options);
    ASSERT_TRUE(labelled);
    EXPECT_EQ(labelled->controllers[0].path_b, "/ethernet@fe1c0000");

    options.node = "/nothing";
    const auto none = compare(fixture("r6s-stock"), fixture("r6s-mainline"), options);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().exit_code(), ExitCode::kUsage);
}

TEST(DtOptions, AllListsWhatIsElsewhere) {
    Options options;
    options.all = true;
    const auto result = compare(fixture("r6s-stock"), fixture("r6s-mainline"), options);
    ASSERT_TRUE(result);
    const auto has = [&](std::string_view path) {
        return std::ranges::any_of(result->elsewhere,
                                   [&](const NodeDifference& n) { return n.path_a == path; });
    };
    EXPECT_TRUE(has("/fiq-debugger"));
    EXPECT_FALSE(has("/ethernet@fe1c0000"));
    EXPECT_GT(result->raw.elsewhere, 0U);
}

TEST(DtDriver, TakesTheNearestKnownVersion) {
    const auto between = parse_driver("mainline-6.14");
    ASSERT_TRUE(between);
    EXPECT_EQ(between->driver, Driver::kMainline612);
    EXPECT_TRUE(between->nearest);
    EXPECT_EQ(parse_driver("vendor-5.10")->driver, Driver::kVendor61);
    EXPECT_EQ(parse_driver("mainline-7.2")->driver, Driver::kMainline72);
    EXPECT_FALSE(parse_driver("mainline-7.2")->nearest);
    for (const char* wrong : {"", "6.18", "mainline", "mainline-x", "bsd-6.1", "mainline-6"}) {
        const auto result = parse_driver(wrong);
        ASSERT_FALSE(result) << wrong;
        EXPECT_EQ(result.error().exit_code(), ExitCode::kUsage);
    }
}

}  // namespace
}  // namespace ringside::dt
