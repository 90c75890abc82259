// dtdiff on the command line: exit codes, one-line errors, JSON alone on stdout.
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/process.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;

std::string tree(const std::string& name) {
    return std::string(RINGSIDE_TEST_DATA) + "/dt/" + name + ".dts";
}

class DtCli : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = fs::temp_directory_path() / "ringside-dtcli-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }
    [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
        std::ofstream(folder_ / name, std::ios::binary) << content;
        return folder_ / name;
    }
    fs::path folder_;
};

TEST_F(DtCli, ExitCodesSayWhetherTheTreesAreEqual) {
    EXPECT_EQ(ringside_says({"dtdiff", tree("r6s-mainline"), tree("same-shuffled")}).exit, 0);
    const Finished different = ringside_says({"dtdiff", tree("r6s-stock"), tree("r6s-mainline")});
    EXPECT_EQ(different.exit, 1) << different.err;
    EXPECT_NE(different.out.find("snps,tx-queues-to-use"), std::string::npos);
    EXPECT_EQ(different.err, "");
}

TEST_F(DtCli, JsonIsOneDocument) {
    const Finished result =
        ringside_says({"--json", "dtdiff", tree("r6s-stock"), tree("r6s-mainline")});
    EXPECT_EQ(result.exit, 1);
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json.at("schema"), "ringside.dtdiff");
    EXPECT_FALSE(json.at("equal"));
    EXPECT_FALSE(json.at("proves_cause"));
}

TEST_F(DtCli, WrongUsageIsTwo) {
    EXPECT_EQ(ringside_says({"dtdiff"}).exit, 2);
    EXPECT_EQ(ringside_says({"dtdiff", tree("r4s")}).exit, 2);
    EXPECT_EQ(ringside_says({"dtdiff", tree("r4s"), tree("r4s"), "--driver-a", "bsd-1.0"}).exit, 2);
    EXPECT_EQ(ringside_says({"dtdiff", tree("r4s"), tree("r4s"), "--node", "/nothing"}).exit, 2);
    EXPECT_EQ(ringside_says({"dtdiff", tree("r4s"), tree("r4s"), "--wrong"}).exit, 2);
    EXPECT_EQ(ringside_says({"dtdiff", "--explain", "nothing-of-this-name"}).exit, 2);
}

TEST_F(DtCli, BadInputIsThreeAndOneError) {
    const std::string junk = file("junk.dtb", std::string(4096, 'x'));
    const std::string cut = file("cut.dtb", std::string("\xd0\x0d\xfe\xed\0\0\xff\xff", 8));
    const std::string text = file("bad.dts", "/dts-v1/;\n/ { x\n");
    for (const std::string& input :
         {junk, cut, text, file("empty.dtb", ""), std::string("/dev/null"),
          std::string("/does/not/exist"), folder_.string()}) {
        const Finished result = ringside_says({"dtdiff", input, tree("r4s")});
        EXPECT_EQ(result.exit, 3) << input;
        EXPECT_EQ(result.out, "") << input;
        EXPECT_TRUE(result.err.starts_with("ringside: device tree ")) << result.err;
    }
    const Finished overlay =
        ringside_says({"dtdiff", "--overlay-a", tree("overlay-label"), tree("r4s"), tree("r4s")});
    EXPECT_EQ(overlay.exit, 3);
    EXPECT_NE(overlay.err.find("does not apply"), std::string::npos) << overlay.err;
}

TEST_F(DtCli, KnowledgeIsListedAndExplained) {
    const Finished list = ringside_says({"dtdiff", "--list-knowledge"});
    EXPECT_EQ(list.exit, 0);
    EXPECT_NE(list.out.find("DT-RGMII-DOUBLE-DELAY"), std::string::npos);
    const Finished one = ringside_says({"dtdiff", "--explain", "tx_delay"});
    EXPECT_EQ(one.exit, 0);
    EXPECT_NE(one.out.find("line off"), std::string::npos);
    const Finished json = ringside_says({"--json", "dtdiff", "--list-knowledge"});
    EXPECT_EQ(nlohmann::json::parse(json.out).at("schema"), "ringside.dtdiff.knowledge");
}

}  // namespace
}  // namespace ringside
