// libFuzzer target of the capture reader. An input is either a file, which is parsed as it is and
// again with its checksums put right (a mutation would never get past them otherwise), or, without
// the file magic, one payload: its first byte is the chunk type, the rest is sealed into a sound
// file.

#include <cstdlib>
#include <string>
#include <string_view>

#include "analyzers/capture/encoding.h"
#include "analyzers/capture/format.h"
#include "analyzers/capture/reader.h"

namespace {

using namespace ringside;
using namespace ringside::capture;

// Small, so that a bomb is a limit that is reached and not a fuzzer out of memory.
constexpr std::uint64_t kMaxUnfolded = std::uint64_t{64} << 20;

void must(bool holds) {
    if (!holds) {
        std::abort();
    }
}

template <class Header>
void append_header(std::string& file, const Header& header) {
    file.append(header.data(), header.size());
}

void append_chunk(std::string& file, ChunkType type, std::uint64_t sequence, std::string_view raw) {
    ChunkHeader header;
    header.type = type;
    header.compression = Compression::kNone;
    header.sequence = sequence;
    header.stored_size = header.raw_size = static_cast<std::uint32_t>(raw.size());
    append_header(file, pack(header, raw));
    file += raw;
}

// The same file with the checksum of each header and chunk recomputed, as far as the sizes lead.
std::string resealed(std::string file) {
    if (file.size() < kFileHeaderSize) {
        return file;
    }
    put_le(file.data() + kChecksumOffset, header_checksum(file.data()));
    std::size_t at = kFileHeaderSize;
    while (file.size() - at >= kChunkHeaderSize) {
        const std::size_t stored = get_le<std::uint32_t>(file.data() + at + 16);
        if (file.size() - at - kChunkHeaderSize < stored) {
            break;
        }
        const std::string_view payload =
            std::string_view(file).substr(at + kChunkHeaderSize, stored);
        put_le(file.data() + at + kChecksumOffset, chunk_checksum(file.data() + at, payload));
        at += kChunkHeaderSize + stored;
    }
    return file;
}

// What was read can be written, and reads the same again: decode(encode(x)) == x for whatever a
// hostile file made of x.
void check_again(const Run& run) {
    Budget budget(~std::uint64_t{0});
    const Result<RunInfo> info = decode_run_info(encode(run.info), budget);
    must(info && *info == run.info);
    RecordsBuffer buffer;
    for (const Window& window : run.windows) {
        must(flaw_of(window) == nullptr);
        buffer.add(window);
    }
    for (const Event& event : run.events) {
        buffer.add(event);
    }
    const Result<Records> records = decode_records(buffer.payload(), budget);
    must(records && records->windows == run.windows && records->events == run.events);
    const Result<RunEnd> end = decode_run_end(encode(run.end), budget);
    must(end && *end == run.end);
}

void parse(const std::string& file) {
    const Result<Capture> read = parse_capture(file, kMaxUnfolded);
    if (!read) {
        must(!read.error().line().empty());
        return;
    }
    must(!read->runs.empty() && read->file_bytes == file.size());
    must(read->cut.empty() == (read->used_bytes == file.size()));
    // What is reported as whole is whole without the rest.
    const Result<Capture> whole = parse_capture(
        std::string_view(file).substr(0, static_cast<std::size_t>(read->used_bytes)), kMaxUnfolded);
    must(whole && whole->cut.empty() && whole->runs == read->runs);
    for (const Run& run : read->runs) {
        check_again(run);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string input(reinterpret_cast<const char*>(data), size);
    if (size < 8 || input.starts_with(kFileMagic)) {
        parse(input);
        parse(resealed(input));
        return 0;
    }
    std::string file;
    append_header(file, pack(FileHeader{}));
    const auto type = static_cast<ChunkType>(data[0] % 4);
    if (type != ChunkType::kRunStart) {
        append_chunk(file, ChunkType::kRunStart, 0, "");
    }
    append_chunk(file, type, type == ChunkType::kRunStart ? 0 : 1,
                 std::string_view(input).substr(1));
    parse(file);
    return 0;
}
