// Writes a capture, in flat memory: records are buffered for at most a second, then leave as one
// chunk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "analyzers/base/result.h"
#include "analyzers/capture/records.h"

namespace ringside {

class CaptureWriter {
  public:
    // A new file; it appears under `path` when close() succeeds, until then it is "<path>.part".
    static Result<CaptureWriter> create(const std::filesystem::path& path);
    // Adds a run to an existing capture in place. A cut tail is removed first, unless whole chunks
    // lie behind the damage: then the file is not touched (kBadInput). Errors as the reader's. A
    // symbolic link is not followed.
    static Result<CaptureWriter> append(const std::filesystem::path& path);

    CaptureWriter(CaptureWriter&&) noexcept;
    CaptureWriter& operator=(CaptureWriter&&) noexcept;
    ~CaptureWriter();

    // All of these: kUsage when called out of order; kBadInput, with nothing written, for values
    // that a reader would reject (records.h, Window and RunInfo); kIo when writing fails. After
    // that nothing more is written, and the file ends with its last whole chunk.

    // Must come first in each run.
    Status begin_run(const RunInfo& info);
    // Written out when the oldest buffered record is a second old, or at 256 KiB.
    Status add(const Window& window);
    Status add(const Event& event);
    Status end_run(const RunEnd& end);
    // Writes what is buffered as a chunk.
    Status flush();
    // Makes the file durable and gives it its name.
    Status close();
    // After a failure: what can be saved stays on disk, as "<path>.part" for a new file. Returns
    // its name. Destruction without close() or abandon() removes a new file; one that was appended
    // to stays.
    std::filesystem::path abandon();

    // Size of the file up to its last whole chunk.
    [[nodiscard]] std::uint64_t bytes_written() const;

  private:
    struct Impl;
    explicit CaptureWriter(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace ringside
