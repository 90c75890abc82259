#include "probes/host/irqs.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "probes/host/cpus.h"

namespace ringside {

namespace {

constexpr std::size_t kInterruptsLimit = 32u << 20;
// Far above what a host has; bounds the memory that a hostile text can cost.
constexpr std::size_t kMaxRows = 65'536;
constexpr std::string_view kBlank = " \t\r";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_label(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    });
}

// Reads a text token by token, and knows how many blanks came before each.
class Tokens {
  public:
    explicit Tokens(std::string_view text) : rest_(text) { skip(); }

    [[nodiscard]] std::string_view peek() const {
        return rest_.substr(0, std::min(rest_.find_first_of(kBlank), rest_.size()));
    }
    std::string_view next() {
        const std::string_view token = peek();
        rest_.remove_prefix(token.size());
        skip();
        return token;
    }
    [[nodiscard]] std::size_t blanks_before() const { return blanks_; }
    // All that is left, without blanks at its ends.
    [[nodiscard]] std::string_view rest() const {
        const auto last = rest_.find_last_not_of(kBlank);
        return last == std::string_view::npos ? std::string_view() : rest_.substr(0, last + 1);
    }
    [[nodiscard]] bool empty() const { return rest_.empty(); }

  private:
    void skip() {
        blanks_ = std::min(rest_.find_first_not_of(kBlank), rest_.size());
        rest_.remove_prefix(blanks_);
    }

    std::string_view rest_;
    std::size_t blanks_ = 0;
};

// "<7>", "[ 12.345678]", "[T123]" in front of a line that was pasted out of a kernel log.
std::string_view without_log_prefix(std::string_view line) {
    for (;;) {
        const auto start = line.find_first_not_of(kBlank);
        if (start == std::string_view::npos || (line[start] != '[' && line[start] != '<')) {
            return line;
        }
        const auto end = line.find(line[start] == '[' ? ']' : '>', start);
        if (end == std::string_view::npos) {
            return line;
        }
        line.remove_prefix(end + 1);
    }
}

std::optional<unsigned> cpu_of(std::string_view token) {
    if (!token.starts_with("CPU") || !is_number(token.substr(3))) {
        return std::nullopt;
    }
    unsigned cpu = 0;
    const auto result = std::from_chars(token.data() + 3, token.data() + token.size(), cpu);
    return result.ec == std::errc() ? std::optional(cpu) : std::nullopt;
}

// The CPUs of a header line; empty when it is not one.
std::vector<unsigned> parse_header(std::string_view line) {
    std::vector<unsigned> cpus;
    for (Tokens tokens(line); !tokens.empty();) {
        const auto cpu = cpu_of(tokens.next());
        if (!cpu) {
            return {};
        }
        cpus.push_back(*cpu);
    }
    return cpus;
}

std::uint64_t count_of(std::string_view token) {
    std::uint64_t count = 0;
    const auto result = std::from_chars(token.data(), token.data() + token.size(), count);
    return result.ec == std::errc() ? count : std::numeric_limits<std::uint64_t>::max();
}

bool is_level(std::string_view token) {
    return token.starts_with("Level") || token.starts_with("Edge");
}

// "524288", "2-edge": the number, with the flow handler's name behind it on x86.
bool is_hwirq(std::string_view token) {
    const std::string_view digits = token.substr(0, token.find('-'));
    return is_number(digits);
}

// The chip's name is one token mostly; "MIPS GIC" is two, with one blank, and no number or trigger
// can be the second.
std::string parse_chip(Tokens& tokens) {
    std::string chip(tokens.next());
    while (!tokens.empty() && tokens.blanks_before() == 1 && !is_hwirq(tokens.peek()) &&
           !tokens.peek().starts_with('-') && !is_level(tokens.peek())) {
        chip += ' ';
        chip += tokens.next();
    }
    return chip;
}

// "Level", "Edge   -fasteoi", "-msi-x", or what followed the number in "2-edge".
std::string parse_trigger(Tokens& tokens, std::string_view behind_hwirq) {
    std::string trigger(behind_hwirq);
    if (is_level(tokens.peek())) {
        trigger = tokens.next();
    }
    if (tokens.peek().size() > 1 && tokens.peek().front() == '-') {
        const std::string_view flow = tokens.next();
        trigger += trigger.empty() ? flow.substr(1) : flow;
    }
    return trigger;
}

std::vector<std::string> split_names(std::string_view text) {
    std::vector<std::string> names;
    while (!text.empty()) {
        const auto comma = text.find(", ");
        const std::string_view name = Tokens(text.substr(0, comma)).rest();
        if (!name.empty()) {
            names.emplace_back(name);
        }
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 2);
    }
    return names;
}

// The number of a row; "NMI" and numbers that do not fit have none.
std::optional<unsigned> irq_number(std::string_view label) {
    unsigned number = 0;
    const auto result = std::from_chars(label.data(), label.data() + label.size(), number);
    const bool whole = result.ec == std::errc() && result.ptr == label.data() + label.size();
    return whole ? std::optional(number) : std::nullopt;
}

IrqLine parse_row(std::string_view label, std::string_view text, std::size_t num_cpus) {
    IrqLine row;
    row.label = label;
    row.number = irq_number(label);
    Tokens tokens(text);
    while (is_number(tokens.peek())) {
        const std::string_view count = tokens.next();
        // More numbers than CPUs: one came online while the file was written.
        if (num_cpus == 0 || row.counts.size() < num_cpus) {
            row.counts.push_back(count_of(count));
        }
    }
    if (!row.number) {
        row.description = tokens.rest();
        return row;
    }
    if (tokens.empty()) {
        return row;
    }
    row.chip = parse_chip(tokens);
    std::string_view behind_hwirq;
    if (is_hwirq(tokens.peek())) {
        const std::string_view token = tokens.next();
        const std::string_view digits = token.substr(0, token.find('-'));
        row.hwirq = digits;
        behind_hwirq = token.substr(std::min(token.size(), digits.size() + 1));
    }
    row.trigger = parse_trigger(tokens, behind_hwirq);
    row.names = split_names(tokens.rest());
    return row;
}

// Puts wrapped rows together again and hands whole ones on.
class Rows {
  public:
    Interrupts take() {
        flush();
        return std::move(result_);
    }

    void line(std::string_view text) {
        text = without_log_prefix(text);
        const std::string_view first = Tokens(text).peek();
        if (const auto cpus = parse_header(text); !cpus.empty()) {
            take_header(cpus);
        } else if (first.ends_with(':') && is_label(first.substr(0, first.size() - 1))) {
            flush();
            label_ = first.substr(0, first.size() - 1);
            state_ = irq_number(label_) ? State::kCounts : State::kWhole;
            append(text.substr(text.find(':') + 1));
        } else if (state_ != State::kWhole && !first.empty()) {
            append(text);
        } else {
            flush();
        }
    }

  private:
    // What a line that does not begin with a label can be the rest of.
    enum class State {
        kCounts,  // a row that has nothing but counts so far
        kTail,    // a row with a chip, but no name yet
        kWhole,   // a row that has all, or no row
    };

    // A row whose tail still has no name after so many lines has none: what follows is not part of
    // it.
    static constexpr int kMaxTailLines = 3;

    // Headers follow each other when they were wrapped. One behind rows begins another file.
    void take_header(const std::vector<unsigned>& cpus) {
        flush();
        if (!result_.lines.empty()) {
            return;
        }
        if (!result_.cpus.empty() && cpus.front() <= result_.cpus.back()) {
            result_.cpus.clear();
        }
        result_.cpus.insert(result_.cpus.end(), cpus.begin(), cpus.end());
    }

    // Looks at the new text only as long as there are counts: a row of any length costs its length.
    void append(std::string_view text) {
        text_ += ' ';
        text_ += text;
        if (state_ == State::kCounts) {
            Tokens tokens(text);
            while (is_number(tokens.peek())) {
                tokens.next();
            }
            if (tokens.empty()) {
                return;
            }
            state_ = State::kTail;
        }
        const bool named =
            state_ == State::kTail && !parse_row(label_, text_, result_.cpus.size()).names.empty();
        if (named || ++tail_lines_ == kMaxTailLines) {
            state_ = State::kWhole;
        }
    }

    void flush() {
        if (!label_.empty() && result_.lines.size() < kMaxRows) {
            result_.lines.push_back(parse_row(label_, text_, result_.cpus.size()));
        }
        label_.clear();
        text_.clear();
        state_ = State::kWhole;
        tail_lines_ = 0;
    }

    Interrupts result_;
    std::string label_;
    std::string text_;
    State state_ = State::kWhole;
    int tail_lines_ = 0;
};

// Whether `text` begins with `name` as a whole: what may follow are the separators of driver names.
bool begins_with_token(std::string_view text, std::string_view name) {
    constexpr std::string_view kSeparators = "-:_.@/ ";
    return !name.empty() && text.starts_with(name) &&
           (text.size() == name.size() ||
            kSeparators.find(text[name.size()]) != std::string_view::npos);
}

// The same anywhere in `text`, behind a separator.
bool has_token(std::string_view text, std::string_view name) {
    constexpr std::string_view kBefore = "-:@/ ";
    for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
        if ((at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos) &&
            begins_with_token(text.substr(at), name)) {
            return true;
        }
    }
    return false;
}

// What sysfs tells about the device behind an interface.
struct DeviceIrqs {
    std::string device;  // "0000:01:00.0", "virtio2", "fe1c0000.ethernet"; may be empty
    std::string driver;
    std::set<unsigned> msi;
    std::optional<unsigned> legacy;
};

DeviceIrqs device_irqs(std::string_view interface, const Sysroot& root) {
    const std::string folder = "/sys/class/net/" + std::string(interface) + "/device";
    DeviceIrqs found;
    found.device = root.link_name(folder).value_or("");
    found.driver = root.link_name(folder + "/driver").value_or("");
    // The vectors of a virtio device are its parent's. Of other devices the parent is a bridge,
    // with interrupts of its own.
    const std::string owner = found.device.starts_with("virtio") ? folder + "/.." : folder;
    for (const std::string& name : root.list(owner + "/msi_irqs")) {
        if (const auto number = irq_number(name)) {
            found.msi.insert(*number);
        }
    }
    // 0 and 255 are PCI's ways to say that no line is connected.
    const auto legacy = root.read_int(owner + "/irq");
    if (legacy && *legacy > 0 && *legacy != 255 && *legacy <= std::numeric_limits<int>::max()) {
        found.legacy = static_cast<unsigned>(*legacy);
    }
    return found;
}

bool is_of_device(const IrqLine& line, const DeviceIrqs& device) {
    if (line.number && device.msi.count(*line.number) != 0) {
        return true;
    }
    // Since Linux 6.2 the chip of a PCI vector carries the device's address.
    return !device.device.empty() &&
           (line.chip.ends_with("-" + device.device) ||
            std::any_of(line.names.begin(), line.names.end(),
                        [&](const std::string& name) { return has_token(name, device.device); }));
}

}  // namespace

bool irq_name_is_of(std::string_view irq_name, std::string_view interface,
                    const std::vector<std::string>& others, std::string_view driver) {
    if (begins_with_token(irq_name, driver) && irq_name.size() > driver.size() + 1 &&
        !begins_with_token(irq_name, interface)) {
        irq_name.remove_prefix(driver.size() + 1);
    }
    return begins_with_token(irq_name, interface) &&
           std::none_of(others.begin(), others.end(), [&](const std::string& other) {
               return other.size() > interface.size() && begins_with_token(irq_name, other);
           });
}

std::vector<IrqLine> interface_irqs(const Interrupts& interrupts, std::string_view interface,
                                    const Sysroot& root) {
    const DeviceIrqs device = device_irqs(interface, root);
    const std::vector<std::string> all = root.list("/sys/class/net");
    const auto names = [&](const IrqLine& line, std::string_view name) {
        return std::any_of(line.names.begin(), line.names.end(), [&](const std::string& irq_name) {
            return irq_name_is_of(irq_name, name, all, device.driver);
        });
    };
    const auto names_another = [&](const IrqLine& line) {
        return std::any_of(all.begin(), all.end(), [&](const std::string& other) {
            return other != interface && names(line, other);
        });
    };
    std::vector<IrqLine> found;
    std::vector<IrqLine> legacy;
    for (const IrqLine& line : interrupts.lines) {
        if (!line.number) {
            continue;
        }
        if (names(line, interface) || (is_of_device(line, device) && !names_another(line))) {
            found.push_back(line);
        } else if (line.number == device.legacy && !line.names.empty()) {
            legacy.push_back(line);
        }
    }
    return found.empty() ? legacy : found;
}

IrqAffinity irq_affinity(unsigned number, const Sysroot& root) {
    const std::string folder = "/proc/irq/" + std::to_string(number);
    const auto read = [&](const char* file) -> Result<std::string> {
        const auto line = root.read_line(folder + file);
        if (!line) {
            return fail(line.error());
        }
        const auto cpus = parse_cpu_list(*line);
        if (!cpus) {
            return fail(cpus.error());
        }
        return format_cpu_list(*cpus);
    };
    return {read("/smp_affinity_list"), read("/effective_affinity_list")};
}

std::uint64_t IrqLine::total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts) {
        sum += count;
    }
    return sum;
}

Interrupts parse_interrupts(std::string_view text) {
    Rows rows;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        rows.line(line);
    }
    return rows.take();
}

Result<Interrupts> read_interrupts(const Sysroot& root) {
    const auto text = root.read("/proc/interrupts", kInterruptsLimit);
    if (!text) {
        return fail(text.error());
    }
    return parse_interrupts(*text);
}

}  // namespace ringside
