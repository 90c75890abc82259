// The writer against a full disk, sudden death and an hour of records.
#include "analyzers/capture/writer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <random>

#include "analyzers/capture/reader.h"
#include "tests/unit/capture_samples.h"

namespace ringside {
namespace {

namespace fs = std::filesystem;
using samples::TempFolder;
using testing::HasSubstr;

// It holds freed memory back on purpose: the size of the process says nothing then.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kAddressSanitizer = false;
#endif

constexpr std::uint64_t kWindowNs = 100'000'000;

// Runs `body` in a process of its own (limits and signals stay there); its result is the exit code.
template <class Body>
int in_child(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Window empty_window(std::uint64_t number) {
    Window window;
    window.start_ns = 5'000'000'000'000 + number * kWindowNs;
    window.end_ns = window.start_ns + kWindowNs;
    return window;
}

// A busy gigabit queue: 40 to 150 buckets are in use and no count repeats.
Window busy_window(std::uint64_t number, std::mt19937_64& random) {
    const auto about = [&](std::uint64_t value) {
        return value - value / 8 + random() % (value / 4);
    };
    Window window = empty_window(number);
    window.end_ns += about(20'000);
    QueueWindow queue;
    queue.packets = about(2'000);
    queue.bytes = queue.packets * about(6'000);
    queue.segments = about(8'100);
    queue.wire_bytes = about(12'300'000);
    queue.completed = about(2'000);
    queue.completed_bytes = about(12'000'000);
    queue.in_flight_end = static_cast<std::int64_t>(about(60));
    queue.in_flight_max = about(90);
    queue.in_flight_packet_ns = static_cast<double>(about(6'000'000'000));
    queue.in_flight_byte_ns = static_cast<double>(about(36'000'000'000'000));
    queue.last_progress_ns = window.end_ns - about(50'000);
    queue.oldest_ns = window.end_ns - about(1'500'000);
    queue.bql = true;
    queue.bql_byte_ns = static_cast<double>(about(36'000'000'000'000));
    queue.bql_max = about(400'000);
    queue.latency_ns = about(2'000'000'000);
    queue.latency_max_ns = about(3'000'000);
    queue.gap_max_ns = about(900'000);
    queue.gap_max_end_ns = window.end_ns - about(30'000'000);
    queue.bql_stop = {about(40), about(7'000'000), about(2'000'000), random() % 2 == 0};
    std::lognormal_distribution<double> latency(12.0 + static_cast<double>(random() % 100) / 50,
                                                0.15 + static_cast<double>(random() % 100) / 150);
    std::map<std::uint32_t, std::uint64_t> counts;
    for (int sample = 0; sample < 900; ++sample) {
        counts[Histogram::bucket_of(static_cast<std::uint64_t>(latency(random)))] +=
            1 + random() % 3;
    }
    for (const auto& [bucket, count] : counts) {
        queue.latency.emplace_back(static_cast<std::uint16_t>(bucket), count);
    }
    window.queues = {queue};
    NapiWindow napi;
    napi.polls = about(1'000);
    napi.work = about(8'000);
    napi.budget = 64 * napi.polls;
    napi.gap_ns = about(90'000'000);
    napi.gap_max_ns = about(400'000);
    for (std::size_t i = 0; i < queue.latency.size(); i += 2) {
        napi.gap.emplace_back(queue.latency[i]);
    }
    window.napis = {napi};
    window.kernel_counters = true;
    window.kernel_tx_packets = about(8'100);
    window.kernel_tx_bytes = about(12'300'000);
    return window;
}

long rss_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            return std::stol(line.substr(6));
        }
    }
    return 0;
}

TEST(CaptureWriter, GivesTheFileItsNameOnlyWhenItIsWhole) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "file");
    ASSERT_TRUE(writer);
    samples::write_run(*writer, samples::run(1));
    EXPECT_FALSE(fs::exists(folder / "file"));
    EXPECT_TRUE(fs::exists(folder / "file.part"));
    ASSERT_TRUE(writer->close());
    EXPECT_TRUE(fs::exists(folder / "file"));
    EXPECT_FALSE(fs::exists(folder / "file.part"));
    EXPECT_EQ(writer->bytes_written(), fs::file_size(folder / "file"));
}

TEST(CaptureWriter, KeepsThePartOnlyWhenAbandoned) {
    const TempFolder folder;
    {
        Result<CaptureWriter> writer = CaptureWriter::create(folder / "dropped");
        ASSERT_TRUE(writer);
        ASSERT_TRUE(writer->begin_run({}));
    }
    EXPECT_FALSE(fs::exists(folder / "dropped.part"));
    fs::path kept;
    {
        Result<CaptureWriter> writer = CaptureWriter::create(folder / "kept");
        ASSERT_TRUE(writer);
        ASSERT_TRUE(writer->begin_run({}));
        ASSERT_TRUE(writer->add(empty_window(0)));
        kept = writer->abandon();
    }
    EXPECT_EQ(kept, folder / "kept.part");
    const Result<Capture> read = read_capture(kept);
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(read->runs[0].windows.size(), 1U);
    EXPECT_EQ(read->cut, "");
}

TEST(CaptureWriter, LosesAtMostASecondWhenKilled) {
    const TempFolder folder;
    constexpr std::uint64_t kWindows = 47;
    const int code = in_child([&] {
        Result<CaptureWriter> writer = CaptureWriter::create(folder / "file");
        samples::require(writer->begin_run({}));
        for (std::uint64_t number = 0; number < kWindows; ++number) {
            samples::require(writer->add(empty_window(number)));
        }
        return ::raise(SIGKILL);
    });
    ASSERT_EQ(code, 128 + SIGKILL);
    const Result<Capture> read = read_capture(folder / "file.part");
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(read->cut, "");
    EXPECT_EQ(read->runs[0].windows.size(), 40U);
    EXPECT_FALSE(read->runs[0].ended);
}

TEST(CaptureWriter, LeavesAReadableFileWhenTheDiskIsFull) {
    const TempFolder folder;
    // RLIMIT_FSIZE ends a write in the middle as a full disk does: short first, then an error
    // (EFBIG).
    for (const rlim_t limit : {rlim_t{20'011}, rlim_t{20'012}, rlim_t{33'333}}) {
        const fs::path path = folder / "full";
        const int code = in_child([&] {
            const struct rlimit file_size { limit, limit };
            ::signal(SIGXFSZ, SIG_IGN);
            ::setrlimit(RLIMIT_FSIZE, &file_size);
            std::mt19937_64 random(3);
            Result<CaptureWriter> writer = CaptureWriter::create(path);
            samples::require(writer->begin_run(samples::run_info(1)));
            Status status;
            for (std::uint64_t number = 0; status && number < 10'000; ++number) {
                status = writer->add(busy_window(number, random));
            }
            const std::uint64_t size = writer->bytes_written();
            // Nothing more is written, whatever is called, and the error names errno and file.
            const bool dead = !status && status.error().error_number() == EFBIG &&
                              status.error().line().find(path.string()) != std::string::npos &&
                              !writer->add(empty_window(0)) && !writer->end_run({}) &&
                              !writer->flush() && !writer->close();
            const fs::path kept = writer->abandon();
            return dead && fs::file_size(kept) == size && kept == path.string() + ".part" ? 17 : 1;
        });
        EXPECT_EQ(code, 17);
        EXPECT_FALSE(fs::exists(path));
        const Result<Capture> read = read_capture(path.string() + ".part");
        ASSERT_TRUE(read) << read.error().line();
        EXPECT_EQ(read->cut, "");
        EXPECT_GT(read->file_bytes, limit / 2);
        EXPECT_EQ(read->runs[0].info, samples::run_info(1));
        EXPECT_EQ(read->runs[0].windows.size() % 10, 0U);
        EXPECT_GT(read->runs[0].windows.size(), 0U);
    }
}

TEST(CaptureWriter, LeavesTheOldRunsWhenTheDiskIsFullWhileAppending) {
    const TempFolder folder;
    const fs::path path = folder / "full";
    const std::string before = samples::capture_bytes({samples::run(1)});
    samples::spill(path, before);
    const int code = in_child([&] {
        const struct rlimit file_size { before.size() + 100, before.size() + 100 };
        ::signal(SIGXFSZ, SIG_IGN);
        ::setrlimit(RLIMIT_FSIZE, &file_size);
        Result<CaptureWriter> writer = CaptureWriter::append(path);
        const Status status = writer->begin_run(samples::run_info(2));
        return !status && writer->abandon() == path ? 17 : 1;
    });
    EXPECT_EQ(code, 17);
    EXPECT_EQ(samples::slurp(path), before);
}

TEST(CaptureWriter, LetsOnlyOneProcessAppend) {
    const TempFolder folder;
    samples::spill(folder / "file", samples::capture_bytes({samples::run(1)}));
    const Result<CaptureWriter> first = CaptureWriter::append(folder / "file");
    ASSERT_TRUE(first);
    const Result<CaptureWriter> second = CaptureWriter::append(folder / "file");
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().line(), HasSubstr("another process"));
}

TEST(CaptureWriter, CanBeReadWhileItWrites) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "file");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->begin_run({}));
    for (std::uint64_t number = 0; number < 10; ++number) {
        ASSERT_TRUE(writer->add(empty_window(number)));
    }
    const Result<Capture> read = read_capture(folder / "file.part");
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(read->runs[0].windows.size(), 10U);
}

TEST(CaptureWriter, WritesALargeRecordAtOnce) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "file");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->begin_run({}));
    std::mt19937_64 random(11);
    Window wide = empty_window(0);
    const QueueWindow queue = busy_window(0, random).queues[0];
    wide.queues.assign(2'000, queue);
    const std::uint64_t before = writer->bytes_written();
    ASSERT_TRUE(writer->add(wide));
    EXPECT_GT(writer->bytes_written(), before);
    ASSERT_TRUE(writer->close());
    EXPECT_EQ(read_capture(folder / "file")->runs[0].windows.at(0), wide);
}

TEST(CaptureWriter, RecordsAnHourInLittleSpaceAndFlatMemory) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "hour");
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->begin_run(samples::run_info(1)));
    std::mt19937_64 random(20'240'607);
    long after_a_minute = 0;
    double buckets = 0;
    for (std::uint64_t number = 0; number < 36'000; ++number) {
        const Window window = busy_window(number, random);
        buckets += static_cast<double>(window.queues[0].latency.size());
        ASSERT_TRUE(writer->add(window));
        if (number == 600) {
            after_a_minute = rss_kib();
        }
    }
    const long after_an_hour = rss_kib();
    ASSERT_TRUE(writer->end_run({}));
    ASSERT_TRUE(writer->close());
    const std::uint64_t size = fs::file_size(folder / "hour");
    RecordProperty("bytes", static_cast<int>(size));
    RecordProperty("rss_growth_kib", static_cast<int>(after_an_hour - after_a_minute));
    std::printf("one hour: %.2f MB, %.1f buckets a window, RSS %ld KiB after 1 min, %ld after 60\n",
                static_cast<double>(size) / 1e6, buckets / 36'000, after_a_minute, after_an_hour);
    EXPECT_GT(buckets / 36'000, 40);
    EXPECT_LT(buckets / 36'000, 150);
    EXPECT_LT(size, 30'000'000U);
    ASSERT_GT(after_a_minute, 0);
    // Nothing is kept per record: an hour of these records is 100 MB in memory. The margin is what
    // the allocator may take once more for its largest pieces (chunk and records buffers).
    if (!kAddressSanitizer) {
        EXPECT_LT(after_an_hour - after_a_minute, 1'024);
    }
    EXPECT_EQ(read_capture(folder / "hour")->runs[0].windows.size(), 36'000U);
}

}  // namespace
}  // namespace ringside
