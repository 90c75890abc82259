// The commands as a user runs them: real processes, signals, full disks, iperf3.
#include <sys/mount.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/live/live.h"

namespace ringside::live {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Commands : public LiveTest {
  protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        nic_ = std::make_unique<Result<DemoNic>>(DemoNic::create("tap0"));
        ASSERT_TRUE(*nic_) << nic_->error().line();
        nic().start_reader(0);
    }
    void TearDown() override {
        if (!peer_.empty()) {
            run({"ip", "netns", "del", peer_});
        }
        LiveTest::TearDown();
    }
    // A second host, joined to this one by v0 (192.0.2.1) and v1 (192.0.2.2).
    void make_peer() {
        peer_ = "ringside-" + std::to_string(::getpid());
        must_run("ip netns add " + peer_);
        must_run("ip link add v0 type veth peer name v1");
        must_run("ip link set v1 netns " + peer_);
        must_run("ip addr add 192.0.2.1/24 dev v0");
        must_run("ip link set v0 up");
        must_run("ip link set lo up");
        must_run("ip netns exec " + peer_ + " ip addr add 192.0.2.2/24 dev v1");
        must_run("ip netns exec " + peer_ + " ip link set v1 up");
    }
    DemoNic& nic() { return **nic_; }
    void send(int packets, unsigned gap_us = 1000) {
        for (int i = 0; i < packets; ++i) {
            [[maybe_unused]] const Status sent = nic().send(500);
            ::usleep(gap_us);
        }
    }
    static std::vector<std::string> trace(const fs::path& output,
                                          std::vector<std::string> more = {}) {
        std::vector<std::string> argv{RINGSIDE_BINARY, "trace", "tap0", "-o", output.string()};
        argv.insert(argv.end(), more.begin(), more.end());
        return argv;
    }
    // Against the schema that is published.
    void expect_valid(const std::string& schema, const std::string& document) const {
        const std::string path = file(schema + ".json").string();
        std::ofstream(path) << document;
        EXPECT_EQ(run({RINGSIDE_PYTHON, RINGSIDE_SOURCE_DIR "/tests/check_schema.py",
                       RINGSIDE_DOCS "/schema/" + schema + ".schema.json", path}),
                  0);
    }
    // Nothing but what is named.
    void expect_only(const std::vector<std::string>& names) const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(folder_)) {
            found.push_back(entry.path().filename());
        }
        EXPECT_EQ(found, names);
    }

    std::unique_ptr<Result<DemoNic>> nic_;
    std::string peer_;
};

TEST_F(Commands, EndNormallyOnSigintAndSigterm) {
    for (const int number : {SIGINT, SIGTERM}) {
        Process process(trace(file()));
        ASSERT_TRUE(process.wait_for("time")) << process.finish().err;
        send(200);
        process.signal(number);
        const Finished result = process.finish();
        EXPECT_EQ(result.exit, 0) << result.err;
        EXPECT_NE(result.out.find("Next: ringside analyze"), std::string::npos) << result.out;
        EXPECT_EQ(analysis_of(file()).port.packets, 200U);
    }
}

TEST_F(Commands, LoseAtMostTheLastSecondWhenKilled) {
    Process process(trace(file()));
    ASSERT_TRUE(process.wait_for("time")) << process.finish().err;
    send(2500, 900);
    const std::uint64_t killed_ns = boottime_now_ns();
    process.signal(SIGKILL);
    EXPECT_EQ(process.finish().exit, 128 + SIGKILL);
    expect_only({"test.rsc.part"});
    const Result<Capture> capture = read_capture(folder_ / "test.rsc.part");
    ASSERT_TRUE(capture) << capture.error().line();
    ASSERT_EQ(capture->runs.size(), 1U);
    EXPECT_FALSE(capture->runs[0].ended);
    ASSERT_FALSE(capture->runs[0].windows.empty());
    const std::uint64_t last_ns = capture->runs[0].windows.back().end_ns;
    std::printf("killed: %.0f ms not in the file\n",
                static_cast<double>(killed_ns - last_ns) / 1e6);
    // A second of buffered windows and the one that was being recorded.
    EXPECT_LT(killed_ns - last_ns, 1'200'000'000U);
    // The next recording of that name is not disturbed by what is left.
    EXPECT_EQ(Process(trace(file(), {"-d", "300ms", "-q"})).finish().exit, 0);
}

TEST_F(Commands, KeepWhatWasWrittenWhenTheDiskIsFull) {
    const fs::path small = folder_ / "small";
    ASSERT_TRUE(fs::create_directory(small));
    ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=16k"), 0);
    Process process(trace(small / "full.rsc", {"-d", "60s"}));
    ASSERT_TRUE(process.wait_for("time")) << process.finish().err;
    std::thread traffic([this] {
        for (int i = 0; i < 30; ++i) {
            send(400, 500);
        }
    });
    const Finished result = process.finish();
    traffic.join();
    EXPECT_EQ(result.exit, 3);
    EXPECT_NE(result.err.find("No space left"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("full.rsc.part"), std::string::npos) << result.err;
    const Result<Capture> capture = read_capture(small / "full.rsc.part");
    ASSERT_TRUE(capture) << capture.error().line();
    EXPECT_GE(capture->runs.at(0).windows.size(), 10U);
    EXPECT_EQ(capture->cut, "");
    ::umount(small.c_str());
}

TEST_F(Commands, ReportHowTheCommandEnded) {
    const Finished seven =
        Process(trace(file(), {"--json", "--", "sh", "-c", "echo noise; exit 7"})).finish();
    EXPECT_EQ(seven.exit, 0) << seven.err;
    const json document = json::parse(seven.out);
    EXPECT_EQ(document["command"]["exit_code"], 7);
    EXPECT_EQ(document["ended_by"], "command exited");
    EXPECT_NE(seven.err.find("noise"), std::string::npos);
    const Finished killed = Process(trace(file(), {"--", "sh", "-c", "kill -9 $$"})).finish();
    EXPECT_EQ(killed.exit, 0);
    EXPECT_NE(killed.out.find("signal 9"), std::string::npos) << killed.out;
}

TEST_F(Commands, EndTheCommandWithTheDuration) {
    const std::uint64_t begin = boottime_now_ns();
    const Finished result =
        Process(trace(file(), {"-d", "500ms", "--json", "--", "sleep", "600"})).finish();
    EXPECT_EQ(result.exit, 0);
    EXPECT_EQ(json::parse(result.out)["command"]["signal"], SIGTERM);
    EXPECT_LT(boottime_now_ns() - begin, 60'000'000'000U);
}

TEST_F(Commands, LeaveNothingBehindWhenTheyCannotStart) {
    expect_error(Process(trace(file(), {"--", "no-such-program"})).finish(), 3, "no-such-program",
                 "full path");
    expect_error(Process(trace(folder_ / "missing" / "x.rsc")).finish(), 3, "missing", "-o");
    expect_error(Process(trace(folder_)).finish(), 2, folder_.string(), "-o");
    expect_error(Process(trace("/dev/null")).finish(), 2, "/dev/null", "-o");
    must_run("ip link add br7 type bridge");
    must_run("ip link set tap0 master br7");
    std::vector<std::string> bridge = trace(file());
    bridge[2] = "br7";
    expect_error(Process(bridge).finish(), 3, "br7", "tap0");
    const auto become_nobody = [] {
        ASSERT_EQ(::setgid(65534), 0);
        ASSERT_EQ(::setuid(65534), 0);
    };
    ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
    expect_error(Process(trace(file()), become_nobody).finish(), 3, "tap0", "root");
    expect_only({});
}

TEST_F(Commands, RefuseAKernelWithoutBtf) {
    // An empty folder over /sys/kernel/btf, in this test's own mounts.
    ASSERT_EQ(::mount("tmpfs", "/sys/kernel/btf", "tmpfs", 0, nullptr), 0);
    expect_error(Process(trace(file())).finish(), 3, "BTF", "CONFIG_DEBUG_INFO_BTF");
    const Finished doctor = ringside_says({"doctor", "tap0", "--json"});
    EXPECT_EQ(doctor.exit, 1);
    EXPECT_FALSE(json::parse(doctor.out)["btf"]);
    expect_only({});
}

TEST_F(Commands, TakeTheBestTierOrTheOneThatWasNamed) {
    Process refused(trace(file(), {"--tier", "ring", "-d", "1s"}));
    const Finished no_ring = refused.finish();
    EXPECT_EQ(no_ring.exit, 3);
    EXPECT_NE(no_ring.err.find("no ring tier for tun"), std::string::npos) << no_ring.err;
    expect_only({});
    for (const std::string tier : {"best", "skb"}) {
        Process process(trace(file(), {"--tier", tier, "-d", "200ms", "--json"}));
        const Finished result = process.finish();
        ASSERT_EQ(result.exit, 0) << result.err;
        EXPECT_EQ(json::parse(result.out).at("tier"), "skb");
        const Analysis analysis = analysis_of(file());
        const char* why = tier == "best" ? "no ring tier for tun" : "asked for";
        EXPECT_NE(analysis.info.tier_why.find(why), std::string::npos) << analysis.info.tier_why;
        fs::remove(file());
    }
}

TEST_F(Commands, TellWhatTheKernelAllows) {
    const Finished doctor = ringside_says({"doctor", "tap0", "--json"});
    EXPECT_EQ(doctor.exit, 0) << doctor.out;
    const json document = json::parse(doctor.out);
    EXPECT_EQ(document["interface"]["name"], "tap0");
    for (const auto& hook : document["hooks"]) {
        EXPECT_NE(hook["how"], "-") << hook;
    }
    expect_valid("doctor", doctor.out);
}

TEST_F(Commands, DemonstrateThemselves) {
    const Finished demo = ringside_says({"demo", "--json", "--keep", folder_.string()});
    EXPECT_EQ(demo.exit, 0) << demo.out << demo.err;
    expect_valid("demo", demo.out);
    EXPECT_TRUE(read_capture(folder_ / "demo.rsc"));
}

TEST_F(Commands, AddASecondRunToACapture) {
    EXPECT_EQ(Process(trace(file(), {"-q", "-d", "300ms"})).finish().exit, 0);
    EXPECT_EQ(Process(trace(file(), {"-q", "-d", "300ms", "--append"})).finish().exit, 0);
    const Result<Capture> capture = read_capture(file());
    ASSERT_TRUE(capture);
    EXPECT_EQ(capture->runs.size(), 2U);
    EXPECT_TRUE(capture->runs[0].ended && capture->runs[1].ended);
}

TEST_F(Commands, RefuseAFileThatAnotherRecordingWrites) {
    Process first(trace(file()));
    ASSERT_TRUE(first.wait_for("time"));
    expect_error(Process(trace(file(), {"-d", "1s"})).finish(), 3, "another process", "-o");
    first.signal(SIGINT);
    EXPECT_EQ(first.finish().exit, 0);
}

TEST_F(Commands, AgreeWithIperf3) {
    ASSERT_NO_FATAL_FAILURE(make_peer());
    Process server({"ip", "netns", "exec", peer_, "iperf3", "-s", "-1", "--forceflush"});
    ASSERT_TRUE(server.wait_for("listening"));
    // iperf3's own result goes to a file: with --json stdout belongs to ringside.
    const std::string log = (folder_ / "iperf3.json").string();
    const Finished result =
        Process({RINGSIDE_BINARY, "trace", "v0", "--json", "-o", file().string(), "--", "iperf3",
                 "-c", "192.0.2.2", "-t", "3", "--json", "--logfile", log})
            .finish();
    ASSERT_EQ(result.exit, 0) << result.err;
    const json trace_document = json::parse(result.out);
    EXPECT_EQ(trace_document["command"]["exit_code"], 0);
    std::ifstream log_file(log);
    const json iperf3 = json::parse(log_file);
    const double sent = iperf3["end"]["sum_sent"]["bytes"];

    const Finished analyzed = ringside_says({"analyze", file().string(), "--json"});
    ASSERT_NE(analyzed.exit, 3) << analyzed.err;
    const json analysis = json::parse(analyzed.out);
    const double traced = analysis.at("runs").at(0).at("port").at("bytes");
    std::printf("iperf3 sent %.0f bytes, traced %.0f bytes: ratio %.4f\n", sent, traced,
                traced / sent);
    EXPECT_NEAR(traced, sent, 0.02 * sent);

    expect_valid("trace", result.out);
    expect_valid("analysis", analyzed.out);
}

}  // namespace
}  // namespace ringside::live
