#include "tests/lab/models/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "analyzers/base/units.h"

namespace ringside::lab {
namespace {

struct KnobRule {
    std::string_view name;
    Knob knob;
    std::int64_t least;
    std::int64_t most;
    bool per_queue;
};

constexpr std::int64_t kHourUs = 3'600'000'000;
constexpr std::int64_t kCount = 1'000'000'000;

// No value (stat) is least == most == 0; a mark has text instead.
constexpr std::array<KnobRule, 14> kKnobs{{
    {"delay", Knob::kDelay, 0, kHourUs, true},
    {"rate", Knob::kRate, 0, 1'000'000'000, false},
    {"dropirq", Knob::kDropIrq, 0, kCount, true},
    {"loseirq", Knob::kLoseIrq, 0, kCount, false},
    {"neverdone", Knob::kNeverDone, 0, kCount, true},
    {"stall", Knob::kStall, 0, 1, true},
    {"pause", Knob::kPause, 0, 1, false},
    {"link", Knob::kLink, 0, 1, false},
    {"rtt", Knob::kRtt, 0, kHourUs, false},
    {"sched", Knob::kSched, -1, 3, false},
    {"tbu", Knob::kTbu, 0, 1, false},
    {"stat", Knob::kStat, 0, 0, false},
    {"trace", Knob::kTrace, 0, 1, false},
    {"mark", Knob::kMark, 0, 0, false},
}};

std::string knob_names() {
    std::string names;
    for (const KnobRule& rule : kKnobs) {
        names += (names.empty() ? "" : ", ") + std::string(rule.name);
    }
    return names;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (!line.empty()) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) {
            break;
        }
        const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        words.push_back(line.substr(begin, end - begin));
        line.remove_prefix(end);
    }
    return words;
}

std::optional<std::int64_t> number_of(std::string_view word) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size()) {
        return std::nullopt;
    }
    return number;
}

Result<Command> parse_value(const KnobRule& rule, const std::vector<std::string_view>& words) {
    const std::size_t most_words = rule.per_queue ? 3 : 2;
    if (words.size() < 2 || words.size() > most_words) {
        return fail(ErrorCode::kUsage, fmt::format("'{}' takes one value{}", rule.name,
                                                   rule.per_queue ? " and a queue" : ""));
    }
    const std::optional<std::int64_t> value = number_of(words[1]);
    if (!value || *value < rule.least || *value > rule.most) {
        return fail(ErrorCode::kUsage, fmt::format("'{} {}': not from {} to {}", rule.name,
                                                   words[1], rule.least, rule.most));
    }
    Command command{.knob = rule.knob, .value = *value, .queue = {}, .text = {}};
    if (words.size() == 3) {
        const std::optional<std::int64_t> queue = number_of(words[2]);
        if (!queue || *queue < 0 || *queue >= kMaxQueues) {
            return fail(ErrorCode::kUsage, fmt::format("there is no queue '{}'", words[2]));
        }
        command.queue = static_cast<unsigned>(*queue);
    }
    return command;
}

}  // namespace

Result<Command> parse_command(std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) {
        return fail(ErrorCode::kUsage, "an empty line is no command");
    }
    const auto* rule = std::find_if(kKnobs.begin(), kKnobs.end(), [&](const KnobRule& candidate) {
        return candidate.name == words[0];
    });
    if (rule == kKnobs.end()) {
        return fail(Error(ErrorCode::kUsage, fmt::format("there is no knob '{}'", words[0]))
                        .hint("knobs: " + knob_names()));
    }
    if (rule->knob == Knob::kMark) {
        const auto after =
            static_cast<std::size_t>(words[0].data() + words[0].size() - line.data());
        std::string_view text = line.substr(after);
        text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
        return Command{.knob = rule->knob, .value = 0, .queue = {}, .text = std::string(text)};
    }
    if (rule->least == rule->most) {
        if (words.size() != 1) {
            return fail(ErrorCode::kUsage, fmt::format("'{}' takes no value", rule->name));
        }
        return Command{.knob = rule->knob, .value = 0, .queue = {}, .text = {}};
    }
    return parse_value(*rule, words);
}

void Faults::apply_to_queue(QueueFaults& queue, Knob knob, std::uint64_t value) {
    switch (knob) {
        case Knob::kDelay:
            queue.delay_ns = value * kNsPerUs;
            break;
        case Knob::kDropIrq:
            queue.events_to_drop = value;
            break;
        case Knob::kNeverDone:
            queue.frames_never_done = value;
            break;
        case Knob::kStall:
            queue.stalled = value != 0;
            break;
        default:
            break;
    }
}

void Faults::apply(const Command& command) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(command.value, 0));
    for (unsigned q = 0; q < kMaxQueues; ++q) {
        if (!command.queue || *command.queue == q) {
            apply_to_queue(queues_.at(q), command.knob, value);
        }
    }
    switch (command.knob) {
        case Knob::kRate:
            rate_kbps_ = value;
            break;
        case Knob::kLoseIrq:
            messages_to_lose_ = value;
            break;
        case Knob::kPause:
            paused_ = value != 0;
            break;
        case Knob::kLink:
            link_ = value != 0;
            break;
        case Knob::kRtt:
            rtt_ns_ = value * kNsPerUs;
            break;
        case Knob::kSched:
            scheduler_ = command.value < 0 ? std::nullopt
                                           : std::optional(static_cast<unsigned>(command.value));
            break;
        case Knob::kTbu:
            tbu_ = value != 0;
            break;
        case Knob::kTrace:
            trace_ = value != 0;
            break;
        default:
            break;
    }
}

std::uint64_t Faults::wire_ns(std::uint64_t bytes, std::uint64_t segments) const {
    if (rate_kbps_ == 0) {
        return 0;
    }
    constexpr std::uint64_t kShortest = 60;       // a shorter frame is padded
    constexpr std::uint64_t kOverhead = 24;       // FCS, preamble and gap
    constexpr std::uint64_t kBitsNs = 8'000'000;  // ns in 8 bits at 1 kb/s
    return (std::max(bytes, kShortest * segments) + kOverhead * segments) * kBitsNs / rate_kbps_;
}

}  // namespace ringside::lab
