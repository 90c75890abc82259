#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/golden/make_runs.h"
#include "tools/render/analysis_json.h"
#include "tools/render/analysis_text.h"
#include "tools/render/text.h"

namespace ringside {
namespace {

const TextStyle kUtf8{.color = false, .utf8 = true, .width = 80};
const TextStyle kAscii{.color = false, .utf8 = false, .width = 80};

TEST(Printable, LetsOrdinaryTextThrough) {
    EXPECT_EQ(printable("enp1s0.100", kUtf8), "enp1s0.100");
    EXPECT_EQ(printable("Brücke 北 𝄞", kUtf8), "Brücke 北 𝄞");
    EXPECT_EQ(printable("Brücke", kAscii), "Br?cke");
    EXPECT_EQ(printable("", kUtf8), "");
}

TEST(Printable, TakesTheSharpEdgesOff) {
    EXPECT_EQ(printable("a\x1b[31mb", kUtf8), "a?[31mb");
    EXPECT_EQ(printable(std::string("a\0b\r\n\t\x7f", 7), kUtf8), "a?b????");
    EXPECT_EQ(printable("a\xc2\x9b"
                        "b",
                        kUtf8),
              "a?b");  // CSI as one C1 character
    EXPECT_EQ(printable("a\xe2\x80\xae"
                        "b",
                        kUtf8),
              "a?b");  // right-to-left override
    EXPECT_EQ(printable("a\xe2\x81\xa6"
                        "b",
                        kUtf8),
              "a?b");  // isolate
    EXPECT_EQ(printable("a\xe2\x80\xa8"
                        "b",
                        kUtf8),
              "a?b");  // line separator
}

TEST(Printable, InvalidUtf8BecomesQuestionMarks) {
    EXPECT_EQ(printable("\xff", kUtf8), "?");
    EXPECT_EQ(printable("\xc3", kUtf8), "?");  // cut
    EXPECT_EQ(printable("\xe2\x80", kUtf8), "??");
    EXPECT_EQ(printable("\xc0\xaf", kUtf8), "??");  // overlong
    EXPECT_EQ(printable("\xe0\x80\xaf", kUtf8), "???");
    EXPECT_EQ(printable("\xed\xa0\x80", kUtf8), "???");       // surrogate
    EXPECT_EQ(printable("\xf4\x90\x80\x80", kUtf8), "????");  // beyond Unicode
    EXPECT_EQ(printable("\xf8\x88\x80\x80\x80", kUtf8), "?????");
}

TEST(Locale, TheFirstVariableThatIsSetDecides) {
    EXPECT_TRUE(names_utf8("C.UTF-8", "C", "C"));
    EXPECT_TRUE(names_utf8("", "de_DE.utf8", "C"));
    EXPECT_TRUE(names_utf8("", "", "en_US.UTF-8"));
    EXPECT_FALSE(names_utf8("C", "", "en_US.UTF-8"));
    EXPECT_FALSE(names_utf8("", "", ""));
}

TEST(Fit, CutsByCharactersAndSaysSo) {
    EXPECT_EQ(fit("abcdef", 6, kUtf8), "abcdef");
    EXPECT_EQ(fit("abcdef", 4, kUtf8), "abc…");
    EXPECT_EQ(fit("abcdef", 4, kAscii), "abc~");
    EXPECT_EQ(fit("äöüäöü", 4, kUtf8), "äöü…");
    EXPECT_EQ(fit("abc", 1, kUtf8), "…");
    EXPECT_EQ(fit("abc", 0, kUtf8), "");
}

TEST(Wrap, BreaksBetweenWordsAndIndents) {
    const TextStyle narrow{.width = 10};
    EXPECT_EQ(wrap("x: ", "one two three", 3, narrow), "x: one two\n   three\n");
    EXPECT_EQ(wrap("", "", 2, narrow), "\n");
    EXPECT_EQ(wrap("", "abcdefghijklmnop q", 2, narrow), "abcdefghi…\n  q\n");
    EXPECT_EQ(wrap("", "  a   b  ", 2, narrow), "a b\n");
}

TEST(Paint, OnlyWhenAsked) {
    EXPECT_EQ(paint("x", Paint::kFinding, kUtf8), "x");
    EXPECT_EQ(paint("x", Paint::kFinding, {.color = true}), "\033[31mx\033[0m");
    EXPECT_EQ(paint("x", Paint::kPlain, {.color = true}), "x");
}

TEST(Plural, CountsOne) {
    EXPECT_EQ(plural(0, "packet"), "0 packets");
    EXPECT_EQ(plural(1, "packet"), "1 packet");
    EXPECT_EQ(plural(1234, "packet"), "1,234 packets");
}

TEST(Sparkline, MapsValuesToEighths) {
    const std::vector<std::optional<double>> ramp{0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
    EXPECT_EQ(sparkline(ramp, 7, 40, kUtf8), "▁▂▃▄▅▆▇█");
    EXPECT_EQ(sparkline(ramp, 7, 40, kAscii), "_.:-=+*#");
    // Pairs: averages 0.5, 2.5, 4.5, 6.5 of 7, rounded up to the next block.
    EXPECT_EQ(sparkline(ramp, 7, 4, kUtf8), "▂▄▆█");
    EXPECT_EQ(sparkline({}, 7, 4, kUtf8), "");
}

TEST(Sparkline, LeavesGapsAndSurvivesNonsense) {
    const std::vector<std::optional<double>> gaps{1.0,      std::nullopt, std::nan(""),
                                                  HUGE_VAL, -1.0,         5.0};
    EXPECT_EQ(sparkline(gaps, 1, 40, kUtf8), "█   ▁█");
    EXPECT_EQ(sparkline(gaps, 0, 40, kUtf8), "▁   ▁▁");
    EXPECT_EQ(sparkline(gaps, std::nan(""), 40, kUtf8), "▁   ▁▁");
}

TEST(TableText, AlignsAndCuts) {
    Table table;
    table.column("name", Table::Align::kLeft);
    table.column("count");
    table.row({"a", "10"});
    table.row({"äöü", "5", "left out"});
    table.row({"c"});
    EXPECT_EQ(table.text(2, kUtf8), "  name  count\n  a        10\n  äöü       5\n  c\n");
    EXPECT_EQ(table.text(2, {.width = 8}), "  name …\n  a    …\n  äöü  …\n  c\n");
}

CaptureAnalysis hostile() {
    auto run = golden::two_queues_run();
    const std::string bad = "\x1b]0;owned\x07\xff\xc3\n";
    run.info.interface = run.info.tier = run.info.tier_why = run.info.tool_version = bad;
    run.info.hooks = run.info.command = {bad, std::string(5000, 'x')};
    run.info.facts = {{"machine.model", bad, "", ""},
                      {"driver.name", bad, "", ""},
                      {"kernel.release", bad, "", ""},
                      {"link.speed_mbps", bad, "", ""}};
    run.info.start_unix_ns = std::numeric_limits<std::int64_t>::max();
    run.events.push_back({0, EventKind::kRenamed, bad});
    run.end.reason = bad;
    run.end.program_misses = {{bad, 1}};
    CaptureAnalysis capture;
    capture.cut = bad;
    capture.runs_in_file = 1;
    capture.runs.push_back({1, analyze(run).value()});
    return capture;
}

TEST(AnalysisText, NothingForeignReachesTheTerminal) {
    const std::string text = analysis_text(hostile(), {.windows = true, .verbose = true}, kUtf8);
    for (const char c : text) {
        EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f))
            << static_cast<int>(c);
    }
    EXPECT_EQ(text.find('\xff'), std::string::npos);
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
        EXPECT_LE(text_width(text.substr(begin, end - begin)), 80U);
        begin = end + 1;
    }
}

TEST(AnalysisJson, InvalidBytesDoNotThrow) {
    const std::string text = analysis_json(hostile(), {.windows = true});
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["schema"], "ringside.analysis");
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["runs"][0]["interface"], "\x1b]0;owned\x07\xef\xbf\xbd\xef\xbf\xbd\n");
    EXPECT_EQ(json["runs"][0]["queues"][1]["traffic"]["windows"].size(), 5U);
}

TEST(AnalysisJson, NumbersAreThoseOfTheText) {
    CaptureAnalysis capture;
    capture.runs_in_file = 1;
    capture.runs.push_back({1, analyze(golden::late_completion_run()).value()});
    const auto json = nlohmann::json::parse(analysis_json(capture, {}));
    const auto& traffic = json["runs"][0]["queues"][0]["traffic"];
    EXPECT_EQ(traffic["wire_bps"], 544.32e6);
    EXPECT_EQ(traffic["in_flight_packets"], 224.719);
    EXPECT_FALSE(traffic.contains("windows"));
}

}  // namespace
}  // namespace ringside
