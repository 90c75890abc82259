// The frame of a capture file: file header and chunk headers as bytes. Internal to
// analyzers/capture; docs/capture-format.md is the contract, this is its only implementation.
#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ringside::capture {

// As PNG's: a byte with the top bit set (7-bit transfer), CR LF and a lone LF (newline conversion),
// and the end-of-file character of DOS in between.
constexpr std::string_view kFileMagic = "\x89RSC\r\n\x1a\n";
constexpr std::uint16_t kFormatMajor = 1;
constexpr std::uint16_t kFormatMinor = 0;
constexpr std::size_t kFileHeaderSize = 32;

constexpr std::uint32_t kChunkMagic = 0x4b435352;  // "RSCK"
constexpr std::size_t kChunkHeaderSize = 32;
// No size in a file is believed beyond these.
constexpr std::uint32_t kMaxStoredSize = 64U << 20;
constexpr std::uint32_t kMaxRawSize = 64U << 20;

enum class ChunkType : std::uint16_t { kRunStart = 1, kRecords = 2, kRunEnd = 3 };
enum class Compression : std::uint8_t { kNone = 0, kZstd = 1 };

struct FileHeader {
    std::uint16_t major = kFormatMajor;
    std::uint16_t minor = kFormatMinor;
};

struct ChunkHeader {
    ChunkType type{};            // may be a number that no enumerator has
    Compression compression{};   // likewise
    std::uint64_t sequence = 0;  // 0, 1, 2, ... through the whole file
    std::uint32_t stored_size = 0;
    std::uint32_t raw_size = 0;
};

template <class T>
void put_le(char* to, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        to[i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
}

template <class T>
T get_le(const char* from) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
    }
    return static_cast<T>(value);
}

// Offset of the checksum; what lies before it is covered, whatever it means.
constexpr std::size_t kChecksumOffset = 24;
static_assert(kChecksumOffset + sizeof(std::uint64_t) == kFileHeaderSize);
static_assert(kChecksumOffset + sizeof(std::uint64_t) == kChunkHeaderSize);

inline std::uint64_t header_checksum(const char* header) {
    return XXH64(header, kChecksumOffset, 0);
}
// Header and payload in one value, without having to copy them together.
inline std::uint64_t chunk_checksum(const char* header, std::string_view stored) {
    return XXH64(stored.data(), stored.size(), header_checksum(header));
}

inline std::array<char, kFileHeaderSize> pack(const FileHeader& header) {
    std::array<char, kFileHeaderSize> bytes{};
    kFileMagic.copy(bytes.data(), kFileMagic.size());
    put_le(bytes.data() + 8, header.major);
    put_le(bytes.data() + 10, header.minor);
    put_le(bytes.data() + kChecksumOffset, header_checksum(bytes.data()));
    return bytes;
}

// `bytes` has kFileHeaderSize bytes and the magic; nothing when its checksum does not hold.
inline std::optional<FileHeader> unpack_file_header(std::string_view bytes) {
    if (get_le<std::uint64_t>(bytes.data() + kChecksumOffset) != header_checksum(bytes.data())) {
        return std::nullopt;
    }
    return FileHeader{get_le<std::uint16_t>(bytes.data() + 8),
                      get_le<std::uint16_t>(bytes.data() + 10)};
}

inline std::array<char, kChunkHeaderSize> pack(const ChunkHeader& header, std::string_view stored) {
    std::array<char, kChunkHeaderSize> bytes{};
    put_le(bytes.data(), kChunkMagic);
    put_le(bytes.data() + 4, static_cast<std::uint16_t>(header.type));
    put_le(bytes.data() + 6, static_cast<std::uint8_t>(header.compression));
    put_le(bytes.data() + 8, header.sequence);
    put_le(bytes.data() + 16, header.stored_size);
    put_le(bytes.data() + 20, header.raw_size);
    put_le(bytes.data() + kChecksumOffset, chunk_checksum(bytes.data(), stored));
    return bytes;
}

// `bytes` has kChunkHeaderSize bytes; nothing when no chunk begins here.
inline std::optional<ChunkHeader> unpack_chunk_header(std::string_view bytes) {
    if (get_le<std::uint32_t>(bytes.data()) != kChunkMagic) {
        return std::nullopt;
    }
    return ChunkHeader{static_cast<ChunkType>(get_le<std::uint16_t>(bytes.data() + 4)),
                       static_cast<Compression>(get_le<std::uint8_t>(bytes.data() + 6)),
                       get_le<std::uint64_t>(bytes.data() + 8),
                       get_le<std::uint32_t>(bytes.data() + 16),
                       get_le<std::uint32_t>(bytes.data() + 20)};
}

// `chunk` is a whole chunk with its header.
inline bool checksum_holds(std::string_view chunk) {
    return get_le<std::uint64_t>(chunk.data() + kChecksumOffset) ==
           chunk_checksum(chunk.data(), chunk.substr(kChunkHeaderSize));
}

}  // namespace ringside::capture
