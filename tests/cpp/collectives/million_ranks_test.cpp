// One rank's program among a million, on a regular tree: studies/program_million.py prints times and memory.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"

namespace palmette::collectives {
namespace {

Job job_of(std::int32_t leaves) { return Job::regular({{"leaf", leaves}, {"node", 64}, {"core", 16}}); }

std::size_t parts(const Program& program) {
    return program.steps.size() + program.regions.size() + program.waits.size();
}

TEST(MillionRanks, a_gather_program_has_a_few_steps_and_regions) {
    const Job job = job_of(1024);
    for (const std::int32_t rank : {0, 1, 16, 1024, 1'048'575}) {
        const Program program =
            make_program(job, Rank{rank}, {Collective::gather, Rank{0}, 64}, Spec::parse("by_topology"));
        EXPECT_LT(parts(program), 100U) << rank;
    }
}

TEST(MillionRanks, programs_grow_with_the_logarithm_of_p_only) {
    for (const char* text : {"leaders:between=recursive_doubling", "leaders:between=bruck", "bruck"}) {
        const Request request{Collective::allgather, Rank{0}, 64};
        const std::size_t small = parts(make_program(job_of(16), Rank{0}, request, Spec::parse(text)));
        const std::size_t large = parts(make_program(job_of(1024), Rank{0}, request, Spec::parse(text)));
        EXPECT_LT(large, 2 * small) << text;
        EXPECT_LT(large, 2000U) << text;
    }
}

TEST(MillionRanks, a_job_in_cyclic_order_is_as_small) {
    const Job job = Job::regular({{"leaf", 1024}, {"node", 64}, {"core", 16}}, true);
    const Program program =
        make_program(job, Rank{65'536}, {Collective::gather, Rank{5}, 64}, Spec::parse("by_topology"));
    EXPECT_EQ(program.steps.size(), 1U);
    EXPECT_EQ(program.steps[0].peer, Rank{0}) << "the leader of its node";
}

}  // namespace
}  // namespace palmette::collectives
