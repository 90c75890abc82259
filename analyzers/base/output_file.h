// An output that appears under its name only when it is whole.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside {

// Writes to "<path>.part" in the same folder; commit() renames it. Without commit() the destructor
// removes the part, unless keep_part() was called (a recording that failed half way is still worth
// reading). A symbolic link in the place of the part is refused, never followed. Mode 0644 less
// umask.
class OutputFile {
  public:
    // Errors: kNotFound (folder), kNoRights, kIo, kUsage (path is a folder).
    static Result<OutputFile> create(std::filesystem::path path);

    OutputFile(OutputFile&&) noexcept = default;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    Status write(std::string_view bytes);
    // Makes what was written durable and gives it its name.
    Status commit();
    void keep_part() { remove_part_ = false; }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] const std::filesystem::path& part_path() const { return part_; }
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    OutputFile(std::filesystem::path path, std::filesystem::path part, UniqueFd fd)
        : path_(std::move(path)), part_(std::move(part)), fd_(std::move(fd)) {}

    std::filesystem::path path_;
    std::filesystem::path part_;
    UniqueFd fd_;
    bool remove_part_ = true;
};

// Writes all of `bytes` to `fd`. Errors: kIo (ENOSPC and others keep their errno).
Status write_all(int fd, std::string_view bytes, const std::filesystem::path& name);

}  // namespace ringside
