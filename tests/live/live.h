// Shared by the live tests: a private network, a recording in the background, and its figures.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "analyzers/capture/reader.h"
#include "analyzers/figures.h"
#include "tools/child_process.h"
#include "tools/demo_nic.h"
#include "tools/recorder.h"

namespace ringside::live {

// Every test runs in network and mount namespaces of its own, with a folder of its own.
class LiveTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const Status entered = enter_private_network();
        if (!entered && std::getenv("RINGSIDE_REQUIRE_LIVE") == nullptr) {
            GTEST_SKIP() << "live tests need root and namespaces: " << entered.error().line();
        }
        ASSERT_TRUE(entered) << entered.error().line();
        std::string name = std::filesystem::temp_directory_path() / "ringside-live-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override {
        std::error_code ignored;
        if (!folder_.empty()) {
            std::filesystem::remove_all(folder_, ignored);
        }
    }
    [[nodiscard]] std::filesystem::path file(const std::string& name = "test.rsc") const {
        return folder_ / name;
    }

    std::filesystem::path folder_;
};

// Runs a program to its end; its exit code, or 128 + signal.
inline int run(const std::vector<std::string>& argv) {
    Result<ChildProcess> child = ChildProcess::start(argv, true);
    EXPECT_TRUE(child) << child.error().line();
    if (!child) {
        return -1;
    }
    const std::optional<ChildExit> exit = child->wait(60'000);
    EXPECT_TRUE(exit) << argv[0] << " did not end within a minute";
    return !exit ? -1 : exit->signal != 0 ? 128 + exit->signal : exit->code;
}

// Splits at blanks: for commands that the tests write themselves.
inline std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> result;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
        result.push_back(word);
    }
    return result;
}
inline void must_run(const std::string& command) {
    ASSERT_EQ(run(words(command)), 0) << command;
}

// record() in a thread of this process; ends by its duration or by stop().
class BackgroundRecording {
  public:
    explicit BackgroundRecording(RecordOptions options) : options_(std::move(options)) {
        sigset_t set;
        ::sigemptyset(&set);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
            ::sigaddset(&set, number);
        }
        // All threads hold these back, so that only the recorder's signalfd sees them.
        ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
        thread_ = std::thread([this] {
            result_ = std::make_unique<Result<Recording>>(record(options_, observer_));
            observer_.release();
        });
    }
    ~BackgroundRecording() {
        if (thread_.joinable()) {
            stop();
        }
    }
    // True when everything is attached; false when the recording failed before.
    bool wait_until_attached() { return observer_.started.get_future().get(); }
    void stop() {
        ::kill(::getpid(), SIGTERM);
        wait();
    }
    void wait() { thread_.join(); }
    [[nodiscard]] const Result<Recording>& result() const { return *result_; }
    [[nodiscard]] std::vector<Event> events() const { return observer_.events; }

  private:
    struct Observer : RecordObserver {
        void on_start(const RunInfo& /*info*/) override {
            started.set_value(true);
            released = true;
        }
        void on_window(const Window& /*window*/) override {}
        void on_event(const Event& event) override { events.push_back(event); }
        void release() {
            if (!released) {
                started.set_value(false);
            }
        }
        std::promise<bool> started;
        bool released = false;
        std::vector<Event> events;
    };
    RecordOptions options_;
    Observer observer_;
    std::unique_ptr<Result<Recording>> result_;
    std::thread thread_;
};

inline Analysis analysis_of(const std::filesystem::path& path) {
    const Result<Capture> capture = read_capture(path);
    EXPECT_TRUE(capture) << capture.error().line();
    if (!capture || capture->runs.empty()) {
        return {};
    }
    EXPECT_EQ(capture->cut, "");
    Result<Analysis> analysis = analyze(capture->runs.front());
    EXPECT_TRUE(analysis) << analysis.error().line();
    return analysis ? *analysis : Analysis{};
}

// What was put in came out somewhere, packet by packet.
inline void expect_all_accounted(const TrafficFigures& figures, std::uint64_t sent) {
    EXPECT_EQ(figures.packets, sent);
    EXPECT_EQ(
        figures.completed + figures.dropped + static_cast<std::uint64_t>(figures.in_flight_end),
        sent);
    EXPECT_EQ(figures.missed, 0U);
    EXPECT_EQ(figures.unpaired, 0U);
}

}  // namespace ringside::live
