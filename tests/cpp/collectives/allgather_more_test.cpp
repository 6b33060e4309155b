// Allgather by Bine butterflies, circulant graphs, locality-aware Bruck and leaders level by level; Bine gather and
// scatter: their exact counts.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>

#include "palmette/base/text.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "support/crossings.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"
#include "support/plan_times.hpp"

namespace palmette::collectives::allgather_more_tests {
namespace {

using plan::LevelCount;
using plan::LinkCount;
using plan::Plan;
using plan::PlanCount;
using plan::StepKind;
using test::job_on;

PlanCount count(const Job& job, Collective collective, std::string_view text, std::int32_t root = 0,
                bool shared_memory = false) {
    Request request{collective, Rank{root}, 1};
    request.shared_memory = shared_memory;
    return plan::count(make_plan(job, request, Spec::parse(text)), job, {1});
}
PlanCount allgather(const Job& job, std::string_view text, bool shared_memory = false) {
    return count(job, Collective::allgather, text, 0, shared_memory);
}

const LevelCount& level(const PlanCount& count, std::string_view name) {
    return *std::find_if(count.levels.begin(), count.levels.end(),
                         [&](const LevelCount& l) { return l.level == name; });
}

std::int64_t ceil_lg(std::int32_t p) { return std::bit_width(static_cast<std::uint32_t>(p - 1)); }

TEST(AllgatherCirculant, takes_ceil_lg_p_messages_and_p_minus_1_blocks_for_any_number_of_ranks) {
    for (std::int32_t p = 2; p <= 40; ++p) {
        const PlanCount made = allgather(Job::flat(p), "circulant");
        EXPECT_EQ(made.messages, p * ceil_lg(p)) << p;
        EXPECT_EQ(made.bytes, std::int64_t{p} * (p - 1)) << p;
        // The last messages may carry nothing that came late.
        EXPECT_LE(made.longest_chain, ceil_lg(p)) << p;
    }
    EXPECT_EQ(allgather(Job::flat(32), "circulant").longest_chain, 5);
}

TEST(AllgatherCirculant, needs_fewer_bytes_in_its_last_step_than_bruck_would_with_a_full_one) {
    // 9 ranks: skips 1 2 3 5, so the last step brings 4 blocks; Bruck's brings 1 after steps of 1, 2 and 4.
    const Plan made = make_plan(Job::flat(9), {Collective::allgather, Rank{0}, 1}, Spec::parse("circulant"));
    std::vector<std::int64_t> taken;
    for (const plan::Step& step : made.programs[0].steps)
        if (step.kind == StepKind::recv) {
            std::int64_t blocks = 0;
            for (const plan::Region& region : made.programs[0].regions_of(step)) blocks += region.blocks.count;
            taken.push_back(blocks);
        }
    EXPECT_THAT(taken, testing::ElementsAre(1, 1, 2, 4));
}

TEST(AllgatherBine, takes_lg_p_messages_for_powers_of_two_and_two_more_steps_for_pairs) {
    for (const std::int32_t p : {2, 4, 8, 16, 64}) {
        const PlanCount made = allgather(Job::flat(p), "bine");
        EXPECT_EQ(made.messages, p * ceil_lg(p));
        EXPECT_EQ(made.bytes, std::int64_t{p} * (p - 1));
        EXPECT_EQ(made.longest_chain, ceil_lg(p));
    }
    // Every block still reaches every rank once.
    for (std::int32_t p = 3; p <= 33; ++p) {
        EXPECT_EQ(allgather(Job::flat(p), "bine").bytes, std::int64_t{p} * (p - 1)) << p;
        EXPECT_LE(allgather(Job::flat(p), "bine").longest_chain, ceil_lg(p) + 1) << p;
    }
}

TEST(AllgatherBine, crosses_leaves_with_less_than_recursive_doubling_where_leaves_are_no_powers_of_two) {
    for (const char* machine :
         {"4leaf:10+6+12+4node", "6leaf:12+12+12+12+12+4node", "11leaf:6+6+6+6+6+6+6+6+6+6+4node"}) {
        const Job job = job_on(machine);
        EXPECT_LT(level(allgather(job, "bine"), "leaf").bytes,
                  level(allgather(job, "recursive_doubling"), "leaf").bytes)
            << machine;
    }
}

TEST(AllgatherLocalityBruck, takes_k_minus_1_messages_for_each_digit_of_the_number_of_nodes) {
    struct Case {
        std::int32_t nodes, ranks, radix;
        std::int64_t messages;  ///< into each node
    };
    // Bienz et al.: with as many ranks a node as nodes in a round one message for each of the others.
    for (const Case& c : {Case{16, 4, 4, 6}, {16, 16, 16, 15}, {64, 4, 4, 9}, {27, 3, 3, 6}, {16, 4, 2, 4}}) {
        const Job job = Job::regular({{"node", c.nodes}, {"core", c.ranks}});
        const PlanCount made = allgather(job, base::cat("locality_bruck:radix=", c.radix));
        for (const LinkCount& link : level(made, "node").links) {
            EXPECT_EQ(link.messages_in, c.messages) << c.nodes << 'x' << c.ranks;
            EXPECT_EQ(link.messages_out, c.messages) << c.nodes << 'x' << c.ranks;
            EXPECT_EQ(link.bytes_in, job.size() - c.ranks);
        }
        if (c.radix == c.ranks) {
            const PlanCount by_default = allgather(job, "locality_bruck");
            EXPECT_EQ(level(by_default, "node").messages, c.nodes * c.messages);
        }
    }
    // Plain Bruck, 64 ranks on 16 nodes: each of 4 ranks sends 6 messages, most of them to other nodes.
    const Job job = Job::regular({{"node", 16}, {"core", 4}});
    EXPECT_EQ(level(allgather(job, "bruck"), "node").messages / 16, 19);
}

TEST(AllgatherLocalityBruck, gives_each_message_of_a_round_to_another_rank) {
    const Job job = Job::regular({{"node", 16}, {"core", 4}});
    const Plan made = make_plan(job, {Collective::allgather, Rank{0}, 1}, Spec::parse("locality_bruck"));
    for (const Program& program : made.programs) {
        int into = 0;
        for (const plan::Step& step : program.steps)
            if (step.kind == StepKind::recv && step.peer.value / 4 != program.rank.value / 4) ++into;
        EXPECT_THAT(into, testing::AnyOf(1, 2)) << program.rank;
    }
}

TEST(AllgatherLocalityBruck, moves_nothing_inside_a_node_by_messages_where_memory_is_shared) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    const PlanCount made = allgather(job, "locality_bruck:inside=shared", true);
    EXPECT_EQ(made.messages, level(made, "node").messages);
    EXPECT_EQ(made.pulled_bytes + made.bytes, 16 * 15);
}

TEST(AllgatherLeaders, read_each_block_once_where_it_lies_where_memory_is_shared) {
    for (const std::string& placement : test::placements())
        for (const char* const leaders : {"1", "2", "3", "7"}) {
            const Job job = job_on("3leaf:3+3+2node:4core", placement);
            const std::string spec = base::cat("leaders:between=bruck,leaders=", leaders);
            const PlanCount made = allgather(job, base::cat(spec, ",inside=shared"), true);
            EXPECT_EQ(made.messages, level(made, "node").messages) << spec << ' ' << placement;
            // A leader gets from other nodes what it exchanges; all else is read, own blocks from their owners.
            EXPECT_EQ(made.pulled_bytes + made.bytes, std::int64_t{job.size()} * (job.size() - 1)) << spec;
            EXPECT_EQ(made.bytes, level(allgather(job, spec), "node").bytes) << spec;
        }
}

TEST(AllgatherLeaders, expose_nothing_twice_that_peers_can_read) {
    const Job job = job_on("4node:4core", "block");
    Request request{Collective::allgather, Rank{0}, 1};
    request.shared_memory = true;
    const Plan made = make_plan(job, request, Spec::parse("leaders:leaders=2,inside=shared"));
    for (const plan::Program& program : made.programs) {
        std::int64_t exposed = 0;
        for (const plan::Step& step : program.steps)
            if (step.kind == StepKind::expose)
                for (const plan::Region& region : program.regions_of(step)) exposed += region.blocks.count;
        // Its own block; of leaders, half of what other nodes have.
        EXPECT_EQ(exposed, program.rank.value % 2 == 0 ? 1 + 3 * 2 : 1) << program.rank;
    }
}

TEST(AllgatherLeaders, send_messages_inside_where_a_leader_would_expose_too_many_pieces) {
    const Job job = job_on("70node:2core", "block");
    const PlanCount many = allgather(job, "leaders:inside=shared", true);
    EXPECT_EQ(many.pulled_bytes, 0);
    EXPECT_EQ(many.messages, allgather(job, "leaders").messages);
    EXPECT_GT(allgather(job, "leaders:between=bruck,inside=shared", true).pulled_bytes, 0);
}

TEST(AllgatherByTopology, crosses_the_top_with_one_message_a_pair_of_leaves_and_brings_every_block_once) {
    for (const std::string& placement : test::placements()) {
        const Job job = job_on("3leaf:3+3+2node:2core", placement);
        const PlanCount made = allgather(job, "by_topology:node=linear,leaf=linear,top=all");
        EXPECT_EQ(level(made, "leaf").messages, 6) << placement;
        // A node gets its leaf's blocks in one message, and those of each other leaf in one; its leader sends one up.
        EXPECT_EQ(level(made, "node").messages, 6 + (2 + 2 + 1) * (1 + 1 + 2)) << placement;
        for (std::size_t l = 0; l < job.levels().size(); ++l) {
            const topology::Partition& groups = job.levels()[l].groups;
            for (std::int32_t g = 0; g < groups.count(); ++g)
                EXPECT_EQ(made.levels[l].links[static_cast<std::size_t>(g)].bytes_in, job.size() - groups.size_of(g))
                    << placement << ' ' << made.levels[l].level << g;
        }
        // Up twice, across once, down twice.
        EXPECT_EQ(made.longest_chain, 5) << placement;
        const Plan plan = make_plan(job, {Collective::allgather, Rank{0}, 1}, Spec::parse("by_topology"));
        EXPECT_EQ(test::crossings_in_a_row(plan, job, "leaf"), 1) << placement;
    }
}

TEST(AllgatherByTopology, refuses_a_pattern_that_does_not_suit_the_groups_at_the_top) {
    const Job job = job_on("3leaf:3+3+2node:2core");
    const auto refusal = [&](const char* text) {
        return test::error_of(
            [&] { make_program(job, Rank{0}, {Collective::allgather, Rank{0}, 8}, Spec::parse(text)); });
    };
    EXPECT_THAT(refusal("by_topology:top=recursive_doubling"), testing::HasSubstr("power of two participants, not 3"));
    EXPECT_THAT(refusal("by_topology:top=star"), testing::HasSubstr("'star' is no exchange"));
    EXPECT_THAT(refusal("by_topology:leaf=ring"), testing::HasSubstr("'ring' is no tree"));
}

TEST(AllgatherLinear, takes_one_step) {
    const PlanCount made = allgather(job_on("3leaf:3+3+2node:2core", "random:4"), "linear");
    EXPECT_EQ(made.longest_chain, 1);
    EXPECT_EQ(made.messages, 16 * 15);
    EXPECT_EQ(level(made, "leaf").links[0].bytes_out, 6 * 10);
}

TEST(BineTree, gathers_and_scatters_in_ceil_lg_p_stages_along_one_message_a_rank) {
    for (const Collective collective : {Collective::gather, Collective::scatter})
        for (std::int32_t p = 2; p <= 33; ++p)
            for (const std::int32_t root : {0, p / 2, p - 1}) {
                const PlanCount made = count(Job::flat(p), collective, "bine", root);
                EXPECT_EQ(made.messages, p - 1);
                // The second of a pair hangs on its first, whose own way to the root is not always the longest one.
                EXPECT_LE(made.longest_chain, ceil_lg(p)) << p;
                EXPECT_GE(made.longest_chain, ceil_lg(p + 1) - 1) << p;
            }
    // A binomial tree sends the same number of blocks, each as often as its rank is deep.
    EXPECT_EQ(count(Job::flat(64), Collective::gather, "bine").bytes,
              count(Job::flat(64), Collective::gather, "k_nomial").bytes);
}

}  // namespace
}  // namespace palmette::collectives::allgather_more_tests
