// The knowledge table: complete rows, no double ones, and the page made from it.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "dtcompare/knowledge.h"
#include "dtcompare/meaning.h"
#include "dtcompare/rules.h"
#include "tools/render/dtdiff_knowledge.h"

namespace ringside {
namespace {

using ::testing::HasSubstr;

TEST(DtKnowledge, RowsAreComplete) {
    for (const dt::Knowledge& entry : dt::knowledge()) {
        EXPECT_FALSE(entry.effect.empty()) << entry.property;
        EXPECT_FALSE(entry.why.empty()) << entry.property;
        EXPECT_FALSE(entry.source.empty()) << entry.property;
        EXPECT_NE(entry.families, 0) << entry.property;
        if (!entry.part_of.empty()) {
            EXPECT_FALSE(dt::find_knowledge(entry.part_of).empty()) << entry.property;
        }
    }
}

TEST(DtKnowledge, NoPropertyStandsTwiceInOnePlace) {
    std::set<std::pair<dt::Place, std::string_view>> seen;
    for (const dt::Knowledge& entry : dt::knowledge()) {
        EXPECT_TRUE(seen.emplace(entry.place, entry.property).second) << entry.property;
    }
}

TEST(DtKnowledge, RulesHaveIdsAndSources) {
    std::set<std::string_view> ids;
    for (const dt::Rule& rule : dt::rules()) {
        EXPECT_TRUE(rule.id.starts_with("DT-")) << rule.id;
        EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
        EXPECT_FALSE(rule.title.empty() || rule.why.empty() || rule.source.empty()) << rule.id;
        EXPECT_NE(rule.holds, nullptr) << rule.id;
    }
}

TEST(DtKnowledge, DefaultsDifferByDriver) {
    const auto entries = dt::find_knowledge("tx_delay");
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(dt::default_of(*entries[0], dt::Driver::kVendor61), "line off");
    EXPECT_EQ(dt::default_of(*entries[0], dt::Driver::kMainline72), "0x30");
}

TEST(DtKnowledge, PageIsTheTable) {
    const std::string path = std::string(RINGSIDE_DOCS) + "/dt-knowledge.md";
    const char* update = std::getenv("RINGSIDE_UPDATE_DOCS");
    if (update != nullptr && std::string_view(update) == "1") {
        std::ofstream(path, std::ios::binary) << knowledge_markdown();
    }
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in.good()) << path << " is missing: make it with RINGSIDE_UPDATE_DOCS=1";
    std::ostringstream page;
    page << in.rdbuf();
    EXPECT_EQ(page.str(), knowledge_markdown());
}

TEST(DtKnowledge, ExplainsPropertiesAndRules) {
    const auto property = knowledge_of("rockchip,php_grf", {});
    ASSERT_TRUE(property);
    EXPECT_THAT(*property, HasSubstr("rockchip,php-grf"));
    EXPECT_THAT(*property, HasSubstr("dwmac-rk.c"));
    const auto rule = knowledge_of("DT-TSO-BURST", {});
    ASSERT_TRUE(rule);
    EXPECT_THAT(*rule, HasSubstr("mainline-7.2"));
    const auto nothing = knowledge_of("delay", {});
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().exit_code(), ExitCode::kUsage);
    EXPECT_THAT(nothing.error().hint(), HasSubstr("tx_delay"));
}

TEST(DtKnowledge, ListFitsTheTerminal) {
    std::istringstream lines(knowledge_list({}));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        EXPECT_LE(text_width(line), 80U) << line;
    }
    EXPECT_GT(count, dt::knowledge().size() + dt::rules().size());
}

TEST(DtKnowledge, JsonHasEveryRow) {
    const auto json = knowledge_json("");
    ASSERT_TRUE(json);
    const auto document = nlohmann::json::parse(*json);
    EXPECT_EQ(document.at("properties").size(), dt::knowledge().size());
    EXPECT_EQ(document.at("rules").size(), dt::rules().size());
}

}  // namespace
}  // namespace ringside
