// The terms behind a bound: all edges together, ports, rounds, memory, what a network that computes would change.
#include <gmock/gmock.h>

#include "palmette/model/bound/bound.hpp"
#include "palmette/plan/space.hpp"
#include "support/costed.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::model::bound_terms_tests {
namespace {

using plan::Collective;
using plan::Request;
using test::costed_job;
using test::error_of;
using test::job_on;
using testing::HasSubstr;
using topology::Job;
using topology::Rank;

BoundTerms terms_of(const Job& job, Collective collective, std::int64_t bytes, const BoundOptions& options = {},
                    std::int32_t root = 0) {
    return bound_terms(job, Request{collective, Rank{root}, bytes}, {bytes}, options);
}

Job lab() { return job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"); }

TEST(BoundTerms, of_an_allreduce_differ_with_reduction_in_the_network) {
    const BoundTerms terms = terms_of(lab(), Collective::allreduce, 262144);
    EXPECT_DOUBLE_EQ(terms.limit.seconds, 4 * 262144 / (3 * 6.25e6));
    EXPECT_DOUBLE_EQ(terms.limit_in_network.seconds, 262144 / 6.25e6);
    EXPECT_EQ(terms.limit_in_network.kind, "link");
}

TEST(BoundTerms, hold_the_group_bounds_summed_over_edges) {
    const double m = 1000, p = 16, leaves = 3, capacity = 3 * 6.25e6;
    const auto together = [&](Collective collective) {
        const LevelTerms level = terms_of(lab(), collective, 1000).levels.front();
        EXPECT_DOUBLE_EQ(level.together_bytes_per_s, capacity);
        EXPECT_DOUBLE_EQ(level.together_s, level.together_bytes / capacity);
        return level.together_bytes;
    };
    EXPECT_DOUBLE_EQ(together(Collective::allgather), (leaves - 1) * p * m);
    EXPECT_DOUBLE_EQ(together(Collective::reduce_scatter), (leaves - 1) * p * m);
    EXPECT_DOUBLE_EQ(together(Collective::allreduce), 2 * (leaves - 1) * m);
    EXPECT_DOUBLE_EQ(together(Collective::bcast), (leaves - 1) * m);
    EXPECT_DOUBLE_EQ(together(Collective::reduce), (leaves - 1) * m);
    EXPECT_DOUBLE_EQ(together(Collective::gather), 10 * m);
    EXPECT_DOUBLE_EQ(together(Collective::alltoall), (6 * 10 + 6 * 10 + 4 * 12) * m);
}

TEST(BoundTerms, of_all_edges_together_never_pass_the_slowest_edge_but_for_an_allreduce) {
    for (const char* machine :
         {"3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "2pod@1GB/s:2+1leaf@3GB/s:2+3+1node@1GB/s:3core"})
        for (std::size_t c = 0; c < plan::collective_count; ++c) {
            const auto collective = static_cast<Collective>(c);
            if (collective == Collective::allreduce) continue;
            for (const LevelTerms& level : terms_of(job_on(machine, "random:4"), collective, 4096).levels)
                EXPECT_LE(level.together_s, level.worst.seconds * (1 + 1e-12)) << plan::name_of(collective);
        }
}

TEST(BoundTerms, scale_a_capacity_by_what_ranks_bound_to_ports_can_use) {
    // 12 ranks on 8 ports of 25 GB/s: four ports carry two ranks, so that the others idle half of the time.
    const Job job = job_on("4node@200GB/s:12core");
    const auto capacity = [&](std::int32_t ports) {
        return terms_of(job, Collective::bcast, 1000, {{{"node", ports}}, 0, false})
            .levels.front()
            .worst.capacity_bytes_per_s;
    };
    EXPECT_DOUBLE_EQ(capacity(8), 150e9);
    EXPECT_DOUBLE_EQ(capacity(12), 200e9);
    EXPECT_DOUBLE_EQ(capacity(1), 200e9);
    EXPECT_DOUBLE_EQ(capacity(5), 200e9 * 12 / 15);
    EXPECT_DOUBLE_EQ(capacity(16), 200e9 * 12 / 16);  // ports without a rank
    EXPECT_DOUBLE_EQ(terms_of(job, Collective::bcast, 1000, {{{"node", 8}}, 0, false}).limit.seconds, 1000 / 150e9);
}

TEST(BoundTerms, count_rounds_of_the_smallest_latency_where_messages_at_once_are_bounded) {
    const Job job = job_on("2leaf~5ms:8node~1ms:1core");
    const RoundsTerm any = terms_of(job, Collective::bcast, 4).rounds;
    EXPECT_EQ(any.at_once, 0);
    EXPECT_EQ(any.seconds, 0);
    for (const auto& [at_once, rounds] : std::vector<std::pair<int, int>>{{1, 4}, {2, 3}, {3, 2}, {14, 2}, {15, 1}}) {
        const RoundsTerm term = terms_of(job, Collective::bcast, 4, {{}, at_once, false}).rounds;
        EXPECT_EQ(term.rounds, rounds) << at_once;
        EXPECT_DOUBLE_EQ(term.seconds, rounds * 1e-3);
    }
    EXPECT_EQ(terms_of(job, Collective::bcast, 4, {{}, 1, false}).limit.kind, "latency");
}

TEST(BoundTerms, take_the_messages_at_once_from_overheads) {
    const Job job = costed_job(R"({"name":"node","latency_s":1e-6,"overhead_s":4e-7})", "", 64, 1);
    const BoundTerms terms = terms_of(job, Collective::bcast, 1);
    EXPECT_EQ(terms.rounds.at_once, 3);
    EXPECT_EQ(terms.rounds.rounds, 3);
    EXPECT_EQ(terms.limit.kind, "rounds");
    EXPECT_DOUBLE_EQ(terms.limit.seconds, 3e-6);
    EXPECT_DOUBLE_EQ(terms.limit_in_network.seconds, 1e-6);
}

TEST(BoundTerms, count_a_node_as_one_member_where_its_ranks_share_memory) {
    const Job job = costed_job(
        R"({"name":"node","latency_s":1e-6,"overhead_s":1e-6},{"name":"core","latency_s":1e-7,"overhead_s":1e-7})", "",
        64, 3);
    EXPECT_EQ(terms_of(job, Collective::barrier, 0).rounds.members, 64);
    EXPECT_EQ(terms_of(job, Collective::barrier, 0).rounds.rounds, 3);  // three ranks tell three nodes at once
    const RoundsTerm apart = terms_of(job, Collective::barrier, 0, {{}, 0, true}).rounds;
    EXPECT_EQ(apart.members, 192);
    EXPECT_DOUBLE_EQ(apart.latency_s, 1e-7);
}

TEST(BoundTerms, hold_what_memory_must_do) {
    const Job job = costed_job(R"({"name":"node"})", R"("copy_bytes_per_s":1e9,"reduce_bytes_per_s":2e9)", 2, 2);
    EXPECT_DOUBLE_EQ(terms_of(job, Collective::allgather, 1000).copy.seconds, 1e-6);
    EXPECT_EQ(terms_of(job, Collective::allgather, 1000).limit.kind, "copy");
    EXPECT_EQ(terms_of(job, Collective::bcast, 1000).copy.bytes, 0);
    // Four vectors of 4000 bytes: 12,000 bytes of results, which four ranks share.
    const BoundTerms sum = terms_of(job, Collective::allreduce, 4000);
    EXPECT_EQ(sum.reduce.bytes, 3000);
    EXPECT_DOUBLE_EQ(sum.limit.seconds, 1.5e-6);
    EXPECT_EQ(sum.limit.kind, "reduce");
    EXPECT_EQ(sum.limit_in_network.kind, "none");
    EXPECT_EQ(terms_of(job, Collective::exscan, 4000).reduce.bytes, 2000);
}

TEST(BoundTerms, of_an_uneven_gather_copy_the_roots_block) {
    const Job job = costed_job(R"({"name":"node"})", R"("copy_bytes_per_s":1e9)", 2, 2);
    const Request request{Collective::gather, Rank{2}, -1};
    EXPECT_EQ(bound_terms(job, request, {10, 20, 30, 40}).copy.bytes, 30);
}

TEST(BoundTerms, list_every_edge_of_a_level) {
    const std::vector<EdgeTerm> edges = bound_edges(lab(), Request{Collective::gather, Rank{0}, 1000}, {1000}, 0);
    ASSERT_EQ(edges.size(), 3);
    EXPECT_EQ(edges[0].traffic.in, 10000);
    EXPECT_EQ(edges[1].traffic.out, 6000);
    EXPECT_EQ(edges[2].name, "leaf2");
    EXPECT_THAT(error_of([] { bound_edges(lab(), Request{Collective::gather, Rank{0}, 1}, {1}, 7); }),
                HasSubstr("level 7 is outside of 0 to 1"));
}

TEST(BoundTerms, of_all_groups_of_a_scan_are_those_of_each_group) {
    for (const char* placement : {"block", "cyclic", "random:2"})
        for (const Collective collective : {Collective::scan, Collective::exscan}) {
            const Job job = job_on("4leaf:1+5+2+3node:2+4+3core", placement);
            const Crossing crossing(job, Request{collective, Rank{0}, 10}, {10});
            for (const topology::JobLevel& level : job.levels()) {
                const std::vector<Traffic> all = crossing.of_groups(level.groups);
                for (std::int32_t g = 0; g < level.groups.count(); ++g) {
                    const Traffic one = crossing.of(level.groups.first(g), level.groups.end(g));
                    EXPECT_EQ(all[static_cast<std::size_t>(g)].out, one.out);
                    EXPECT_EQ(all[static_cast<std::size_t>(g)].in, one.in);
                }
            }
        }
}

TEST(BoundTerms, are_found_for_a_million_ranks) {
    const Job job = job_on("1024leaf@100GB/s:64node@25GB/s:16core");
    for (std::size_t c = 0; c < plan::collective_count; ++c) {
        const BoundTerms terms = terms_of(job, static_cast<Collective>(c), 1 << 20);
        EXPECT_EQ(terms.limit.seconds > 0, static_cast<Collective>(c) != Collective::barrier);
    }
}

TEST(BoundTerms, refuse_ports_of_levels_that_are_not_there) {
    EXPECT_THAT(error_of([] { terms_of(lab(), Collective::bcast, 1, {{{"rack", 2}}, 0, false}); }),
                HasSubstr("ports: the job has no level 'rack'"));
    EXPECT_THAT(error_of([] { terms_of(lab(), Collective::bcast, 1, {{{"node", 0}}, 0, false}); }),
                HasSubstr("needs at least one port, not 0"));
}

}  // namespace
}  // namespace palmette::model::bound_terms_tests
