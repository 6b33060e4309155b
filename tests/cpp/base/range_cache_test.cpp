#include "palmette/base/range_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace palmette::base {
namespace {

using Merge = RangeCache::Merge;
const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
const auto page_bytes = static_cast<std::int64_t>(page);

/// Remembers what is held.
class Recorder : public RangeHolder {
  public:
    struct HeldRange {
        int space;
        std::uint64_t begin;
        std::int64_t bytes;
        bool operator==(const HeldRange&) const = default;
    };
    std::uintptr_t hold(int space, std::uint64_t begin, std::int64_t bytes) override {
        ++calls;
        if (refuses) return 0;
        live[++next_] = {space, begin, bytes};
        return next_;
    }
    void drop(std::uintptr_t handle, std::int64_t bytes) noexcept override {
        const auto found = live.find(handle);
        ASSERT_TRUE(found != live.end()) << "what isn't held is dropped";
        EXPECT_EQ(found->second.bytes, bytes);
        live.erase(found);
    }
    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const auto& [handle, held] : live) sum += held.bytes;
        return sum;
    }

    int calls = 0;
    bool refuses = false;
    std::map<std::uintptr_t, HeldRange> live;

  private:
    std::uintptr_t next_ = 0;
};

/// A range cache by lists and linear scans, for comparison.
class NaiveRangeCache {
  public:
    struct Range {
        int space;
        std::uint64_t begin, end;
        std::int64_t used;  ///< time of the last use
        int uses = 0;
        bool found = true;  ///< can be
    };
    NaiveRangeCache(RangeCache::Bounds bounds, Merge merge) : bounds_(bounds), merge_(merge) {}

    /// The index of the range, or -1.
    int take(int space, std::uint64_t address, std::int64_t bytes) {
        const std::uint64_t wanted = address + static_cast<std::uint64_t>(bytes);
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].found && all[i].space == space && all[i].begin <= address && all[i].end >= wanted) {
                ++counts.hits;
                all[i].used = ++time_;
                ++all[i].uses;
                return static_cast<int>(i);
            }
        ++counts.misses;
        const std::uint64_t begin = address / page * page, end = (wanted + page - 1) / page * page;
        std::uint64_t low = begin, high = end;
        for (bool grown = true; grown;) {
            grown = false;
            for (Range& one : all)
                if (one.found && one.space == space && meets(one, low, high)) {
                    low = std::min(low, one.begin), high = std::max(high, one.end);
                    one.found = false;
                    grown = true;
                }
        }
        if (high - low > static_cast<std::uint64_t>(bounds_.bytes)) low = begin, high = end;
        while (sum() + static_cast<std::int64_t>(high - low) > bounds_.bytes || count() + 1 > bounds_.entries) {
            Range* oldest = nullptr;
            for (Range& one : all)
                if (one.found && one.uses == 0 && (!oldest || one.used < oldest->used)) oldest = &one;
            if (!oldest) {
                ++counts.refusals;
                return -1;
            }
            oldest->found = false;
            ++counts.evictions;
        }
        all.push_back({space, low, high, ++time_, 1});
        return static_cast<int>(all.size()) - 1;
    }
    void invalidate(int space, std::uint64_t address, std::int64_t bytes) {
        const std::uint64_t end = (address + static_cast<std::uint64_t>(bytes) + page - 1) / page * page;
        for (Range& one : all)
            if (one.found && one.space == space && one.begin < end && one.end > address / page * page)
                one.found = false, ++counts.invalidations;
    }
    std::int64_t sum() const {
        std::int64_t out = 0;
        for (const Range& one : all)
            if (one.found || one.uses > 0) out += static_cast<std::int64_t>(one.end - one.begin);
        return out;
    }
    std::int64_t count() const {
        return std::count_if(all.begin(), all.end(), [](const Range& one) { return one.found || one.uses > 0; });
    }

    std::vector<Range> all;
    RangeCache::Counts counts;

  private:
    bool meets(const Range& one, std::uint64_t begin, std::uint64_t end) const {
        return merge_ == Merge::touching ? one.begin <= end && one.end >= begin : one.begin < end && one.end > begin;
    }

    RangeCache::Bounds bounds_;
    Merge merge_;
    std::int64_t time_ = 0;
};

class RangeCacheAtRandom : public testing::TestWithParam<Merge> {};

TEST_P(RangeCacheAtRandom, does_what_linear_scans_do_and_holds_what_is_in_use) {
    std::mt19937 random(29);
    const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
    for (int round = 0; round < 30; ++round) {
        const RangeCache::Bounds bounds{2 + below(12), page_bytes * (6 + below(40))};
        Recorder recorder;
        {
            RangeCache cache(recorder, bounds, GetParam());
            NaiveRangeCache naive(bounds, GetParam());
            std::vector<std::pair<RangeCache::Range*, int>> in_use;
            for (int step = 0; step < 400; ++step) {
                const int space = below(2);
                const std::uint64_t address =
                    page * 100 + static_cast<std::uint64_t>(below(60 * static_cast<int>(page)));
                const std::int64_t bytes = 1 + below(5 * static_cast<int>(page));
                const int what = below(10);
                if (what < 6) {
                    RangeCache::Range* const got = cache.take(space, address, bytes);
                    const int expected = naive.take(space, address, bytes);
                    ASSERT_EQ(got != nullptr, expected >= 0) << "round " << round << ", step " << step;
                    if (got) {
                        const NaiveRangeCache::Range& same = naive.all[static_cast<std::size_t>(expected)];
                        ASSERT_EQ(got->begin, same.begin);
                        ASSERT_EQ(got->end(), same.end);
                        in_use.emplace_back(got, expected);
                    }
                } else if (what < 9 && !in_use.empty()) {
                    const auto at = static_cast<std::size_t>(below(static_cast<int>(in_use.size())));
                    cache.release(in_use[at].first);
                    --naive.all[static_cast<std::size_t>(in_use[at].second)].uses;
                    in_use.erase(in_use.begin() + static_cast<std::ptrdiff_t>(at));
                } else {
                    cache.invalidate(space, address, bytes);
                    naive.invalidate(space, address, bytes);
                }
                const auto& got = cache.counts();
                ASSERT_EQ(got.hits, naive.counts.hits);
                ASSERT_EQ(got.misses, naive.counts.misses);
                ASSERT_EQ(got.refusals, naive.counts.refusals);
                ASSERT_EQ(got.evictions, naive.counts.evictions);
                ASSERT_EQ(got.invalidations, naive.counts.invalidations);
                ASSERT_EQ(cache.bytes(), naive.sum());
                ASSERT_EQ(recorder.bytes(), naive.sum());
                ASSERT_EQ(static_cast<std::int64_t>(recorder.live.size()), naive.count());
                ASSERT_LE(cache.bytes(), bounds.bytes);
                for (const auto& [range, index] : in_use) {
                    const Recorder::HeldRange expected{range->space, range->begin, range->bytes};
                    ASSERT_TRUE(recorder.live.count(range->handle) && recorder.live.at(range->handle) == expected);
                }
            }
        }
        EXPECT_TRUE(recorder.live.empty()) << "all is dropped at the end";
    }
}

INSTANTIATE_TEST_SUITE_P(, RangeCacheAtRandom, testing::Values(Merge::overlapping, Merge::touching));

TEST(RangeCache, merges_what_overlaps_and_neighbours_only_if_told) {
    for (const Merge merge : {Merge::overlapping, Merge::touching}) {
        Recorder recorder;
        RangeCache cache(recorder, {}, merge);
        cache.release(cache.take(0, 0x10000, page_bytes));
        cache.release(cache.take(0, 0x10000 + page, page_bytes));
        EXPECT_EQ(cache.entries(), merge == Merge::touching ? 1 : 2);
        cache.release(cache.take(0, 0x10000 + page - 8, 16));
        EXPECT_EQ(cache.entries(), 1) << "one over the border overlaps both";
        EXPECT_EQ(cache.bytes(), 2 * page_bytes);
    }
}

TEST(RangeCache, never_evicts_what_is_in_use) {
    Recorder recorder;
    RangeCache cache(recorder, {2, page_bytes * 100}, Merge::overlapping);
    RangeCache::Range* const one = cache.take(0, 10 * page, 8);
    RangeCache::Range* const two = cache.take(0, 20 * page, 8);
    EXPECT_EQ(cache.take(0, 30 * page, 8), nullptr) << "both entries are in use";
    cache.release(two);
    RangeCache::Range* const three = cache.take(0, 30 * page, 8);
    ASSERT_NE(three, nullptr);
    EXPECT_EQ(cache.counts().evictions, 1);
    EXPECT_EQ(recorder.live.count(one->handle), 1U);
    cache.release(one);
    cache.release(three);
}

TEST(RangeCache, refuses_what_is_no_range_and_what_its_holder_refuses) {
    Recorder recorder;
    RangeCache cache(recorder, {}, Merge::overlapping);
    EXPECT_EQ(cache.take(0, ~std::uint64_t{0} - 100, 4096), nullptr);
    EXPECT_EQ(cache.take(0, 4096, -1), nullptr);
    EXPECT_EQ(recorder.calls, 0);
    recorder.refuses = true;
    EXPECT_EQ(cache.take(0, 4096, 8), nullptr);
    EXPECT_EQ(cache.counts().refusals, 3);
    EXPECT_EQ(cache.bytes(), 0);
}

}  // namespace
}  // namespace palmette::base
