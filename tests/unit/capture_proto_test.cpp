// docs/capture.proto is the truth about the payloads: a decoder that shares no code with ours reads
// them.
#include <gmock/gmock.h>
#include <zstd.h>

#include <array>
#include <cstdio>
#include <iomanip>
#include <sstream>

#include "tests/unit/capture_samples.h"

namespace ringside {
namespace {

using testing::HasSubstr;

std::string payload_of(std::string_view bytes, std::size_t chunk) {
    const std::size_t at = samples::chunk_borders(bytes).at(chunk);
    const std::string_view stored = bytes.substr(at + 32, samples::number_at(bytes, at + 16, 4));
    std::string raw(samples::number_at(bytes, at + 20, 4), '\0');
    if (bytes[at + 6] == 0) {
        return std::string(stored);
    }
    EXPECT_EQ(ZSTD_decompress(raw.data(), raw.size(), stored.data(), stored.size()), raw.size());
    return raw;
}

// The text that protoc makes of a message. protoc exits with an error if the bytes do not fit the
// proto.
std::string protoc(const std::string& message, const std::string& payload) {
    const samples::TempFolder folder;
    samples::spill(folder / "payload", payload);
    const std::string command = "protoc --proto_path='" RINGSIDE_DOCS
                                "' --decode=ringside.capture.v1." +
                                message + " capture.proto <'" + (folder / "payload").string() + "'";
    std::FILE* const pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): a fixed command
    std::string text;
    std::array<char, 4096> buffer;
    for (std::size_t got;
         pipe != nullptr && (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        text.append(buffer.data(), got);
    }
    EXPECT_EQ(::pclose(pipe), 0) << "protoc (Debian: protobuf-compiler) failed: " << command;
    return text;
}

// protoc prints a field it does not know by its number.
void expect_all_known(const std::string& text) {
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::size_t first = text.find_first_not_of(' ', begin);
        EXPECT_EQ(std::string_view("0123456789").find(text[first]), std::string_view::npos)
            << "a field that the proto does not have: " << text.substr(begin, end - begin);
        begin = end + 1;
    }
}

// All values of a sample differ, so a name with its value is found at most in the right place.
template <class T>
void expect_field(const std::string& text, const std::string& name, const T& value) {
    std::ostringstream line;
    line << name << ": " << std::setprecision(17) << std::boolalpha;
    if constexpr (std::is_same_v<T, std::string>) {
        line << '"' << value << '"';
    } else {
        line << value;
    }
    EXPECT_THAT(text, HasSubstr(line.str() + "\n"));
}

std::int64_t relative(std::uint64_t time_ns, std::uint64_t base_ns) {
    return static_cast<std::int64_t>(time_ns - base_ns);
}

TEST(CaptureProto, DescribesTheRunStart) {
    const RunInfo info = samples::run_info(1);
    RecordedRun run;
    run.info = info;
    const std::string text = protoc("RunInfo", payload_of(samples::capture_bytes({run}), 0));
    expect_all_known(text);
    expect_field(text, "tool_version", info.tool_version);
    expect_field(text, "interface", info.interface);
    expect_field(text, "tier", info.tier);
    expect_field(text, "tier_why", info.tier_why);
    expect_field(text, "hooks", info.hooks[2]);
    expect_field(text, "command", info.command[0]);
    EXPECT_THAT(text, HasSubstr(R"(command: "\376\377")"));
    expect_field(text, "window_ns", info.window_ns);
    expect_field(text, "start_boottime_ns", info.start_boottime_ns);
    expect_field(text, "start_unix_ns", info.start_unix_ns);
    expect_field(text, "num_queues", info.num_queues);
    expect_field(text, "  name", info.facts[0].name);
    expect_field(text, "  number", -5'000);
    expect_field(text, "  number", 0);
    expect_field(text, "  text", std::string("r8169"));
    expect_field(text, "  text", std::string());
    expect_field(text, "  source", info.facts[0].source);
    expect_field(text, "  absent", info.facts[0].absent);
}

TEST(CaptureProto, DescribesWindows) {
    RecordedRun run;
    run.windows = {samples::window(1'000, 3'600'000'000'000)};
    run.windows[0].queues.resize(1);
    run.windows[0].napis.resize(1);
    const std::string text = protoc("Records", payload_of(samples::capture_bytes({run}), 1));
    expect_all_known(text);
    const Window& window = run.windows[0];
    expect_field(text, "base_ns", window.start_ns);
    EXPECT_THAT(text, HasSubstr("start_rel: 0\n  end_rel: 100000007\n"));
    expect_field(text, "kernel_counters", true);
    expect_field(text, "kernel_tx_packets", window.kernel_tx_packets);
    expect_field(text, "kernel_tx_bytes", window.kernel_tx_bytes);
    expect_field(text, "kernel_tx_dropped", window.kernel_tx_dropped);
    expect_field(text, "kernel_tx_errors", window.kernel_tx_errors);

    const QueueWindow& queue = window.queues[0];
    expect_field(text, " queue", queue.queue);
    expect_field(text, " packets", queue.packets);
    expect_field(text, " bytes", queue.bytes);
    expect_field(text, " segments", queue.segments);
    expect_field(text, " wire_bytes", queue.wire_bytes);
    expect_field(text, " requeued", queue.requeued);
    expect_field(text, " requeued_bytes", queue.requeued_bytes);
    expect_field(text, " errors", queue.errors);
    expect_field(text, " completed", queue.completed);
    expect_field(text, " completed_bytes", queue.completed_bytes);
    expect_field(text, " dropped", queue.dropped);
    expect_field(text, " unpaired", queue.unpaired);
    expect_field(text, " missed", queue.missed);
    expect_field(text, " in_flight_end", queue.in_flight_end);
    expect_field(text, " in_flight_max", queue.in_flight_max);
    expect_field(text, " in_flight_packet_ns", queue.in_flight_packet_ns);
    expect_field(text, " in_flight_byte_ns", queue.in_flight_byte_ns);
    expect_field(text, " last_progress_rel", relative(queue.last_progress_ns, window.start_ns));
    expect_field(text, " oldest_rel", relative(queue.oldest_ns, window.start_ns));
    expect_field(text, " bql", true);
    expect_field(text, " bql_inexact", true);
    expect_field(text, " bql_byte_ns", queue.bql_byte_ns);
    expect_field(text, " bql_max", queue.bql_max);
    expect_field(text, " latency_ns", queue.latency_ns);
    expect_field(text, " latency_max_ns", queue.latency_max_ns);
    EXPECT_THAT(text, HasSubstr("latency {\n      bucket_deltas: 0\n      bucket_deltas: 1\n"
                                "      bucket_deltas: 299\n      bucket_deltas: 501\n"));
    expect_field(text, " counts", queue.latency[3].second);
    expect_field(text, " gap_max_ns", queue.gap_max_ns);
    expect_field(text, " gap_max_end_rel", relative(queue.gap_max_end_ns, window.start_ns));
    EXPECT_THAT(
        text,
        HasSubstr("driver_stop {\n      count: " + std::to_string(queue.driver_stop.count) + "\n"));
    EXPECT_THAT(
        text, HasSubstr("bql_stop {\n      count: " + std::to_string(queue.bql_stop.count) + "\n"));
    expect_field(text, " stopped_ns", queue.bql_stop.stopped_ns);
    expect_field(text, " longest_ns", queue.bql_stop.longest_ns);
    expect_field(text, " open", true);
    expect_field(text, " watchdogs", queue.watchdogs);
    expect_field(text, " size", queue.ring.size);
    expect_field(text, " descriptors", queue.ring.descriptors);
    expect_field(text, " taken", queue.ring.taken);
    expect_field(text, " used_ns", queue.ring.used_ns);
    expect_field(text, " used_max", queue.ring.used_max);
    expect_field(text, " used_end", queue.ring.used_end);
    expect_field(text, " batches", queue.ring.batches);
    expect_field(text, " batch_max", queue.ring.batch_max);
    expect_field(text, " batches_by_irq", queue.ring.batches_by_irq);
    expect_field(text, " batches_by_timer", queue.ring.batches_by_timer);
    expect_field(text, " timers", queue.ring.timers);
    expect_field(text, " bypassed", queue.ring.bypassed);
    expect_field(text, " resets", queue.ring.resets);
    expect_field(text, " reset_packets", queue.ring.reset_packets);

    const NapiWindow& napi = window.napis[0];
    expect_field(text, " instance", napi.instance);
    expect_field(text, " polls", napi.polls);
    expect_field(text, " work", napi.work);
    expect_field(text, " budget", napi.budget);
    expect_field(text, " exhausted", napi.exhausted);
    expect_field(text, " gap_ns", napi.gap_ns);
    expect_field(text, " gap_max_ns", napi.gap_max_ns);
    EXPECT_THAT(text, HasSubstr("gap {\n      bucket_deltas: 0\n"));
    expect_field(text, " irq_polls", napi.irq_polls);
    expect_field(text, " irq_to_poll_ns", napi.irq_to_poll_ns);
    expect_field(text, " irq_to_poll_max_ns", napi.irq_to_poll_max_ns);
    EXPECT_THAT(text, HasSubstr("irq_to_poll {\n      bucket_deltas: 0\n"));
    expect_field(text, " irqs", window.irqs);
}

TEST(CaptureProto, DescribesEventsAndTheRunEnd) {
    RecordedRun run;
    const std::vector<std::string> kinds = {"RENAMED",     "DEVICE_GONE",   "DEVICE_BACK",
                                            "LINK_UP",     "LINK_DOWN",     "QUEUES_CHANGED",
                                            "LATE_WINDOW", "COMMAND_EXITED"};
    for (std::uint32_t kind = 1; kind <= kinds.size(); ++kind) {
        run.events.push_back(
            {1'000 + kind, static_cast<EventKind>(kind), "eth" + std::to_string(kind)});
    }
    run.ended = true;
    run.end = samples::run_end(7);
    const std::string bytes = samples::capture_bytes({run});
    const std::string events = protoc("Records", payload_of(bytes, 1));
    expect_all_known(events);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        EXPECT_THAT(events,
                    HasSubstr("time_rel: " + std::to_string(i) + "\n  kind: KIND_" + kinds[i] +
                              "\n  text: \"eth" + std::to_string(i + 1) + "\"\n"));
    }

    const std::string end = protoc("RunEnd", payload_of(bytes, 2));
    expect_all_known(end);
    expect_field(end, "end_ns", run.end.end_ns);
    expect_field(end, "reason", run.end.reason);
    EXPECT_THAT(end, HasSubstr("program: \"on_napi_poll\"\n  count: 17\n"));
    expect_field(end, "queue_beyond", run.end.queue_beyond);
    expect_field(end, "napi_beyond", run.end.napi_beyond);
    expect_field(end, "lost_pairs", run.end.lost_pairs);
    expect_field(end, "ring_odd", run.end.ring_odd);
    expect_field(end, "command_ran", true);
    expect_field(end, "command_exit", run.end.command_exit);
    expect_field(end, "command_signal", run.end.command_signal);
    expect_field(end, "recorder_cpu_ns", run.end.recorder_cpu_ns);
}

}  // namespace
}  // namespace ringside
