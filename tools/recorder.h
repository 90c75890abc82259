// A recording from beginning to end: attaches the tracer, follows the device, runs the command,
// writes the capture, and stops for a signal, the end of the time or of the command, or a full
// disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/capture/records.h"
#include "probes/tracer.h"

namespace ringside {

struct RecordOptions {
    std::string interface;
    std::filesystem::path output = {};
    bool append = false;  // add a run to an existing capture
    std::optional<std::uint64_t> duration_ns = {};
    std::vector<std::string> command = {};  // empty: none
    bool command_stdout_to_stderr = false;  // keeps stdout for our own result
    std::uint64_t window_ns = 100'000'000;
    TierChoice tier = TierChoice::kBest;
};

// Told about everything as it happens, in the recording loop: must be quick.
class RecordObserver {
  public:
    virtual ~RecordObserver() = default;
    virtual void on_start(const RunInfo& info) = 0;
    virtual void on_window(const Window& window) = 0;
    virtual void on_event(const Event& event) = 0;
};

struct Recording {
    std::filesystem::path path;
    std::uint64_t file_bytes = 0;
    std::uint64_t start_ns = 0;
    RunEnd end;
    std::string command_text;  // how the command ended, empty without one
};

// Errors: whatever finding the interface, attaching, starting the command or writing can meet. When
// writing fails half way the part that was written stays and is named in the error; before the
// first window nothing is left behind.
Result<Recording> record(const RecordOptions& options, RecordObserver& observer);

}  // namespace ringside
