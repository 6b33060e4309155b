// What scan and exscan must cost, exactly.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/crossings.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using plan::PlanCount;
using test::job_on;
using testing::HasSubstr;
using testing::Optional;

class Prefixes : public testing::TestWithParam<Collective> {
  protected:
    static plan::Plan plan_of(const Job& job, const char* text, std::int64_t bytes = 8) {
        Request request{GetParam(), Rank{0}, bytes};
        request.element_bytes = 8;
        return make_plan(job, request, Spec::parse(text));
    }
    static PlanCount count(const Job& job, const char* text, std::int64_t bytes = 8) {
        return plan::count(plan_of(job, text, bytes), job, {bytes});
    }
};

TEST_P(Prefixes, take_one_message_a_rank_along_a_chain) {
    for (const std::int32_t p : {2, 7, 16, 33}) {
        EXPECT_EQ(count(Job::flat(p), "linear").messages, p - 1);
        EXPECT_EQ(count(Job::flat(p), "linear").longest_chain, p - 1);
    }
    const PlanCount cut = count(Job::flat(16), "linear:segment=64", 256);
    EXPECT_EQ(cut.messages, 4 * 15);
    EXPECT_EQ(cut.bytes, 15 * 256);
}

TEST_P(Prefixes, take_p_lg_p_minus_p_plus_1_messages_by_doubling) {
    for (const std::int64_t lg : {1, 2, 3, 4, 5}) {
        const std::int64_t p = 1 << lg;
        const PlanCount made = count(Job::flat(static_cast<std::int32_t>(p)), "recursive_doubling");
        EXPECT_EQ(made.messages, p * lg - p + 1);
        EXPECT_EQ(made.longest_chain, lg);
    }
}

TEST_P(Prefixes, take_p_p_minus_1_over_2_messages_all_at_once) {
    for (const std::int32_t p : {2, 7, 16}) {
        EXPECT_EQ(count(Job::flat(p), "all").messages, p * (p - 1) / 2);
        EXPECT_EQ(count(Job::flat(p), "all").longest_chain, 1);
    }
}

TEST_P(Prefixes, cross_the_spine_once_along_the_levels) {
    const Job job = job_on("3leaf:3+3+2node:2core");
    for (const char* text : {"leaders", "leaders:level=leaf", "all"})
        EXPECT_EQ(test::crossings_in_a_row(plan_of(job, text), job, "leaf"), 1) << text;
    // A total from the first leaf to the two others and from the second to the third.
    const PlanCount made = count(job, "leaders:level=leaf");
    ASSERT_EQ(made.levels[0].level, "leaf");
    EXPECT_EQ(made.levels[0].messages, 3);
    // Without the exchange: one message up and one down for every rank but the 3 leaders of leaves; nobody asks the
    // last rank, its node and its leaf for a total.
    EXPECT_EQ(made.messages - 3, 2 * (16 - 3) - 2);
}

TEST_P(Prefixes, along_the_levels_are_refused_where_ranks_are_scattered) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:1");
    const Spec spec = Spec::parse("leaders");
    EXPECT_THAT(algorithm_named(GetParam(), "leaders").refuse(job, Request{GetParam()}, spec),
                Optional(HasSubstr("ranks are scattered")));
}

TEST_P(Prefixes, in_groups_cross_every_level_once_wherever_ranks_are) {
    for (const char* placement : {"block", "cyclic", "random:1", "random:5"}) {
        const Job job = job_on("3leaf:3+3+2node:2core", placement);
        for (const char* text : {"grouped:level=leaf", "grouped", "grouped:inside=all,segment=4"})
            EXPECT_EQ(test::crossings_in_a_row(plan_of(job, text), job, "leaf"), 1) << text << ' ' << placement;
    }
}

TEST_P(Prefixes, in_groups_take_a_vector_for_each_time_that_the_ranks_of_two_alternate) {
    // Ranks 0 2 4 6 and 1 3 5 7: every rank but the last sends to the next one.
    const Job alternating = job_on("2leaf:1node:4core", "cyclic");
    const PlanCount made = count(alternating, "grouped:level=leaf,inside=linear");
    ASSERT_EQ(made.levels[0].level, "leaf");
    EXPECT_EQ(made.levels[0].messages, 7);
    EXPECT_EQ(made.messages - 7, 2 * 3);
    // In the order of leaves the first one's total crosses once, and is handed on to three.
    const PlanCount in_order = count(job_on("2leaf:1node:4core"), "grouped:level=leaf,inside=linear");
    EXPECT_EQ(in_order.levels[0].messages, 1);
    EXPECT_EQ(in_order.messages - 1, 2 * 3 + 3);
}

TEST_P(Prefixes, in_groups_are_refused_for_ordered_operations_and_large_jobs) {
    const auto refused = [](const Job& job, bool ordered, const char* text) {
        Request request{GetParam(), Rank{0}, 8};
        request.ordered = ordered;
        return algorithm_named(GetParam(), "grouped").refuse(job, request, Spec::parse(text));
    };
    EXPECT_THAT(refused(job_on("2leaf:2node:2core"), true, "grouped"), Optional(HasSubstr("isn't commutative")));
    EXPECT_THAT(refused(job_on("2leaf:100node:2core"), false, "grouped"),
                Optional(HasSubstr("more than 96 sibling groups")));
    EXPECT_EQ(refused(job_on("2leaf:100node:2core"), false, "grouped:level=leaf"), std::nullopt);
    EXPECT_EQ(refused(job_on("2leaf:96node:2core"), false, "grouped"), std::nullopt);
    EXPECT_THAT(refused(job_on("2leaf:300node:2core"), false, "grouped:level=leaf"),
                Optional(HasSubstr("more than 1024 ranks")));
}

INSTANTIATE_TEST_SUITE_P(Of, Prefixes, testing::Values(Collective::scan, Collective::exscan),
                         [](const auto& made) { return std::string(plan::name_of(made.param)); });

TEST(Exscan, leaves_the_first_rank_without_result) {
    const Job job = job_on("2node:4core");
    for (const char* text : {"linear", "recursive_doubling", "all", "leaders"}) {
        const Program first = make_program(job, Rank{0}, Request{Collective::exscan, Rank{0}, 8}, Spec::parse(text));
        for (const plan::Region& region : first.regions) EXPECT_NE(region.buffer, plan::Buffer::recv) << text;
    }
}

}  // namespace
}  // namespace palmette::collectives
