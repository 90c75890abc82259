// Whole outputs against files. RINGSIDE_UPDATE_GOLDEN=1 rewrites the files: read the difference
// before committing it, every number in it must follow from make_runs.h.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/golden/make_runs.h"
#include "tools/render/analysis_json.h"
#include "tools/render/analysis_text.h"

namespace ringside::golden {
namespace {

std::string golden_path(const std::string& name) {
    return std::string(RINGSIDE_GOLDEN) + "/" + name;
}

// EXPECT_EQ prints a line-by-line difference of the two texts.
void compare(const std::string& file, const std::string& actual) {
    const char* update = std::getenv("RINGSIDE_UPDATE_GOLDEN");
    if (update != nullptr && std::string_view(update) == "1") {
        std::ofstream out(golden_path(file), std::ios::binary);
        out << actual;
        ASSERT_TRUE(out.good()) << file;
        return;
    }
    std::ifstream in(golden_path(file), std::ios::binary);
    ASSERT_TRUE(in.good()) << file << " is missing: make it with RINGSIDE_UPDATE_GOLDEN=1";
    std::ostringstream expected;
    expected << in.rdbuf();
    EXPECT_EQ(expected.str(), actual) << file;
}

CaptureAnalysis analyzed(const Scenario& scenario) {
    const Capture& capture = scenario.capture;
    CaptureAnalysis result{
        capture.cut, capture.file_bytes, capture.used_bytes, capture.runs.size(), {}};
    for (const Run& run : capture.runs) {
        Result<Analysis> analysis = analyze(run, scenario.params);
        EXPECT_TRUE(analysis);
        if (analysis) {
            result.runs.push_back({result.runs.size() + 1, std::move(*analysis)});
        }
    }
    return result;
}

class AnalysisGolden : public testing::TestWithParam<Scenario> {};

TEST_P(AnalysisGolden, TextIsAsExpected) {
    const CaptureAnalysis analysis = analyzed(GetParam());
    const std::string text = analysis_text(
        analysis, {.windows = GetParam().windows, .verbose = GetParam().name == "stopped"}, {});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(text_width(line), 80U) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
    compare(GetParam().name + ".txt", text);
}

TEST_P(AnalysisGolden, JsonIsAsExpected) {
    compare(GetParam().name + ".json",
            analysis_json(analyzed(GetParam()), {.windows = GetParam().windows}));
}

TEST_P(AnalysisGolden, FindingsAreAsStated) {
    bool findings = false;
    for (const NumberedAnalysis& run : analyzed(GetParam()).runs) {
        findings |= run.analysis.has_findings;
    }
    EXPECT_EQ(findings, GetParam().findings);
}

TEST_P(AnalysisGolden, AsciiFormHoldsNothingButAscii) {
    const std::string text =
        analysis_text(analyzed(GetParam()), {.windows = GetParam().windows}, {.utf8 = false});
    for (const char c : text) {
        EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << static_cast<int>(c);
    }
}

// Colour adds escape sequences and changes nothing else.
TEST_P(AnalysisGolden, ColourIsOnlyColour) {
    const CaptureAnalysis analysis = analyzed(GetParam());
    const std::string plain = analysis_text(analysis, {}, {});
    const std::string colored = analysis_text(analysis, {}, {.color = true});
    std::string stripped;
    for (std::size_t i = 0; i < colored.size(); ++i) {
        if (colored[i] == '\033') {
            i = colored.find('m', i);
        } else {
            stripped += colored[i];
        }
    }
    EXPECT_EQ(stripped, plain);
}

// Exit code of tests/check_schema.py.
int check_schema(const std::string& files) {
    const std::string source = RINGSIDE_SOURCE_DIR;
    const std::string command = "'" RINGSIDE_PYTHON "' '" + source + "/tests/check_schema.py' '" +
                                source + "/docs/schema/analysis.schema.json' " + files;
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(AnalysisSchema, HoldsForEveryExpectedDocument) {
    std::string files;
    for (const Scenario& scenario : scenarios()) {
        files += "'" + golden_path(scenario.name + ".json") + "' ";
    }
    EXPECT_EQ(check_schema(files), 0);
}

TEST(AnalysisSchema, RefusesAMemberThatItDoesNotKnow) {
    std::string text = analysis_json(analyzed(scenarios().front()), {});
    text.replace(text.find("wire_bps"), 8, "wire_bpz");
    const std::string path = testing::TempDir() + "ringside_misspelt.json";
    std::ofstream(path) << text;
    EXPECT_EQ(check_schema("'" + path + "'"), 1);
    std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Scenarios, AnalysisGolden, testing::ValuesIn(scenarios()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ringside::golden
