// What is special to barriers: their messages, and how many of them wait for each other across the spine.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "support/crossings.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"
#include "support/plan_times.hpp"

namespace palmette::collectives::barrier_tests {
namespace {

using plan::PlanCount;
using plan::StepKind;
using test::job_on;
using testing::HasSubstr;

constexpr const char* lab = "3leaf:3+3+2node:2core";

plan::Plan plan_of(const Job& job, std::string_view text, bool shared_memory = false) {
    Request request{Collective::barrier, Rank{0}};
    request.shared_memory = shared_memory;
    return make_plan(job, request, Spec::parse(text));
}

PlanCount count(const Job& job, std::string_view text, bool shared_memory = false) {
    return plan::count(plan_of(job, text, shared_memory), job, {0});
}

std::int64_t between_leaves(const PlanCount& count) { return count.levels.at(0).messages; }

TEST(DisseminationBarrier, sends_p_times_ceil_log_p_times_k_minus_1_messages) {
    for (const std::int32_t p : {2, 3, 5, 8, 16, 17, 33}) {
        std::int32_t lg = 0;
        while ((1 << lg) < p) ++lg;
        const PlanCount made = count(job_on("33node", "random:1", p), "dissemination");
        EXPECT_EQ(made.messages, p * lg);
        EXPECT_EQ(made.longest_chain, lg);
        EXPECT_EQ(made.bytes, 0);
    }
    for (const auto& [p, radix, rounds] : {std::tuple(27, 3, 3), std::tuple(16, 4, 2), std::tuple(25, 5, 2)}) {
        const PlanCount made = count(job_on("33node", "block", p), "dissemination:radix=" + std::to_string(radix));
        EXPECT_EQ(made.messages, p * rounds * (radix - 1));
        EXPECT_EQ(made.longest_chain, rounds);
    }
    // In a last round that is not full nobody is told what it knows.
    EXPECT_EQ(count(job_on("33node", "block", 6), "dissemination:radix=4").messages, 6 * (3 + 1));
}

TEST(BarrierByTopology, sends_2_p_minus_1_messages_of_which_2_R_minus_1_between_leaves) {
    for (const char* placement : {"block", "cyclic", "random:3"}) {
        const PlanCount made = count(job_on("3leaf:3+3+3node:4core", placement), "by_topology");
        EXPECT_EQ(made.messages, 2 * 35);
        EXPECT_EQ(between_leaves(made), 2 * 2);
        EXPECT_EQ(made.longest_chain, 6);
    }
}

TEST(BarrierCrossings, in_a_row_are_one_among_leaders_and_two_by_topology) {
    const Job job = job_on(lab, "random:4");
    const auto crossings = [&](const char* text) { return test::crossings_in_a_row(plan_of(job, text), job, "leaf"); };
    EXPECT_EQ(crossings("leaders"), 1);
    EXPECT_EQ(crossings("leaders:between=all,level=leaf"), 1);
    EXPECT_EQ(crossings("leaders:between=dissemination"), 2);
    EXPECT_EQ(crossings("by_topology"), 2);
    EXPECT_EQ(crossings("dissemination"), 3);
    EXPECT_EQ(between_leaves(count(job, "leaders")), 6) << "every leaf tells every other one";
    EXPECT_EQ(count(job, "leaders").messages, 2 * (16 - 3) + 6);
}

TEST(BarrierInsideOfANode, goes_through_memory_where_that_is_shared) {
    const Job job = job_on("2leaf:2node:2socket:3core", "random:1");
    for (const char* text : {"dissemination:inside=shared", "by_topology:inside=shared", "leaders:inside=shared",
                             "leaders:level=node,between=dissemination", "by_topology:node=shared,socket=shared"}) {
        const PlanCount with = count(job, text, true);
        EXPECT_EQ(with.levels.at(1).messages, with.messages) << text << ": all messages leave a node";
        EXPECT_LE(with.messages, 8) << text;
        std::size_t pulls = 0;
        for (const Program& program : plan_of(job, text, true).programs)
            for (const plan::Step& step : program.steps) pulls += step.kind == StepKind::pull ? 1 : 0;
        EXPECT_EQ(pulls, 2 * 20U) << text << ": each of the 20 who don't lead a node is heard and told once";
        EXPECT_EQ(count(job, text, false).messages, with.messages + 40) << text << ": messages instead";
    }
}

TEST(BarrierAmongLeaders, of_many_leaves_goes_in_rounds_unless_told_otherwise) {
    const Job job = Job::regular({{"leaf", 64}, {"node", 2}});
    EXPECT_EQ(between_leaves(count(job, "leaders")), 64 * 6);
    EXPECT_EQ(between_leaves(count(job, "leaders:radix=8")), 64 * 2 * 7);
    EXPECT_EQ(between_leaves(count(job, "leaders:between=all")), 64 * 63);
}

TEST(BarrierOfAMillion, has_small_programs) {
    const Job job = Job::regular({{"leaf", 1024}, {"node", 64}, {"core", 16}});
    Request request{Collective::barrier, Rank{0}};
    for (const bool shared_memory : {false, true})
        for (const char* text : {"dissemination", "dissemination:radix=8", "by_topology", "leaders"})
            for (const std::int32_t rank : {0, 1, 16, 1024, 1'048'575}) {
                request.shared_memory = shared_memory;
                const Program program = make_program(job, Rank{rank}, request, Spec::parse(text));
                EXPECT_LT(program.steps.size(), 120U) << text;
                EXPECT_EQ(program.regions.size(), 0U);
            }
}

TEST(Barrier, refuses_what_can_not_be_and_says_why) {
    const auto refusal = [](const char* text) {
        const Job job = job_on(lab);
        return test::error_of([&] { make_program(job, Rank{0}, {Collective::barrier, Rank{0}}, Spec::parse(text)); });
    };
    EXPECT_THAT(refusal("dissemination:radix=1"), HasSubstr("radix must be a whole number of at least 2"));
    EXPECT_THAT(refusal("leaders:between=ring"), HasSubstr("between is one of all, dissemination"));
    EXPECT_THAT(refusal("leaders:leaf=shared"), HasSubstr("'shared' is no tree"));
    EXPECT_THAT(refusal("by_topology:segment=1K"), HasSubstr("key 'segment' is unknown"));
    EXPECT_EQ(refusal("leaders:level=pod"), "no error") << "a level that this job lacks: nodes";
}

}  // namespace
}  // namespace palmette::collectives::barrier_tests
