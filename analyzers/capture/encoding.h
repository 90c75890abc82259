// Records as protobuf messages (docs/capture.proto) and back. Internal to analyzers/capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/capture/records.h"

namespace ringside::capture {

// Queue and NAPI numbers end here (the kernel keeps a queue number in 16 bits): a reader may use
// them as an index.
constexpr std::uint32_t kMaxIndex = 65'536;

// What a reader is still willing to unfold. A few kilobytes of zstd can stand for gigabytes of
// records.
class Budget {
  public:
    explicit Budget(std::uint64_t bytes) : left_(bytes) {}
    // False when it is used up.
    [[nodiscard]] bool take(std::uint64_t bytes) {
        exhausted_ = exhausted_ || bytes > left_;
        left_ -= exhausted_ ? 0 : bytes;
        return !exhausted_;
    }
    [[nodiscard]] bool exhausted() const { return exhausted_; }

  private:
    std::uint64_t left_;
    bool exhausted_ = false;
};

// Why a reader would reject the record, or nothing: a writer refuses the same.
const char* flaw_of(const RunInfo& info);
const char* flaw_of(const Window& window);

std::string encode(const RunInfo& info);
std::string encode(const RunEnd& end);

// Payload of a records chunk while it grows. All its times are relative to its first record's.
class RecordsBuffer {
  public:
    void add(const Window& window);
    void add(const Event& event);
    // Takes back the last record: `size` is that of payload() before it.
    void truncate(std::size_t size) { payload_.resize(size); }
    void clear();

    [[nodiscard]] bool empty() const { return payload_.empty(); }
    [[nodiscard]] std::string_view payload() const { return payload_; }
    // From the first record to the latest time of any.
    [[nodiscard]] std::uint64_t span_ns() const { return last_ns_ - base_ns_; }

  private:
    void begin(std::uint64_t time_ns);

    std::string payload_;
    std::uint64_t base_ns_ = 0;
    std::uint64_t last_ns_ = 0;
};

struct Records {
    std::vector<Window> windows;
    std::vector<Event> events;
};

// Errors: kBadInput, the message says what is wrong with the payload or that the budget is used up.
Result<RunInfo> decode_run_info(std::string_view payload, Budget& budget);
Result<RunEnd> decode_run_end(std::string_view payload, Budget& budget);
Result<Records> decode_records(std::string_view payload, Budget& budget);

}  // namespace ringside::capture
