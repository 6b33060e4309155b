// What a communicator keeps: plans by key, tags by range.
#include "palmette/runtime/state/communicator.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "support/jobs.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

constexpr int tag_limit = 32767;

/// State whose rank is alone in the process, so that nothing here may communicate.
struct State {
    explicit State(std::string_view machine, std::int32_t ranks)
        : state(MPI_COMM_SELF, test::job_on(machine, "block", ranks), 0, tag_limit, Waiting(Waiting::Policy::mpi)) {
        settings.shared = false;
        settings.device_check = false;
    }
    void force(Function function, const char* spec) {
        settings.forced[static_cast<std::size_t>(function)] =
            Settings::ForcedChoice{select::Spec::parse(spec), "a test"};
    }
    CachedPlan& plan(Function function, std::int64_t bytes, std::int32_t root = 0) {
        PlanKey key;
        key.function = function;
        key.root = root;
        key.block_bytes = bytes;
        return state.plan_for(key, settings);
    }

    Settings settings;
    Communicator state;
};

TEST(Communicator, makes_a_plan_once_for_each_key) {
    State one("3leaf:3+3+3node:4core", 24);
    one.force(Function::bcast, "by_topology");
    CachedPlan& first = one.plan(Function::bcast, 1024);
    EXPECT_FALSE(first.refusal);
    EXPECT_EQ(first.route.algorithm, "by_topology");
    EXPECT_EQ(first.route.reason, "forced by a test");
    EXPECT_FALSE(first.bound.steps.empty());
    CachedPlan& other = one.plan(Function::bcast, 1024, 5);
    EXPECT_NE(&first, &other);
    EXPECT_EQ(&one.plan(Function::bcast, 1024), &first);
    EXPECT_EQ(&one.plan(Function::bcast, 1024, 5), &other);
}

TEST(Communicator, keeps_a_bounded_number_of_plans_and_those_that_are_in_use) {
    State one("4node:2core", 8);
    one.force(Function::bcast, "k_nomial");
    CachedPlan& used = one.plan(Function::bcast, 7);
    used.users = 1;
    std::set<const CachedPlan*> seen;
    for (std::int64_t bytes = 8; bytes < 8 * 1000; bytes += 8) seen.insert(&one.plan(Function::bcast, bytes));
    EXPECT_LT(seen.size(), 999U) << "rooms are used again";
    EXPECT_EQ(&one.plan(Function::bcast, 7), &used);
    EXPECT_EQ(used.key.block_bytes, 7);
}

TEST(Communicator, leaves_a_call_to_the_mpi_whose_algorithm_refuses_the_job) {
    State one("3node:2core", 6);
    one.force(Function::allgather, "neighbor_exchange");
    EXPECT_FALSE(one.plan(Function::allgather, 64).refusal);
    State odd("3node:1core", 3);
    odd.force(Function::allgather, "neighbor_exchange");
    CachedPlan& refused = odd.plan(Function::allgather, 64);
    ASSERT_TRUE(refused.refusal);
    EXPECT_EQ(*refused.refusal, Refusal::precondition);
    EXPECT_NE(refused.route.reason, "");
}

TEST(Communicator, binds_every_remote_step_to_a_transport_that_carries_it) {
    State one("3leaf:3+3+3node:4core", 24);
    one.force(Function::allreduce, "leaders");
    PlanKey key;
    key.function = Function::allreduce;
    key.block_bytes = 4096;
    key.element_bytes = 8;
    const CachedPlan& plan = one.state.plan_for(key, one.settings);
    const execute::Transports& transports = one.state.executor().transports();
    for (const execute::BoundStep& step : plan.bound.steps)
        if (plan::is_message(step.kind)) {
            EXPECT_STREQ(transports[step.transport]->name(), "mpi");
        }
}

TEST(TagSpace, gives_blocking_nonblocking_and_kept_ranges_that_never_meet) {
    TagSpace tags(400);
    EXPECT_EQ(tags.for_blocking(), 200);
    const auto first = tags.take(60), second = tags.take(60);
    ASSERT_TRUE(first && second);
    EXPECT_GE(first->first, 200);
    EXPECT_EQ(second->first, 200) << "the first one's come back";
    EXPECT_FALSE(tags.take(101));
    const auto kept = tags.keep(20), other = tags.keep(20);
    ASSERT_TRUE(kept && other);
    EXPECT_GE(kept->first, 300);
    EXPECT_FALSE(kept->overlaps(*other));
    EXPECT_FALSE(tags.keep(20));
    EXPECT_TRUE(tags.keep(10));
    const auto lent = tags.lend(50);
    ASSERT_TRUE(lent);
    EXPECT_EQ(lent->first, 350);
    EXPECT_FALSE(tags.lend(1));
}

TEST(TagSpace, lends_the_first_gap_again_that_is_wide_enough) {
    TagSpace tags(400);
    const auto a = *tags.lend(15), b = *tags.lend(15), c = *tags.lend(15);
    tags.give_back(b);
    EXPECT_EQ(tags.lend(10)->first, b.first);
    tags.give_back(a);
    EXPECT_EQ(tags.lend(15)->first, a.first);
    EXPECT_FALSE(tags.lend(15));
    tags.give_back(c);
    EXPECT_EQ(tags.lend(15)->first, b.first + 10);
}

TEST(Comparison, has_a_number_of_its_own_though_another_was_at_its_address) {
    std::optional<Comparison> one;
    one.emplace(MPI_COMM_SELF, Comparison::Terms{.share = 0.01});
    const std::int64_t first = one->number();
    one.emplace(MPI_COMM_SELF, Comparison::Terms{.share = 0.01});
    EXPECT_NE(one->number(), first);
}

}  // namespace
}  // namespace palmette::runtime
