// A rank's program is a pure function of what all ranks share: it can be made alone, in any order, in another process.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "support/jobs.hpp"
#include "support/specs.hpp"

namespace palmette::collectives {
namespace {

std::string text(const Program& program) { return plan::to_json(program).dump(); }

TEST(MakeProgram, gives_the_same_alone_as_together_with_all_others) {
    for (const char* machine : {"3leaf:3+3+3node:4core", "2pod:2+3leaf:2+1+3node:2socket:2+3core"}) {
        const Job job = test::job_on(machine, "random:3", 32);
        // What another process would hold: the job as it came over the wire.
        const Job received = Job::from_json(base::Json::parse(job.to_json().dump()));
        for (const auto& [collective, spec_text] : test::every_spec()) {
            const Spec spec = Spec::parse(spec_text);
            const Request request{collective, Rank{5}, 64};
            if (algorithm_named(collective, spec.name).refuse(job, request, spec)) continue;
            const plan::Plan together = make_plan(job, request, spec);
            for (std::int32_t r = job.size() - 1; r >= 0; --r)
                ASSERT_EQ(text(make_program(received, Rank{r}, request, Spec::parse(spec.text()))),
                          text(together.programs[static_cast<std::size_t>(r)]))
                    << spec_text << " rank " << r;
        }
    }
}

TEST(MakeProgram, holds_only_steps_of_its_own_rank) {
    const Job job = test::job_on("4leaf:1+5+2+3node:1+4+3core", "random:3");
    for (const auto& [collective, spec_text] : test::every_spec()) {
        const Spec spec = Spec::parse(spec_text);
        const Request request{collective, Rank{0}, 64};
        if (algorithm_named(collective, spec.name).refuse(job, request, spec)) continue;
        for (std::int32_t r = 0; r < job.size(); ++r) {
            const Program program = make_program(job, Rank{r}, request, spec);
            EXPECT_EQ(program.rank, Rank{r});
            for (const plan::Step& step : program.steps) {
                EXPECT_EQ(plan::has_peer(step.kind), step.peer != Rank{-1});
                EXPECT_NE(step.peer, Rank{r});
            }
        }
    }
}

TEST(MakeProgram, of_a_single_rank_only_copies) {
    const Job job = Job::flat(1);
    for (const auto& [collective, spec_text] : test::every_spec()) {
        const Spec spec = Spec::parse(spec_text);
        const Request request{collective, Rank{0}, 64};
        if (algorithm_named(collective, spec.name).refuse(job, request, spec)) continue;
        for (const plan::Step& step : make_program(job, Rank{0}, request, spec).steps)
            EXPECT_EQ(step.kind, plan::StepKind::copy) << spec_text;
    }
}

}  // namespace
}  // namespace palmette::collectives
