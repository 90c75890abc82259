// One case for each trap of comparing trees, and for each property that can bear on transmit. Each
// fixture is the mainline R6S tree (or another base) with one change.
#include <gmock/gmock.h>

#include <cctype>

#include "tests/unit/dt_fixtures.h"

namespace ringside::dt {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

using Names = std::vector<std::string>;

struct Case {
    std::string a;
    std::string b;
    std::string driver_a;
    std::string driver_b;
    Names transmit;         // exactly these can bear on transmit
    Names neutral = {};     // exactly these are neutral
    Names equivalent = {};  // at least these are equal in effect
    Names rules_b = {};     // at least these hold in B, and not in A
};

std::string case_name(const Case& c) {
    std::string name = c.a + "_" + c.b + "_" + c.driver_a + "_" + c.driver_b;
    for (char& letter : name) {
        letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    }
    return name;
}

const std::string kBase = "r6s-mainline";
const std::string k618 = "mainline-6.18";
const std::string k72 = "mainline-7.2";
const std::string k612 = "mainline-6.12";
const std::string kOld = "vendor-6.1";

Names none() {
    return {};
}

// Traps of comparing: what looks different and is not, and the reverse.
std::vector<Case> comparing_cases() {
    return {
        {kBase, "same-shuffled", k618, k618, none()},
        {kBase, "pitfall-cell-like-phandle", k618, k618, none()},
        {kBase, "pitfall-renamed", k618, k618, none()},
        {kBase, "pitfall-list-order", k618, k618, none(), none(), {"clocks", "interrupts"}},
        {kBase, "pitfall-ok", k618, k618, none()},
        {kBase, "pitfall-alias", k618, k618, none(), {"alias"}},
        {kBase, "pitfall-disabled", k618, k618, none(), {"status"}},
        {"pitfall-disabled", "pitfall-disabled-same", k618, k618, none()},
        {kBase, "pitfall-absent-delay", k618, k618, {"tx_delay"}},
        {"pitfall-absent-delay", "pitfall-default-delay", k618, k618, none(), none(), {"tx_delay"}},
        {"pitfall-absent-delay",
         "pitfall-default-delay",
         kOld,
         k618,
         {"tx_delay", "rockchip,php-grf"}},
        {kBase,
         "pitfall-queue-children",
         k618,
         k618,
         none(),
         none(),
         none(),
         {"DT-MTL-QUEUE-CHILDREN"}},
        {kBase, "pitfall-flag-value", k618, k618, none(), none(), {"snps,tso"}},
        {kBase, "pitfall-mac-address", k618, k618, none(), {"local-mac-address"}},
        {kBase, "pitfall-assigned-elsewhere", k618, k618, {"assigned-clocks"}},
        {kBase, "pitfall-cells", k618, k618, none()},
        {kBase, "pitfall-opp-twice", k618, k618, none()},
        {kBase, "r6s-mainline-symbols", k618, k618, none()},
        {kBase,
         "r6s-mainline-php-grf",
         k618,
         k618,
         {"rockchip,php-grf"},
         none(),
         none(),
         {"DT-PHP-GRF-SPELLING"}},
        {kBase, "r6s-mainline-php-grf", k618, kOld, none(), none(), {"rockchip,php-grf"}},
        {"r6s-stock",
         kBase,
         kOld,
         k618,
         {"snps,tx-queues-to-use", "snps,rx-queues-to-use"},
         {"snps,no-vlhash", "phy/compatible", "phy/pinctrl-0", "alias"},
         none(),
         {"DT-FIFO-SPLIT"}},
    };
}

std::vector<Case> high_cases() {
    return {
        {kBase,
         "pitfall-one-mtl-reference",
         k618,
         k618,
         {"snps,tx-queues-to-use", "snps,rx-queues-to-use"},
         none(),
         none(),
         {"DT-MTL-ONE-REFERENCE"}},
        {kBase, "high-tx-queues", k618, k618, {"snps,tx-queues-to-use"}},
        {kBase,
         "high-avb",
         k618,
         k618,
         {"tx queue1/snps,avb-algorithm", "tx queue1/snps,idle_slope", "tx queue1/snps,send_slope",
          "tx queue1/snps,high_credit", "tx queue1/snps,low_credit"},
         none(),
         none(),
         {"DT-AVB-CAP"}},
        {kBase,
         "high-no-checksum",
         k618,
         k618,
         {"tx queue0/snps,coe-unsupported"},
         none(),
         none(),
         {"DT-QUEUE-NO-CHECKSUM"}},
        {kBase,
         "high-core",
         k618,
         k618,
         {"compatible", "snps,tso", "tx-fifo-depth", "rx-fifo-depth"},
         none(),
         none(),
         {"DT-TSO-CORE"}},
        {kBase, "high-tso", k618, k618, {"snps,tso"}},
        {kBase,
         "high-threshold",
         k618,
         k618,
         {"snps,force_thresh_dma_mode", "snps,tso"},
         none(),
         none(),
         {"DT-TSO-THRESHOLD"}},
        {kBase,
         "high-short-burst",
         k72,
         k72,
         {"snps,txpbl", "snps,tso"},
         none(),
         none(),
         {"DT-TSO-BURST"}},
        {kBase, "high-short-burst", k612, k612, {"snps,txpbl"}},
        {kBase,
         "high-phy-mode",
         k618,
         k618,
         {"phy-mode", "tx_delay"},
         none(),
         none(),
         {"DT-RGMII-DOUBLE-DELAY"}},
        {kBase, "high-tx-delay", k618, k618, {"tx_delay"}},
        {kBase, "high-rx-delay", k618, k618, {"phy-mode", "rx_delay"}},
        {"high-rgmii", "high-rx-delay", k618, k618, {"rx_delay"}},
        {"high-rgmii", "high-rgmii", kOld, k618, {"rx_delay", "rockchip,php-grf"}},
        {kBase, "high-mac-delay-ps", k618, k618, {"tx-internal-delay-ps"}},
        {kBase, "high-clock-direction", k618, k618, {"clock_in_out"}},
        {"high-clock-direction",
         "r6s-no-clock-direction",
         k618,
         k618,
         none(),
         none(),
         {"clock_in_out"},
         {"DT-CLOCK-DIRECTION"}},
        {kBase, "high-assigned-clocks", k618, k618, {"assigned-clocks"}},
        {kBase, "high-max-speed", k618, k618, {"max-speed"}, none(), none(), {"DT-SPEED-CAP"}},
        {kBase,
         "high-phy-max-speed",
         k618,
         k618,
         {"phy/max-speed"},
         none(),
         none(),
         {"DT-SPEED-CAP"}},
        {kBase, "high-phy-delay-ps", k618, k618, {"phy/tx-internal-delay-ps"}},
        {kBase, "high-grf", k618, k618, {"rockchip,grf"}},
        {kBase, "high-php-grf", k618, k618, {"rockchip,php-grf"}},
        {"a64", "high-a64-delay", k618, k618, {"allwinner,tx-delay-ps", "allwinner,rx-delay-ps"}},
        {"a64", "high-meson-delay", k618, k618, {"amlogic,tx-delay-ns"}},
    };
}

std::vector<Case> medium_cases() {
    return {
        {kBase, "medium-rd-limit", k618, k618, {"axi/snps,rd_osr_lmt"}},
        {kBase,
         "medium-no-axi",
         k618,
         k618,
         {"snps,axi-config", "axi/snps,rd_osr_lmt", "axi/snps,blen"},
         {"axi/snps,wr_osr_lmt"}},
        {kBase, "medium-blen", k72, k72, {"axi/snps,blen"}, none(), none(), {"DT-AXI-BURSTS"}},
        {kBase, "medium-burst", k618, k618, {"snps,txpbl"}, {"snps,rxpbl"}},
        {kBase, "medium-explicit-burst", k618, k618, none(), none(), {"snps,pbl"}},
        {kBase,
         "medium-fixed-burst",
         k618,
         k618,
         {"snps,fixed-burst", "snps,mixed-burst"},
         none(),
         none(),
         {"DT-FIXED-AND-MIXED"}},
        {kBase,
         "medium-fifo",
         k618,
         k618,
         {"tx-fifo-depth", "snps,txpbl"},
         none(),
         none(),
         {"DT-BURST-FIFO"}},
        {kBase, "medium-rx-fifo", k618, k618, {"rx-fifo-depth"}, none(), none(), {"DT-PAUSE-FIFO"}},
        {kBase, "medium-coherent", k618, k618, {"dma-coherent"}},
        {"medium-queue-lines",
         kBase,
         k618,
         k618,
         {"interrupt-names", "interrupts"},
         none(),
         none(),
         {"DT-QUEUES-ONE-LINE"}},
        {kBase, "medium-eee", k618, k618, {"phy/eee-broken-1000t"}},
        {kBase, "medium-drive", k618, k618, {"pinctrl-0"}},
        {kBase, "medium-clock", k618, k618, {"clocks: aclk_mac"}},
        {"r4s", "r4s-no-txpbl", k618, k618, {"snps,txpbl"}, none(), none(), {"DT-OLD-CORE-BURST"}},
        {"r4s", "r4s-tso", k618, k618, {"snps,tso"}, none(), none(), {"DT-TSO-CORE"}},
    };
}

std::vector<Case> cases() {
    std::vector<Case> all = comparing_cases();
    for (const auto& more : {high_cases(), medium_cases()}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

class DtPitfall : public ::testing::TestWithParam<Case> {};

TEST_P(DtPitfall, HasTheExpectedVerdict) {
    const Case& expected = GetParam();
    const Comparison comparison =
        compare_fixtures(expected.a, expected.b, expected.driver_a, expected.driver_b);
    const ControllerResult& result = port(comparison);
    EXPECT_THAT(properties(result, FactClass::kTransmit),
                UnorderedElementsAreArray(expected.transmit));
    EXPECT_THAT(properties(result, FactClass::kNeutral),
                UnorderedElementsAreArray(expected.neutral));
    EXPECT_THAT(properties(result, FactClass::kEquivalent), IsSupersetOf(expected.equivalent));
    for (const std::string& rule : expected.rules_b) {
        EXPECT_THAT(rule_ids(result, true), Contains(rule));
        EXPECT_THAT(rule_ids(result, false), Not(Contains(rule)));
    }
}

INSTANTIATE_TEST_SUITE_P(Table, DtPitfall, ::testing::ValuesIn(cases()),
                         [](const auto& param) { return case_name(param.param); });

TEST(DtPitfalls, EveryRuleHasACaseWhereItFires) {
    // The case also says that it does not fire on the other side.
    for (const Rule& rule : rules()) {
        const bool fires = std::ranges::any_of(cases(), [&](const Case& c) {
            return std::ranges::find(c.rules_b, rule.id) != c.rules_b.end();
        });
        EXPECT_TRUE(fires) << rule.id;
    }
}

TEST(DtPitfalls, EveryHighPropertyHasACase) {
    const Names judged_with_others{
        "snps,mtl-tx-config",   "snps,mtl-rx-config",      // with the counts
        "phy-connection-type",  "assigned-clock-parents",  // with phy-mode, assigned-clocks
        "assigned-clock-rates", "rx-internal-delay-ps",    // same shape as tx-internal-delay-ps
    };
    for (const Knowledge& entry : knowledge()) {
        if (entry.transmit != Relevance::kHigh ||
            std::ranges::find(judged_with_others, entry.property) != judged_with_others.end()) {
            continue;
        }
        const bool found = std::ranges::any_of(cases(), [&](const Case& c) {
            return std::ranges::any_of(c.transmit, [&](const std::string& property) {
                return property.ends_with(entry.property);
            });
        });
        EXPECT_TRUE(found) << entry.property;
    }
}

TEST(DtPitfalls, StatusOfADisabledPortIsNeutralAndNotEqual) {
    const Comparison comparison = compare_fixtures("r6s-mainline", "pitfall-disabled");
    EXPECT_EQ(find_fact(port(comparison), "status")->effective_b, "disabled");
    EXPECT_FALSE(comparison.equal);
}

TEST(DtPitfalls, AddressOfTheBootLoaderIsShownAsBytes) {
    const Comparison comparison = compare_fixtures("r6s-mainline", "pitfall-mac-address");
    EXPECT_EQ(find_fact(port(comparison), "local-mac-address")->written_b, "02 00 00 00 00 01");
}

TEST(DtPitfalls, AssignedRateOnAnotherNodeNamesTheClock) {
    const Comparison comparison = compare_fixtures("r6s-mainline", "pitfall-assigned-elsewhere");
    EXPECT_EQ(find_fact(port(comparison), "assigned-clocks")->effective_b,
              "CLK_GMAC_125M at 25000000 Hz");
}

TEST(DtPitfalls, NamesTheDelayThatEachDriverTakes) {
    const Comparison comparison = compare_fixtures("pitfall-absent-delay", "pitfall-absent-delay",
                                                   "vendor-6.1", "mainline-6.18");
    const Fact* fact = find_fact(port(comparison), "tx_delay");
    ASSERT_NE(fact, nullptr);
    EXPECT_EQ(fact->written_a, "absent");
    EXPECT_EQ(fact->effective_a, "line off");
    EXPECT_EQ(fact->effective_b, "0x30");
}

}  // namespace
}  // namespace ringside::dt
