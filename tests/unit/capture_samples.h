// Records with every field filled, and capture files as bytes, for the tests of the capture format.
// The bytes are put together by hand from docs/capture-format.md, not with the code under test.
#pragma once

#include <xxhash.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/capture/records.h"
#include "analyzers/capture/writer.h"

namespace ringside {
// Inside a TEST the name Run is a private member of testing::Test.
using RecordedRun = Run;
}  // namespace ringside

namespace ringside::samples {

// Gives each number field a value of its own, all different and none the default. The structured
// bindings below stop to compile when a struct gets a field that is not filled here.
class Filler {
  public:
    explicit Filler(std::uint64_t seed) : next_(seed) {}
    template <class... T>
    void fill(T&... fields) {
        (one(fields), ...);
    }

  private:
    void one(bool& field) { field = !field; }
    void one(double& field) { field = static_cast<double>(next_++) + 0.25; }
    void one(std::string& field) { field = "text " + std::to_string(next_++); }
    void one(SparseHistogram& field) {
        field = {{0, next_++}, {1, next_++}, {300, 0}, {kHistogramBuckets - 1, next_++}};
    }
    void one(StopFigures& field) {
        auto& [count, stopped_ns, longest_ns, open] = field;
        fill(count, stopped_ns, longest_ns, open);
    }
    template <class T>
    void one(T& field) {
        // Negative where that is possible: signs must survive too.
        field = static_cast<T>(std::is_signed_v<T> ? -static_cast<std::int64_t>(next_++)
                                                   : static_cast<std::int64_t>(next_++));
    }

    std::uint64_t next_;
};

inline QueueWindow queue_window(std::uint64_t seed) {
    RingWindow ring_window;
    auto& [size, descriptors, taken, used_ns, used_max, used_end, batches, batch_max, by_irq,
           by_timer, timers, bypassed, resets, reset_packets] = ring_window;
    Filler(seed + 50).fill(size, descriptors, taken, used_ns, used_max, used_end, batches,
                           batch_max, by_irq, by_timer, timers, bypassed, resets, reset_packets);
    QueueWindow q;
    auto& [queue, packets, bytes, segments, wire_bytes, requeued, requeued_bytes, errors, completed,
           completed_bytes, dropped, unpaired, missed, in_flight_end, in_flight_max,
           in_flight_packet_ns, in_flight_byte_ns, last_progress_ns, oldest_ns, bql, bql_exact,
           bql_byte_ns, bql_max, latency_ns, latency_max_ns, latency, gap_max_ns, gap_max_end_ns,
           driver_stop, bql_stop, watchdogs, ring] = q;
    Filler(seed).fill(queue, packets, bytes, segments, wire_bytes, requeued, requeued_bytes, errors,
                      completed, completed_bytes, dropped, unpaired, missed, in_flight_end,
                      in_flight_max, in_flight_packet_ns, in_flight_byte_ns, last_progress_ns,
                      oldest_ns, bql, bql_exact, bql_byte_ns, bql_max, latency_ns, latency_max_ns,
                      latency, gap_max_ns, gap_max_end_ns, driver_stop, bql_stop, watchdogs);
    ring = ring_window;
    return q;
}

inline NapiWindow napi_window(std::uint64_t seed) {
    NapiWindow n;
    auto& [instance, polls, work, budget, exhausted, gap_ns, gap_max_ns, gap, irq_polls,
           irq_to_poll_ns, irq_to_poll_max_ns, irq_to_poll] = n;
    Filler(seed).fill(instance, polls, work, budget, exhausted, gap_ns, gap_max_ns, gap, irq_polls,
                      irq_to_poll_ns, irq_to_poll_max_ns, irq_to_poll);
    return n;
}

inline Window window(std::uint64_t seed, std::uint64_t start) {
    Window w;
    auto& [start_ns, end_ns, queues, napis, irqs, kernel_counters, kernel_tx_packets,
           kernel_tx_bytes, kernel_tx_dropped, kernel_tx_errors] = w;
    Filler(seed).fill(irqs, kernel_counters, kernel_tx_packets, kernel_tx_bytes, kernel_tx_dropped,
                      kernel_tx_errors);
    start_ns = start;
    end_ns = start + 100'000'007;
    queues = {queue_window(seed + 100), queue_window(seed + 200)};
    napis = {napi_window(seed + 300), napi_window(seed + 400)};
    return w;
}

inline Event event(std::uint64_t time, EventKind kind) {
    Event e;
    auto& [time_ns, event_kind, text] = e;
    time_ns = time;
    event_kind = kind;
    text = std::string("not UTF-8: \xff, a NUL: ") + '\0' + '.';
    return e;
}

inline RunInfo run_info(std::uint64_t seed) {
    RunInfo r;
    auto& [tool_version, interface, tier, tier_why, hooks, command, window_ns, start_boottime_ns,
           start_unix_ns, num_queues, facts] = r;
    Filler(seed).fill(tool_version, interface, tier, tier_why, window_ns, start_boottime_ns,
                      start_unix_ns, num_queues);
    hooks = {"net_dev_start_xmit: tp_btf", "", "napi_poll: tp_btf"};
    command = {"iperf3", "", "-c", "\xfe\xff"};
    Fact number;
    auto& [name, value, source, absent] = number;
    Filler(seed + 50).fill(name, source, absent);
    value = std::int64_t{-5'000};
    Fact zero = number;
    zero.value = std::int64_t{0};
    Fact text = number;
    text.value = std::string("r8169");
    Fact empty_text = number;
    empty_text.value = std::string();
    Fact none = number;
    none.value = std::monostate();
    facts = {number, zero, text, empty_text, none};
    return r;
}

inline RunEnd run_end(std::uint64_t seed) {
    RunEnd r;
    auto& [end_ns, reason, program_misses, queue_beyond, napi_beyond, lost_pairs, ring_odd,
           command_ran, command_exit, command_signal, recorder_cpu_ns] = r;
    Filler(seed).fill(end_ns, reason, queue_beyond, napi_beyond, lost_pairs, ring_odd, command_ran,
                      command_exit, command_signal, recorder_cpu_ns);
    program_misses = {{"on_net_dev_xmit", 0}, {"on_napi_poll", 17}};
    return r;
}

// Two windows and two events.
inline Run run(std::uint64_t seed) {
    constexpr std::uint64_t kStart = 3'600'000'000'000;
    Run r;
    r.info = run_info(seed);
    r.windows = {window(seed + 1'000, kStart), window(seed + 2'000, kStart + 100'000'007)};
    r.events = {event(kStart - 5, EventKind::kLinkDown),
                event(kStart + 7, EventKind::kCommandExited)};
    r.ended = true;
    r.end = run_end(seed + 3'000);
    return r;
}

inline void require(const Status& status) {
    if (!status) {
        throw std::runtime_error(status.error().line());
    }
}

inline void write_run(CaptureWriter& writer, const Run& run) {
    require(writer.begin_run(run.info));
    for (const Window& window : run.windows) {
        require(writer.add(window));
        require(writer.flush());  // several chunks, small
    }
    for (const Event& event : run.events) {
        require(writer.add(event));
    }
    if (run.ended) {
        require(writer.end_run(run.end));
    }
}

inline std::string slurp(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// A folder of its own that goes away with the object.
class TempFolder {
  public:
    TempFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "ringside-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        path_ = name;
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::filesystem::path operator/(const char* name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

inline std::string capture_bytes(const std::vector<Run>& runs) {
    const TempFolder folder;
    Result<CaptureWriter> writer = CaptureWriter::create(folder / "sample");
    require(writer ? Status{} : Status(fail(writer.error())));
    for (const Run& run : runs) {
        write_run(*writer, run);
    }
    require(writer->close());
    return slurp(folder / "sample");
}

inline std::string little_endian(std::uint64_t value, int bytes) {
    std::string result;
    for (int i = 0; i < bytes; ++i) {
        result += static_cast<char>(value >> (8 * i));
    }
    return result;
}

inline std::uint64_t number_at(std::string_view bytes, std::size_t offset, int size) {
    std::uint64_t value = 0;
    for (int i = size; i-- > 0;) {
        value =
            value << 8 | static_cast<unsigned char>(bytes[offset + static_cast<std::size_t>(i)]);
    }
    return value;
}

inline std::string file_header(unsigned major, unsigned minor) {
    const std::string head = std::string("\x89RSC\r\n\x1a\n") + little_endian(major, 2) +
                             little_endian(minor, 2) + std::string(12, '\0');
    return head + little_endian(XXH64(head.data(), head.size(), 0), 8);
}

inline std::string zstd_frame(std::string_view raw) {
    std::string stored(ZSTD_compressBound(raw.size()), '\0');
    stored.resize(ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 3));
    return stored;
}

inline std::string chunk(unsigned type, unsigned compression, std::uint64_t sequence,
                         std::string_view stored, std::uint64_t raw_size) {
    const std::string head = "RSCK" + little_endian(type, 2) + little_endian(compression, 1) +
                             std::string(1, '\0') + little_endian(sequence, 8) +
                             little_endian(stored.size(), 4) + little_endian(raw_size, 4);
    const std::uint64_t seed = XXH64(head.data(), head.size(), 0);
    return head + little_endian(XXH64(stored.data(), stored.size(), seed), 8) + std::string(stored);
}

inline std::string plain_chunk(unsigned type, std::uint64_t sequence, std::string_view raw) {
    return chunk(type, 0, sequence, raw, raw.size());
}

// Offsets of all chunks, and the end of the file.
inline std::vector<std::size_t> chunk_borders(std::string_view bytes) {
    std::vector<std::size_t> borders{32};
    while (borders.back() < bytes.size()) {
        borders.push_back(borders.back() + 32 + number_at(bytes, borders.back() + 16, 4));
    }
    return borders;
}

}  // namespace ringside::samples
