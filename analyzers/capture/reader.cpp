#include "analyzers/capture/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>

#include "analyzers/capture/encoding.h"
#include "analyzers/capture/format.h"
#include "analyzers/capture/scan.h"

namespace ringside {

namespace capture {

namespace {

Error not_a_capture(std::string what) {
    return Error(ErrorCode::kBadInput, std::move(what))
        .hint("record one with: ringside trace IFACE -o FILE");
}

// A file that begins like a capture but whose magic has been changed by a transfer.
bool looks_text_damaged(std::string_view head) {
    return head.size() > 4 && head.substr(1, 3) == kFileMagic.substr(1, 3) &&
           (head[0] == kFileMagic[0] || head[0] == (kFileMagic[0] & 0x7f));
}

Status check_file_header(ByteSource& source) {
    Result<std::string_view> head = source.at(0, kFileHeaderSize);
    if (!head) {
        return fail(std::move(head).error());
    }
    if (head->empty()) {
        return fail(not_a_capture("the file is empty, not a capture"));
    }
    if (head->substr(0, kFileMagic.size()) != kFileMagic.substr(0, head->size())) {
        if (looks_text_damaged(*head)) {
            return fail(
                Error(ErrorCode::kBadInput, "the capture was damaged by a text-mode transfer")
                    .hint("copy it again in binary mode"));
        }
        return fail(not_a_capture("not a ringside capture"));
    }
    if (head->size() < kFileHeaderSize) {
        return fail(not_a_capture("the recording was cut before anything was recorded"));
    }
    const std::optional<FileHeader> header = unpack_file_header(*head);
    if (!header) {
        return fail(not_a_capture("the file header of the capture is damaged"));
    }
    if (header->major < kFormatMajor) {
        return fail(not_a_capture("the capture has a format version that never existed"));
    }
    if (header->major > kFormatMajor) {
        return fail(
            Error(ErrorCode::kUnsupported,
                  fmt::format("the capture has format version {}.{}, this program reads {}.x",
                              header->major, header->minor, kFormatMajor))
                .hint("use a newer ringside"));
    }
    return {};
}

// One chunk as it is in the file. The payload lies in the source: valid until its next at().
struct RawChunk {
    ChunkHeader header;
    std::string_view stored;
};

// The chunk at `offset`, its checksum verified. Errors: kIo, and kBadInput with why there is none.
Result<RawChunk> chunk_at(ByteSource& source, std::uint64_t offset) {
    Result<std::string_view> bytes = source.at(offset, kChunkHeaderSize);
    if (!bytes) {
        return fail(std::move(bytes).error());
    }
    if (bytes->size() < kChunkHeaderSize) {
        return fail(ErrorCode::kBadInput, "the file ends inside a chunk header");
    }
    const std::optional<ChunkHeader> header = unpack_chunk_header(*bytes);
    if (!header) {
        return fail(ErrorCode::kBadInput, "no chunk begins here");
    }
    if (header->stored_size > kMaxStoredSize || header->raw_size > kMaxRawSize) {
        return fail(ErrorCode::kBadInput, "a chunk claims an impossible size");
    }
    const std::size_t length = kChunkHeaderSize + header->stored_size;
    if (source.size() - offset < length) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("the file ends inside a chunk ({} bytes of {})",
                                source.size() - offset, length));
    }
    bytes = source.at(offset, length);
    if (!bytes) {
        return fail(std::move(bytes).error());
    }
    if (bytes->size() < length || !checksum_holds(*bytes)) {
        return fail(ErrorCode::kBadInput, "the checksum of a chunk does not match");
    }
    return RawChunk{*header, bytes->substr(kChunkHeaderSize)};
}

class Scanner {
  public:
    Scanner(ByteSource& source, std::uint64_t max_unfolded, std::vector<Run>* keep)
        : source_(source), max_unfolded_(max_unfolded), budget_(max_unfolded), keep_(keep) {}

    Result<ScanEnd> run();

  private:
    Status take(const RawChunk& chunk);
    Status take_run_start(std::string_view payload);
    Status take_records(std::string_view payload);
    Status take_run_end(std::string_view payload);
    Result<std::string_view> payload_of(const RawChunk& chunk);

    struct FreeContext {
        void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    };

    ByteSource& source_;
    std::uint64_t max_unfolded_;
    Budget budget_;
    std::vector<Run>* keep_;
    std::unique_ptr<ZSTD_DCtx, FreeContext> zstd_{ZSTD_createDCtx()};
    std::string raw_;
    ScanEnd end_;
    bool run_seen_ = false;
    bool run_open_ = false;
};

Result<std::string_view> Scanner::payload_of(const RawChunk& chunk) {
    const std::string_view stored = chunk.stored;
    const std::uint32_t raw_size = chunk.header.raw_size;
    if (!budget_.take(raw_size)) {
        return fail(ErrorCode::kBadInput, "holds more than is read from one capture");
    }
    if (chunk.header.compression == Compression::kNone) {
        if (stored.size() != raw_size) {
            return fail(ErrorCode::kBadInput, "its two sizes differ");
        }
        return stored;
    }
    if (chunk.header.compression != Compression::kZstd) {
        return fail(ErrorCode::kBadInput, "is compressed in a way this program does not know");
    }
    // The frame must say the same size itself: no memory is taken on the word of one of them.
    if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != raw_size) {
        return fail(ErrorCode::kBadInput, "its zstd frame has another size");
    }
    raw_.resize(raw_size);
    const std::size_t got =
        ZSTD_decompressDCtx(zstd_.get(), raw_.data(), raw_.size(), stored.data(), stored.size());
    if (ZSTD_isError(got) != 0 || got != raw_size) {
        return fail(ErrorCode::kBadInput, "its zstd frame is damaged");
    }
    return std::string_view(raw_);
}

Status Scanner::take_run_start(std::string_view payload) {
    Result<RunInfo> info = decode_run_info(payload, budget_);
    if (!info) {
        return fail(std::move(info).error());
    }
    run_seen_ = run_open_ = true;
    if (keep_ != nullptr) {
        keep_->emplace_back().info = std::move(*info);
    }
    return {};
}

Status Scanner::take_records(std::string_view payload) {
    if (!run_open_) {
        return fail(ErrorCode::kBadInput, "belongs to no run");
    }
    Result<Records> records = decode_records(payload, budget_);
    if (!records) {
        return fail(std::move(records).error());
    }
    if (keep_ != nullptr) {
        Run& run = keep_->back();
        std::move(records->windows.begin(), records->windows.end(),
                  std::back_inserter(run.windows));
        std::move(records->events.begin(), records->events.end(), std::back_inserter(run.events));
    }
    return {};
}

Status Scanner::take_run_end(std::string_view payload) {
    if (!run_open_) {
        return fail(ErrorCode::kBadInput, "belongs to no run");
    }
    Result<RunEnd> end = decode_run_end(payload, budget_);
    if (!end) {
        return fail(std::move(end).error());
    }
    run_open_ = false;
    if (keep_ != nullptr) {
        keep_->back().ended = true;
        keep_->back().end = std::move(*end);
    }
    return {};
}

Status Scanner::take(const RawChunk& chunk) {
    if (chunk.header.sequence != end_.next_sequence) {
        return fail(ErrorCode::kBadInput, fmt::format("has number {}, {} is due",
                                                      chunk.header.sequence, end_.next_sequence));
    }
    Status (Scanner::*taker)(std::string_view) = nullptr;
    switch (chunk.header.type) {
        case ChunkType::kRunStart:
            taker = &Scanner::take_run_start;
            break;
        case ChunkType::kRecords:
            taker = &Scanner::take_records;
            break;
        case ChunkType::kRunEnd:
            taker = &Scanner::take_run_end;
            break;
    }
    if (taker == nullptr) {
        return {};  // added by a newer minor version, which does not need it understood
    }
    Result<std::string_view> payload = payload_of(chunk);
    return payload ? (this->*taker)(*payload) : fail(std::move(payload).error());
}

Result<ScanEnd> Scanner::run() {
    if (Status header = check_file_header(source_); !header) {
        return fail(std::move(header).error());
    }
    std::uint64_t& at = end_.used_bytes;
    at = kFileHeaderSize;
    while (at < source_.size()) {
        if (keep_ == nullptr) {
            budget_ = Budget(max_unfolded_);
        }
        const Result<RawChunk> chunk = chunk_at(source_, at);
        if (!chunk && chunk.error().code() != ErrorCode::kBadInput) {
            return fail(chunk.error());
        }
        if (!chunk) {
            end_.cut = fmt::format("at byte {}: {}", at, chunk.error().message());
            break;
        }
        if (const Status taken = take(*chunk); !taken) {
            end_.cut = fmt::format("at byte {}: the chunk {}", at, taken.error().message());
            break;
        }
        at += kChunkHeaderSize + chunk->header.stored_size;
        ++end_.next_sequence;
    }
    if (!run_seen_) {
        const std::string why = end_.cut.empty() ? "" : ": " + end_.cut;
        return fail(not_a_capture("the recording was cut before anything was recorded" + why));
    }
    return std::move(end_);
}

}  // namespace

Result<std::string_view> MemorySource::at(std::uint64_t offset, std::size_t length) {
    return offset < bytes_.size() ? bytes_.substr(offset, length) : std::string_view();
}

Result<std::string_view> FileSource::at(std::uint64_t offset, std::size_t length) {
    length = std::min<std::uint64_t>(length, size_ - std::min(size_, offset));
    buffer_.resize(length);
    std::size_t have = 0;
    while (have < length) {
        const ssize_t got =
            ::pread(fd_, buffer_.data() + have, length - have, static_cast<off_t>(offset + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(
                Error::from_errno(errno, fmt::format("cannot read byte {}", offset + have)));
        }
        if (got == 0) {
            break;  // the file has become shorter
        }
        have += static_cast<std::size_t>(got);
    }
    return std::string_view(buffer_).substr(0, have);
}

Result<ScanEnd> scan(ByteSource& source, std::uint64_t max_unfolded, std::vector<Run>* keep) {
    return Scanner(source, max_unfolded, keep).run();
}

Result<bool> whole_chunk_follows(ByteSource& source, std::uint64_t from) {
    constexpr std::size_t kBlock = std::size_t{1} << 20;
    // Each place that looks like a chunk costs reading it; bytes made for that must not cost hours.
    int patience = 256;
    char magic[sizeof(kChunkMagic)];
    put_le(magic, kChunkMagic);
    const std::string_view wanted(magic, sizeof(magic));

    for (std::uint64_t begin = from; begin < source.size();) {
        Result<std::string_view> block = source.at(begin, kBlock);
        if (!block) {
            return fail(std::move(block).error());
        }
        const std::size_t hit = block->find(wanted);
        if (hit == std::string_view::npos) {
            // The magic may lie across the border of two blocks.
            begin += block->size() > wanted.size() ? block->size() - (wanted.size() - 1) : kBlock;
            continue;
        }
        const Result<RawChunk> chunk = chunk_at(source, begin + hit);
        if (chunk) {
            return true;
        }
        if (chunk.error().code() != ErrorCode::kBadInput) {
            return fail(chunk.error());
        }
        if (--patience == 0) {
            return true;
        }
        begin += hit + 1;
    }
    return false;
}

Result<OpenFile> open_capture_file(const std::filesystem::path& path, int flags) {
    const auto cannot_open = [&] { return fail(Error::from_errno(errno, "cannot open the file")); };
    const auto no_file = [] {
        return fail(not_a_capture("not a capture, not even a regular file"));
    };
    // Opening alone can have an effect (a watchdog device starts to count): look first. The answer
    // that counts is the one about the open file.
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return cannot_open();
    }
    if (S_ISDIR(info.st_mode)) {
        return fail(not_a_capture("a folder, not a capture"));
    }
    if (!S_ISREG(info.st_mode)) {
        return no_file();
    }
    UniqueFd fd(::open(path.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd || ::fstat(fd.get(), &info) != 0) {
        return cannot_open();
    }
    if (!S_ISREG(info.st_mode)) {
        return no_file();
    }
    return OpenFile{std::move(fd), static_cast<std::uint64_t>(info.st_size)};
}

}  // namespace capture

namespace {

Result<Capture> read_source(capture::ByteSource& source, std::uint64_t max_unfolded) {
    Capture result;
    Result<capture::ScanEnd> end = capture::scan(source, max_unfolded, &result.runs);
    if (!end) {
        return fail(std::move(end).error());
    }
    result.file_bytes = source.size();
    result.used_bytes = end->used_bytes;
    result.cut = std::move(end->cut);
    return result;
}

}  // namespace

Result<Capture> parse_capture(std::string_view bytes, std::uint64_t max_unfolded) {
    capture::MemorySource source(bytes);
    return read_source(source, max_unfolded);
}

Result<Capture> read_capture(const std::filesystem::path& path, std::uint64_t max_unfolded) {
    const auto about = [&](Error error) { return fail(std::move(error).context(path.string())); };
    Result<capture::OpenFile> file = capture::open_capture_file(path, O_RDONLY);
    if (!file) {
        return about(std::move(file).error());
    }
    capture::FileSource source(file->fd.get(), file->size);
    Result<Capture> result = read_source(source, max_unfolded);
    if (!result) {
        return about(std::move(result).error());
    }
    return result;
}

}  // namespace ringside
