// Reads a capture from hostile bytes: whatever the file holds, the result is a Capture or an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/capture/records.h"

namespace ringside {

struct Capture {
    std::vector<Run> runs;
    std::uint64_t file_bytes = 0;
    std::uint64_t used_bytes = 0;  // up to the end of the last whole chunk
    std::string cut;               // empty, or why reading ended before the end of the file

    bool operator==(const Capture&) const = default;
};

// Bytes that a reader unfolds from one capture, as records and as raw chunks: a hostile file of a
// few kilobytes can stand for as much as it likes. An hour of one busy queue takes about 100 MB.
constexpr std::uint64_t kMaxUnfoldedBytes = std::uint64_t{4} << 30;

// Everything that is whole is used; a cut or damaged tail, or one beyond `max_unfolded`, is
// reported in `cut`, not an error. Errors: kBadInput (not a capture, damaged header, no run
// inside), kUnsupported (newer major version).
Result<Capture> parse_capture(std::string_view bytes,
                              std::uint64_t max_unfolded = kMaxUnfoldedBytes);

// parse_capture() of a file. Errors: also kNotFound, kNoRights, kIo.
Result<Capture> read_capture(const std::filesystem::path& path,
                             std::uint64_t max_unfolded = kMaxUnfoldedBytes);

}  // namespace ringside
