// The tests of the template for new algorithms, gather_chain.cpp: what each algorithm should have of its own.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {

extern const Algorithm gather_chain;

namespace {

plan::Plan make_plan_of(const Algorithm& row, const Job& job, std::int32_t root, const Spec& spec) {
    plan::Plan plan{{row.collective, Rank{root}, 64}, spec.text(), {}};
    for (std::int32_t r = 0; r < job.size(); ++r) plan.programs.push_back(row.make(job, Rank{r}, plan.request, spec));
    return plan;
}

// The proof: all sizes, uneven trees, placements, roots.
TEST(TemplateAlgorithm, is_right_for_every_root_on_uneven_trees) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements())
            for (std::int32_t p = 1; p <= 17; ++p) {
                const Job job = test::job_on(machine, placement, p);
                for (std::int32_t root = 0; root < p; ++root)
                    ASSERT_EQ(plan::verify(make_plan_of(gather_chain, job, root, Spec::parse("chain")), job),
                              std::nullopt)
                        << machine << ' ' << placement << " p=" << p << " root=" << root;
            }
}

// The counts that make it worth having, or not.
TEST(TemplateAlgorithm, crosses_each_leaf_once_and_takes_p_minus_1_steps_from_the_end) {
    const Job job = test::job_on("3leaf:3+3+2node:2core", "cyclic");
    const plan::PlanCount count = plan::count(make_plan_of(gather_chain, job, 0, Spec::parse("chain")), job, {64});
    EXPECT_EQ(count.levels[0].messages, 2);
    EXPECT_EQ(count.longest_chain, 15);
}

// What it refuses.
TEST(TemplateAlgorithm, refuses_longer_chains_and_unknown_keys) {
    const Job job = Job::flat(9);
    EXPECT_EQ(gather_chain.refuse(job, {}, Spec::parse("chain:longest=8")), "a chain of 9 ranks is longer than 8");
    EXPECT_EQ(gather_chain.refuse(job, {}, Spec::parse("chain:longest=9")), std::nullopt);
    EXPECT_THAT(test::error_of([&] { gather_chain.refuse(job, {}, Spec::parse("chain:segment=8")); }),
                testing::HasSubstr("key 'segment' is unknown"));
}

}  // namespace
}  // namespace palmette::collectives
