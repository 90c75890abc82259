#include "tools/render/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "analyzers/base/units.h"

namespace ringside {

namespace {

constexpr std::array<std::string_view, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kAsciiBlocks{"_", ".", ":", "-", "=", "+", "*", "#"};

// Takes one code point off the front; nothing when the bytes are not UTF-8 (one byte is taken
// then).
std::optional<char32_t> take_code_point(std::string_view& text) {
    const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte_at(0);
    std::size_t length = 1;
    char32_t value = lead;
    char32_t smallest = 0;
    if (lead >= 0xf0 && lead <= 0xf4) {
        length = 4;
        value = lead & 0x07U;
        smallest = 0x10000;
    } else if (lead >= 0xe0 && lead < 0xf0) {
        length = 3;
        value = lead & 0x0fU;
        smallest = 0x800;
    } else if (lead >= 0xc2 && lead < 0xe0) {
        length = 2;
        value = lead & 0x1fU;
        smallest = 0x80;
    } else if (lead >= 0x80) {
        text.remove_prefix(1);
        return std::nullopt;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if (i >= text.size() || (byte_at(i) & 0xc0U) != 0x80) {
            text.remove_prefix(1);
            return std::nullopt;
        }
        value = (value << 6U) | (byte_at(i) & 0x3fU);
    }
    if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
        text.remove_prefix(1);
        return std::nullopt;
    }
    text.remove_prefix(length);
    return value;
}

bool is_harmless(char32_t c) {
    const bool control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    const bool separator = c == 0x2028 || c == 0x2029 || c == 0xfeff;
    const bool turns_text = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
                            c == 0x200e || c == 0x200f || c == 0x061c;
    return !control && !separator && !turns_text;
}

std::string_view ending_mark(const TextStyle& style) {
    return style.utf8 ? "…" : "~";
}

std::string pad(std::string_view cell, std::size_t width, Table::Align align) {
    const std::size_t has = text_width(cell);
    const std::string blanks(width > has ? width - has : 0, ' ');
    return align == Table::Align::kLeft ? std::string(cell) + blanks : blanks + std::string(cell);
}

void trim_right(std::string& line) {
    const auto last = line.find_last_not_of(' ');
    line.resize(last == std::string::npos ? 0 : last + 1);
}

}  // namespace

bool names_utf8(std::string_view lc_all, std::string_view lc_ctype, std::string_view lang) {
    for (const std::string_view name : {lc_all, lc_ctype, lang}) {
        if (name.empty()) {
            continue;
        }
        std::string lower(name);
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
        return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
    }
    return false;
}

TextStyle text_style(const GlobalOptions& global) {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string_view(value == nullptr ? "" : value);
    };
    TextStyle style;
    style.color = global.color;
    style.utf8 = names_utf8(variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG"));
    return style;
}

std::string printable(std::string_view text, const TextStyle& style) {
    std::string result;
    while (!text.empty()) {
        const std::string_view before = text;
        const std::optional<char32_t> point = take_code_point(text);
        if (point && is_harmless(*point) && (style.utf8 || *point < 0x80)) {
            result += before.substr(0, before.size() - text.size());
        } else {
            result += '?';
        }
    }
    return result;
}

std::string plural(std::uint64_t count, std::string_view thing) {
    return format_count(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

std::size_t text_width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
    }));
}

std::string fit(std::string_view text, std::size_t width, const TextStyle& style) {
    if (text_width(text) <= width) {
        return std::string(text);
    }
    std::string result;
    std::size_t used = 0;
    while (!text.empty() && used + 1 < width) {
        const std::string_view before = text;
        (void)take_code_point(text);
        result += before.substr(0, before.size() - text.size());
        ++used;
    }
    return width == 0 ? result : result + std::string(ending_mark(style));
}

std::string wrap(std::string_view first, std::string_view text, std::size_t indent,
                 const TextStyle& style) {
    std::string result;
    std::string line(first);
    bool fresh = true;  // no word on this line yet
    while (!text.empty()) {
        const std::size_t begin = text.find_first_not_of(' ');
        if (begin == std::string_view::npos) {
            break;
        }
        text.remove_prefix(begin);
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        if (!fresh && text_width(line) + 1 + text_width(word) > style.width) {
            result += fit(line, style.width, style) + "\n";
            line.assign(indent, ' ');
            fresh = true;
        }
        line += (fresh ? "" : " ") + std::string(word);
        fresh = false;
    }
    line = fit(line, style.width, style);
    trim_right(line);
    return result + line + "\n";
}

std::string paint(std::string_view text, Paint color, const TextStyle& style) {
    if (!style.color || color == Paint::kPlain) {
        return std::string(text);
    }
    const char* const code = color == Paint::kHeading   ? "1"
                             : color == Paint::kWarning ? "33"
                                                        : "31";
    return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

std::string sparkline(std::span<const std::optional<double>> values, double max, std::size_t width,
                      const TextStyle& style) {
    const auto& blocks = style.utf8 ? kBlocks : kAsciiBlocks;
    const std::size_t columns = std::min(width, values.size());
    std::string result;
    for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t begin = column * values.size() / columns;
        const std::size_t end = (column + 1) * values.size() / columns;
        double sum = 0;
        std::size_t count = 0;
        for (const std::optional<double>& value : values.subspan(begin, end - begin)) {
            if (value && std::isfinite(*value)) {
                sum += *value;
                ++count;
            }
        }
        if (count == 0) {
            result += ' ';
            continue;
        }
        const double height = max > 0 ? sum / static_cast<double>(count) / max : 0;
        const auto block = static_cast<std::size_t>(std::clamp(height, 0.0, 1.0) * 7 + 0.5);
        result += blocks[std::min<std::size_t>(block, 7)];
    }
    return result;
}

void Table::column(std::string header, Align align) {
    headers_.push_back(std::move(header));
    aligns_.push_back(align);
}

void Table::row(std::vector<std::string> cells) {
    cells.resize(headers_.size());
    rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t indent, const TextStyle& style) const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < headers_.size(); ++i) {
        std::size_t width = text_width(headers_[i]);
        for (const auto& cells : rows_) {
            width = std::max(width, text_width(cells[i]));
        }
        widths.push_back(width);
    }
    std::string result;
    const auto add_line = [&](const std::vector<std::string>& cells) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < cells.size(); ++i) {
            line += (i == 0 ? "" : "  ") + pad(cells[i], widths[i], aligns_[i]);
        }
        trim_right(line);
        result += fit(line, style.width, style) + "\n";
    };
    add_line(headers_);
    for (const auto& cells : rows_) {
        add_line(cells);
    }
    return result;
}

}  // namespace ringside
