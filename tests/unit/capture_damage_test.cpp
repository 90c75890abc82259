// What is not what it should be: cut, flipped, foreign, newer and hostile files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <protozero/pbf_writer.hpp>

#include "analyzers/capture/reader.h"
#include "tests/unit/capture_samples.h"

namespace ringside {
namespace {

using samples::TempFolder;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A message under construction: the tests write what the writer never would.
struct Message {
    std::string bytes;
    protozero::pbf_writer out{bytes};
};

const std::string& sample() {
    static const std::string bytes =
        samples::capture_bytes({samples::run(1), samples::run(10'000)});
    return bytes;
}

// A capture of one run start and the given chunks behind it.
std::string with_chunks(const std::string& chunks) {
    return samples::file_header(1, 0) + samples::plain_chunk(1, 0, "") + chunks;
}

std::string with_records(const std::string& payload) {
    return with_chunks(samples::plain_chunk(2, 1, payload));
}

std::string one_window(const std::string& window) {
    Message records;
    records.out.add_message(2, window);
    return with_records(records.bytes);
}

std::string one_histogram(const std::vector<std::uint64_t>& deltas,
                          const std::vector<std::uint64_t>& counts) {
    Message histogram;
    histogram.out.add_packed_uint64(1, deltas.begin(), deltas.end());
    histogram.out.add_packed_uint64(2, counts.begin(), counts.end());
    Message queue;
    queue.out.add_message(26, histogram.bytes);
    Message window;
    window.out.add_message(3, queue.bytes);
    return one_window(window.bytes);
}

std::string cut_of(const std::string& bytes) {
    const Result<Capture> read = parse_capture(bytes);
    return read ? read->cut : "error: " + read.error().line();
}

TEST(CaptureDamage, LosesNothingThatIsWholeWhereverTheFileIsCut) {
    const std::vector<std::size_t> borders = samples::chunk_borders(sample());
    // What is there after each whole chunk, by parsing files that end at a border.
    std::size_t whole = 0;
    for (std::size_t length = 0; length < sample().size(); ++length) {
        whole +=
            static_cast<std::size_t>(whole + 1 < borders.size() && borders[whole + 1] <= length);
        const Result<Capture> read = parse_capture(sample().substr(0, length));
        if (length < borders[1]) {
            ASSERT_FALSE(read) << length;
            ASSERT_EQ(read.error().code(), ErrorCode::kBadInput) << length;
            continue;
        }
        ASSERT_TRUE(read) << length << ": " << read.error().line();
        ASSERT_EQ(read->used_bytes, borders[whole]) << length;
        ASSERT_EQ(read->file_bytes, length);
        ASSERT_EQ(read->cut.empty(), length == borders[whole]) << length << ": " << read->cut;
        const Result<Capture> at_border = parse_capture(sample().substr(0, borders[whole]));
        ASSERT_TRUE(at_border);
        ASSERT_EQ(read->runs, at_border->runs) << length;
    }
    ASSERT_EQ(whole + 2, borders.size());
}

TEST(CaptureDamage, CountsWhatIsThereAfterEachWholeChunk) {
    const std::vector<std::size_t> borders = samples::chunk_borders(sample());
    ASSERT_EQ(borders.size(), 11U);
    const std::vector<std::size_t> windows = {0, 1, 2, 2, 2, 2, 3, 4, 4, 4};
    for (std::size_t chunks = 1; chunks < borders.size(); ++chunks) {
        const Result<Capture> read = parse_capture(sample().substr(0, borders[chunks]));
        ASSERT_TRUE(read);
        std::size_t count = 0;
        for (const RecordedRun& run : read->runs) {
            count += run.windows.size();
        }
        EXPECT_EQ(count, windows[chunks - 1]) << chunks;
        EXPECT_EQ(read->runs.size(), chunks <= 5 ? 1U : 2U);
        EXPECT_EQ(read->runs.back().ended, chunks == 5 || chunks == 10);
    }
}

TEST(CaptureDamage, ReportsEveryFlippedBit) {
    const Result<Capture> good = parse_capture(sample());
    ASSERT_TRUE(good);
    for (std::size_t offset = 0; offset < sample().size(); ++offset) {
        for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
            std::string damaged = sample();
            damaged[offset] = static_cast<char>(damaged[offset] ^ flip);
            const Result<Capture> read = parse_capture(damaged);
            if (read) {
                // No byte is free of meaning: header, reserved bytes and payload are all covered.
                ASSERT_NE(read->cut, "") << offset;
                ASSERT_LE(read->used_bytes, offset);
            } else {
                ASSERT_NE(read.error().line(), "");
            }
        }
    }
}

TEST(CaptureDamage, SaysWhatIsNotACapture) {
    for (const std::string& bytes :
         {std::string(), std::string("interface eth0\n"), std::string(100'000, '\0'),
          std::string("\x7f"
                      "ELF\x02\x01\x01"),
          std::string("R")}) {
        const Result<Capture> read = parse_capture(bytes);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code(), ErrorCode::kBadInput);
        EXPECT_THAT(read.error().line(), HasSubstr("record one with: ringside trace IFACE"));
        EXPECT_THAT(read.error().line(), Not(HasSubstr("\n")));
    }
}

TEST(CaptureDamage, KnowsTextModeTransfers) {
    std::string dos = sample();
    for (std::size_t at = 0; (at = dos.find('\n', at)) != std::string::npos; at += 2) {
        dos.insert(at, 1, '\r');
    }
    std::string unix_lines = sample();
    for (std::size_t at = 0; (at = unix_lines.find("\r\n", at)) != std::string::npos;) {
        unix_lines.erase(at, 1);
    }
    std::string seven_bits = sample();
    for (char& c : seven_bits) {
        c = static_cast<char>(c & 0x7f);
    }
    for (const std::string& bytes : {dos, unix_lines, seven_bits}) {
        const Result<Capture> read = parse_capture(bytes);
        ASSERT_FALSE(read);
        EXPECT_THAT(read.error().line(), HasSubstr("text-mode transfer"));
    }
}

TEST(CaptureDamage, ReadsNoFolderFifoOrDevice) {
    const TempFolder folder;
    std::filesystem::create_directory(folder / "folder");
    ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
    for (const std::filesystem::path& path :
         {folder / "folder", folder / "fifo", std::filesystem::path("/dev/zero")}) {
        const Result<Capture> read = read_capture(path);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code(), ErrorCode::kBadInput);
        EXPECT_THAT(read.error().line(), HasSubstr(path.string()));
    }
    EXPECT_EQ(read_capture(folder / "none").error().code(), ErrorCode::kNotFound);
}

TEST(CaptureDamage, SaysWhenNothingWasRecorded) {
    for (const std::string& bytes :
         {samples::file_header(1, 0), samples::file_header(1, 0) + "RSCK",
          samples::file_header(1, 0).substr(0, 20)}) {
        const Result<Capture> read = parse_capture(bytes);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code(), ErrorCode::kBadInput);
        EXPECT_THAT(read.error().line(), HasSubstr("cut before anything was recorded"));
    }
}

TEST(CaptureDamage, AsksForANewerProgramOnlyForANewerMajor) {
    const std::string body = sample().substr(32);
    const Result<Capture> major = parse_capture(samples::file_header(2, 0) + body);
    ASSERT_FALSE(major);
    EXPECT_EQ(major.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(major.error().hint(), HasSubstr("newer ringside"));
    const Result<Capture> minor = parse_capture(samples::file_header(1, 999) + body);
    ASSERT_TRUE(minor);
    EXPECT_EQ(minor->runs, parse_capture(sample())->runs);
    EXPECT_EQ(minor->cut, "");
    EXPECT_EQ(parse_capture(samples::file_header(0, 9) + body).error().code(),
              ErrorCode::kBadInput);
}

TEST(CaptureDamage, SkipsUnknownChunks) {
    Message event;
    event.out.add_bytes(3, "after");
    Message records;
    records.out.add_message(3, event.bytes);
    // Neither the compression nor the payload of an unknown chunk matters.
    const std::string bytes = with_chunks(samples::chunk(77, 200, 1, "anything", 1) +
                                          samples::plain_chunk(2, 2, records.bytes));
    const Result<Capture> read = parse_capture(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->cut, "");
    ASSERT_EQ(read->runs[0].events.size(), 1U);
    EXPECT_EQ(read->runs[0].events[0].text, "after");
}

TEST(CaptureDamage, SkipsUnknownFieldsOfEveryWireType) {
    const auto unknown = [](protozero::pbf_writer& out) {
        out.add_uint64(500, ~std::uint64_t{0});
        out.add_fixed64(501, 1);
        out.add_fixed32(502, 2);
        out.add_bytes(503, "three");
    };
    Message queue;
    unknown(queue.out);
    queue.out.add_uint64(2, 17);
    queue.out.add_fixed32(3, 5);  // a known number with a type it never had counts as unknown
    Message window;
    unknown(window.out);
    window.out.add_message(3, queue.bytes);
    Message event;
    unknown(event.out);
    event.out.add_uint64(2, 4'000'000'000);  // a kind from the future
    event.out.add_bytes(3, "kept");
    Message records;
    unknown(records.out);
    records.out.add_message(2, window.bytes);
    records.out.add_message(3, event.bytes);
    const Result<Capture> read = parse_capture(with_records(records.bytes));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->cut, "");
    ASSERT_EQ(read->runs[0].windows.size(), 1U);
    EXPECT_EQ(read->runs[0].windows[0].queues.at(0).packets, 17U);
    EXPECT_EQ(read->runs[0].windows[0].queues.at(0).bytes, 0U);
    EXPECT_EQ(read->runs[0].events.at(0), (Event{0, EventKind::kOther, "kept"}));
}

TEST(CaptureDamage, FindsTheBaseWhereverItStands) {
    Message event;
    event.out.add_sint64(1, -7);
    Message records;
    records.out.add_message(3, event.bytes);
    records.out.add_uint64(1, 1'000);
    const Result<Capture> read = parse_capture(with_records(records.bytes));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->runs[0].events.at(0).time_ns, 993U);
}

TEST(CaptureDamage, RejectsHistogramsOutsideTheScale) {
    constexpr std::uint64_t kMax = ~std::uint64_t{0};
    EXPECT_EQ(cut_of(one_histogram({0, 801}, {5, 6})), "");
    const std::vector<std::vector<std::uint64_t>> bad = {
        {802}, {801, 1}, {1, kMax}, {kMax}, {std::uint64_t{1} << 32}, {3, 0}, {65'536}};
    for (const std::vector<std::uint64_t>& deltas : bad) {
        const std::vector<std::uint64_t> counts(deltas.size(), 1);
        EXPECT_THAT(cut_of(one_histogram(deltas, counts)), HasSubstr("histogram")) << deltas[0];
    }
    EXPECT_THAT(cut_of(one_histogram({1, 2}, {1})), HasSubstr("more buckets than counts"));
    EXPECT_THAT(cut_of(one_histogram({1}, {1, 2})), HasSubstr("more counts than buckets"));
}

TEST(CaptureDamage, RejectsImpossibleValues) {
    Message backwards;
    backwards.out.add_sint64(1, 10);
    backwards.out.add_sint64(2, 9);
    EXPECT_THAT(cut_of(one_window(backwards.bytes)), HasSubstr("ends before it starts"));

    const auto queue_with = [](auto add) {
        Message queue;
        add(queue.out);
        Message window;
        window.out.add_message(3, queue.bytes);
        return one_window(window.bytes);
    };
    EXPECT_THAT(cut_of(queue_with([](auto& out) { out.add_uint64(1, 65'536); })),
                HasSubstr("out of range"));
    EXPECT_THAT(cut_of(queue_with([](auto& out) { out.add_uint64(1, std::uint64_t{1} << 32); })),
                HasSubstr("too large"));
    EXPECT_THAT(cut_of(queue_with([](auto& out) { out.add_double(16, HUGE_VAL); })),
                HasSubstr("not a number"));
    EXPECT_THAT(cut_of(with_records("\x0a")), HasSubstr("not the message"));
    EXPECT_THAT(cut_of(with_records("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
                HasSubstr("not the message"));
    EXPECT_THAT(cut_of(with_records(std::string("\x12\xff\xff\xff\xff\x0f", 6))),
                HasSubstr("not the message"));
}

TEST(CaptureDamage, KeepsNothingOfADamagedChunk) {
    Message good;
    good.out.add_bytes(3, "good");
    Message records;
    records.out.add_message(3, good.bytes);
    const Result<Capture> read = parse_capture(with_records(records.bytes + "\x0a"));
    ASSERT_TRUE(read);
    EXPECT_NE(read->cut, "");
    EXPECT_THAT(read->runs[0].events, IsEmpty());
}

TEST(CaptureDamage, WantsChunksInOrder) {
    EXPECT_THAT(cut_of(with_chunks(samples::plain_chunk(2, 2, ""))), HasSubstr("has number 2"));
    EXPECT_THAT(cut_of(with_chunks(samples::plain_chunk(2, 0, ""))), HasSubstr("has number 0"));
    EXPECT_THAT(
        cut_of(with_chunks(samples::plain_chunk(3, 1, "") + samples::plain_chunk(2, 2, ""))),
        HasSubstr("belongs to no run"));
    EXPECT_THAT(cut_of(samples::file_header(1, 0) + samples::plain_chunk(3, 0, "")),
                HasSubstr("cut before anything was recorded"));
}

TEST(CaptureDamage, BelievesNoSize) {
    const std::string frame = samples::zstd_frame("abc");
    const std::vector<std::string> chunks = {
        samples::chunk(2, 1, 1, frame, 0xffff'ffff), samples::chunk(2, 1, 1, frame, 64U << 20),
        samples::chunk(2, 1, 1, frame, 4),           samples::chunk(2, 1, 1, frame + frame, 3),
        samples::chunk(2, 1, 1, "no frame", 3),      samples::chunk(2, 1, 1, "", 0),
        samples::chunk(2, 0, 1, "abc", 4),           samples::chunk(2, 2, 1, "abc", 3),
    };
    for (const std::string& chunk : chunks) {
        EXPECT_THAT(cut_of(with_chunks(chunk)),
                    AnyOf(HasSubstr("size"), HasSubstr("zstd"), HasSubstr("compressed in a way")));
    }
    // The stored size reaches far beyond the end of the file, and wraps 32 bits with the header.
    for (const std::uint64_t size : {0x0400'0000U, 0x0400'0001U, 0xffff'fff0U}) {
        std::string chunk = samples::plain_chunk(2, 1, "abc");
        chunk.replace(16, 4, samples::little_endian(size, 4));
        EXPECT_THAT(cut_of(with_chunks(chunk)), AnyOf(HasSubstr("ends inside"), HasSubstr("size")));
    }
}

TEST(CaptureDamage, UnfoldsNoBomb) {
    // 64 MiB of empty windows (2 bytes each), 6 kB in the file: taken at their word they are 4 GB.
    std::string windows(64U << 20, '\0');
    for (std::size_t i = 0; i < windows.size(); i += 2) {
        windows[i] = 0x12;
    }
    const std::string bomb = samples::chunk(2, 1, 1, samples::zstd_frame(windows), windows.size());
    ASSERT_LT(bomb.size(), 20'000U);
    constexpr std::uint64_t kLimit = std::uint64_t{200} << 20;
    const Result<Capture> read = parse_capture(with_chunks(bomb), kLimit);
    ASSERT_TRUE(read);
    EXPECT_THAT(read->cut, HasSubstr("more than is read from one capture"));
    EXPECT_THAT(read->runs[0].windows, IsEmpty());

    // The same out of harmless chunks: the limit is one for the whole file.
    std::string chunks;
    Message skipped;
    skipped.out.add_bytes(500, std::string(60U << 20, '\0'));
    const std::string frame = samples::zstd_frame(skipped.bytes);
    for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
        chunks += samples::chunk(2, 1, sequence, frame, skipped.bytes.size());
    }
    EXPECT_THAT(parse_capture(with_chunks(chunks), kLimit)->cut,
                HasSubstr("more than is read from one capture"));
    EXPECT_EQ(parse_capture(with_chunks(chunks))->cut, "");
}

}  // namespace
}  // namespace ringside
