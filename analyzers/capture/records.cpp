// Values of records.h to and from docs/capture.proto; fields.h says which field is which.
#include "analyzers/capture/records.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "analyzers/capture/encoding.h"
#include "analyzers/capture/fields.h"

namespace ringside::capture {

namespace {

using protozero::pbf_wire_type;

// Field numbers of messages that have no struct of their own.
constexpr std::uint32_t kHistogramBucketDeltas = 1;
constexpr std::uint32_t kHistogramCounts = 2;
constexpr std::uint32_t kRecordsBase = 1;
constexpr std::uint32_t kRecordsWindow = 2;
constexpr std::uint32_t kRecordsEvent = 3;

// Writes the fields of one message; what has its default value is left out.
class FieldWriter {
  public:
    FieldWriter(protozero::pbf_writer& out, std::uint64_t base_ns) : out_(out), base_ns_(base_ns) {}

    void number(std::uint32_t tag, std::uint64_t value) {
        if (value != 0) {
            out().add_uint64(tag, value);
        }
    }
    void zigzag(std::uint32_t tag, std::int64_t value) {
        if (value != 0) {
            out().add_sint64(tag, value);
        }
    }
    void flag(std::uint32_t tag, bool value) { number(tag, value ? 1 : 0); }
    void unset_flag(std::uint32_t tag, bool value) { number(tag, value ? 0 : 1); }
    void real(std::uint32_t tag, double value) {
        if (value != 0) {
            out().add_double(tag, value);
        }
    }
    // Modulo 2^64, so that every value survives, near or far.
    void time(std::uint32_t tag, std::uint64_t value) {
        if (value != 0) {
            out().add_sint64(tag, static_cast<std::int64_t>(value - base_ns_));
        }
    }
    void text(std::uint32_t tag, const std::string& value) {
        if (!value.empty()) {
            out().add_bytes(tag, value);
        }
    }
    void texts(std::uint32_t tag, const std::vector<std::string>& values) {
        for (const std::string& value : values) {
            out().add_bytes(tag, value);
        }
    }
    void event_kind(std::uint32_t tag, EventKind value) {
        number(tag, static_cast<std::uint32_t>(value));
    }
    // In a oneof the default value is written too: it differs from no value.
    void fact_value(std::uint32_t number_tag, std::uint32_t text_tag,
                    const decltype(Fact::value)& value) {
        if (const auto* number = std::get_if<std::int64_t>(&value)) {
            out().add_sint64(number_tag, *number);
        } else if (const auto* text = std::get_if<std::string>(&value)) {
            out().add_bytes(text_tag, *text);
        }
    }
    void histogram(std::uint32_t tag, const SparseHistogram& value) {
        if (value.empty()) {
            return;
        }
        protozero::pbf_writer sub(out(), tag);
        {
            protozero::packed_field_uint64 deltas(sub, kHistogramBucketDeltas);
            std::uint32_t previous = 0;
            for (const auto& [bucket, count] : value) {
                deltas.add_element(bucket - previous);
                previous = bucket;
            }
        }
        protozero::packed_field_uint64 counts(sub, kHistogramCounts);
        for (const auto& [bucket, count] : value) {
            counts.add_element(count);
        }
    }
    template <class T>
    void message(std::uint32_t tag, const T& value) {
        if (value != T{}) {
            submessage(tag, value);
        }
    }
    template <class T>
    void messages(std::uint32_t tag, const std::vector<T>& values) {
        for (const T& value : values) {
            submessage(tag, value);
        }
    }
    template <class T>
    void submessage(std::uint32_t tag, const T& value) {
        bool empty = true;
        {
            protozero::pbf_writer sub(out(), tag);
            FieldWriter writer(sub, base_ns_);
            fields(writer, value);
            empty = writer.empty_;
        }
        // protozero takes an empty submessage back; but an idle queue is an element of its list
        // too.
        if (empty) {
            out().add_message(tag, "", 0);
        }
    }

  private:
    protozero::pbf_writer& out() {
        empty_ = false;
        return out_;
    }

    protozero::pbf_writer& out_;
    std::uint64_t base_ns_;
    bool empty_ = true;
};

// What all messages of one payload share while they are read.
struct ReadState {
    Budget& budget;
    std::uint64_t base_ns = 0;
    const char* flaw = nullptr;

    void reject(const char* why) { flaw = flaw == nullptr ? why : flaw; }
    bool take(std::uint64_t bytes) {
        if (!budget.take(bytes)) {
            reject("holds more than is read from one capture");
        }
        return flaw == nullptr;
    }
};

template <class T>
void read_message(protozero::pbf_reader in, ReadState& state, T& value);

// Reads the field at which `in` stands, if it is one of those it is asked for. The wire type must
// match: protozero asserts it.
class FieldReader {
  public:
    FieldReader(protozero::pbf_reader& in, ReadState& state) : in_(in), state_(state) {}
    [[nodiscard]] bool taken() const { return taken_; }

    template <std::unsigned_integral T>
    void number(std::uint32_t tag, T& value) {
        if (here(tag, pbf_wire_type::varint)) {
            const std::uint64_t wide = in_.get_uint64();
            value = static_cast<T>(wide);
            if (value != wide) {
                state_.reject("a number is too large for its field");
            }
        }
    }
    template <std::signed_integral T>
    void zigzag(std::uint32_t tag, T& value) {
        if (here(tag, pbf_wire_type::varint)) {
            const std::int64_t wide = in_.get_sint64();
            value = static_cast<T>(wide);
            if (value != wide) {
                state_.reject("a number is too large for its field");
            }
        }
    }
    // Not get_bool(): it asserts that the varint has one byte.
    void flag(std::uint32_t tag, bool& value) {
        if (here(tag, pbf_wire_type::varint)) {
            value = in_.get_uint64() != 0;
        }
    }
    void unset_flag(std::uint32_t tag, bool& value) {
        if (here(tag, pbf_wire_type::varint)) {
            value = in_.get_uint64() == 0;
        }
    }
    void real(std::uint32_t tag, double& value) {
        if (here(tag, pbf_wire_type::fixed64)) {
            value = in_.get_double();
        }
    }
    void time(std::uint32_t tag, std::uint64_t& value) {
        if (here(tag, pbf_wire_type::varint)) {
            value = state_.base_ns + static_cast<std::uint64_t>(in_.get_sint64());
        }
    }
    void text(std::uint32_t tag, std::string& value) {
        if (here(tag, pbf_wire_type::length_delimited)) {
            const protozero::data_view view = in_.get_view();
            if (state_.take(view.size())) {
                value.assign(view.data(), view.size());
            }
        }
    }
    void texts(std::uint32_t tag, std::vector<std::string>& values) {
        if (at(tag, pbf_wire_type::length_delimited) && state_.take(sizeof(std::string))) {
            text(tag, values.emplace_back());
        }
    }
    // A kind that a newer version has added keeps its text.
    void event_kind(std::uint32_t tag, EventKind& value) {
        if (here(tag, pbf_wire_type::varint)) {
            const std::uint64_t kind = in_.get_uint64();
            value = kind <= static_cast<std::uint64_t>(EventKind::kCommandExited)
                        ? static_cast<EventKind>(kind)
                        : EventKind::kOther;
        }
    }
    void fact_value(std::uint32_t number_tag, std::uint32_t text_tag,
                    decltype(Fact::value)& value) {
        if (at(number_tag, pbf_wire_type::varint)) {
            zigzag(number_tag, value.emplace<std::int64_t>());
        } else if (at(text_tag, pbf_wire_type::length_delimited)) {
            text(text_tag, value.emplace<std::string>());
        }
    }
    void histogram(std::uint32_t tag, SparseHistogram& value) {
        if (!here(tag, pbf_wire_type::length_delimited)) {
            return;
        }
        protozero::pbf_reader in = in_.get_message();
        using Packed = protozero::iterator_range<protozero::pbf_reader::const_uint64_iterator>;
        Packed deltas;
        Packed counts;
        while (in.next()) {
            switch (in.tag_and_type()) {
                case protozero::tag_and_type(kHistogramBucketDeltas,
                                             pbf_wire_type::length_delimited):
                    deltas = in.get_packed_uint64();
                    break;
                case protozero::tag_and_type(kHistogramCounts, pbf_wire_type::length_delimited):
                    counts = in.get_packed_uint64();
                    break;
                default:
                    in.skip();
            }
        }
        value.clear();
        std::uint64_t bucket = 0;
        auto count = counts.begin();
        for (auto delta = deltas.begin(); delta != deltas.end(); ++delta, ++count) {
            // The first test bounds the sum in the second.
            if (*delta >= kHistogramBuckets || bucket + *delta >= kHistogramBuckets) {
                return state_.reject("a histogram bucket is outside the scale");
            }
            if (count == counts.end()) {
                return state_.reject("a histogram has more buckets than counts");
            }
            bucket += *delta;
            if (!state_.take(sizeof(SparseHistogram::value_type))) {
                return;
            }
            value.emplace_back(static_cast<std::uint16_t>(bucket), *count);
        }
        if (count != counts.end()) {
            state_.reject("a histogram has more counts than buckets");
        }
    }
    template <class T>
    void message(std::uint32_t tag, T& value) {
        if (here(tag, pbf_wire_type::length_delimited)) {
            read_message(in_.get_message(), state_, value);
        }
    }
    template <class T>
    void messages(std::uint32_t tag, std::vector<T>& values) {
        if (at(tag, pbf_wire_type::length_delimited) && state_.take(sizeof(T))) {
            message(tag, values.emplace_back());
        }
    }

  private:
    [[nodiscard]] bool at(std::uint32_t tag, pbf_wire_type type) const {
        return !taken_ && in_.tag_and_type() == protozero::tag_and_type(tag, type);
    }
    [[nodiscard]] bool here(std::uint32_t tag, pbf_wire_type type) {
        const bool found = at(tag, type);
        taken_ = taken_ || found;
        return found;
    }

    protozero::pbf_reader& in_;
    ReadState& state_;
    bool taken_ = false;
};

template <class T>
void read_message(protozero::pbf_reader in, ReadState& state, T& value) {
    while (state.flaw == nullptr && in.next()) {
        FieldReader reader(in, state);
        fields(reader, value);
        if (!reader.taken()) {
            in.skip();
        }
    }
}

template <class T>
std::string encode_message(const T& value) {
    std::string payload;
    protozero::pbf_writer out(payload);
    FieldWriter writer(out, 0);
    fields(writer, value);
    return payload;
}

// The one place where protozero's exceptions end.
template <class Read>
Status guarded(ReadState& state, Read&& read) {
    try {
        read();
    } catch (const protozero::exception& broken) {
        state.reject("not the message that it should be");
    }
    if (state.flaw != nullptr) {
        return fail(ErrorCode::kBadInput, state.flaw);
    }
    return {};
}

template <class T>
Result<T> decode_message(std::string_view payload, Budget& budget) {
    T value;
    ReadState state{budget};
    const protozero::pbf_reader in(payload.data(), payload.size());
    Status status = guarded(state, [&] { read_message(in, state, value); });
    if (!status) {
        return fail(std::move(status).error());
    }
    return value;
}

const char* flaw_of(const SparseHistogram& histogram) {
    const auto descending = [](const auto& a, const auto& b) { return a.first >= b.first; };
    if (std::adjacent_find(histogram.begin(), histogram.end(), descending) != histogram.end()) {
        return "the buckets of a histogram are not in order";
    }
    return !histogram.empty() && histogram.back().first >= kHistogramBuckets
               ? "a histogram bucket is outside the scale"
               : nullptr;
}

const char* flaw_of(const QueueWindow& queue) {
    if (queue.queue >= kMaxIndex) {
        return "a queue number is out of range";
    }
    for (const double area :
         {queue.in_flight_packet_ns, queue.in_flight_byte_ns, queue.bql_byte_ns}) {
        if (!std::isfinite(area)) {
            return "a figure is not a number";
        }
    }
    return flaw_of(queue.latency);
}

const char* flaw_of(const NapiWindow& napi) {
    return napi.instance >= kMaxIndex ? "a NAPI number is out of range" : flaw_of(napi.gap);
}

}  // namespace

const char* flaw_of(const RunInfo& info) {
    return info.num_queues > kMaxIndex ? "the number of queues is out of range" : nullptr;
}

const char* flaw_of(const Window& window) {
    if (window.end_ns < window.start_ns) {
        return "a window ends before it starts";
    }
    for (const QueueWindow& queue : window.queues) {
        if (const char* flaw = flaw_of(queue)) {
            return flaw;
        }
    }
    for (const NapiWindow& napi : window.napis) {
        if (const char* flaw = flaw_of(napi)) {
            return flaw;
        }
    }
    return nullptr;
}

std::string encode(const RunInfo& info) {
    return encode_message(info);
}

std::string encode(const RunEnd& end) {
    return encode_message(end);
}

void RecordsBuffer::begin(std::uint64_t time_ns) {
    if (payload_.empty()) {
        base_ns_ = last_ns_ = time_ns;
        // Written even when 0: a payload that has begun is never empty.
        protozero::pbf_writer(payload_).add_uint64(kRecordsBase, time_ns);
    }
}

void RecordsBuffer::add(const Window& window) {
    begin(window.start_ns);
    last_ns_ = std::max(last_ns_, window.end_ns);
    protozero::pbf_writer out(payload_);
    FieldWriter(out, base_ns_).submessage(kRecordsWindow, window);
}

void RecordsBuffer::add(const Event& event) {
    begin(event.time_ns);
    last_ns_ = std::max(last_ns_, event.time_ns);
    protozero::pbf_writer out(payload_);
    FieldWriter(out, base_ns_).submessage(kRecordsEvent, event);
}

void RecordsBuffer::clear() {
    payload_.clear();
    base_ns_ = last_ns_ = 0;
}

Result<RunInfo> decode_run_info(std::string_view payload, Budget& budget) {
    Result<RunInfo> info = decode_message<RunInfo>(payload, budget);
    if (info && flaw_of(*info) != nullptr) {
        return fail(ErrorCode::kBadInput, flaw_of(*info));
    }
    return info;
}

Result<RunEnd> decode_run_end(std::string_view payload, Budget& budget) {
    return decode_message<RunEnd>(payload, budget);
}

Result<Records> decode_records(std::string_view payload, Budget& budget) {
    Records records;
    ReadState state{budget};
    Status status = guarded(state, [&] {
        // Two passes: the base must be known before the first time is read, wherever it stands.
        protozero::pbf_reader base(payload.data(), payload.size());
        while (base.next(kRecordsBase, pbf_wire_type::varint)) {
            state.base_ns = base.get_uint64();
        }
        protozero::pbf_reader in(payload.data(), payload.size());
        while (state.flaw == nullptr && in.next()) {
            FieldReader reader(in, state);
            reader.messages(kRecordsWindow, records.windows);
            reader.messages(kRecordsEvent, records.events);
            if (!reader.taken()) {
                in.skip();
            }
        }
    });
    if (!status) {
        return fail(std::move(status).error());
    }
    for (const Window& window : records.windows) {
        if (const char* flaw = flaw_of(window)) {
            return fail(ErrorCode::kBadInput, flaw);
        }
    }
    return records;
}

}  // namespace ringside::capture
