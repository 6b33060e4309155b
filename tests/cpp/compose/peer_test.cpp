// What does not depend on a machine's load, beside the figures that HiCCL's programs show: messages, bytes between
// groups, scratch.
#include <gtest/gtest.h>

#include <algorithm>

#include "palmette/compose/factor.hpp"
#include "palmette/compose/named.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"

namespace palmette::compose {
namespace {

using Shape = Method::Shape;

constexpr std::int64_t vector_bytes = 8 * 1024;

struct Figures {
    std::int64_t messages, bytes_between, messages_between, scratch, chain;
};

Figures figures(std::string_view name, std::string_view hierarchy, std::int32_t ranks, std::vector<std::int64_t> bytes,
                Factoring factoring) {
    NamedRequest request;
    request.ranks = ranks;
    request.bytes = std::move(bytes);
    request.element_bytes = 4;
    const Composition composition = compose(name, request);
    const Job job = job_of_hierarchy(hierarchy, ranks);
    const Tree tree = Tree::of(job);
    const Factory factory(composition, job, tree, std::move(factoring));
    const plan::Plan plan = factory.plan();
    const auto complaint = plan::verify(plan, job);
    EXPECT_FALSE(complaint) << *complaint;
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < plan.contract->blocks(); ++b) lengths.push_back(plan.contract->bytes_of(b));
    const plan::PlanCount count = plan::count(plan, job, lengths);
    std::int64_t scratch = 0;
    for (const Program& program : plan.programs) scratch = std::max(scratch, factory.scratch_bytes(program));
    return {count.messages, count.levels[0].bytes, count.levels[0].messages, scratch, count.longest_chain};
}

TEST(PeerFigures, allreduce_of_8_ranks_in_groups_of_4_crosses_with_2_vectors_in_few_messages_and_little_scratch) {
    const Figures found = figures("allreduce", "2:4", 8, {vector_bytes}, {});
    EXPECT_EQ(found.bytes_between, 2 * vector_bytes);
    EXPECT_LE(found.messages, 112);
    EXPECT_EQ(found.messages, 64) << "12 in each group and 8 between them, there and back";
    EXPECT_LE(found.scratch, vector_bytes * 88 / 100);
}

TEST(PeerFigures, gather_of_2_groups_of_4_takes_7_messages_and_half_of_the_data_crosses) {
    const Figures found = figures("gather", "2:4", 8, {vector_bytes / 8}, {{{Shape::direct, 2, 1}}});
    EXPECT_EQ(found.messages, 7);
    EXPECT_EQ(found.messages_between, 1);
    EXPECT_EQ(found.bytes_between, vector_bytes / 2);
}

TEST(PeerFigures, reduce_of_2_groups_of_4_takes_7_messages_and_scratch_of_a_vector) {
    const Figures found =
        figures("reduce", "2:4", 8, {vector_bytes}, {{{Shape::direct, 2, 0}, {Shape::ring, 2, 0}}, 1, 1, 1});
    EXPECT_EQ(found.messages, 7);
    EXPECT_EQ(found.bytes_between, vector_bytes);
    EXPECT_LE(found.scratch, vector_bytes);
}

// studies/scale.py tells how soon they are made.
TEST(PeerFigures, all_to_all_of_16_ranks_in_4_stripes_32_deep_takes_608_steps_a_rank) {
    NamedRequest request;
    request.ranks = 16;
    request.bytes = {4096};
    const Composition composition = compose("alltoall", request);
    const Job job = job_of_hierarchy("4:4", 16);
    const Tree tree = Tree::of(job);
    const Factory factory(composition, job, tree, {{Method{}}, 4, 32, 4});
    std::size_t steps = 0;
    for (std::int32_t r = 0; r < 16; ++r) steps += factory.program(Rank{r}).steps.size();
    EXPECT_EQ(steps, 16 * 608U);
}

}  // namespace
}  // namespace palmette::compose
