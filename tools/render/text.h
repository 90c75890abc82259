// Small helpers for text on a terminal or in a mail: at most 80 columns, readable without colour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command.h"

namespace ringside {

// What the output can show.
struct TextStyle {
    bool color = false;
    bool utf8 = true;  // false: ASCII only
    std::size_t width = 80;
};

// By the environment (LC_ALL, LC_CTYPE, LANG) and the global options.
TextStyle text_style(const GlobalOptions& global);
// The first of the three that is not empty decides, as in setlocale(3).
bool names_utf8(std::string_view lc_all, std::string_view lc_ctype, std::string_view lang);

// A foreign string (names, facts, arguments) made harmless: control characters, escape sequences,
// invalid UTF-8 and marks that turn the direction of text become '?'; without UTF-8 so does all
// that is not ASCII.
std::string printable(std::string_view text, const TextStyle& style);

// "1 packet", "1,234 packets".
std::string plural(std::uint64_t count, std::string_view thing);

// Code points; UTF-8 that printable() let through. Wide characters count as one.
std::size_t text_width(std::string_view text);
// Cut to `width` code points, the last of them a mark that something is missing.
std::string fit(std::string_view text, std::size_t width, const TextStyle& style);
// `first` and then the words of `text`; later lines begin with as many blanks as `indent`. Ends
// with a newline. A word that is longer than a line is cut.
std::string wrap(std::string_view first, std::string_view text, std::size_t indent,
                 const TextStyle& style);

enum class Paint { kPlain, kHeading, kWarning, kFinding };
// With ANSI colours when the style has them, else as it is. For text that is printable already.
std::string paint(std::string_view text, Paint color, const TextStyle& style);

// Values over time as blocks between 0 and `max`, in at most `width` columns; each column is the
// average of the values that fall into it, blank when all of them are absent.
std::string sparkline(std::span<const std::optional<double>> values, double max, std::size_t width,
                      const TextStyle& style);

// Columns, right-aligned but for those that ask otherwise; two blanks between them.
class Table {
  public:
    enum class Align { kLeft, kRight };
    void column(std::string header, Align align = Align::kRight);
    // As many cells as columns; missing ones are empty, more are left out.
    void row(std::vector<std::string> cells);
    // Each line begins with `indent` blanks and is cut to the width of the style.
    [[nodiscard]] std::string text(std::size_t indent, const TextStyle& style) const;

  private:
    std::vector<std::string> headers_;
    std::vector<Align> aligns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace ringside
