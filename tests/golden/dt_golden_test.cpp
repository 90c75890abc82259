// Whole outputs of dtdiff against files. RINGSIDE_UPDATE_GOLDEN=1 rewrites them: read the
// difference before committing it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/dt_fixtures.h"
#include "tools/render/dtdiff_json.h"
#include "tools/render/dtdiff_text.h"

namespace ringside::dt {
namespace {

struct Pair {
    std::string name;
    std::string a;
    std::string b;
    std::string driver_a;
    std::string driver_b;
    bool all;
    bool details;
};

const Pair kPairs[] = {
    {"dt-r6s", "r6s-stock", "r6s-mainline", "", "", false, false},
    {"dt-r6s-all", "r6s-stock", "r6s-mainline", "vendor-6.1", "mainline-6.18", true, true},
    {"dt-r5s", "r5s-stock", "r5s-mainline", "vendor-6.1", "mainline-6.18", false, false},
    {"dt-pcie", "r6s-stock-pcie", "r6s-mainline-pcie", "vendor-6.1", "mainline-7.2", false, false},
    {"dt-same", "r6s-mainline", "same-shuffled", "mainline-6.12", "mainline-6.12", false, false},
};

Comparison compared(const Pair& pair) {
    Options options;
    options.driver_a = driver(pair.driver_a);
    options.driver_b = driver(pair.driver_b);
    options.all = pair.all;
    auto result = compare(fixture(pair.a), fixture(pair.b), options);
    if (!result) {
        throw std::runtime_error(result.error().line());
    }
    return std::move(*result);
}

void expect_file(const std::string& file, const std::string& actual) {
    const std::string path = std::string(RINGSIDE_GOLDEN) + "/" + file;
    const char* update = std::getenv("RINGSIDE_UPDATE_GOLDEN");
    if (update != nullptr && std::string_view(update) == "1") {
        std::ofstream(path, std::ios::binary) << actual;
    }
    std::ifstream in(path, std::ios::binary);
    ASSERT_TRUE(in.good()) << file << " is missing: make it with RINGSIDE_UPDATE_GOLDEN=1";
    std::ostringstream expected;
    expected << in.rdbuf();
    EXPECT_EQ(expected.str(), actual) << file;
}

class DtGolden : public ::testing::TestWithParam<Pair> {};

TEST_P(DtGolden, TextIsAsExpectedAndFits) {
    const std::string text = dtdiff_text(compared(GetParam()), {.details = GetParam().details}, {});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(text_width(line), 80U) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
    expect_file(GetParam().name + ".txt", text);
}

TEST_P(DtGolden, JsonIsAsExpected) {
    expect_file(GetParam().name + ".json", dtdiff_json(compared(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Pairs, DtGolden, ::testing::ValuesIn(kPairs), [](const auto& param) {
    std::string name = param.param.name;
    std::ranges::replace(name, '-', '_');
    return name;
});

TEST(DtGolden, TheCaseIsSaidInTheFirstTwentyLines) {
    std::istringstream lines(dtdiff_text(compared(kPairs[0]), {}, {}));
    std::string top;
    for (int i = 0; i < 20; ++i) {
        std::string line;
        std::getline(lines, line);
        top += line + "\n";
    }
    for (const char* part : {"snps,tx-queues-to-use           1        2", "FIFO",
                             "snps,rx-queues-to-use           1        2", "is not a cause"}) {
        EXPECT_NE(top.find(part), std::string::npos) << part << "\n" << top;
    }
}

TEST(DtGolden, JsonFollowsItsSchema) {
    std::string command = std::string(RINGSIDE_PYTHON) + " " + RINGSIDE_SOURCE_DIR +
                          "/tests/check_schema.py " + RINGSIDE_DOCS + "/schema/dtdiff.schema.json";
    for (const Pair& pair : kPairs) {
        command += " " + std::string(RINGSIDE_GOLDEN) + "/" + pair.name + ".json";
    }
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
}

TEST(DtGolden, HostileNamesDoNotReachTheTerminal) {
    LoadedTree a = fixture("r4s");
    LoadedTree b = fixture("r4s");
    a.name = "evil\x1b[31m\nname";
    b.notes.emplace_back("note\x1b]0;title\x07");
    const auto result = compare(a, b);
    ASSERT_TRUE(result);
    const std::string text = dtdiff_text(*result, {}, {});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x07'), std::string::npos);
    const auto json = nlohmann::json::parse(dtdiff_json(*result));
    EXPECT_EQ(json.at("a").at("name"), a.name);
}

}  // namespace
}  // namespace ringside::dt
