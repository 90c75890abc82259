#include "analyzers/base/duration.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "analyzers/base/units.h"

namespace ringside {

namespace {

struct Unit {
    std::string_view name;
    std::uint64_t ns;
};
constexpr std::array kUnits{
    Unit{"ns", 1},           Unit{"us", kNsPerUs},         Unit{"ms", kNsPerMs},
    Unit{"s", kNsPerSecond}, Unit{"m", 60 * kNsPerSecond}, Unit{"h", 3600 * kNsPerSecond}};

tl::unexpected<Error> refuse(std::string_view text, const char* why) {
    // Whatever was typed is repeated, but not at any length.
    return fail(Error(ErrorCode::kUsage,
                      "'" + std::string(text.substr(0, 40)) + "' is not a duration: " + why)
                    .hint("write a number and a unit, for example 30s, 200ms, 1.5s, 2m or 1h"));
}

// sum += digits * unit, false when that does not fit.
bool add_scaled(std::uint64_t& sum, std::uint64_t number, std::uint64_t unit) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    if (unit != 0 && number > (kMax - sum) / unit) {
        return false;
    }
    sum += number * unit;
    return true;
}

}  // namespace

Result<std::uint64_t> parse_duration_ns(std::string_view text) {
    const std::string_view number = text.substr(0, text.find_first_not_of("0123456789."));
    const std::string_view unit_name = text.substr(number.size());
    const std::size_t dot = number.find('.');
    const std::string_view whole = number.substr(0, dot);
    const std::string_view decimals =
        dot == std::string_view::npos ? std::string_view() : number.substr(dot + 1);

    if (whole.empty() || (dot != std::string_view::npos && decimals.empty()) ||
        decimals.find('.') != std::string_view::npos) {
        return refuse(text, "no number");
    }
    const bool zero = number.find_first_not_of("0.") == std::string_view::npos;
    if (unit_name.empty()) {
        if (zero) {
            return 0;
        }
        return refuse(text, "the unit is missing");
    }
    const auto* const unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& candidate) {
        return candidate.name == unit_name;
    });
    if (unit == kUnits.end()) {
        return refuse(text, "the units are ns, us, ms, s, m and h");
    }

    std::uint64_t count = 0;
    for (const char c : whole) {
        if (count > std::numeric_limits<std::uint64_t>::max() / 10) {
            return refuse(text, "too long");
        }
        count *= 10;
        if (!add_scaled(count, static_cast<std::uint64_t>(c - '0'), 1)) {
            return refuse(text, "too long");
        }
    }
    std::uint64_t ns = 0;
    if (!add_scaled(ns, count, unit->ns)) {
        return refuse(text, "too long");
    }
    std::uint64_t step = unit->ns;
    for (const char c : decimals) {
        // Minutes and hours do not divide by ten for ever: 60e9 has ten factors of ten, 1 ns none.
        const bool exact = step % 10 == 0;
        step /= 10;
        if (c != '0' && (step == 0 || !exact)) {
            return refuse(text, "finer than 1 ns");
        }
        if (!add_scaled(ns, static_cast<std::uint64_t>(c - '0'), step)) {
            return refuse(text, "too long");
        }
    }
    return ns;
}

}  // namespace ringside
