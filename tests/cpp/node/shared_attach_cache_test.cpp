#include "palmette/node/shared_attach_cache.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace palmette::node {
namespace {

constexpr std::int64_t page = 4096;

/// Pretends to map: gives out addresses of a region of its own for each mapping and remembers what each one shows.
class FakeAttacher : public SharedAttacher {
  public:
    struct Mapping {
        int member;
        std::uint64_t address;
        std::int64_t bytes;
    };

    char* attach(int member, std::uint64_t address, std::int64_t bytes) override {
        ++calls;
        if (refuses) return nullptr;
        next_ += std::uintptr_t{1} << 40;
        live[next_] = {member, address, bytes};
        return reinterpret_cast<char*>(next_);
    }
    void detach(char* mapped, std::int64_t bytes) override {
        const auto found = live.find(reinterpret_cast<std::uintptr_t>(mapped));
        ASSERT_TRUE(found != live.end()) << "what isn't mapped is unmapped";
        EXPECT_EQ(found->second.bytes, bytes);
        live.erase(found);
    }
    /// Whether `at` shows `bytes` at `address` of `member`.
    bool shows(const char* at, int member, std::uint64_t address, std::int64_t bytes) const {
        const auto place = reinterpret_cast<std::uintptr_t>(at);
        const auto after = live.upper_bound(place);
        if (after == live.begin()) return false;
        const auto& [base, mapping] = *std::prev(after);
        return mapping.member == member && mapping.address + (place - base) == address &&
               place - base + static_cast<std::uint64_t>(bytes) <= static_cast<std::uint64_t>(mapping.bytes);
    }
    std::int64_t live_bytes() const {
        std::int64_t sum = 0;
        for (const auto& [base, mapping] : live) sum += mapping.bytes;
        return sum;
    }

    int calls = 0;
    bool refuses = false;
    std::map<std::uintptr_t, Mapping> live;

  private:
    std::uintptr_t next_ = 0;
};

TEST(AttachCache, maps_whole_pages_and_finds_them_again) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {});
    const char* at = cache.find(3, 5 * page + 100, 50);
    EXPECT_TRUE(attacher.shows(at, 3, 5 * page + 100, 50));
    EXPECT_EQ(attacher.live_bytes(), page);
    EXPECT_EQ(cache.find(3, 5 * page, page), at - 100);
    EXPECT_EQ(cache.find(3, 6 * page - 1, 1), at - 100 + page - 1);
    EXPECT_EQ(cache.counts().hits, 2);
    EXPECT_EQ(cache.counts().misses, 1);
    EXPECT_EQ(attacher.calls, 1);
}

TEST(AttachCache, keeps_the_same_address_of_two_members_apart) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {});
    const char* of_one = cache.find(1, page, 10);
    const char* of_two = cache.find(2, page, 10);
    EXPECT_TRUE(attacher.shows(of_one, 1, page, 10));
    EXPECT_TRUE(attacher.shows(of_two, 2, page, 10));
    EXPECT_EQ(cache.counts().misses, 2);
}

TEST(AttachCache, joins_ranges_that_overlap_or_touch) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {});
    cache.find(0, 0 * page, page);
    cache.find(0, 1 * page, page);  // touches
    EXPECT_EQ(cache.entries(), 1);
    cache.find(0, 4 * page, 2 * page);
    EXPECT_EQ(cache.entries(), 2);
    const char* all = cache.find(0, page, 4 * page);  // overlaps both
    EXPECT_TRUE(attacher.shows(all, 0, page, 4 * page));
    EXPECT_EQ(cache.entries(), 1);
    EXPECT_TRUE(attacher.shows(cache.find(0, 0, 6 * page), 0, 0, 6 * page));
    EXPECT_EQ(cache.counts().hits, 1);
}

TEST(AttachCache, keeps_what_was_found_mapped_until_it_settles) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {});
    const char* first = cache.find(0, 0, page);
    cache.find(0, page, page);  // replaces the first range
    EXPECT_TRUE(attacher.shows(first, 0, 0, page));
    EXPECT_EQ(attacher.live.size(), 2u);
    cache.settle();
    EXPECT_EQ(attacher.live.size(), 1u);
    EXPECT_EQ(cache.bytes(), 2 * page);
}

TEST(AttachCache, evicts_the_least_recently_used_range) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {.entries = 2, .bytes = 100 * page});
    cache.find(0, 10 * page, page);
    cache.settle();
    cache.find(0, 20 * page, page);
    cache.settle();
    cache.find(0, 10 * page, page);  // used again
    cache.settle();
    cache.find(0, 30 * page, page);
    EXPECT_EQ(cache.counts().evictions, 1);
    EXPECT_EQ(cache.entries(), 2);
    cache.find(0, 10 * page, page);
    EXPECT_EQ(cache.counts().hits, 2) << "the older but lately used range stayed";
}

TEST(AttachCache, bounds_the_bytes) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {.entries = 100, .bytes = 8 * page});
    for (std::uint64_t i = 0; i < 10; ++i) {
        ASSERT_TRUE(cache.find(0, i * 100 * page, 3 * page));
        cache.settle();
        EXPECT_LE(attacher.live_bytes(), 8 * page);
    }
    EXPECT_EQ(cache.find(0, 5000 * page, 9 * page), nullptr) << "larger than all that may be mapped";
    EXPECT_EQ(cache.counts().refusals, 1);
}

TEST(AttachCache, refuses_rather_than_unmap_what_is_in_use) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {.entries = 2, .bytes = 100 * page});
    const char* first = cache.find(0, 10 * page, page);
    const char* second = cache.find(0, 20 * page, page);
    EXPECT_EQ(cache.find(0, 30 * page, page), nullptr);
    EXPECT_TRUE(attacher.shows(first, 0, 10 * page, page));
    EXPECT_TRUE(attacher.shows(second, 0, 20 * page, page));
    cache.settle();
    EXPECT_NE(cache.find(0, 30 * page, page), nullptr);
}

TEST(AttachCache, maps_neighbours_apart_when_together_they_are_too_large) {
    FakeAttacher attacher;
    AttachCache cache(attacher, {.entries = 10, .bytes = 4 * page});
    cache.find(0, 0, 3 * page);
    cache.settle();
    const char* next = cache.find(0, 3 * page, 2 * page);
    EXPECT_TRUE(attacher.shows(next, 0, 3 * page, 2 * page));
}

TEST(AttachCache, counts_what_the_attacher_refuses) {
    FakeAttacher attacher;
    attacher.refuses = true;
    AttachCache cache(attacher, {});
    EXPECT_EQ(cache.find(0, 0, page), nullptr);
    EXPECT_EQ(cache.counts().refusals, 1);
    EXPECT_EQ(cache.bytes(), 0);
}

TEST(AttachCache, unmaps_everything_in_the_end) {
    FakeAttacher attacher;
    {
        AttachCache cache(attacher, {});
        cache.find(0, 0, page);
        cache.find(0, page, page);
        cache.find(1, 0, page);
    }
    EXPECT_TRUE(attacher.live.empty());
}

TEST(AttachCache, shows_the_right_memory_and_keeps_its_bounds_in_random_use) {
    FakeAttacher attacher;
    const AttachCache::Bounds bounds{.entries = 6, .bytes = 40 * page};
    AttachCache cache(attacher, bounds);
    std::mt19937 random(7);
    struct Attachment {
        const char* at;
        int member;
        std::uint64_t address;
        std::int64_t bytes;
    };
    std::vector<Attachment> in_use;
    for (int i = 0; i < 20000; ++i) {
        const int member = static_cast<int>(random() % 3);
        const std::uint64_t address = random() % (60 * page);
        const std::int64_t bytes = 1 + random() % (random() % 8 == 0 ? 20 * page : 2 * page);
        if (const char* at = cache.find(member, address, bytes)) in_use.push_back({at, member, address, bytes});
        for (const Attachment& found : in_use)
            ASSERT_TRUE(attacher.shows(found.at, found.member, found.address, found.bytes));
        ASSERT_LE(static_cast<std::int64_t>(attacher.live.size()), bounds.entries);
        ASSERT_LE(attacher.live_bytes(), bounds.bytes);
        ASSERT_EQ(attacher.live_bytes(), cache.bytes());
        if (random() % 3 == 0) {
            cache.settle();
            in_use.clear();
        }
    }
    EXPECT_GT(cache.counts().hits, 1000);
    EXPECT_GT(cache.counts().evictions, 1000);
    EXPECT_EQ(cache.counts().hits + cache.counts().misses, 20000);
}

}  // namespace
}  // namespace palmette::node
