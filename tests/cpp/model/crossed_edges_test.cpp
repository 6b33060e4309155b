#include "palmette/model/bound/crossed_edges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "palmette/base/json.hpp"
#include "palmette/model/bound/crossing.hpp"
#include "support/jobs.hpp"

namespace palmette::model::crossed_edges_tests {
namespace {

using topology::Job;
using topology::Rank;

std::int64_t bytes(std::int64_t from, std::int64_t to) { return 1000 * ((5 * from + 3 * to) % 7); }

/// What ranks 0, 2, 4, ... or all hold after one exchange among them, brought together as the report does it; `most`:
/// the longest message.
CrossedEdges merged(const Job& world, std::int32_t stride, std::size_t& most) {
    const std::int32_t p = world.size();
    std::vector<Rank> members;
    for (std::int32_t rank = 0; rank < p; rank += stride) members.push_back({rank});
    const Job job = world.restricted_to(members);
    const RoundOrder order(&world, p);
    std::vector<CrossedEdges> at(static_cast<std::size_t>(p));
    for (std::int32_t r = 0; r < job.size(); ++r) {
        const std::int32_t rank = members[static_cast<std::size_t>(r)].value;
        CrossedEdges& mine = at[static_cast<std::size_t>(order.place_of(rank))];
        mine.add(own_messages(
                     job, {r}, [&](std::int32_t other) { return bytes(r, other); },
                     [&](std::int32_t other) { return bytes(other, r); }),
                 job, world, {rank});
    }
    for (std::int32_t place = 0; place < p; ++place) {
        EXPECT_EQ(order.place_of(order.rank_at(place)), place);
        at[static_cast<std::size_t>(place)].settle(order, place, 1);
    }
    for (std::int32_t distance = 1; distance < p; distance *= 2)
        for (std::int32_t place = 0; place + distance < p; place += 2 * distance) {
            const base::Json message = at[static_cast<std::size_t>(place + distance)].pack();
            most = std::max(most, message.dump().size());
            CrossedEdges& here = at[static_cast<std::size_t>(place)];
            here.absorb(CrossedEdges::unpack(base::Json::parse(message.dump())));
            here.settle(order, place, std::min(2 * distance, p - place));
        }
    return at.front();
}

double slowest_edge(const Job& job) {
    double seconds = 0;
    std::vector<std::int64_t> pairs;
    for (std::int32_t from = 0; from < job.size(); ++from)
        for (std::int32_t to = 0; to < job.size(); ++to) pairs.push_back(bytes(from, to));
    const Crossing crossing(job, {plan::Collective::alltoall, Rank{0}, 1}, pairs);
    for (const topology::JobLevel& level : job.levels()) {
        const std::vector<Traffic> traffic = crossing.of_groups(level.groups);
        for (std::int32_t g = 0; g < level.groups.count(); ++g) {
            const Traffic& one = traffic[static_cast<std::size_t>(g)];
            if (level.up_bytes_per_s[g] > 0)
                seconds = std::max(seconds, static_cast<double>(std::max(one.out, one.in)) / level.up_bytes_per_s[g]);
        }
    }
    return seconds;
}

TEST(CrossedEdges, come_together_to_the_time_that_the_slowest_edge_needs) {
    for (const char* placement : {"block", "cyclic", "random:3"})
        for (const std::int32_t p : {1, 2, 5, 12, 17, 31}) {
            const Job world = test::job_on("3leaf@50Mbit/s:4+3+4node@100Mbit/s:3core", placement, p);
            for (const std::int32_t stride : {1, 2}) {
                std::size_t most = 0;
                const CrossedEdges found = merged(world, stride, most);
                std::vector<Rank> members;
                for (std::int32_t rank = 0; rank < p; rank += stride) members.push_back({rank});
                EXPECT_DOUBLE_EQ(found.seconds(), slowest_edge(world.restricted_to(members))) << placement << ' ' << p;
            }
        }
}

TEST(CrossedEdges, leave_edges_out_where_ranks_do_not_all_know_the_machine) {
    const Job world = test::costed_job_on("2leaf@50Mbit/s:2node@100Mbit/s:2core", "block", 8);
    CrossedEdges mine;
    const auto some = [](std::int32_t) { return 1000; };
    mine.add(own_messages(world, {0}, some, some), world, world, {0});
    mine.settle(RoundOrder(nullptr, 8), 0, 1);
    EXPECT_DOUBLE_EQ(mine.seconds(), world.levels().front().costs.latency_s);
}

TEST(CrossedEdges, are_summed_by_messages_that_do_not_grow_with_the_job) {
    std::size_t small = 0, large = 0;
    merged(test::job_on("4leaf@50Mbit/s:4node@100Mbit/s:3core", "random:3"), 1, small);
    merged(test::job_on("16leaf@50Mbit/s:16node@100Mbit/s:3core", "random:3"), 1, large);
    EXPECT_LT(large, small + 100);
}

}  // namespace
}  // namespace palmette::model::crossed_edges_tests
