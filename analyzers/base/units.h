// Quantities as text. SI for rates, us/ms/s for times, IEC for memory: one place for the form.
#pragma once

#include <cstdint>
#include <string>

namespace ringside {

constexpr std::uint64_t kNsPerUs = 1'000;
constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// 544'600'000 -> "544.6 Mb/s"; 812 -> "812 b/s".
std::string format_rate_bps(double bits_per_second);
// 4'900'000 -> "4.9 ms"; three significant digits, unit by size from ns to s.
std::string format_ns(double ns);
// 340'000 -> "340 kB" (SI, as rates are): bytes in flight are read against rates.
std::string format_bytes(double bytes);
// 1'352'311 -> "1,352,311".
std::string format_count(std::uint64_t count);
// 45'100 -> "45.1k": for narrow columns.
std::string format_short(double count);
// 0.123 -> "12.3 %".
std::string format_share(double share);

}  // namespace ringside
