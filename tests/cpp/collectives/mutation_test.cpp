// Real plans, broken on purpose in every place: the verifier must notice each time and say where.
#include <gmock/gmock.h>

#include "palmette/base/text.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/verify.hpp"
#include "support/edit_program.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using plan::Plan;
using plan::StepId;
using plan::StepKind;
using test::LooseStep;
using test::put_together;
using test::take_apart;
using testing::HasSubstr;
using testing::Optional;

/// Whether two steps touch the same block and one of them writes there: only then is the wait between them needed.
bool conflict(const LooseStep& a, const LooseStep& b) {
    const plan::Slice x = a.step.slice;
    const plan::Slice y = b.step.slice;
    if (x.index * y.of >= (y.index + 1) * x.of || y.index * x.of >= (x.index + 1) * y.of) return false;
    const auto first_written = [](const LooseStep& loose) {
        return loose.step.kind == StepKind::send   ? loose.regions.size()
               : loose.step.kind == StepKind::recv ? 0
                                                   : loose.regions.size() - loose.step.target_count;
    };
    for (std::size_t i = 0; i < a.regions.size(); ++i)
        for (std::size_t j = 0; j < b.regions.size(); ++j) {
            const bool writes = i >= first_written(a) || j >= first_written(b);
            const plan::Interval ours = a.regions[i].blocks;
            const plan::Interval theirs = b.regions[j].blocks;
            if (writes && a.regions[i].buffer == b.regions[j].buffer && ours.first < theirs.end() &&
                theirs.first < ours.end())
                return true;
        }
    return false;
}

/// Whether `step` still waits for `earlier` by way of others.
bool reaches(const std::vector<LooseStep>& steps, StepId step, StepId earlier) {
    for (const StepId wait : steps[step].waits)
        if (wait == earlier || reaches(steps, wait, earlier)) return true;
    return false;
}

class BrokenPlan : public testing::TestWithParam<std::pair<Collective, const char*>> {
  protected:
    BrokenPlan()
        : job_(test::job_on("2leaf:2node:3core", "random:2", 8)),
          plan_(make_plan(job_, {GetParam().first, Rank{3}, 64}, Spec::parse(GetParam().second))) {}

    /// The plan with one rank's steps changed.
    template <class Change>
    std::optional<std::string> verdict(std::size_t rank, const Change& change) {
        Plan broken = plan_;
        std::vector<LooseStep> steps = take_apart(broken.programs[rank]);
        change(steps);
        put_together(broken.programs[rank], steps);
        return plan::verify(broken, job_);
    }
    template <class Visit>
    void for_each_step(const Visit& visit) {
        for (std::size_t r = 0; r < plan_.programs.size(); ++r)
            for (StepId s = 0; s < plan_.programs[r].steps.size(); ++s) visit(r, s, plan_.programs[r].steps[s]);
    }
    static std::string where(std::size_t rank, StepId step) { return base::cat("rank ", rank, ", step ", step, " "); }

    Job job_;
    Plan plan_;
};

TEST_P(BrokenPlan, is_right_before_it_is_broken) { EXPECT_EQ(plan::verify(plan_, job_), std::nullopt); }

TEST_P(BrokenPlan, lacks_one_step) {
    int broken = 0;
    for_each_step([&](std::size_t r, StepId s, const plan::Step& step) {
        Plan plan = plan_;
        test::drop_step(plan.programs[r], s);
        const auto complaint = plan::verify(plan, job_);
        ASSERT_NE(complaint, std::nullopt) << where(r, s);
        // A lost message is missed by its other side; a lost copy by whoever needs the block.
        if (step.kind != StepKind::copy) {
            EXPECT_THAT(complaint, Optional(HasSubstr(base::cat("rank ", step.peer, ", step "))));
            EXPECT_THAT(complaint, Optional(HasSubstr("no other rank has the matching step")));
        } else {
            EXPECT_THAT(complaint, Optional(HasSubstr(base::cat("rank ", r))));
            EXPECT_THAT(complaint, Optional(testing::ContainsRegex("before anything is there|is never written")));
        }
        ++broken;
    });
    EXPECT_GT(broken, 8);
}

TEST_P(BrokenPlan, misses_one_dependency) {
    int broken = 0;
    for_each_step([&](std::size_t r, StepId s, const plan::Step& step) {
        for (std::uint32_t w = 0; w < step.wait_count; ++w) {
            const StepId wait = plan_.programs[r].waits_of(step)[w];
            std::vector<LooseStep> steps = take_apart(plan_.programs[r]);
            steps[s].waits.erase(steps[s].waits.begin() + w);
            if (!conflict(steps[s], steps[wait]) || reaches(steps, s, wait)) continue;
            const auto complaint = verdict(r, [&](std::vector<LooseStep>& changed) { changed = steps; });
            ASSERT_NE(complaint, std::nullopt) << where(r, s) << "without its wait for step " << wait;
            EXPECT_THAT(complaint,
                        Optional(testing::ContainsRegex("before anything is there|neither waits for the other")));
            EXPECT_THAT(complaint, Optional(HasSubstr(base::cat("rank ", r, ", step "))));
            ++broken;
        }
    });
    EXPECT_GE(broken, std::string(GetParam().second) == "linear" ? 0 : 5);
}

TEST_P(BrokenPlan, has_blocks_swapped_in_one_message) {
    int broken = 0;
    for_each_step([&](std::size_t r, StepId s, const plan::Step& step) {
        if (step.kind == StepKind::copy) return;
        const std::int64_t block = plan_.programs[r].regions_of(step)[0].blocks.first;
        const std::int64_t other = block == 0 ? 1 : block - 1;
        const auto complaint =
            verdict(r, [&](std::vector<LooseStep>& steps) { steps[s].regions[0].blocks.first = other; });
        ASSERT_NE(complaint, std::nullopt) << where(r, s);
        EXPECT_THAT(complaint, Optional(testing::ContainsRegex(base::cat("rank (", r, "|", step.peer, "), step"))));
        ++broken;
    });
    EXPECT_GT(broken, 8);
}

TEST_P(BrokenPlan, has_a_wrong_tag) {
    for_each_step([&](std::size_t r, StepId s, const plan::Step& step) {
        if (step.kind == StepKind::copy) return;
        const auto complaint = verdict(r, [&](std::vector<LooseStep>& steps) { steps[s].step.tag += 1000; });
        EXPECT_THAT(complaint, Optional(HasSubstr("no other rank has the matching step"))) << where(r, s);
    });
}

TEST_P(BrokenPlan, has_a_message_twice) {
    for_each_step([&](std::size_t r, StepId s, const plan::Step& step) {
        if (step.kind == StepKind::copy) return;
        const auto complaint = verdict(r, [&](std::vector<LooseStep>& steps) { steps.push_back(steps[s]); });
        EXPECT_THAT(complaint, Optional(HasSubstr("a second message with the same tag between the same two ranks")));
        EXPECT_THAT(complaint, Optional(HasSubstr(where(r, static_cast<StepId>(plan_.programs[r].steps.size())))));
    });
}

TEST_P(BrokenPlan, serves_another_root) {
    plan_.request.root = Rank{4};
    if (plan_.request.collective == Collective::allgather) {
        EXPECT_EQ(plan::verify(plan_, job_), std::nullopt) << "an allgather has no root";
        return;
    }
    EXPECT_THAT(plan::verify(plan_, job_), Optional(HasSubstr("which this rank doesn't have")));
}

using Case = std::pair<Collective, const char*>;

INSTANTIATE_TEST_SUITE_P(
    Of, BrokenPlan,
    testing::Values(Case(Collective::gather, "linear"), Case(Collective::gather, "k_nomial"),
                    Case(Collective::gather, "by_topology:node=linear,leaf=linear,segment=20"),
                    Case(Collective::scatter, "linear"), Case(Collective::scatter, "k_nomial:radix=3"),
                    Case(Collective::scatter, "by_topology"), Case(Collective::allgather, "ring"),
                    Case(Collective::allgather, "ring:segment=32"), Case(Collective::allgather, "recursive_doubling"),
                    Case(Collective::allgather, "bruck:radix=3"), Case(Collective::allgather, "neighbor_exchange"),
                    Case(Collective::allgather, "leaders"),
                    Case(Collective::allgather, "leaders:leaders=2,between=bruck,inside=binomial")),
    [](const auto& made) {
        std::string name = plan::name_of(made.param.first);
        for (const char c : std::string("_") + made.param.second)
            name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
        return name;
    });

TEST(CrossedSteps, of_two_ranks_are_a_deadlock_for_every_pair_that_exchanges) {
    const Job job = test::job_on("2leaf:2node:2core");
    const Plan right = make_plan(job, {Collective::allgather, Rank{0}, 64}, Spec::parse("recursive_doubling"));
    int crossed = 0;
    for (std::size_t a = 0; a < right.programs.size(); ++a)
        for (StepId s = 0; s < right.programs[a].steps.size(); ++s) {
            const plan::Step& step = right.programs[a].steps[s];
            const auto b = static_cast<std::size_t>(step.peer.value);
            if (step.kind != StepKind::recv || b < a) continue;
            // Both now take only when their own send to the other is complete, as blocking calls in this order would.
            Plan broken = right;
            for (const std::size_t rank : {a, b}) {
                std::vector<LooseStep> steps = take_apart(broken.programs[rank]);
                ASSERT_EQ(steps[s - 1].step.kind, StepKind::send);
                ASSERT_EQ(steps[s - 1].step.peer.value, static_cast<std::int32_t>(rank == a ? b : a));
                steps[s].waits.push_back(s - 1);
                put_together(broken.programs[rank], steps);
            }
            EXPECT_THAT(plan::verify(broken, job), Optional(HasSubstr("deadlock: rank ")));
            ++crossed;
        }
    EXPECT_EQ(crossed, 12);
}

}  // namespace
}  // namespace palmette::collectives
