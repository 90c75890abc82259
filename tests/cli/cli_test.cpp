// The contract of the command line: help, versions, exit codes, one-line errors.
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "analyzers/capture/writer.h"
#include "tests/cli/process.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;

class Cli : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = fs::temp_directory_path() / "ringside-cli-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
        const fs::path path = folder_ / name;
        std::ofstream(path, std::ios::binary) << content;
        return path;
    }
    // A small whole capture.
    [[nodiscard]] std::string capture(const std::string& name = "a.rsc") const {
        const fs::path path = folder_ / name;
        Result<CaptureWriter> writer = CaptureWriter::create(path);
        EXPECT_TRUE(writer);
        RunInfo info;
        info.interface = "eth0";
        info.tier = "skb";
        info.window_ns = 100'000'000;
        info.start_boottime_ns = 1'000'000'000;
        EXPECT_TRUE(writer->begin_run(info));
        Window window;
        window.start_ns = 1'000'000'000;
        window.end_ns = 1'100'000'000;
        EXPECT_TRUE(writer->add(window));
        EXPECT_TRUE(writer->end_run({}));
        EXPECT_TRUE(writer->close());
        return path;
    }

    fs::path folder_;
};

TEST_F(Cli, HelpIsEnoughToStart) {
    const Finished help = ringside_says({"--help"});
    EXPECT_EQ(help.exit, 0);
    for (const char* word :
         {"doctor", "trace", "analyze", "demo", "Exit codes", "--json", "--version"}) {
        EXPECT_NE(help.out.find(word), std::string::npos) << word;
    }
    for (const char* command : {"doctor", "trace", "analyze", "demo"}) {
        const Finished own = ringside_says({command, "--help"});
        EXPECT_EQ(own.exit, 0) << command;
        EXPECT_NE(own.out.find("Usage"), std::string::npos) << command;
    }
}

TEST_F(Cli, TellsItsVersion) {
    const Finished version = ringside_says({"--version"});
    EXPECT_EQ(version.exit, 0);
    EXPECT_TRUE(version.out.starts_with("ringside ")) << version.out;
}

TEST_F(Cli, RefusesWrongUsageWithTwo) {
    expect_error(ringside_says({}), 2, "subcommand", "--help");
    expect_error(ringside_says({"frobnicate"}), 2, "frobnicate", "--help");
    expect_error(ringside_says({"analyze"}), 2, "CAPTURE", "--help");
    expect_error(ringside_says({"analyze", "x", "--frobnicate"}), 2, "frobnicate", "--help");
    expect_error(ringside_says({"trace", "eth0", "-d", "soon"}), 2, "soon", "30s");
    expect_error(ringside_says({"trace", "eth0", "-d", "0s"}), 2, "0 s", "-d 30s");
    expect_error(ringside_says({"trace", "eth0", "--append"}), 2, "--append", "-o FILE");
}

TEST_F(Cli, RefusesWhatIsNoCapture) {
    expect_error(ringside_says({"analyze", (folder_ / "missing.rsc").string()}), 3, "missing.rsc",
                 "ringside trace");
    expect_error(ringside_says({"analyze", file("empty.rsc", "")}), 3, "empty.rsc",
                 "ringside trace");
    expect_error(ringside_says({"analyze", file("text.rsc", "interface eth0\nrate 5\n")}), 3,
                 "text.rsc", "ringside trace");
    expect_error(ringside_says({"analyze", folder_.string()}), 3, folder_.string(), "");
    expect_error(ringside_says({"analyze", "/dev/zero"}), 3, "/dev/zero", "");
}

TEST_F(Cli, ReadsACaptureAndPrintsOneJsonDocument) {
    const Finished text = ringside_says({"analyze", capture()});
    EXPECT_EQ(text.exit, 0) << text.err;
    EXPECT_NE(text.out.find("eth0"), std::string::npos);
    const Finished json = ringside_says({"analyze", capture(), "--json"});
    EXPECT_EQ(json.exit, 0) << json.err;
    const auto document = nlohmann::json::parse(json.out);
    EXPECT_EQ(document["schema"], "ringside.analysis");
    EXPECT_EQ(document["schema_version"], 1);
}

TEST_F(Cli, RefusesACaptureOfANewerVersion) {
    const std::string path = capture();
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(8);  // major version, docs/capture-format.md
    stream.put(99);
    stream.close();
    const Finished result = ringside_says({"analyze", path});
    EXPECT_EQ(result.exit, 3);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST_F(Cli, SaysWhereAKilledRecordingIs) {
    const std::string path = capture();
    fs::rename(path, path + ".part");
    expect_error(ringside_says({"analyze", path}), 3, "a.rsc", ".part");
    EXPECT_EQ(ringside_says({"analyze", path + ".part"}).exit, 0);
}

TEST_F(Cli, RefusesInterfacesThatCannotBeTraced) {
    const std::string output = (folder_ / "x.rsc").string();
    expect_error(ringside_says({"trace", "nope0", "-o", output}), 3, "nope0", "lo");
    expect_error(ringside_says({"trace", "lo", "-o", output}), 3, "lo", "(");
    expect_error(ringside_says({"trace", "../etc/x", "-o", output}), 2, "../etc/x", "");
    EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace ringside
