// The peer arithmetic of Bine trees and circulant graphs, apart from any plan.
#include <gmock/gmock.h>

#include <set>

#include "palmette/collectives/trees/bine.hpp"
#include "palmette/collectives/trees/circulant.hpp"

namespace palmette::collectives {
namespace {

TEST(CirculantSchedule, fulfils_the_four_conditions_for_every_number_of_members) {
    for (std::int32_t p = 2; p <= 200; ++p) {
        const std::vector<std::int32_t> skips = circulant_skips(p);
        const auto q = static_cast<std::int32_t>(skips.size()) - 1;
        ASSERT_TRUE((1 << q) >= p && (1 << q) < 2 * p);
        std::vector<CirculantSchedule> all;
        for (std::int32_t r = 0; r < p; ++r) all.push_back(circulant_schedule(p, r));
        for (std::int32_t r = 0; r < p; ++r) {
            const CirculantSchedule& own = all[static_cast<std::size_t>(r)];
            // One block of this phase, and all but one of the phase before.
            const std::set<std::int32_t> taken(own.recv.begin(), own.recv.end());
            ASSERT_EQ(static_cast<std::int32_t>(taken.size()), q) << p << ' ' << r;
            ASSERT_GE(*taken.begin(), -q);
            ASSERT_LT(*taken.rbegin(), q);
            const auto fresh = std::count_if(taken.begin(), taken.end(), [](std::int32_t block) { return block >= 0; });
            ASSERT_EQ(fresh, r == 0 ? 0 : 1);
            for (std::int32_t k = 0; k < q; ++k) {
                const auto round = static_cast<std::size_t>(k);
                const auto to = static_cast<std::size_t>((r + skips[round]) % p);
                ASSERT_EQ(own.send[round], all[to].recv[round]);
                if (r == 0) continue;
                // What goes out came in before, in this phase or with the last new block of the phase before.
                const auto before = own.recv.begin() + k;
                const bool now = std::find(own.recv.begin(), before, own.send[round]) != before;
                ASSERT_TRUE(now || own.send[round] == *taken.rbegin() - q) << p << ' ' << r << ' ' << k;
            }
        }
    }
}

TEST(CirculantBroadcast, brings_every_block_once_and_sends_nothing_that_is_not_there) {
    for (std::int32_t p = 2; p <= 70; ++p)
        for (const std::int32_t n : {1, 2, 3, 7, 16}) {
            std::vector<std::vector<CirculantRound>> all;
            for (std::int32_t r = 0; r < p; ++r) all.push_back(circulant_broadcast(p, n, r));
            std::vector<std::set<std::int32_t>> has(static_cast<std::size_t>(p));
            for (std::int32_t block = 0; block < n; ++block) has[0].insert(block);
            for (std::size_t round = 0; round < all[0].size(); ++round) {
                const auto before = has;
                for (std::size_t r = 0; r < has.size(); ++r) {
                    const CirculantRound& mine = all[r][round];
                    if (mine.sent) {
                        ASSERT_TRUE(before[r].contains(*mine.sent)) << p << ' ' << n << ' ' << r << ' ' << round;
                    }
                    ASSERT_EQ(all[static_cast<std::size_t>(mine.to)][round].taken, mine.sent);
                    if (mine.taken) {
                        ASSERT_TRUE(has[r].insert(*mine.taken).second) << "block " << *mine.taken << " comes twice";
                    }
                }
            }
            for (const auto& blocks : has) ASSERT_EQ(static_cast<std::int32_t>(blocks.size()), n);
        }
}

TEST(BineTree, has_every_member_once_in_ceil_lg_p_steps) {
    for (std::int32_t p = 1; p <= 300; ++p) {
        std::int32_t steps = 0;
        while ((std::int64_t{1} << steps) < p) ++steps;
        std::int32_t reached = 1;
        for (std::int32_t member = 0; member < p; ++member) {
            const BineNeighbours near = bine_tree(p, member);
            ASSERT_EQ(near.parent.has_value(), member != 0);
            for (const std::int32_t child : near.children) {
                ASSERT_EQ(bine_tree(p, child).parent, member);
                ++reached;
            }
            std::int32_t depth = 0;
            for (auto above = near.parent; above; above = bine_tree(p, *above).parent) ++depth;
            ASSERT_LE(depth, steps);
        }
        ASSERT_EQ(reached, p);
    }
}

TEST(BineTree, of_eight_is_the_one_of_the_paper) {
    EXPECT_THAT(bine_tree(8, 0).children, testing::ElementsAre(3, 7, 1));
    EXPECT_THAT(bine_tree(8, 3).children, testing::ElementsAre(4, 2));
    EXPECT_THAT(bine_tree(8, 7).children, testing::ElementsAre(6));
    EXPECT_EQ(bine_tree(8, 5).parent, 4);
}

TEST(BineTree, has_messages_a_third_shorter_than_a_binomial_tree) {
    const std::int32_t p = 1024;
    std::int64_t bine = 0;
    std::int64_t binomial = 0;
    for (std::int32_t member = 1; member < p; ++member) {
        const std::int32_t apart = std::abs(member - *bine_tree(p, member).parent);
        bine += std::min(apart, p - apart);
        binomial += member & -member;
    }
    EXPECT_LT(static_cast<double>(bine), 0.7 * static_cast<double>(binomial));
}

TEST(BineButterfly, connects_consecutive_members) {
    for (std::int32_t p = 2; p <= 256; p *= 2) {
        const BineButterfly butterfly{p};
        for (std::int32_t member = 0; member < p; ++member)
            for (std::int32_t steps = 1; steps <= butterfly.steps(); ++steps) {
                ASSERT_EQ(butterfly.partner(butterfly.partner(member, steps - 1), steps - 1), member);
                std::set<std::int32_t> held{member};
                for (std::int32_t step = steps - 1; step >= 0; --step)
                    for (const std::int32_t from : std::set<std::int32_t>(held))
                        held.insert(butterfly.partner(from, step));
                ASSERT_EQ(static_cast<std::int32_t>(held.size()), 1 << steps);
                for (std::int32_t i = 0; i < 1 << steps; ++i)
                    ASSERT_TRUE(held.contains((butterfly.first_held(member, steps) + i) % p));
            }
    }
}

}  // namespace
}  // namespace palmette::collectives
