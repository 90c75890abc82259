// The FIFO that fault commands (faults.h) are written to, one a line, by a script or a shell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside::lab {

// Puts lines together from whatever pieces they come in. A line beyond kLongest is dropped whole.
class LineSplitter {
  public:
    static constexpr std::size_t kLongest = 4096;
    std::vector<std::string> add(std::string_view bytes);

  private:
    std::string line_;
    bool too_long_ = false;
};

class ControlFifo {
  public:
    // Makes the FIFO if there is none. Errors: kUsage (something else is there), kIo, kNoRights.
    static Result<ControlFifo> open(const std::filesystem::path& path);

    [[nodiscard]] int fd() const { return fd_.get(); }
    // The lines that have come; does not wait.
    std::vector<std::string> read_lines();

  private:
    UniqueFd fd_;
    LineSplitter splitter_;
};

}  // namespace ringside::lab
