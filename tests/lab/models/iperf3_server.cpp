#include "tests/lab/models/iperf3_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ringside::lab {
namespace {

constexpr std::size_t kCookie = 37;
constexpr std::size_t kLength = 4;
constexpr unsigned kMostStreams = 128;
constexpr std::uint64_t kLongestText = 65536;
// States of iperf_api.h.
constexpr std::int8_t kTestStart = 1;
constexpr std::int8_t kTestRunning = 2;
constexpr std::int8_t kTestEnd = 4;
constexpr std::int8_t kParamExchange = 9;
constexpr std::int8_t kCreateStreams = 10;
constexpr std::int8_t kExchangeResults = 13;
constexpr std::int8_t kDisplayResults = 14;
constexpr std::int8_t kAccessDenied = -1;

std::string_view as_text(BytesView bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "key":NUMBER in the client's JSON; it is flat and has no such text within another.
std::optional<std::uint64_t> number_in(std::string_view json, std::string_view key) {
    const std::string quoted = fmt::format("\"{}\":", key);
    const std::size_t at = json.find(quoted);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    json.remove_prefix(at + quoted.size());
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

// A state is one signed byte on the wire.
TcpMessage Iperf3Server::state(std::int8_t state) const {
    return {test_->control, {static_cast<std::byte>(static_cast<std::uint8_t>(state))}};
}

void Iperf3Server::closed(const TcpKey& from) {
    unknown_.erase(from);
    if (test_ && test_->control == from) {
        test_.reset();
    }
}

std::vector<TcpMessage> Iperf3Server::received(const TcpKey& from, BytesView known,
                                               std::uint64_t total, std::uint64_t now_ns) {
    if (test_ && test_->control == from) {
        return control(known, total, now_ns);
    }
    if (test_) {
        for (Test::Stream& stream : test_->streams) {
            if (stream.key == from) {
                stream.bytes += total;
                return {};
            }
        }
    }
    return introduce(from, known, total, now_ns);
}

std::vector<TcpMessage> Iperf3Server::introduce(const TcpKey& from, BytesView known,
                                                std::uint64_t total, std::uint64_t now_ns) {
    std::string& cookie = unknown_[from];
    const std::size_t take = std::min(kCookie - cookie.size(), known.size());
    cookie += as_text(known.first(take));
    if (cookie.size() < kCookie) {
        return {};
    }
    const std::string whole = std::move(cookie);
    unknown_.erase(from);
    if (!test_) {
        test_ = Test{};
        test_->cookie = whole;
        test_->control = from;
        return {state(kParamExchange)};
    }
    if (whole != test_->cookie || test_->waiting != Waiting::kStreams) {
        TcpMessage denied = state(kAccessDenied);
        denied.to = from;
        return {std::move(denied)};
    }
    test_->streams.push_back({from, total - take});
    if (test_->streams.size() < test_->parallel) {
        return {};
    }
    test_->waiting = Waiting::kEnd;
    test_->begin_ns = now_ns;
    return {state(kTestStart), state(kTestRunning)};
}

std::vector<TcpMessage> Iperf3Server::control(BytesView known, std::uint64_t total,
                                              std::uint64_t now_ns) {
    switch (test_->waiting) {
        case Waiting::kParameters:
            return parameters(known, total);
        case Waiting::kEnd:
            if (known.empty() || static_cast<std::int8_t>(known[0]) != kTestEnd) {
                return {};
            }
            test_->waiting = Waiting::kResults;
            return {state(kExchangeResults)};
        case Waiting::kResults:
            return client_results(known, total, now_ns);
        default:
            return {};
    }
}

std::optional<std::string> Iperf3Server::text(BytesView known, std::uint64_t total) {
    append(test_->pending, known);
    test_->skip += total - known.size();
    const std::optional<std::uint64_t> length = be(test_->pending, 0, kLength);
    if (!length || test_->pending.size() + test_->skip < kLength + *length) {
        if (test_->pending.size() > kLongestText) {
            test_->pending.clear();
        }
        return std::nullopt;
    }
    std::string whole(as_text(BytesView(test_->pending).subspan(kLength)));
    test_->pending.clear();
    test_->skip = 0;
    return whole;
}

std::vector<TcpMessage> Iperf3Server::parameters(BytesView known, std::uint64_t total) {
    const std::optional<std::string> json = text(known, total);
    if (!json) {
        return {};
    }
    const std::uint64_t parallel = number_in(*json, "parallel").value_or(1);
    const bool upload = json->find("\"tcp\":true") != std::string::npos &&
                        json->find("\"reverse\":") == std::string::npos &&
                        json->find("\"bidirectional\":") == std::string::npos;
    if (!upload || parallel == 0 || parallel > kMostStreams) {
        return {state(kAccessDenied)};
    }
    test_->parallel = static_cast<unsigned>(parallel);
    test_->waiting = Waiting::kStreams;
    return {state(kCreateStreams)};
}

Bytes Iperf3Server::results(std::uint64_t now_ns) const {
    const double seconds = static_cast<double>(now_ns - test_->begin_ns) / 1e9;
    std::string json =
        R"({"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[)";
    for (std::size_t i = 0; i < test_->streams.size(); ++i) {
        // Ids as iperf_add_stream gives them: 1, 3, 4, 5.
        json += fmt::format(
            R"({}{{"id":{},"bytes":{},"retransmits":-1,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":{:.6f}}})",
            i == 0 ? "" : ",", i == 0 ? 1 : i + 2, test_->streams[i].bytes, seconds);
    }
    json += "]}";
    Bytes out;
    append_be(out, json.size(), kLength);
    append(out, std::as_bytes(std::span(json)));
    return out;
}

std::vector<TcpMessage> Iperf3Server::client_results(BytesView known, std::uint64_t total,
                                                     std::uint64_t now_ns) {
    if (!text(known, total)) {
        return {};
    }
    test_->waiting = Waiting::kDone;
    return {{test_->control, results(now_ns)}, state(kDisplayResults)};
}

}  // namespace ringside::lab
