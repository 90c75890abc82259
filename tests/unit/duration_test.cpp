#include "analyzers/base/duration.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace ringside {
namespace {

std::uint64_t ns_of(std::string_view text) {
    const Result<std::uint64_t> ns = parse_duration_ns(text);
    EXPECT_TRUE(ns) << text << ": " << (ns ? "" : ns.error().line());
    return ns.value_or(~std::uint64_t{0});
}

TEST(Duration, ReadsEveryUnit) {
    EXPECT_EQ(ns_of("7ns"), 7U);
    EXPECT_EQ(ns_of("7us"), 7'000U);
    EXPECT_EQ(ns_of("200ms"), 200'000'000U);
    EXPECT_EQ(ns_of("30s"), 30'000'000'000U);
    EXPECT_EQ(ns_of("2m"), 120'000'000'000U);
    EXPECT_EQ(ns_of("1h"), 3'600'000'000'000U);
}

TEST(Duration, ReadsDecimals) {
    EXPECT_EQ(ns_of("1.5s"), 1'500'000'000U);
    EXPECT_EQ(ns_of("0.25ms"), 250'000U);
    EXPECT_EQ(ns_of("1.000000001s"), 1'000'000'001U);
    EXPECT_EQ(ns_of("2.50m"), 150'000'000'000U);
    // Zeros beyond a nanosecond say nothing.
    EXPECT_EQ(ns_of("1.0000000000000s"), 1'000'000'000U);
}

TEST(Duration, ZeroNeedsNoUnit) {
    EXPECT_EQ(ns_of("0"), 0U);
    EXPECT_EQ(ns_of("0s"), 0U);
}

TEST(Duration, RefusesWhatIsNoDuration) {
    for (const char* text :
         {"",     "s",     "abc",   "-1s",           "+1s", " 1s",    "1s ", "1 s",  "1",
          "30",   "1S",    "1sec",  "1.s",           ".5s", "1.2.3s", ".",   "1e3s", "0x10s",
          "1s30", "1m30s", "0.1ns", "1.0000000001s", "inf", "nan",    "1\n"}) {
        const Result<std::uint64_t> ns = parse_duration_ns(text);
        ASSERT_FALSE(ns) << "'" << text << "' gave " << *ns;
        EXPECT_EQ(ns.error().code(), ErrorCode::kUsage) << text;
        EXPECT_NE(ns.error().hint().find("200ms"), std::string::npos) << text;
    }
}

TEST(Duration, EndsWhereTheTypeEnds) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(ns_of("18446744073709551615ns"), kMax);
    EXPECT_FALSE(parse_duration_ns("18446744073709551616ns"));
    EXPECT_EQ(ns_of("18446744073.709551615s"), kMax);
    EXPECT_FALSE(parse_duration_ns("18446744073.709551616s"));
    EXPECT_FALSE(parse_duration_ns("5124096h"));  // 2^64 ns are 5,124,095.6 h
    EXPECT_FALSE(parse_duration_ns(std::string(10'000, '9') + "s"));
}

TEST(Duration, RepeatsLittleOfALongText) {
    const Result<std::uint64_t> ns = parse_duration_ns(std::string(10'000, 'x'));
    ASSERT_FALSE(ns);
    EXPECT_LT(ns.error().message().size(), 200U);
}

}  // namespace
}  // namespace ringside
