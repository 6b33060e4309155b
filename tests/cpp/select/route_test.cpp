// Who carries a call out, without any MPI: what settings, table, model and shared memory make of it.
#include "palmette/select/route.hpp"

#include <gtest/gtest.h>

#include <random>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/space.hpp"
#include "support/jobs.hpp"

namespace palmette::select {
namespace {

using LeaveReason = Route::LeaveReason;

Surroundings compared_calls() {
    Surroundings out;
    out.compared = true;
    return out;
}

/// A job and what its communicator knows; changed by tests before they choose.
struct ChoiceSetup {
    explicit ChoiceSetup(std::string_view machine = "2leaf@10GB/s:4node@5GB/s:4core", std::int32_t ranks = 32,
                         std::string_view placement = "block")
        : job(test::job_on(machine, placement, ranks)), in_rank_order(job.in_rank_order()) {}

    RouteContext context() const {
        RouteContext out{.table = Table::built_in(), .job = job, .in_rank_order = in_rank_order};
        out.scattered = is_scattered(job);
        out.forced = forced ? &*forced : nullptr;
        out.reproducible = reproducible;
        out.most_tags = 16384;
        out.node_memory = memory;
        out.around = around;
        return out;
    }
    Route of(Function function, std::int64_t bytes) const {
        PlanKey key;
        key.function = function;
        key.block_bytes = bytes;
        return choose_route(key, context());
    }
    void force(const char* spec) { forced = ForcedChoice{Spec::parse(spec), "a test"}; }

    Job job, in_rank_order;
    std::optional<ForcedChoice> forced;
    bool reproducible = false;
    NodeMemory memory{.usable = true, .ring_bytes = 1 << 20};
    Surroundings around = compared_calls();
};

constexpr NodeMemory set_up{
    .usable = true, .is_set_up = true, .single_copy = true, .pays_from = 16384, .ring_bytes = 1 << 20};

TEST(Route, of_a_forced_algorithm_is_that) {
    ChoiceSetup one;
    one.force("ring");
    const Route route = one.of(Function::allreduce, 4096);
    EXPECT_EQ(route.left, LeaveReason::no);
    EXPECT_EQ(route.algorithm, "ring");
    EXPECT_EQ(route.reason, "forced by a test");
    EXPECT_EQ(route.basis, Basis::demand);
    EXPECT_GT(route.tags, 0);
}

TEST(Route, of_a_function_that_is_forced_to_the_mpi_is_the_mpis_also_without_data) {
    ChoiceSetup one;
    one.forced = ForcedChoice{std::nullopt, "a test"};
    for (const std::int64_t bytes : {0, 8, 65536}) {
        EXPECT_EQ(one.of(Function::bcast, bytes).left, LeaveReason::chosen);
        EXPECT_EQ(one.of(Function::bcast, bytes).reason, "forced by a test");
    }
    EXPECT_EQ(left_to_mpi(Function::bcast, one.context()).always, "forced by a test");
}

TEST(Route, tells_why_a_forced_algorithm_cannot_serve) {
    ChoiceSetup odd("3node:1core", 3);
    odd.force("neighbor_exchange");
    const Route refused = odd.of(Function::allgather, 64);
    EXPECT_EQ(refused.left, LeaveReason::precondition);
    EXPECT_NE(refused.reason, "");
    odd.force("linear");
    EXPECT_EQ(odd.of(Function::allgather, 64).left, LeaveReason::no);
    odd.force("in_network");
    EXPECT_EQ(odd.of(Function::allreduce, 64).left, LeaveReason::precondition);
}

TEST(Route, of_more_tags_than_there_are_is_the_mpis) {
    ChoiceSetup one("64node:1core", 64);
    one.force("linear");
    RouteContext context = one.context();
    context.most_tags = 0;
    PlanKey key;
    key.function = Function::alltoall;
    key.block_bytes = 8;
    EXPECT_EQ(choose_route(key, context).left, LeaveReason::too_many_tags);
}

TEST(Route, moves_nothing_where_there_is_nothing) {
    const ChoiceSetup one;
    const Route nothing = one.of(Function::allgather, 0);
    EXPECT_EQ(nothing.left, LeaveReason::no);
    EXPECT_FALSE(nothing.spec);
    EXPECT_EQ(nothing.reason, "nothing to move");
    EXPECT_NE(one.of(Function::barrier, 0).reason, "nothing to move");
}

TEST(Route, of_a_reproducible_reduction_depends_on_ranks_and_data_alone) {
    std::string algorithm;
    for (const char* placement : {"block", "cyclic", "random:7"}) {
        ChoiceSetup one("2leaf@10GB/s:4node@5GB/s:4core", 32, placement);
        one.reproducible = true;
        const Route route = one.of(Function::allreduce, 65536);
        EXPECT_EQ(route.left, LeaveReason::no);
        EXPECT_EQ(route.job, &one.in_rank_order);
        if (algorithm.empty()) algorithm = route.algorithm;
        EXPECT_EQ(route.algorithm, algorithm) << placement;
    }
}

TEST(Route, asks_for_shared_memory_before_it_is_set_up_and_then_reads_long_blocks_where_they_lie) {
    ChoiceSetup one("1node:8core", 8);
    one.force("shared");
    EXPECT_TRUE(one.of(Function::bcast, 65536).needs_node_memory);
    one.memory = set_up;
    const Route route = one.of(Function::bcast, 65536);
    EXPECT_FALSE(route.needs_node_memory);
    EXPECT_TRUE(route.shares);
    EXPECT_EQ(route.candidate, "shared");
    EXPECT_EQ(route.algorithm, "shared:single=16K");
    EXPECT_EQ(route.single_copy_from, 16384);
    EXPECT_EQ(one.of(Function::bcast, 1024).single_copy_from, INT64_MAX);
    one.memory.owners_always_map = true;
    EXPECT_EQ(one.of(Function::bcast, 1024).single_copy_from, 1);
    one.memory.usable = false;
    EXPECT_EQ(one.of(Function::bcast, 1024).left, LeaveReason::precondition);
}

TEST(Route, of_blocks_of_unknown_length_shares_only_what_is_read_in_place) {
    ChoiceSetup one("1node:8core", 8);
    one.force("shared");
    one.memory = set_up;
    const Route route = one.of(Function::alltoallv, -1);
    EXPECT_TRUE(route.shares);
    EXPECT_EQ(route.single_copy_from, 16384);
    one.memory.single_copy = false;
    EXPECT_EQ(one.of(Function::alltoallv, -1).left, LeaveReason::precondition);
}

class RandomCalls : public testing::Test {
  protected:
    std::int64_t below(std::int64_t count) {
        return static_cast<std::int64_t>(engine() % static_cast<unsigned>(count));
    }
    bool coin() { return below(2) == 0; }
    PlanKey key() {
        PlanKey out;
        out.function = static_cast<Function>(below(function_count));
        out.blocking = below(4) > 0;
        const bool reduces = plan::is_reduction(collective_of(out.function));
        out.ordered = reduces && below(8) == 0;
        out.exact = !reduces || coin();
        out.known = coin();
        out.element_bytes = reduces ? 8 : 1;
        const bool unknown = sizes_unknown(out.function) && coin();
        out.block_bytes = unknown ? -1 : out.element_bytes * (std::int64_t{1} << below(18));
        return out;
    }
    std::mt19937 engine{20261130};
};

TEST_F(RandomCalls, get_the_same_route_on_nodes_whose_memory_differs) {
    const ChoiceSetup choices[] = {ChoiceSetup(), ChoiceSetup("4node@1GB/s:8core", 32, "cyclic"),
                                   ChoiceSetup("1node:6core", 6), ChoiceSetup("3leaf:3+2+1node:2core", 12, "random:3"),
                                   ChoiceSetup("16node@25GB/s:1core", 16)};
    for (int draw = 0; draw < 10000; ++draw) {
        const ChoiceSetup& one = choices[below(std::size(choices))];
        const PlanKey call = key();
        RouteContext here = one.context();
        here.reproducible = below(8) == 0;
        here.around.blocking = call.blocking;
        here.around.oversubscribed = coin();
        here.around.compared = coin();
        here.node_memory = set_up;
        here.node_memory.usable = coin();
        RouteContext there = here;
        // What a node's memory allows is known there alone.
        there.node_memory.pays_from = std::int64_t{1} << below(20);
        if (one.job.nodes().groups.count() > 1) there.node_memory.single_copy = coin();
        const Route a = choose_route(call, here), b = choose_route(call, there), again = choose_route(call, here);
        ASSERT_EQ(a.left, b.left) << draw;
        ASSERT_EQ(a.candidate, b.candidate) << draw;
        ASSERT_EQ(a.tags, b.tags) << draw;
        ASSERT_EQ(a.shares, b.shares) << draw;
        ASSERT_EQ(a.algorithm, again.algorithm) << draw;
        ASSERT_FALSE(a.reason.empty()) << draw;
        if (a.left == LeaveReason::no && a.spec) {
            const auto& row = collectives::algorithm_named(a.request.collective, a.spec->name);
            ASSERT_FALSE(row.refuse(*a.job, a.request, *a.spec)) << draw << ": " << a.algorithm;
        }
    }
}

TEST_F(RandomCalls, that_are_left_without_a_look_would_have_been_left) {
    for (const char* machine : {"2leaf@10GB/s:4node@5GB/s:4core", "1node:6core", "40node@1GB/s:2core"}) {
        ChoiceSetup one(machine, machine[0] == '1' ? 6 : 32);
        for (std::size_t f = 0; f < function_count; ++f)
            for (const bool blocking : {true, false}) {
                const auto function = static_cast<Function>(f);
                one.around.blocking = one.around.compared = blocking;
                const LeftFunction left = left_to_mpi(function, one.context());
                for (int draw = 0; draw < 40; ++draw) {
                    PlanKey call;
                    call.function = function;
                    call.blocking = blocking;
                    call.block_bytes = std::int64_t{1} << below(20);
                    if (sizes_unknown(function)) call.block_bytes = -1;
                    const auto holds = [&](const LeftSizes& one_range) {
                        return one_range.from <= call.block_bytes && call.block_bytes <= one_range.to;
                    };
                    if (!left.always && std::none_of(left.sizes.begin(), left.sizes.end(), holds)) continue;
                    const Route route = choose_route(call, one.context());
                    ASSERT_EQ(route.left, LeaveReason::chosen) << machine << ", " << name_of(function) << " of "
                                                               << call.block_bytes << ": " << route.algorithm;
                }
            }
    }
}

}  // namespace
}  // namespace palmette::select
