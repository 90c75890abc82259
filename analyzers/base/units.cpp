#include "analyzers/base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

namespace ringside {

namespace {

struct Scale {
    double factor;
    const char* unit;
};

// Largest first; the last row takes everything smaller.
constexpr std::array kRates{Scale{1e9, "Gb/s"}, Scale{1e6, "Mb/s"}, Scale{1e3, "kb/s"},
                            Scale{1, "b/s"}};
constexpr std::array kTimes{Scale{1e9, "s"}, Scale{1e6, "ms"}, Scale{1e3, "us"}, Scale{1, "ns"}};
constexpr std::array kBytes{Scale{1e9, "GB"}, Scale{1e6, "MB"}, Scale{1e3, "kB"}, Scale{1, "B"}};
constexpr std::array kShort{Scale{1e9, "G"}, Scale{1e6, "M"}, Scale{1e3, "k"}, Scale{1, ""}};

const Scale& scale_of(double value, std::span<const Scale> scales) {
    for (const Scale& scale : scales) {
        // 0.9995 and not 1: what would be printed as "1000 us" is printed as "1.00 ms".
        if (std::abs(value) >= 0.9995 * scale.factor) {
            return scale;
        }
    }
    return scales.back();
}

int decimals_of(double scaled) {
    if (scaled == 0 || std::abs(scaled) >= 99.95) {
        return 0;
    }
    return std::abs(scaled) >= 9.995 ? 1 : 2;
}

std::string scaled(double value, std::span<const Scale> scales, const char* gap) {
    const Scale& scale = scale_of(value, scales);
    const double number = value / scale.factor;
    const int decimals =
        scale.factor == 1 && number == std::floor(number) ? 0 : decimals_of(number);
    return fmt::format("{:.{}f}{}{}", number, decimals, gap, scale.unit);
}

}  // namespace

std::string format_rate_bps(double bits_per_second) {
    const Scale& scale = scale_of(bits_per_second, kRates);
    return fmt::format("{:.{}f} {}", bits_per_second / scale.factor, scale.factor == 1 ? 0 : 1,
                       scale.unit);
}

std::string format_ns(double ns) {
    return scaled(ns, kTimes, " ");
}

std::string format_bytes(double bytes) {
    return scaled(bytes, kBytes, " ");
}

std::string format_count(std::uint64_t count) {
    const std::string digits = std::to_string(count);
    std::string grouped;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) {
            grouped += ',';
        }
        grouped += digits[i];
    }
    return grouped;
}

std::string format_short(double count) {
    return scaled(count, kShort, "");
}

std::string format_share(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

}  // namespace ringside
