// A template for new algorithms, compiled and tested: docs/guide/add-an-algorithm.md walks through this file.
//
// gather, chain: blocks move towards the root hand to hand, from both ends of the topology order.
//
//   p = 8, root at position 3:   0 → 1 → 2 → 3 ← 4 ← 5 ← 6 ← 7
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

// 1. What keeps it from serving a job. It may look only at what all ranks share, because all of them must decide alike.
std::optional<std::string> refuse(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"longest"});
    const std::int32_t longest = spec.integer("longest", 1024);
    if (job.size() > longest) return base::cat("a chain of ", job.size(), " ranks is longer than ", longest);
    return std::nullopt;
}

// 2. One rank's program, from arithmetic on its own position; no loop over the other ranks.
Program make(const Job& job, Rank rank, const Request& request, const Spec&) {
    const std::int32_t me = job.position_of(rank).value;
    const std::int32_t root = job.position_of(request.root).value;
    const std::int32_t last = job.size() - 1;
    plan::ProgramBuilder builder(rank, plan::BlockOrder::topology);
    builder.stage("chain");
    if (me == root) {
        if (me > 0) builder.recv(job.rank_at({me - 1}), 0, Buffer::recv, Blocks(0, me), {});
        if (me < last) builder.recv(job.rank_at({me + 1}), 0, Buffer::recv, Blocks(me + 1, last - me), {});
        builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {});
        return builder.finish();
    }
    const std::int32_t towards = me < root ? me + 1 : me - 1;
    const std::int32_t away = me < root ? me - 1 : me + 1;
    const Blocks behind = me < root ? Blocks(0, me) : Blocks(me + 1, last - me);
    if (behind.empty()) {
        builder.send(job.rank_at({towards}), 0, Buffer::send, Blocks(me, 1), {});
        return builder.finish();
    }
    Blocks passed_on = behind;
    passed_on.insert({me, 1});
    builder.reserve_scratch(passed_on);
    const StepId arrived = builder.recv(job.rank_at({away}), 0, Buffer::scratch, behind, {});
    const StepId own = builder.copy(Buffer::send, Buffer::scratch, Blocks(me, 1), {});
    builder.send(job.rank_at({towards}), 0, Buffer::scratch, passed_on, {arrived, own});
    return builder.finish();
}

// 3. The row. In src/palmette/collectives it is declared in rows.hpp and listed in registry.cpp.
const Algorithm gather_chain{
    Collective::gather,
    "chain",
    "Blocks move towards the root hand to hand, from both ends of the topology order.",
    "folklore; a tree of depth p, here to be read",
    "longest=N (1024)",
    "at most `longest` ranks",
    true,
    refuse,
    make,
};

plan::Plan make_plan_of(const Algorithm& row, const Job& job, std::int32_t root, const Spec& spec) {
    plan::Plan plan{{row.collective, Rank{root}, 64}, spec.text(), {}};
    for (std::int32_t r = 0; r < job.size(); ++r) plan.programs.push_back(row.make(job, Rank{r}, plan.request, spec));
    return plan;
}

// 4. The proof: all sizes, uneven trees, placements, roots.
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

// 5. The counts that make it worth having, or not.
TEST(TemplateAlgorithm, crosses_each_leaf_once_and_takes_p_minus_1_steps_from_the_end) {
    const Job job = test::job_on("3leaf:3+3+2node:2core", "cyclic");
    const plan::PlanCount count = plan::count(make_plan_of(gather_chain, job, 0, Spec::parse("chain")), job, {64});
    EXPECT_EQ(count.levels[0].messages, 2);
    EXPECT_EQ(count.longest_chain, 15);
}

// 6. What it refuses.
TEST(TemplateAlgorithm, refuses_longer_chains_and_unknown_keys) {
    const Job job = Job::flat(9);
    EXPECT_EQ(gather_chain.refuse(job, {}, Spec::parse("chain:longest=8")), "a chain of 9 ranks is longer than 8");
    EXPECT_EQ(gather_chain.refuse(job, {}, Spec::parse("chain:longest=9")), std::nullopt);
    EXPECT_THAT(test::error_of([&] { gather_chain.refuse(job, {}, Spec::parse("chain:segment=8")); }),
                testing::HasSubstr("key 'segment' is unknown"));
}

}  // namespace
}  // namespace palmette::collectives
