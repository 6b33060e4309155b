#include "palmette/model/bound/own_messages.hpp"

#include <gtest/gtest.h>

#include "palmette/model/bound/crossing.hpp"
#include "support/jobs.hpp"

namespace palmette::model::own_messages_tests {
namespace {

using plan::Collective;
using plan::Request;
using topology::Job;
using topology::Rank;

std::int64_t bytes(std::int64_t from, std::int64_t to) { return (5 * from + 3 * to + from * to) % 7; }

OwnMessages messages_of(const Job& job, std::int32_t rank) {
    return own_messages(
        job, {rank}, [rank](std::int32_t other) { return bytes(rank, other); },
        [rank](std::int32_t other) { return bytes(other, rank); });
}

TEST(OwnMessages, of_all_ranks_of_a_group_are_what_crosses_its_edge) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements())
            for (const std::int32_t p : {1, 2, 7, 16, 33}) {
                const Job job = test::job_on(machine, placement, p);
                std::vector<std::int64_t> pairs;
                for (std::int32_t from = 0; from < p; ++from)
                    for (std::int32_t to = 0; to < p; ++to) pairs.push_back(bytes(from, to));
                const Crossing crossing(job, Request{Collective::alltoall, Rank{0}, 1}, pairs);
                for (std::size_t l = 0; l < job.levels().size(); ++l) {
                    const topology::Partition& groups = job.levels()[l].groups;
                    std::vector<Traffic> sums(static_cast<std::size_t>(groups.count()));
                    for (std::int32_t rank = 0; rank < p; ++rank) {
                        const Traffic own = messages_of(job, rank).levels[l];
                        Traffic& sum = sums[static_cast<std::size_t>(groups.group_of(job.position_of({rank}).value))];
                        sum.out += own.out, sum.in += own.in;
                    }
                    const std::vector<Traffic> wanted = crossing.of_groups(groups);
                    for (std::size_t g = 0; g < sums.size(); ++g) {
                        EXPECT_EQ(sums[g].out, wanted[g].out) << machine << ' ' << placement << ' ' << p;
                        EXPECT_EQ(sums[g].in, wanted[g].in) << machine << ' ' << placement << ' ' << p;
                    }
                }
            }
}

TEST(OwnMessages, take_the_latency_of_the_farthest_rank_that_gets_or_sends_a_byte) {
    const Job job = test::costed_job_on("2leaf:2node:2core", "block", 8);
    const auto& levels = job.levels();
    const auto nothing = [](std::int32_t) { return 0; };
    const auto only = [](std::int32_t to) { return [to](std::int32_t other) { return other == to ? 1 : 0; }; };
    EXPECT_DOUBLE_EQ(own_messages(job, {0}, nothing, nothing).latency_s, 0);
    EXPECT_DOUBLE_EQ(own_messages(job, {0}, only(0), nothing).latency_s, 0);
    EXPECT_GT(job.inside().latency_s, 0);
    EXPECT_DOUBLE_EQ(own_messages(job, {0}, only(1), nothing).latency_s, job.inside().latency_s);
    EXPECT_DOUBLE_EQ(own_messages(job, {0}, nothing, only(2)).latency_s, levels[1].costs.latency_s);
    EXPECT_DOUBLE_EQ(own_messages(job, {0}, only(7), only(1)).latency_s, levels[0].costs.latency_s);
}

}  // namespace
}  // namespace palmette::model::own_messages_tests
