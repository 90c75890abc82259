// What is written is read again: every field, several runs, records in order.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "analyzers/capture/reader.h"
#include "analyzers/capture/writer.h"
#include "tests/unit/capture_samples.h"

namespace ringside {
namespace {

using samples::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The samples differ from a default record in every field (structured bindings in
// capture_samples.h), so a field that is not written, not read, or mixed up with another one fails
// here.
TEST(Capture, KeepsEveryFieldOfARun) {
    const RecordedRun written = samples::run(10);
    const std::string bytes = samples::capture_bytes({written});
    const Result<Capture> read = parse_capture(bytes);
    ASSERT_TRUE(read) << read.error().line();
    ASSERT_EQ(read->runs.size(), 1U);
    const RecordedRun& run = read->runs[0];
    EXPECT_EQ(run.info, written.info);
    EXPECT_EQ(run.windows, written.windows);
    EXPECT_EQ(run.events, written.events);
    EXPECT_TRUE(run.ended);
    EXPECT_EQ(run.end, written.end);
    EXPECT_EQ(read->cut, "");
    EXPECT_EQ(read->file_bytes, bytes.size());
    EXPECT_EQ(read->used_bytes, bytes.size());
}

TEST(Capture, KeepsRecordsThatHaveOnlyDefaults) {
    RecordedRun written;
    written.windows = {Window{}, Window{}};
    written.windows[1].queues = {QueueWindow{}};
    written.windows[1].napis = {NapiWindow{}};
    written.events = {Event{}};
    written.ended = true;
    const Result<Capture> read = parse_capture(samples::capture_bytes({written}));
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_THAT(read->runs, ElementsAre(written));
}

TEST(Capture, KeepsExtremeValues) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
    RecordedRun written;
    written.info.start_unix_ns = kLow;
    written.info.num_queues = 65'536;
    written.info.facts = {Fact{"lowest", kLow, "", ""}};
    for (const std::uint64_t start : {kMax, std::uint64_t{0}, kMax / 2, std::uint64_t{1}}) {
        Window window;
        window.start_ns = start;
        window.end_ns = kMax;
        QueueWindow queue;
        queue.queue = 65'535;
        queue.packets = kMax;
        queue.in_flight_end = kLow;
        queue.in_flight_packet_ns = std::numeric_limits<double>::max();
        queue.in_flight_byte_ns = -std::numeric_limits<double>::denorm_min();
        queue.last_progress_ns = kMax;
        queue.oldest_ns = 1;
        for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
            queue.latency.emplace_back(static_cast<std::uint16_t>(bucket), kMax - bucket);
        }
        window.queues = {queue};
        written.windows.push_back(window);
    }
    written.events = {Event{kMax, EventKind::kOther, ""}, Event{1, EventKind::kOther, ""}};
    written.ended = true;
    written.end.command_exit = std::numeric_limits<std::int32_t>::min();
    written.end.command_signal = std::numeric_limits<std::int32_t>::max();
    const Result<Capture> read = parse_capture(samples::capture_bytes({written}));
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_THAT(read->runs, ElementsAre(written));
}

TEST(Capture, KeepsEventKinds) {
    RecordedRun written;
    for (std::uint32_t kind = 0; kind <= 8; ++kind) {
        written.events.push_back({kind, static_cast<EventKind>(kind), "e"});
    }
    const Result<Capture> read = parse_capture(samples::capture_bytes({written}));
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(read->runs[0].events, written.events);
    EXPECT_FALSE(read->runs[0].ended);
}

TEST(Capture, TakesSeveralRunsByAppending) {
    const TempFolder folder;
    const auto path = folder / "three";
    const std::vector<RecordedRun> runs = {samples::run(1), samples::run(10'000),
                                           samples::run(20'000)};
    samples::spill(path, samples::capture_bytes({runs[0]}));
    for (const RecordedRun& run : {runs[1], runs[2]}) {
        Result<CaptureWriter> writer = CaptureWriter::append(path);
        ASSERT_TRUE(writer) << writer.error().line();
        samples::write_run(*writer, run);
        ASSERT_TRUE(writer->close());
        EXPECT_EQ(writer->bytes_written(), std::filesystem::file_size(path));
    }
    const Result<Capture> read = read_capture(path);
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(read->runs, runs);
    EXPECT_EQ(read->cut, "");
    // The same as three runs of one writer.
    EXPECT_EQ(samples::slurp(path), samples::capture_bytes(runs));
}

TEST(Capture, RemovesACutTailBeforeAppending) {
    const TempFolder folder;
    const auto path = folder / "cut";
    const std::string whole = samples::capture_bytes({samples::run(1)});
    const std::vector<std::size_t> borders = samples::chunk_borders(whole);
    ASSERT_EQ(borders.size(), 6U);  // run start, two windows, events, run end, end of file
    // A write that was cut short, and blocks of zeros as a file system leaves them after a power
    // cut.
    for (const std::string& tail : {whole.substr(borders[3], 40), std::string(4'096, '\0')}) {
        samples::spill(path, whole.substr(0, borders[3]) + tail);
        Result<CaptureWriter> writer = CaptureWriter::append(path);
        ASSERT_TRUE(writer) << writer.error().line();
        samples::write_run(*writer, samples::run(30'000));
        ASSERT_TRUE(writer->close());
        const Result<Capture> read = read_capture(path);
        ASSERT_TRUE(read) << read.error().line();
        EXPECT_EQ(read->cut, "");
        ASSERT_EQ(read->runs.size(), 2U);
        EXPECT_EQ(read->runs[0].windows, samples::run(1).windows);
        EXPECT_THAT(read->runs[0].events, IsEmpty());
        EXPECT_FALSE(read->runs[0].ended);
        EXPECT_EQ(read->runs[1], samples::run(30'000));
    }
}

TEST(Capture, RefusesToAppendWhereThatWouldDestroyWholeChunks) {
    const TempFolder folder;
    const auto path = folder / "damaged";
    std::string bytes = samples::capture_bytes({samples::run(1)});
    const std::vector<std::size_t> borders = samples::chunk_borders(bytes);
    for (const std::size_t offset : {borders[1], borders[1] + 40, borders[2] - 1}) {
        std::string damaged = bytes;
        damaged[offset] = static_cast<char>(damaged[offset] ^ 1);
        samples::spill(path, damaged);
        const Result<CaptureWriter> writer = CaptureWriter::append(path);
        ASSERT_FALSE(writer);
        EXPECT_EQ(writer.error().code(), ErrorCode::kBadInput);
        EXPECT_THAT(writer.error().line(), HasSubstr("damaged in the middle"));
        EXPECT_EQ(samples::slurp(path), damaged);
    }
    // Whole, but not understood: what a newer minor version may have written is not thrown away.
    const std::string foreign = bytes + samples::chunk(2, 9, 5, "new compression", 100);
    samples::spill(path, foreign);
    EXPECT_FALSE(CaptureWriter::append(path));
    EXPECT_EQ(samples::slurp(path), foreign);
}

TEST(Capture, AppendsOnlyToCaptures) {
    const TempFolder folder;
    const auto path = folder / "file";
    const Result<CaptureWriter> missing = CaptureWriter::append(path);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
    for (const std::string& bytes :
         {std::string(), std::string("text\n"), samples::file_header(1, 0)}) {
        samples::spill(path, bytes);
        const Result<CaptureWriter> writer = CaptureWriter::append(path);
        ASSERT_FALSE(writer);
        EXPECT_EQ(writer.error().code(), ErrorCode::kBadInput);
        EXPECT_EQ(samples::slurp(path), bytes);
    }
    samples::spill(path, samples::capture_bytes({samples::run(1)}));
    std::filesystem::create_symlink(path, folder / "link");
    EXPECT_FALSE(CaptureWriter::append(folder / "link"));
}

TEST(Capture, RefusesRecordsThatNoReaderWouldTake) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "file");
    ASSERT_TRUE(writer);
    RunInfo many;
    many.num_queues = 65'537;
    EXPECT_FALSE(writer->begin_run(many));
    ASSERT_TRUE(writer->begin_run({}));
    const auto refused = [&](auto change) {
        Window window;
        window.queues = {QueueWindow{}};
        window.napis = {NapiWindow{}};
        change(window);
        const Status status = writer->add(window);
        return !status && status.error().code() == ErrorCode::kBadInput;
    };
    EXPECT_TRUE(refused([](Window& w) { w.start_ns = 1; }));
    EXPECT_TRUE(refused([](Window& w) { w.queues[0].queue = 65'536; }));
    EXPECT_TRUE(refused([](Window& w) { w.napis[0].instance = 65'536; }));
    EXPECT_TRUE(refused([](Window& w) { w.queues[0].latency = {{802, 1}}; }));
    EXPECT_TRUE(refused([](Window& w) { w.queues[0].latency = {{2, 1}, {1, 1}}; }));
    EXPECT_TRUE(refused([](Window& w) { w.napis[0].gap = {{2, 1}, {2, 1}}; }));
    EXPECT_TRUE(refused([](Window& w) { w.queues[0].bql_byte_ns = std::nan(""); }));
    EXPECT_TRUE(refused([](Window& w) { w.queues[0].in_flight_byte_ns = HUGE_VAL; }));
    // A refusal is no damage: the recording goes on.
    Event huge;
    huge.text.assign(33U << 20, 'x');
    EXPECT_FALSE(writer->add(huge));
    const RecordedRun run = samples::run(1);
    ASSERT_TRUE(writer->add(run.windows[0]));
    ASSERT_TRUE(writer->close());
    const Result<Capture> read = read_capture(folder / "file");
    ASSERT_TRUE(read) << read.error().line();
    EXPECT_EQ(read->cut, "");
    EXPECT_THAT(read->runs[0].windows, ElementsAre(run.windows[0]));
    EXPECT_THAT(read->runs[0].events, IsEmpty());
}

TEST(Capture, RefusesCallsOutOfOrder) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "file");
    ASSERT_TRUE(writer);
    EXPECT_FALSE(writer->add(Window{}));
    EXPECT_FALSE(writer->add(Event{}));
    EXPECT_FALSE(writer->end_run({}));
    ASSERT_TRUE(writer->begin_run({}));
    EXPECT_FALSE(writer->begin_run({}));
    ASSERT_TRUE(writer->end_run({}));
    const Status late = writer->add(Window{});
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), ErrorCode::kUsage);
    ASSERT_TRUE(writer->close());
    EXPECT_FALSE(writer->begin_run({}));
}

}  // namespace
}  // namespace ringside
