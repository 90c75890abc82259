// Reads small kernel files (/proc, /sys) below a root that tests can move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"

namespace ringside {

class Sysroot {
  public:
    // "/" on a live system; a folder with captured files in tests.
    explicit Sysroot(std::filesystem::path root = "/") : root_(std::move(root)) {}

    // The whole file, at most `limit` bytes (more is an error: kernel files are small).
    // `path` is absolute as on the live system. Errors: kNotFound, kNoRights, kIo, kBadInput (too
    // large).
    [[nodiscard]] Result<std::string> read(std::string_view path,
                                           std::size_t limit = 1 << 20) const;
    // The first line without the white space at its ends.
    [[nodiscard]] Result<std::string> read_line(std::string_view path) const;
    // A decimal integer, possibly negative.
    [[nodiscard]] Result<std::int64_t> read_int(std::string_view path) const;
    // Names in a folder, sorted; empty when the folder is not there.
    [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
    [[nodiscard]] bool exists(std::string_view path) const;
    // The last component that a symbolic link points at, as in .../device/driver -> .../r8169.
    [[nodiscard]] Result<std::string> link_name(std::string_view path) const;

    [[nodiscard]] std::filesystem::path resolve(std::string_view path) const;

  private:
    std::filesystem::path root_;
};

}  // namespace ringside
