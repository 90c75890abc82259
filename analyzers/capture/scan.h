// Walks the chunks of a capture, from memory or from a file, with one chunk in memory at a time.
// Internal to analyzers/capture: reader and writer (append) share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"
#include "analyzers/capture/records.h"

namespace ringside::capture {

// Bytes with a known end.
class ByteSource {
  public:
    ByteSource() = default;
    ByteSource(const ByteSource&) = delete;
    ByteSource& operator=(const ByteSource&) = delete;
    virtual ~ByteSource() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // `length` bytes from `offset`, fewer at the end. Valid until the next call.
    [[nodiscard]] virtual Result<std::string_view> at(std::uint64_t offset, std::size_t length) = 0;
};

class MemorySource : public ByteSource {
  public:
    explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] Result<std::string_view> at(std::uint64_t offset, std::size_t length) override;

  private:
    std::string_view bytes_;
};

// Does not own `fd`. Not a mapping: a file that shrinks meanwhile would end the process.
class FileSource : public ByteSource {
  public:
    FileSource(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] Result<std::string_view> at(std::uint64_t offset, std::size_t length) override;

  private:
    int fd_;
    std::uint64_t size_;
    std::string buffer_;
};

struct ScanEnd {
    std::uint64_t used_bytes = 0;     // end of the last whole chunk
    std::uint64_t next_sequence = 0;  // of the chunk that would follow it
    std::string cut;  // why the scan ended before the end of the file; empty: it did not
};

// Reads up to the end or the first damage and puts the runs into `keep`. Without `keep` everything
// is checked and dropped. `max_unfolded` bounds the bytes of records: of all together, or without
// `keep` of one chunk. Errors: as parse_capture(), and kIo from the source.
Result<ScanEnd> scan(ByteSource& source, std::uint64_t max_unfolded, std::vector<Run>* keep);

// Is there a chunk with a good checksum at `from` or anywhere behind it? "Cannot tell" counts as
// yes.
Result<bool> whole_chunk_follows(ByteSource& source, std::uint64_t from);

struct OpenFile {
    UniqueFd fd;
    std::uint64_t size = 0;
};

// Opens a regular file; does not wait for a FIFO and does not touch a device. `flags` are those of
// open(2). Errors: kNotFound, kNoRights, kIo, kBadInput (not a regular file).
Result<OpenFile> open_capture_file(const std::filesystem::path& path, int flags);

}  // namespace ringside::capture
