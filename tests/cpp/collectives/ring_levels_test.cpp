#include "palmette/collectives/exchanges/ring_levels.hpp"

#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives {
namespace {

using test::job_on;

/// Group counts of the levels that close, outermost first.
std::vector<std::int32_t> closing(const Job& job, const char* ring = "ring") {
    std::vector<std::int32_t> out;
    for (const topology::Partition& level : ring_levels(job, Spec::parse(ring))) out.push_back(level.count());
    return out;
}

TEST(RingLevels, uneven_switches_close_where_their_uplinks_are_slow) {
    // Plain: 11 blocks through the edge of a node. Closed: 10 out and 10 back through that of the node which ends the
    // larger switch.
    EXPECT_THAT(closing(job_on("2leaf@100Mbit/s:1+5node@100Mbit/s:2core")), testing::ElementsAre(6));
    EXPECT_THAT(closing(job_on("2leaf@50Mbit/s:1+5node@100Mbit/s:2core")), testing::ElementsAre(2, 6));
    EXPECT_THAT(closing(job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core")), testing::ElementsAre(3, 8));
}

TEST(RingLevels, even_switches_and_unknown_edges_close) {
    EXPECT_THAT(closing(job_on("4leaf@400Mbit/s:4node@100Mbit/s:2core")), testing::ElementsAre(4, 16));
    EXPECT_THAT(closing(job_on("2leaf:1+5node:2core")), testing::ElementsAre(2, 6));
}

TEST(RingLevels, only_some_of_two_tiers_close) {
    // Uneven pods below a fast spine, of even leaves with slow uplinks.
    EXPECT_THAT(closing(job_on("2pod@900Mbit/s:1+4leaf@50Mbit/s:4node@100Mbit/s:2core")), testing::ElementsAre(5, 20));
}

TEST(RingLevels, a_word_decides_otherwise) {
    const Job job = job_on("2leaf@100Mbit/s:1+5node@100Mbit/s:2core", "random:1");
    EXPECT_THAT(closing(job, "ring:nested=yes"), testing::ElementsAre(2, 6));
    EXPECT_THAT(closing(job, "ring:nested=no"), testing::IsEmpty());
    EXPECT_THAT(closing(job, "ring:order=rank"), testing::IsEmpty());
}

TEST(RingLevels, levels_that_stay_open_give_right_plans_with_less_through_the_fullest_node) {
    for (const char* machine :
         {"2leaf@100Mbit/s:1+5node@100Mbit/s:2core", "2pod@900Mbit/s:1+4leaf@50Mbit/s:4node@100Mbit/s:2core"}) {
        const Job job = job_on(machine, "random:1");
        const auto fullest = [&](const char* ring) {
            Request request{Collective::allgather, Rank{0}, 100};
            const plan::Plan plan = make_plan(job, request, Spec::parse(ring));
            EXPECT_EQ(plan::verify(plan, job), std::nullopt) << machine << ' ' << ring;
            std::int64_t most = 0;
            for (const auto& level : plan::count(plan, job, {100}).levels)
                if (level.level == "node")
                    for (const auto& link : level.links) most = std::max(most, link.bytes_out);
            return most;
        };
        EXPECT_LT(fullest("ring"), 0.7 * static_cast<double>(fullest("ring:nested=yes"))) << machine;
        EXPECT_EQ(fullest("leaders:leaders=2,between=ring"), fullest("ring")) << machine;
        for (const Collective collective : {Collective::reduce_scatter, Collective::allreduce, Collective::bcast}) {
            Request request{collective, Rank{0}, 100 * 4};
            request.element_bytes = 4;
            const char* spec = collective == Collective::bcast ? "scatter_allgather" : "ring";
            EXPECT_EQ(plan::verify(make_plan(job, request, Spec::parse(spec)), job), std::nullopt)
                << machine << ' ' << plan::name_of(collective);
        }
    }
}

}  // namespace
}  // namespace palmette::collectives
