#include "palmette/model/bound/bound.hpp"

#include <gmock/gmock.h>

#include "palmette/model/bound/crossing.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/space.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"
#include "support/specs.hpp"

namespace palmette::model::bound_tests {
namespace {

using plan::Collective;
using plan::Request;
using test::error_of;
using test::job_on;
using testing::HasSubstr;
using topology::Job;
using topology::Rank;

/// Three leaves of 6, 6 and 4 ranks at 6.25 MB/s, hosts of two ranks at 12.5 MB/s.
Job lab() { return job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"); }

Bound bound_of(const Job& job, Collective collective, std::vector<std::int64_t> block_bytes, std::int32_t root = 0) {
    return bound(job, Request{collective, Rank{root}, block_bytes.front()}, block_bytes);
}

TEST(Bound, of_a_broadcast_is_the_vector_over_the_slowest_edge) {
    const Bound found = bound_of(lab(), Collective::bcast, {262144});
    EXPECT_DOUBLE_EQ(found.seconds, 262144 / 6.25e6);
    EXPECT_EQ(found.kind, "link");
    EXPECT_EQ(found.level, "leaf");
    EXPECT_TRUE(found.outwards);  // of the root's leaf
    EXPECT_EQ(found.group, 0);
    EXPECT_EQ(found.bytes, 262144);
}

TEST(Bound, of_a_reduce_is_that_of_a_broadcast_with_the_way_turned_round) {
    const Bound found = bound_of(lab(), Collective::reduce, {262144}, 15);
    EXPECT_DOUBLE_EQ(found.seconds, 262144 / 6.25e6);
    EXPECT_TRUE(found.outwards);  // leaf 0 sends what it has summed up
    EXPECT_EQ(found.group, 0);
}

TEST(Bound, of_a_broadcast_inside_one_leaf_leaves_the_uplinks_out) {
    const Bound found = bound_of(job_on("3leaf@1B/s:2node@10B/s:1core", "block", 2), Collective::bcast, {100});
    EXPECT_DOUBLE_EQ(found.seconds, 10);
    EXPECT_EQ(found.level, "node");
}

TEST(Bound, of_an_allreduce_counts_the_edges_of_a_level_together) {
    // Leaves: 2 (3 - 1) n over 3 edges. Hosts: 2 (8 - 1) n over 8 edges that are twice as fast, so less.
    const Bound found = bound_of(lab(), Collective::allreduce, {262144});
    EXPECT_DOUBLE_EQ(found.seconds, 4 * 262144 / (3 * 6.25e6));
    EXPECT_EQ(found.kind, "links");
    EXPECT_EQ(found.level, "leaf");
    EXPECT_EQ(found.bytes, 4 * 262144);
}

TEST(Bound, of_an_allreduce_on_two_groups_is_what_one_edge_carries) {
    const Bound found = bound_of(job_on("2node@100B/s:4core"), Collective::allreduce, {1000});
    EXPECT_DOUBLE_EQ(found.seconds, 10);
    EXPECT_EQ(found.kind, "link");
}

TEST(Bound, of_a_reduce_scatter_is_what_a_small_group_has_to_hand_out) {
    // Leaf 2 has 4 of 16 ranks: its sums for the other 12 go out.
    const Bound found = bound_of(lab(), Collective::reduce_scatter, {16384});
    EXPECT_DOUBLE_EQ(found.seconds, 12 * 16384 / 6.25e6);
    EXPECT_EQ(found.group, 2);
    EXPECT_TRUE(found.outwards);
}

TEST(Bound, of_a_reduce_scatter_counts_blocks_of_unequal_lengths) {
    // Ranks 0 and 1 on node 0, 2 and 3 on node 1: node 0 sends 10 + 30, node 1 sends 1 + 2.
    const Bound found = bound_of(job_on("2node@1B/s:2core"), Collective::reduce_scatter, {1, 2, 10, 30});
    EXPECT_DOUBLE_EQ(found.seconds, 40);
    EXPECT_EQ(found.group, 0);
    EXPECT_TRUE(found.outwards);
}

TEST(Bound, of_an_alltoall_is_greatest_where_a_group_and_the_rest_are_about_equal) {
    // A leaf of 6: 6 * 10 pairs, a leaf of 4: 4 * 12; a host 2 * 14 over twice the capacity.
    const Bound found = bound_of(lab(), Collective::alltoall, {16384});
    EXPECT_DOUBLE_EQ(found.seconds, 60 * 16384 / 6.25e6);
    EXPECT_EQ(found.level, "leaf");
}

TEST(Bound, of_an_uneven_alltoall_adds_up_the_pairs_that_cross) {
    // By sender and receiver; cyclic: ranks 0 and 2 on node 0. Out of node 0: 0>1, 0>3, 2>1, 2>3.
    const std::vector<std::int64_t> pairs{900, 1, 900, 2, 3, 900, 4, 900, 900, 5, 900, 6, 7, 900, 8, 900};
    const Bound found = bound_of(job_on("2node@1B/s:2core", "cyclic"), Collective::alltoall, pairs);
    EXPECT_DOUBLE_EQ(found.seconds, 3 + 4 + 7 + 8);
    EXPECT_FALSE(found.outwards);
    EXPECT_EQ(found.group, 0);
}

TEST(Bound, of_a_scan_in_topology_order_is_one_vector_over_each_edge) {
    for (const Collective c : {Collective::scan, Collective::exscan}) {
        const Bound found = bound_of(lab(), c, {262144});
        EXPECT_DOUBLE_EQ(found.seconds, 262144 / 6.25e6);
        EXPECT_EQ(found.level, "leaf");
    }
}

TEST(Bound, of_a_scan_counts_how_often_the_ranks_change_sides) {
    // Cyclic on two nodes: 0 2 4 and 1 3 5. Node 0's sums go out three times, those of node 1 twice; the last has
    // nobody behind it.
    const Bound found = bound_of(job_on("2node@1B/s:3core", "cyclic"), Collective::scan, {10});
    EXPECT_DOUBLE_EQ(found.seconds, 30);
    EXPECT_EQ(found.group, 0);
    EXPECT_TRUE(found.outwards);
}

TEST(Bound, of_a_scan_needs_nothing_into_the_node_of_the_first_ranks) {
    const Job job = job_on("3node@1B/s:2core");
    const Crossing crossing(job, Request{Collective::scan, Rank{0}, 10}, {10});
    EXPECT_EQ(crossing.of(0, 2).in, 0);
    EXPECT_EQ(crossing.of(0, 2).out, 10);
    EXPECT_EQ(crossing.of(2, 4).in, 10);
    EXPECT_EQ(crossing.of(2, 4).out, 10);
    EXPECT_EQ(crossing.of(4, 6).in, 10);
    EXPECT_EQ(crossing.of(4, 6).out, 0);
    EXPECT_EQ(crossing.of(0, 6).out, 0);
}

TEST(Bound, of_a_barrier_is_the_longest_way) {
    const Bound found = bound_of(job_on("2leaf@1B/s~5ms:2node@1B/s~1ms:2core"), Collective::barrier, {0});
    EXPECT_DOUBLE_EQ(found.seconds, 5e-3);
    EXPECT_EQ(found.kind, "latency");
    EXPECT_EQ(found.level, "leaf");
    EXPECT_EQ(bound_of(lab(), Collective::barrier, {0}).kind, "none");
}

TEST(Bound, takes_the_latency_of_a_level_only_where_somebody_must_cross_it) {
    // Pod 0 has one leaf, so its ranks never leave a leaf without leaving the pod.
    const Job job = job_on("2pod~1ms:1+2leaf~5ms:1node");
    EXPECT_DOUBLE_EQ(bound_of(job, Collective::bcast, {1}, 0).seconds, 1e-3);
    EXPECT_DOUBLE_EQ(bound_of(job, Collective::bcast, {1}, 2).seconds, 5e-3);
    EXPECT_DOUBLE_EQ(bound_of(job, Collective::allreduce, {4}).seconds, 5e-3);
}

TEST(Bound, is_nothing_where_nothing_moves) {
    const Job job = job_on("2leaf@1B/s~5ms:2node@1B/s~1ms:2core");
    for (std::size_t i = 0; i < plan::collective_count; ++i) {
        const auto c = static_cast<Collective>(i);
        if (c == Collective::barrier) continue;
        EXPECT_DOUBLE_EQ(bound_of(job, c, {0}).seconds, 0) << plan::name_of(c);
        BoundOptions messages;
        messages.messages_only = true;
        messages.at_once = 1;
        EXPECT_DOUBLE_EQ(bound_terms(job, Request{c, Rank{0}, 0}, {0}, messages).limit.seconds, 0) << plan::name_of(c);
    }
}

TEST(Bound, asks_no_message_of_ranks_whose_blocks_are_empty) {
    // Those of the other leaf have nothing for the root.
    const Job job = job_on("2leaf@1GB/s~5ms:2node@1GB/s~1ms:2core");
    EXPECT_DOUBLE_EQ(bound_of(job, Collective::gather, {1, 1, 1, 1, 0, 0, 0, 0}).seconds, 1e-3);
    EXPECT_DOUBLE_EQ(bound_of(job, Collective::gather, {1, 1, 1, 1, 0, 0, 0, 1}).seconds, 5e-3);
}

TEST(Bound, of_few_bytes_is_the_latency_and_of_many_the_link) {
    const Job job = job_on("2leaf@1KB/s~5ms:2node@1GB/s:2core");
    EXPECT_EQ(bound_of(job, Collective::allreduce, {4}).kind, "latency");
    EXPECT_EQ(bound_of(job, Collective::allreduce, {4096}).kind, "link");
}

TEST(Bound, refuses_lists_of_a_wrong_length_and_roots_that_are_not_there) {
    EXPECT_THAT(error_of([] { bound_of(lab(), Collective::allgather, {1, 2}); }),
                HasSubstr("expected one, or one for each of 16 ranks, found 2"));
    EXPECT_THAT(error_of([] { bound_of(lab(), Collective::alltoall, {1, 2}); }),
                HasSubstr("expected one, or one for each of 256 pairs of ranks, found 2"));
    EXPECT_THAT(error_of([] { bound_of(lab(), Collective::bcast, {1, 2}); }),
                HasSubstr("sizes of bcast: expected one, found 2"));
    EXPECT_THAT(error_of([] { bound_of(lab(), Collective::reduce, {1}, 16); }), HasSubstr("root 16 is outside"));
    EXPECT_NO_THROW(bound_of(lab(), Collective::allreduce, {1}, 16));
}

/// The bound of the links against what plans really put on them.
void expect_no_plan_below_the_bound(const std::string& machine, const std::string& placement) {
    const Job job = job_on(machine, placement);
    for (const test::NamedSpec& named : test::every_spec())
        for (const std::int32_t root : {0, job.size() - 1}) {
            if (root > 0 && !plan::is_rooted(named.first)) continue;
            Request request{named.first, Rank{root}, 4800};
            request.element_bytes = plan::is_reduction(named.first) ? 4 : 1;
            const collectives::Spec spec = collectives::Spec::parse(named.second);
            if (collectives::algorithm_named(named.first, spec.name).refuse(job, request, spec)) continue;
            const plan::PlanCount count = plan::count(collectives::make_plan(job, request, spec), job, {4800});
            EXPECT_GE(count.busiest_s * (1 + 1e-12), bound(job, request, {4800}).seconds)
                << plan::name_of(named.first) << ' ' << named.second << ", " << machine << ' ' << placement << ", root "
                << root;
        }
}

TEST(Bound, is_undercut_by_no_plan_of_any_algorithm) {
    for (const std::string& placement : test::placements()) {
        expect_no_plan_below_the_bound("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", placement);
        expect_no_plan_below_the_bound("2pod@1Gbit/s:2+1leaf@3Gbit/s:2+3+1node@1Gbit/s:3core", placement);
        expect_no_plan_below_the_bound("2node@1GB/s:1+3core", placement);
    }
}

}  // namespace
}  // namespace palmette::model::bound_tests
