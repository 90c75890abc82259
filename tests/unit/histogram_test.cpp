#include "analyzers/histogram.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "probes/bpf/events.h"

namespace ringside {
namespace {

using testing::DoubleNear;
using testing::Each;

static_assert(kHistogramBuckets == RS_HIST_BUCKETS);
static_assert(kHistogramMinShift == RS_HIST_MIN_SHIFT);
static_assert(kHistogramMaxShift == RS_HIST_MAX_SHIFT);
static_assert(kHistogramSubBits == RS_HIST_SUB_BITS);

TEST(Histogram, IndexesAsTheBpfSideDoesAtEveryBucketEdge) {
    for (std::uint32_t bucket = 1; bucket < kHistogramBuckets; ++bucket) {
        const auto edge = static_cast<std::uint64_t>(Histogram::lower_bound_ns(bucket));
        EXPECT_EQ(rs_hist_index(edge - 1), bucket - 1) << edge;
        EXPECT_EQ(rs_hist_index(edge), bucket) << edge;
        for (const std::uint64_t ns : {edge - 1, edge, edge + 1}) {
            EXPECT_EQ(Histogram::bucket_of(ns), rs_hist_index(ns)) << ns;
        }
    }
}

TEST(Histogram, IndexesAsTheBpfSideDoesEverywhere) {
    std::mt19937_64 random(20'240'607);
    for (int i = 0; i < 1'000'000; ++i) {
        const std::uint64_t ns = random() >> (random() % 64);
        ASSERT_EQ(Histogram::bucket_of(ns), rs_hist_index(ns)) << ns;
    }
    for (const std::uint64_t ns : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
        EXPECT_EQ(Histogram::bucket_of(ns), rs_hist_index(ns)) << ns;
    }
}

TEST(Histogram, HoldsEachValueBetweenTheBoundsOfItsBucket) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 100'000; ++i) {
        const std::uint64_t ns = random() >> (30 + random() % 30);
        const std::uint32_t bucket = Histogram::bucket_of(ns);
        ASSERT_LE(Histogram::lower_bound_ns(bucket), static_cast<double>(ns));
        ASSERT_GT(Histogram::lower_bound_ns(bucket + 1), static_cast<double>(ns));
    }
}

TEST(Histogram, IsFineEnoughFromOneMicrosecondToTenSeconds) {
    const std::uint32_t first = Histogram::bucket_of(1'000);
    const std::uint32_t last = Histogram::bucket_of(10'000'000'000);
    for (std::uint32_t bucket = first; bucket <= last; ++bucket) {
        const double lower = Histogram::lower_bound_ns(bucket);
        EXPECT_LE(Histogram::lower_bound_ns(bucket + 1) - lower, 0.06 * lower) << lower;
    }
    // What the resolution is for: these two coalesce timers must be told apart.
    EXPECT_NE(Histogram::bucket_of(1'000'000), Histogram::bucket_of(1'060'000));
}

TEST(Histogram, EndsItsScaleAfterTheOpenBucket) {
    EXPECT_EQ(Histogram::lower_bound_ns(0), 0);
    EXPECT_EQ(Histogram::lower_bound_ns(1), 512);
    EXPECT_EQ(Histogram::lower_bound_ns(kHistogramBuckets - 1), std::ldexp(1.0, 34));
    EXPECT_EQ(Histogram::lower_bound_ns(kHistogramBuckets), std::ldexp(1.0, 35));
    EXPECT_EQ(Histogram::lower_bound_ns(~0U), std::ldexp(1.0, 35));
}

TEST(Histogram, GivesQuantilesWithinABucketOfTheTruth) {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> latency(std::log(400'000.0), 0.8);
    std::vector<std::uint64_t> samples(100'003);
    Histogram histogram;
    for (std::uint64_t& sample : samples) {
        sample = static_cast<std::uint64_t>(latency(random));
        histogram.add_bucket(Histogram::bucket_of(sample), 1);
    }
    std::sort(samples.begin(), samples.end());
    ASSERT_EQ(histogram.total(), samples.size());
    for (const double share : {0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1));
        const auto truth = static_cast<double>(samples[rank]);
        const std::uint32_t bucket = Histogram::bucket_of(samples[rank]);
        const double width =
            Histogram::lower_bound_ns(bucket + 1) - Histogram::lower_bound_ns(bucket);
        EXPECT_NEAR(histogram.quantile_ns(share), truth, width) << share;
    }
    const double mean =
        std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
    // Errors inside the buckets cancel out: half of the 3.2 % that a bucket may be wide is
    // generous.
    EXPECT_NEAR(histogram.mean_ns(), mean, 0.016 * mean);
}

TEST(Histogram, InterpolatesInsideABucket) {
    Histogram histogram;
    const std::uint32_t bucket = Histogram::bucket_of(1 << 20);
    histogram.add_bucket(bucket, 4);
    const double lower = Histogram::lower_bound_ns(bucket);
    const double width = Histogram::lower_bound_ns(bucket + 1) - lower;
    EXPECT_DOUBLE_EQ(histogram.quantile_ns(0), lower);
    EXPECT_DOUBLE_EQ(histogram.quantile_ns(0.5), lower + width / 2);
    EXPECT_DOUBLE_EQ(histogram.quantile_ns(1), lower + width);
    EXPECT_DOUBLE_EQ(histogram.mean_ns(), lower + width / 2);
}

TEST(Histogram, IsZeroWhenEmpty) {
    const Histogram histogram;
    EXPECT_TRUE(histogram.empty());
    EXPECT_EQ(histogram.quantile_ns(0.5), 0);
    EXPECT_EQ(histogram.mean_ns(), 0);
    EXPECT_THAT(histogram.log_bins(1'000, 1e9, 7), Each(0.0));
}

TEST(Histogram, TakesSharesOutsideZeroToOneAsTheEnds) {
    Histogram histogram;
    histogram.add_bucket(100, 1);
    EXPECT_EQ(histogram.quantile_ns(-1), histogram.quantile_ns(0));
    EXPECT_EQ(histogram.quantile_ns(2), histogram.quantile_ns(1));
    EXPECT_EQ(histogram.quantile_ns(std::nan("")), histogram.quantile_ns(0));
}

TEST(Histogram, IgnoresBucketsOutsideTheScale) {
    Histogram histogram;
    histogram.add({{3, 5}, {kHistogramBuckets, 7}, {65'535, 7}});
    histogram.add_bucket(~0U, 7);
    EXPECT_EQ(histogram.total(), 5U);
    EXPECT_EQ(histogram.count(3), 5U);
    EXPECT_EQ(histogram.count(kHistogramBuckets), 0U);
}

TEST(Histogram, StopsCountingAtTheLargestNumber) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    Histogram histogram;
    histogram.add({{3, kMax - 1}, {4, 5}});
    histogram.add({{3, 5}});
    EXPECT_EQ(histogram.total(), kMax);
    EXPECT_EQ(histogram.count(3), kMax);
    EXPECT_LE(histogram.quantile_ns(1), Histogram::lower_bound_ns(5));
}

TEST(Histogram, SpreadsCountsOverLogarithmicBins) {
    Histogram histogram;
    histogram.add({{Histogram::bucket_of(1'500), 10},
                   {Histogram::bucket_of(15'000), 20},
                   {Histogram::bucket_of(150'000), 30}});
    const std::vector<double> bins = histogram.log_bins(1'000, 1'000'000, 3);
    ASSERT_EQ(bins.size(), 3U);
    EXPECT_THAT(bins[0], DoubleNear(10, 1e-9));
    EXPECT_THAT(bins[1], DoubleNear(20, 1e-9));
    EXPECT_THAT(bins[2], DoubleNear(30, 1e-9));
}

TEST(Histogram, KeepsTheSumWhenBinsAreNarrowerThanBuckets) {
    Histogram histogram;
    for (std::uint32_t bucket = 0; bucket < kHistogramBuckets; ++bucket) {
        histogram.add_bucket(bucket, bucket + 1);
    }
    for (const std::size_t bins : {1U, 7U, 997U, 10'007U}) {
        const std::vector<double> values = histogram.log_bins(1, 1e12, bins);
        const double sum = std::accumulate(values.begin(), values.end(), 0.0);
        EXPECT_NEAR(sum, static_cast<double>(histogram.total()), 1e-6 * sum) << bins;
    }
}

TEST(Histogram, DrawsNothingInAnImpossibleRange) {
    Histogram histogram;
    histogram.add_bucket(100, 1);
    EXPECT_TRUE(histogram.log_bins(1, 10, 0).empty());
    EXPECT_THAT(histogram.log_bins(0, 10, 3), Each(0.0));
    EXPECT_THAT(histogram.log_bins(10, 10, 3), Each(0.0));
    EXPECT_THAT(histogram.log_bins(std::nan(""), 10, 3), Each(0.0));
    EXPECT_THAT(histogram.log_bins(1, std::numeric_limits<double>::infinity(), 3), Each(0.0));
}

}  // namespace
}  // namespace ringside
