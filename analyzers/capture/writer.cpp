#include "analyzers/capture/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <optional>

#include "analyzers/base/output_file.h"
#include "analyzers/base/unique_fd.h"
#include "analyzers/base/units.h"
#include "analyzers/capture/encoding.h"
#include "analyzers/capture/format.h"
#include "analyzers/capture/reader.h"
#include "analyzers/capture/scan.h"

namespace ringside {

namespace fs = std::filesystem;

namespace {

constexpr int kZstdLevel = 3;
constexpr std::uint64_t kChunkSpanNs = kNsPerSecond;
constexpr std::size_t kChunkRawSize = std::size_t{256} << 10;
// Far below what a reader takes: a buffered chunk and one more record always fit.
constexpr std::size_t kMaxRecordSize = std::size_t{32} << 20;
static_assert(kMaxRecordSize + kChunkRawSize < capture::kMaxRawSize);

Error too_large(std::size_t size) {
    return Error(ErrorCode::kBadInput, fmt::format("a record of {} is too large for a capture",
                                                   format_bytes(static_cast<double>(size))));
}

Error out_of_order(const char* what) {
    return Error(ErrorCode::kUsage, what);
}

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

struct CaptureWriter::Impl {
    // One of the two: a file that gets its name at the end, or one that has it.
    std::optional<OutputFile> created;
    UniqueFd appended;
    fs::path path;

    std::uint64_t size = 0;  // end of the last whole chunk
    std::uint64_t sequence = 0;
    bool run_open = false;
    bool failed = false;
    capture::RecordsBuffer records;
    std::unique_ptr<ZSTD_CCtx, FreeContext> zstd{ZSTD_createCCtx()};
    std::string chunk;  // kept between chunks for its memory

    [[nodiscard]] int fd() const { return created ? created->fd() : appended.get(); }
    [[nodiscard]] const fs::path& name() const { return created ? created->part_path() : path; }

    Status put(std::string_view bytes);
    Status write_chunk(capture::ChunkType type, std::string_view payload);
    Status flush();
    Status flush_when_due();
    [[nodiscard]] Status ready(bool in_run) const;
    template <class Record>
    Status add(const Record& record);
};

// The only place that writes to the file.
Status CaptureWriter::Impl::put(std::string_view bytes) {
    Status status = write_all(fd(), bytes, name());
    if (status) {
        size += bytes.size();
        return {};
    }
    failed = true;
    // A reader copes with half a chunk; a file without one needs no explanation. If it cannot be
    // cut off (read-only by now), it stays: the write error is the one to report.
    const auto end = static_cast<off_t>(size);
    if (::ftruncate(fd(), end) == 0) {
        ::lseek(fd(), end, SEEK_SET);
    }
    return fail(std::move(status)
                    .error()
                    .context("recording")
                    .hint("what was recorded before is readable: " + name().string()));
}

Status CaptureWriter::Impl::write_chunk(capture::ChunkType type, std::string_view payload) {
    using capture::kChunkHeaderSize;
    chunk.resize(kChunkHeaderSize + ZSTD_compressBound(payload.size()));
    char* const stored = chunk.data() + kChunkHeaderSize;
    const std::size_t packed =
        ZSTD_compressCCtx(zstd.get(), stored, chunk.size() - kChunkHeaderSize, payload.data(),
                          payload.size(), kZstdLevel);
    capture::ChunkHeader header;
    header.type = type;
    header.sequence = sequence;
    header.raw_size = static_cast<std::uint32_t>(payload.size());
    // Also the way out when zstd has no memory.
    if (ZSTD_isError(packed) != 0 || packed >= payload.size()) {
        header.compression = capture::Compression::kNone;
        header.stored_size = header.raw_size;
        payload.copy(stored, payload.size());
    } else {
        header.compression = capture::Compression::kZstd;
        header.stored_size = static_cast<std::uint32_t>(packed);
    }
    chunk.resize(kChunkHeaderSize + header.stored_size);
    const auto bytes = pack(header, std::string_view(chunk).substr(kChunkHeaderSize));
    chunk.replace(0, bytes.size(), bytes.data(), bytes.size());
    Status status = put(chunk);
    if (status) {
        ++sequence;
    }
    return status;
}

Status CaptureWriter::Impl::flush() {
    if (records.empty()) {
        return {};
    }
    Status status = write_chunk(capture::ChunkType::kRecords, records.payload());
    records.clear();
    return status;
}

Status CaptureWriter::Impl::flush_when_due() {
    const bool due = records.span_ns() >= kChunkSpanNs || records.payload().size() >= kChunkRawSize;
    return due ? flush() : Status{};
}

Status CaptureWriter::Impl::ready(bool in_run) const {
    if (failed) {
        return fail(ErrorCode::kIo, "writing to " + name().string() + " has failed before");
    }
    if (run_open != in_run) {
        return fail(out_of_order(in_run ? "no run has begun" : "the run before has not ended"));
    }
    return {};
}

template <class Record>
Status CaptureWriter::Impl::add(const Record& record) {
    if (Status status = ready(true); !status) {
        return status;
    }
    const std::size_t before = records.payload().size();
    records.add(record);
    if (const std::size_t added = records.payload().size() - before; added > kMaxRecordSize) {
        records.truncate(before);
        return fail(too_large(added));
    }
    return flush_when_due();
}

CaptureWriter::CaptureWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CaptureWriter::CaptureWriter(CaptureWriter&&) noexcept = default;
CaptureWriter& CaptureWriter::operator=(CaptureWriter&&) noexcept = default;
CaptureWriter::~CaptureWriter() = default;

Result<CaptureWriter> CaptureWriter::create(const fs::path& path) {
    Result<OutputFile> file = OutputFile::create(path);
    if (!file) {
        return fail(std::move(file).error());
    }
    auto impl = std::make_unique<Impl>();
    impl->created.emplace(std::move(*file));
    impl->path = path;
    const auto header = pack(capture::FileHeader{});
    if (Status status = impl->put({header.data(), header.size()}); !status) {
        return fail(std::move(status).error());
    }
    return CaptureWriter(std::move(impl));
}

Result<CaptureWriter> CaptureWriter::append(const fs::path& path) {
    const auto about = [&](Error error) { return fail(std::move(error).context(path.string())); };
    Result<capture::OpenFile> file = capture::open_capture_file(path, O_RDWR | O_NOFOLLOW);
    if (!file) {
        Error error = std::move(file).error();
        if (error.error_number() == ELOOP) {
            error.hint("name the file itself, not a symbolic link");
        }
        return about(std::move(error));
    }
    if (::flock(file->fd.get(), LOCK_EX | LOCK_NB) != 0) {
        return about(Error(ErrorCode::kIo, "is being written by another process")
                         .hint("wait for it to end, or record into another file"));
    }
    // The size from before the lock may be the one before another writer's last chunk.
    const off_t end = ::lseek(file->fd.get(), 0, SEEK_END);
    if (end < 0) {
        return about(Error::from_errno(errno, "cannot find the end of the file"));
    }
    capture::FileSource source(file->fd.get(), static_cast<std::uint64_t>(end));
    Result<capture::ScanEnd> scanned = capture::scan(source, kMaxUnfoldedBytes, nullptr);
    if (!scanned) {
        return about(std::move(scanned).error());
    }
    if (!scanned->cut.empty()) {
        const Result<bool> more = capture::whole_chunk_follows(source, scanned->used_bytes);
        if (!more) {
            return about(more.error());
        }
        if (*more) {
            return about(Error(ErrorCode::kBadInput, "damaged in the middle, " + scanned->cut +
                                                         "; nothing is added to it")
                             .hint("record into another file"));
        }
    }
    const auto used = static_cast<off_t>(scanned->used_bytes);
    if (::ftruncate(file->fd.get(), used) != 0 || ::lseek(file->fd.get(), used, SEEK_SET) != used) {
        return about(Error::from_errno(errno, "cannot remove the cut end"));
    }
    auto impl = std::make_unique<Impl>();
    impl->appended = std::move(file->fd);
    impl->path = path;
    impl->size = scanned->used_bytes;
    impl->sequence = scanned->next_sequence;
    return CaptureWriter(std::move(impl));
}

Status CaptureWriter::begin_run(const RunInfo& info) {
    if (Status status = impl_->ready(false); !status) {
        return status;
    }
    if (const char* flaw = capture::flaw_of(info)) {
        return fail(ErrorCode::kBadInput, flaw);
    }
    const std::string payload = capture::encode(info);
    if (payload.size() > kMaxRecordSize) {
        return fail(too_large(payload.size()));
    }
    Status status = impl_->write_chunk(capture::ChunkType::kRunStart, payload);
    impl_->run_open = status.has_value();
    return status;
}

Status CaptureWriter::add(const Window& window) {
    if (const char* flaw = capture::flaw_of(window)) {
        return fail(ErrorCode::kBadInput, flaw);
    }
    return impl_->add(window);
}

Status CaptureWriter::add(const Event& event) {
    return impl_->add(event);
}

Status CaptureWriter::end_run(const RunEnd& end) {
    if (Status status = impl_->ready(true); !status) {
        return status;
    }
    const std::string payload = capture::encode(end);
    if (payload.size() > kMaxRecordSize) {
        return fail(too_large(payload.size()));
    }
    if (Status status = impl_->flush(); !status) {
        return status;
    }
    impl_->run_open = false;
    return impl_->write_chunk(capture::ChunkType::kRunEnd, payload);
}

Status CaptureWriter::flush() {
    // Also between runs, where there is nothing to write.
    Status status = impl_->ready(impl_->run_open);
    return status ? impl_->flush() : status;
}

Status CaptureWriter::close() {
    if (Status status = flush(); !status) {
        return status;
    }
    impl_->failed = true;  // closed: whatever comes now is out of order
    if (impl_->created) {
        return impl_->created->commit();
    }
    if (::fdatasync(impl_->fd()) != 0 && errno != EINVAL && errno != EROFS) {
        return fail(Error::from_errno(errno, "cannot write " + impl_->path.string()));
    }
    impl_->appended.reset();
    return {};
}

fs::path CaptureWriter::abandon() {
    // What is still buffered is worth a try: the failure may have been somewhere else.
    const Status ignored = flush();
    static_cast<void>(ignored);
    impl_->failed = true;
    if (impl_->created) {
        impl_->created->keep_part();
    }
    return impl_->name();
}

std::uint64_t CaptureWriter::bytes_written() const {
    return impl_->size;
}

}  // namespace ringside
