// Log-linear histogram of times: the user-space side of rs_hist_index() in probes/bpf/events.h.
// Bucket 0 holds everything below 512 ns, then 32 equal buckets an octave (a bucket is at most 3.2
// % of its lower bound wide), the last bucket everything from 2^34 ns (17.2 s) on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace ringside {

constexpr unsigned kHistogramMinShift = 9;
constexpr unsigned kHistogramMaxShift = 34;
constexpr unsigned kHistogramSubBits = 5;
constexpr std::uint32_t kHistogramBuckets =
    2 + ((kHistogramMaxShift - kHistogramMinShift) << kHistogramSubBits);

// Only buckets that hold something, in ascending order of bucket.
using SparseHistogram = std::vector<std::pair<std::uint16_t, std::uint64_t>>;  // bucket, count

class Histogram {
  public:
    // Lowest value of a bucket, ns; bucket kHistogramBuckets gives the end of the scale.
    static double lower_bound_ns(std::uint32_t bucket);
    static std::uint32_t bucket_of(std::uint64_t ns);

    // Buckets outside the scale are ignored.
    void add(const SparseHistogram& other);
    void add_bucket(std::uint32_t bucket, std::uint64_t count);

    [[nodiscard]] std::uint64_t total() const { return total_; }
    [[nodiscard]] bool empty() const { return total_ == 0; }
    // Value below which `share` (0 to 1) of the samples lie, ns, interpolated inside its bucket; 0
    // when empty.
    [[nodiscard]] double quantile_ns(double share) const;
    // Mean from the middles of the buckets, ns: a check on the exact mean, not a replacement.
    [[nodiscard]] double mean_ns() const;
    [[nodiscard]] std::uint64_t count(std::uint32_t bucket) const {
        return bucket < counts_.size() ? counts_[bucket] : 0;
    }
    // Counts re-binned into `bins` equal parts of the logarithmic range [from_ns, to_ns), for
    // drawing.
    [[nodiscard]] std::vector<double> log_bins(double from_ns, double to_ns,
                                               std::size_t bins) const;

  private:
    std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(kHistogramBuckets);
    std::uint64_t total_ = 0;
};

}  // namespace ringside
