#include "analyzers/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ringside {

namespace {

constexpr std::uint32_t kOctaveBuckets = 1U << kHistogramSubBits;
constexpr std::uint32_t kLastBucket = kHistogramBuckets - 1;

// Counts may come from a foreign file: a sum that wraps would turn a huge histogram into an empty
// one.
std::uint64_t add_saturated(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t sum = a + b;
    return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

}  // namespace

double Histogram::lower_bound_ns(std::uint32_t bucket) {
    if (bucket == 0) {
        return 0;
    }
    if (bucket >= kLastBucket) {
        // The last bucket is open; it is drawn one octave wide.
        const unsigned shift = bucket == kLastBucket ? kHistogramMaxShift : kHistogramMaxShift + 1;
        return static_cast<double>(std::uint64_t{1} << shift);
    }
    const std::uint32_t octave = (bucket - 1) / kOctaveBuckets;
    const std::uint32_t part = (bucket - 1) % kOctaveBuckets;
    const unsigned shift = octave + kHistogramMinShift - kHistogramSubBits;
    return static_cast<double>(std::uint64_t{kOctaveBuckets + part} << shift);
}

std::uint32_t Histogram::bucket_of(std::uint64_t ns) {
    if (ns < (std::uint64_t{1} << kHistogramMinShift)) {
        return 0;
    }
    if (ns >= (std::uint64_t{1} << kHistogramMaxShift)) {
        return kLastBucket;
    }
    const unsigned log2 = static_cast<unsigned>(std::bit_width(ns)) - 1;
    const auto top_bits = static_cast<std::uint32_t>(ns >> (log2 - kHistogramSubBits));
    return 1 + ((log2 - kHistogramMinShift) << kHistogramSubBits) + (top_bits - kOctaveBuckets);
}

void Histogram::add(const SparseHistogram& other) {
    for (const auto& [bucket, count] : other) {
        add_bucket(bucket, count);
    }
}

void Histogram::add_bucket(std::uint32_t bucket, std::uint64_t count) {
    if (bucket >= counts_.size()) {
        return;
    }
    counts_[bucket] = add_saturated(counts_[bucket], count);
    total_ = add_saturated(total_, count);
}

double Histogram::quantile_ns(double share) const {
    if (total_ == 0) {
        return 0;
    }
    // The negation also catches NaN.
    const double wanted = !(share > 0) ? 0 : std::min(share, 1.0) * static_cast<double>(total_);
    double below = 0;
    double upper = 0;
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
        const auto here = static_cast<double>(counts_[bucket]);
        if (here == 0) {
            continue;
        }
        const double lower = lower_bound_ns(bucket);
        upper = lower_bound_ns(bucket + 1);
        if (below + here >= wanted) {
            return lower + (upper - lower) * (wanted - below) / here;
        }
        below += here;
    }
    return upper;  // only reached when the sums have lost digits or are saturated
}

double Histogram::mean_ns() const {
    double sum = 0;
    double samples = 0;
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
        const auto here = static_cast<double>(counts_[bucket]);
        sum += here * (lower_bound_ns(bucket) + lower_bound_ns(bucket + 1)) / 2;
        samples += here;
    }
    return samples > 0 ? sum / samples : 0;
}

std::vector<double> Histogram::log_bins(double from_ns, double to_ns, std::size_t bins) const {
    std::vector<double> result(bins);
    if (bins == 0 || !(from_ns > 0) || !(to_ns > from_ns) || !std::isfinite(to_ns)) {
        return result;
    }
    const double bins_per_log = static_cast<double>(bins) / std::log(to_ns / from_ns);
    const auto position = [&](double ns) { return std::log(ns / from_ns) * bins_per_log; };
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
        if (counts_[bucket] == 0) {
            continue;
        }
        const double upper = lower_bound_ns(bucket + 1);
        // Bucket 0 reaches down to 0, where a logarithm has no place: it is drawn one octave wide.
        const double first = position(bucket == 0 ? upper / 2 : lower_bound_ns(bucket));
        const double last = position(upper);
        const double density = static_cast<double>(counts_[bucket]) / (last - first);
        const double begin = std::max(first, 0.0);
        const double end = std::min(last, static_cast<double>(bins));
        for (double at = begin; at < end;) {
            const auto bin = std::min(static_cast<std::size_t>(at), bins - 1);
            const double next = std::min(static_cast<double>(bin + 1), end);
            result[bin] += density * (next - at);
            if (next <= at) {
                break;
            }
            at = next;
        }
    }
    return result;
}

}  // namespace ringside
