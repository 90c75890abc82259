// The device trees of two Debian kernels, fetched and cached by tests/fetch_dtbs.sh: every one
// loads, resolves and is equal to itself; the boards of the case come out as known.
//
// The folder is RINGSIDE_DTBS or the cache; without it the tests skip and say so, and with
// RINGSIDE_REQUIRE_NETWORK=1 they fail.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dtcompare/compare.h"
#include "dtcompare/resolve.h"

namespace ringside::dt {
namespace {

using ::testing::IsEmpty;

namespace fs = std::filesystem;

fs::path cache_folder() {
    if (const char* folder = std::getenv("RINGSIDE_DTBS")) {
        return folder;
    }
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    return (cache != nullptr ? fs::path(cache)
                             : fs::path(home == nullptr ? "/" : home) / ".cache") /
           "ringside/dtbs";
}

// Trees of one series, by board ("rockchip/rk3588s-nanopi-r6s.dtb").
std::map<std::string, fs::path> trees(const std::string& series, const char* ending = ".dtb") {
    std::map<std::string, fs::path> found;
    const fs::path folder = cache_folder() / series;
    if (!fs::exists(folder)) {
        return found;
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().extension() == ending) {
            found[entry.path().parent_path().filename() / entry.path().filename()] = entry.path();
        }
    }
    return found;
}

class DtRealTrees : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const std::string series : {"6.12", "7.2"}) {
            if (!trees(series).empty()) {
                continue;
            }
            const char* required = std::getenv("RINGSIDE_REQUIRE_NETWORK");
            if (required != nullptr && std::string(required) == "1") {
                FAIL() << "no trees of " << series << " in " << cache_folder()
                       << ": run tests/fetch_dtbs.sh";
            }
            GTEST_SKIP() << "no trees of " << series << " in " << cache_folder()
                         << ": run tests/fetch_dtbs.sh (needs the network once)";
        }
    }
};

// References that these trees really have wrong, read one by one: the provider lacks the cell
// count, a range lacks a number, or an endpoint's partner was deleted. Anything else is a fault of
// the resolver.
struct KnownDefect {
    std::string_view board;  // start of the file's name
    std::string_view property;
};
constexpr KnownDefect kDefects[] = {
    {"sdx75-idp", "interconnects"},
    {"tegra210-", "interconnects"},
    {"r8a77970-eagle-function-expansion", "remote-endpoint"},
    {"hi3798cv200-poplar", "gpio-ranges"},
};

bool is_known_defect(const fs::path& path, const Problem& problem) {
    const std::string name = path.filename();
    for (const KnownDefect& defect : kDefects) {
        if (name.starts_with(defect.board) && problem.property == defect.property) {
            return true;
        }
    }
    return false;
}

void check_series(const std::string& series, std::size_t at_least) {
    const auto all = trees(series);
    EXPECT_GE(all.size(), at_least);
    Options options;
    options.all = true;
    std::size_t references_bad = 0;
    for (const auto& [board, path] : all) {
        const auto loaded = load_tree(path);
        ASSERT_TRUE(loaded) << loaded.error().line();
        for (const Problem& problem : check_references(loaded->tree)) {
            ++references_bad;
            EXPECT_TRUE(is_known_defect(path, problem))
                << board << " " << loaded->tree.path(problem.node) << " " << problem.property
                << ": " << problem.what;
        }
        const auto same = compare(*loaded, *loaded, options);
        ASSERT_TRUE(same);
        EXPECT_TRUE(same->equal) << board;
        EXPECT_EQ(same->raw.total, 0U) << board;
    }
    std::printf("%s: %zu trees, each equal to itself; %zu references are defects of the trees\n",
                series.c_str(), all.size(), references_bad);
}

TEST_F(DtRealTrees, AllOf72LoadResolveAndEqualThemselves) {
    check_series("7.2", 1600);
}

TEST_F(DtRealTrees, AllOf612LoadResolveAndEqualThemselves) {
    check_series("6.12", 1000);
}

struct Board {
    std::string name;
    std::string port;                   // unit address of its own port
    std::vector<std::string> transmit;  // what 7.2 may change for transmit
};

TEST_F(DtRealTrees, BoardsOfTheCaseCompareAsKnown) {
    const std::vector<Board> boards{
        {"rockchip/rk3588s-nanopi-r6s.dtb", "fe1c0000", {}},
        {"rockchip/rk3568-nanopi-r5s.dtb", "fe2a0000", {}},
        // The tree is the same; the newer driver sets the FIFO sizes of this core itself.
        {"rockchip/rk3399-nanopi-r4s.dtb", "fe300000", {"tx-fifo-depth", "rx-fifo-depth"}},
        {"allwinner/sun50i-a64-pine64-plus.dtb", "1c30000", {}},
        {"broadcom/bcm2711-rpi-cm4-io.dtb", "7d580000", {}},
    };
    const auto old_trees = trees("6.12");
    const auto new_trees = trees("7.2");
    for (const Board& board : boards) {
        ASSERT_TRUE(old_trees.contains(board.name) && new_trees.contains(board.name)) << board.name;
        const auto a = load_tree(old_trees.at(board.name));
        const auto b = load_tree(new_trees.at(board.name));
        ASSERT_TRUE(a && b);
        const auto result = compare(*a, *b);
        ASSERT_TRUE(result);
        EXPECT_EQ(result->a.driver.driver, Driver::kMainline612);
        EXPECT_EQ(result->b.driver.driver, Driver::kMainline72);
        ASSERT_FALSE(result->controllers.empty()) << board.name;
        const ControllerResult& port = result->controllers.front();
        EXPECT_TRUE(port.path_a.ends_with("@" + board.port)) << port.path_a;
        EXPECT_TRUE(port.path_b.ends_with("@" + board.port)) << port.path_b;
        EXPECT_TRUE(port.enabled_a && port.enabled_b);
        std::vector<std::string> transmit;
        for (const Fact& fact : port.facts) {
            if (fact.fact_class == FactClass::kTransmit) {
                transmit.push_back(fact.property);
            }
        }
        EXPECT_EQ(transmit, board.transmit) << board.name;
    }
}

TEST_F(DtRealTrees, TheMovedBusOfCm4IsOnePort) {
    const auto a = load_tree(trees("6.12").at("broadcom/bcm2711-rpi-cm4-io.dtb"));
    const auto b = load_tree(trees("7.2").at("broadcom/bcm2711-rpi-cm4-io.dtb"));
    ASSERT_TRUE(a && b);
    const auto result = compare(*a, *b);
    ASSERT_EQ(result->controllers.size(), 1U);
    EXPECT_EQ(result->controllers[0].path_a, "/scb/ethernet@7d580000");
    EXPECT_EQ(result->controllers[0].path_b, "/scb-bus@fc000000/ethernet@7d580000");
    EXPECT_NE(result->controllers[0].means, Means::kPath);
}

TEST_F(DtRealTrees, OverlaysApplyOrSayWhyNot) {
    // Each overlay on every base of its folder whose name its own begins with.
    std::size_t applied = 0;
    std::size_t refused = 0;
    for (const auto& [name, path] : trees("7.2", ".dtbo")) {
        for (const auto& [board, base] : trees("7.2")) {
            if (!path.stem().string().starts_with(base.stem().string()) ||
                path.parent_path() != base.parent_path()) {
                continue;
            }
            const auto loaded = load_tree(base, {path});
            if (loaded) {
                ++applied;
                continue;
            }
            ++refused;
            EXPECT_EQ(loaded.error().exit_code(), ExitCode::kCannotRun);
            EXPECT_FALSE(loaded.error().hint().empty());
        }
    }
    std::printf("overlays: %zu applied, %zu refused with a reason\n", applied, refused);
    EXPECT_GT(applied, 20U);
}

}  // namespace
}  // namespace ringside::dt
