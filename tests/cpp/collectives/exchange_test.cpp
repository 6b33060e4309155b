// The patterns alone, without programs: who holds what after each entry of the schedules.
#include "palmette/collectives/exchanges/exchange.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "support/errors.hpp"

namespace palmette::collectives {
namespace {

using topology::Partition;

/// Every send has its recv with the same range, and every participant ends up with everything exactly once.
void expect_complete(const Pattern& pattern, std::int32_t n, const std::vector<Partition>& nested) {
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<std::pair<bool, Range>>> messages;
    for (std::int32_t me = 0; me < n; ++me) {
        std::vector<int> got(static_cast<std::size_t>(n), 0);
        got[static_cast<std::size_t>(me)] = 1;
        for (const Exchange& e : pattern.schedule(n, me, nested)) {
            ASSERT_NE(e.peer, me);
            messages[e.send ? std::tuple(me, e.peer, e.tag) : std::tuple(e.peer, me, e.tag)].push_back(
                {e.send, e.range});
            for (std::int32_t i = 0; i < e.range.count; ++i) {
                int& held = got[static_cast<std::size_t>((e.range.first + i * e.range.stride) % n)];
                if (e.send)
                    ASSERT_EQ(held, 1) << "participant " << me << " sends what it has not";
                else
                    ASSERT_EQ(held++, 0) << "participant " << me << " gets something twice";
            }
        }
        ASSERT_EQ(std::count(got.begin(), got.end(), 1), n);
    }
    for (const auto& [key, sides] : messages) {
        ASSERT_EQ(sides.size(), 2U);
        ASSERT_NE(sides[0].first, sides[1].first);
        ASSERT_EQ(sides[0].second.first, sides[1].second.first);
        ASSERT_EQ(sides[0].second.count, sides[1].second.count);
        ASSERT_EQ(sides[0].second.stride, sides[1].second.stride);
    }
}

TEST(Exchange, every_pattern_brings_everything_to_everyone_once) {
    for (const char* text : {"ring", "recursive_doubling", "bruck", "bruck.3", "bruck.8", "neighbor_exchange", "all",
                             "circulant", "pat", "bine"})
        for (std::int32_t n = 1; n <= 40; ++n) {
            const Pattern pattern = Pattern::parse(text);
            if (!pattern.refuse(n)) {
                SCOPED_TRACE(base::cat(text, " n=", n));
                expect_complete(pattern, n, {});
            }
        }
}

TEST(Exchange, nested_rings_are_complete_on_uneven_groups) {
    const Pattern ring = Pattern::parse("ring");
    expect_complete(ring, 8, {Partition::from_firsts(8, {0, 3, 6})});
    expect_complete(ring, 11, {Partition::from_firsts(11, {0, 1, 7}), Partition::from_firsts(11, {0, 1, 2, 4, 7, 9})});
    expect_complete(ring, 9, {Partition::even(9, 9), Partition::even(9, 3), Partition::even(9, 1)});
}

TEST(Exchange, recursive_doubling_and_bruck_take_logarithmic_steps) {
    EXPECT_EQ(recursive_doubling(64, 5).size(), 2U * 6);
    for (std::int32_t n = 2; n <= 70; ++n)
        EXPECT_EQ(bruck(n, 1, 2).size(), 2U * static_cast<std::size_t>(std::ceil(std::log2(n)))) << n;
    EXPECT_EQ(neighbor_exchange(8, 3).size(), 2U * 4);
    EXPECT_EQ(bine(64, 5).size(), 2U * 6);
    for (std::int32_t n = 2; n <= 70; ++n)
        for (const auto& pattern : {circulant, pat})
            EXPECT_EQ(pattern(n, 1).size(), 2U * static_cast<std::size_t>(std::ceil(std::log2(n)))) << n;
}

TEST(Exchange, patterns_say_which_numbers_of_participants_they_refuse) {
    EXPECT_EQ(Pattern::parse("recursive_doubling").refuse(6),
              "recursive doubling needs a power of two participants, not 6");
    EXPECT_EQ(Pattern::parse("bine").refuse(6), "a Bine butterfly needs a power of two participants, not 6");
    EXPECT_EQ(Pattern::parse("neighbor_exchange").refuse(7),
              "neighbour exchange needs an even number of participants, not 7");
    EXPECT_EQ(Pattern::parse("bruck").refuse(7), std::nullopt);
    EXPECT_EQ(Pattern::parse("recursive_doubling").refuse(1), std::nullopt);
    for (const char* text : {"", "rings", "bruck.1", "bruck.x"})
        EXPECT_THAT(test::error_of([&] { Pattern::parse(text); }), testing::HasSubstr("is no exchange")) << text;
}

}  // namespace
}  // namespace palmette::collectives
