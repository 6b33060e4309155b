// What is special to broadcasts: their counts, what they put on links, how long that takes, and what they refuse.
#include <gmock/gmock.h>

#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "support/crossings.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"
#include "support/plan_times.hpp"

namespace palmette::collectives::bcast_tests {
namespace {

using plan::PlanCount;
using plan::StepKind;
using test::job_on;
using testing::HasSubstr;

/// The emulated cluster: three leaves, ranks dealt at random.
constexpr const char* lab = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core";
constexpr double uplink_bytes_per_s = 50e6 / 8;

plan::Plan plan_of(const Job& job, std::string_view text, std::int64_t bytes, std::int32_t root = 0,
                   bool shared_memory = false) {
    Request request{Collective::bcast, Rank{root}, bytes};
    request.shared_memory = shared_memory;
    return make_plan(job, request, Spec::parse(text));
}

PlanCount count(const Job& job, std::string_view text, std::int64_t bytes, std::int32_t root = 0,
                bool shared_memory = false) {
    return plan::count(plan_of(job, text, bytes, root, shared_memory), job, {bytes});
}

const plan::LevelCount& level(const PlanCount& count, std::string_view name) {
    for (const plan::LevelCount& one : count.levels)
        if (one.level == name) return one;
    throw std::runtime_error("no such level");
}

TEST(BcastTrees, send_p_minus_1_messages_of_the_whole_vector) {
    for (const std::int32_t p : {2, 7, 16, 33}) {
        const Job job = job_on("4leaf:1+5+2+3node:2+4+3core", "random:3", p);
        for (const char* text : {"linear", "k_nomial", "k_nomial:radix=5", "k_ary:segment=1M", "chain:segment=1M",
                                 "by_topology", "by_topology:leaf=chain,node=binomial", "bine"})
            for (const std::int32_t root : {0, p / 2}) {
                const PlanCount made = count(job, text, 24'000, root);
                EXPECT_EQ(made.messages, p - 1) << text;
                EXPECT_EQ(made.bytes, (p - 1) * 24'000) << text;
            }
    }
}

TEST(BcastTrees, are_as_deep_as_the_methods_say) {
    const Job job = job_on("64node");
    EXPECT_EQ(count(job, "linear", 8).longest_chain, 1);
    EXPECT_EQ(count(job, "k_nomial", 8).longest_chain, 6);
    EXPECT_EQ(count(job, "k_nomial:radix=4", 8).longest_chain, 3);
    EXPECT_EQ(count(job, "k_ary", 8).longest_chain, 6);
    EXPECT_EQ(count(job, "chain", 8).longest_chain, 63);
    EXPECT_EQ(count(job, "bine", 8).longest_chain, 6);
    // Pairs cost no step more than ceil(lg p).
    for (const auto& [p, lg] : {std::pair(3, 2), std::pair(5, 3), std::pair(31, 5), std::pair(33, 6), std::pair(64, 6)})
        EXPECT_LE(count(job_on("64node", "block", p), "bine", 8).longest_chain, lg) << p;
}

TEST(BcastWindow, lets_a_message_wait_for_that_which_is_so_many_before_it) {
    const Job job = job_on(lab, "random:4");
    for (const std::uint32_t window : {0U, 1U, 3U})
        for (const std::string text : {"k_nomial:segment=4K", "by_topology:node=linear,leaf=linear,top=linear", "bine",
                                       "linear:segment=8K", "circulant:segments=5"}) {
            const std::string asked =
                window == 0 ? text
                            : base::cat(text, text.find(':') == std::string::npos ? ":" : ",", "window=", window);
            std::size_t most = 0;
            for (const Program& program : plan_of(job, asked, 16 << 10, 3).programs) {
                std::vector<plan::StepId> sends;
                for (plan::StepId s = 0; s < program.steps.size(); ++s) {
                    if (program.steps[s].kind != StepKind::send) continue;
                    const auto waits = program.waits_of(program.steps[s]);
                    const auto waited = std::count_if(waits.begin(), waits.end(), [&](plan::StepId before) {
                        return program.steps[before].kind == StepKind::send;
                    });
                    const bool held_back = window > 0 && sends.size() >= window;
                    EXPECT_EQ(waited, held_back ? 1 : 0) << asked;
                    if (held_back) {
                        EXPECT_EQ(std::count(waits.begin(), waits.end(), sends[sends.size() - window]), 1) << asked;
                    }
                    sends.push_back(s);
                }
                most = std::max(most, sends.size());
            }
            EXPECT_GT(most, 3U) << "somebody is held back";
        }
}

TEST(BcastSegments, add_messages_but_no_bytes) {
    const Job job = job_on("2leaf:4node:2core");
    EXPECT_EQ(count(job, "chain:segment=1000", 10'000).messages, 150);
    EXPECT_EQ(count(job, "chain:segment=1000", 10'000).bytes, 150'000);
    EXPECT_EQ(count(job, "chain", 1 << 20).messages, 15 * 16) << "a 16th of the vector";
    EXPECT_EQ(count(job, "chain", 16 << 20).messages, 15 * 64) << "at most 64 slices";
}

TEST(BcastChain, carries_the_vector_once_over_every_link_wherever_it_begins) {
    for (const std::string& machine : test::machines())
        for (const std::int32_t root : {0, 9, 32}) {
            const PlanCount made = count(job_on(machine, "random:5"), "chain:segment=250", 1000, root);
            for (const plan::LevelCount& one : made.levels)
                for (const plan::LinkCount& link : one.links) EXPECT_LE(link.busiest_bytes(), 1000) << machine;
        }
}

TEST(BcastByTopology, small_vectors_cross_the_spine_once_in_a_row) {
    const Job job = job_on(lab, "random:4");
    for (const std::int32_t root : {0, 7, 15}) {
        const plan::Plan made = plan_of(job, "by_topology", 1024, root);
        EXPECT_EQ(test::crossings_in_a_row(made, job, "leaf"), 1);
        EXPECT_EQ(level(plan::count(made, job, {1024}), "leaf").messages, 2);
    }
    EXPECT_EQ(test::crossings_in_a_row(plan_of(job, "k_nomial:order=rank", 1024), job, "leaf"), 3);
}

TEST(BcastByTopology, large_vectors_cross_every_uplink_once_and_end_close_to_the_bound) {
    for (const char* placement : {"random:4", "cyclic", "block"})
        for (const std::int32_t root : {0, 7, 15}) {
            const Job job = job_on(lab, placement);
            for (const char* text : {"by_topology", "by_topology:node=linear,top=chain,segment=8K", "chain"})
                for (const auto& [bytes, multiple] : {std::pair(256 << 10, 1.5), std::pair(64 << 10, 2.0)}) {
                    const plan::Plan made = plan_of(job, text, bytes, root);
                    const PlanCount counts = plan::count(made, job, {bytes});
                    for (const plan::LinkCount& link : level(counts, "leaf").links)
                        EXPECT_LE(link.busiest_bytes(), bytes) << text;
                    const double bound = bytes / uplink_bytes_per_s;
                    const double seconds = test::time_on_links(made, job);
                    EXPECT_GE(seconds, bound) << "the vector must enter a leaf";
                    EXPECT_LE(seconds, multiple * bound) << text << ", " << bytes << " bytes, root " << root;
                }
            // What it is compared with: store and forward.
            EXPECT_GT(test::time_on_links(plan_of(job, "k_nomial", 256 << 10, root), job),
                      2 * (256 << 10) / uplink_bytes_per_s);
        }
}

TEST(BcastByTopology, reads_memory_inside_of_a_node_and_sends_nothing_there) {
    const Job job = job_on("2leaf:2node:2socket:3core");
    const auto inside = [](const plan::Plan& plan) {
        std::size_t pulls = 0;
        for (const Program& program : plan.programs)
            for (const plan::Step& step : program.steps) pulls += step.kind == StepKind::pull ? 1 : 0;
        return pulls;
    };
    for (const char* text : {"by_topology", "by_topology:inside=shared", "by_topology:node=shared,socket=shared",
                             "by_topology:node=shared,top=chain"}) {
        const plan::Plan with = plan_of(job, text, 100, 5, true);
        EXPECT_EQ(inside(with), 20U) << text;
        EXPECT_EQ(level(plan::count(with, job, {100}), "node").messages, 3) << text;
        EXPECT_EQ(inside(plan_of(job, text, 100, 5, false)), 0U) << "messages where memory isn't shared";
    }
    // Level by level: the node's leader is read by the other socket's, and each of them by two of its own socket.
    const plan::Plan levels = plan_of(job, "by_topology:node=shared,socket=shared", 100, 0, true);
    const Program& leader = levels.programs[0];
    ASSERT_EQ(leader.steps.back().kind, StepKind::expose);
    EXPECT_EQ(leader.steps.back().readers, 3U);
    EXPECT_EQ(levels.programs[3].steps.back().readers, 2U);
}

TEST(BcastScatterAllgather, gives_no_rank_a_block_twice) {
    const Job job = job_on("2leaf:4node:2core", "random:1");
    for (const char* text : {"scatter_allgather", "scatter_allgather:allgather=recursive_doubling",
                             "scatter_allgather:allgather=bruck", "scatter_allgather:allgather=neighbor_exchange"})
        for (const std::int32_t root : {0, 11}) EXPECT_EQ(count(job, text, 1600, root).bytes, 15 * 1600) << text;
}

TEST(BcastScatterAllgather, brings_every_leaf_the_vector_once) {
    const Job job = job_on(lab, "random:4");
    const PlanCount made = count(job, "scatter_allgather", 16'000, 3);
    const topology::Partition& leaves = job.levels()[0].groups;
    const std::int32_t own = leaves.group_of(job.position_of({3}).value);
    for (std::int32_t leaf = 0; leaf < 3; ++leaf) {
        const plan::LinkCount& link = level(made, "leaf").links[static_cast<std::size_t>(leaf)];
        // The ring comes back to the root's leaf with what the others brought.
        EXPECT_EQ(link.bytes_in, leaf == own ? (16 - leaves.size_of(leaf)) * 1000 : 16'000);
    }
}

TEST(BcastNodePieces, crosses_twice_and_brings_every_other_node_the_vector_once) {
    const Job job = job_on("9node:4core");
    EXPECT_EQ(test::crossings_in_a_row(plan_of(job, "node_pieces", 7200, 5), job, "node"), 2);
    const auto links = level(count(job, "node_pieces", 7200, 5), "node").links;
    const std::int32_t root = job.nodes().groups.group_of(job.position_of({5}).value);
    for (std::int32_t node = 0; node < 9; ++node) {
        const plan::LinkCount& link = links[static_cast<std::size_t>(node)];
        EXPECT_EQ(link.bytes_in, node == root ? 0 : 7200);
        // The root's piece goes with those of the others.
        EXPECT_EQ(link.bytes_out, node == root ? 8 * 1600 : 7 * 800);
    }
}

TEST(BcastNodePieces, halving_takes_fewer_messages_inside_and_no_byte_twice) {
    // Five ranks: four hold parts, and the fifth gets all of them from one.
    const Job job = job_on("9node:5core");
    const PlanCount direct = count(job, "node_pieces", 7200), halving = count(job, "node_pieces:inside=halving", 7200);
    EXPECT_LT(halving.messages, direct.messages - 8 * 8);
    const auto inside = [](const PlanCount& made) { return made.bytes - level(made, "node").bytes; };
    EXPECT_LE(inside(halving), inside(direct));
    EXPECT_GE(inside(halving), 8 * 4 * 7200) << "four other ranks of each node need it";
}

TEST(BcastNodePieces, one_relay_is_the_root_itself) {
    const Job job = job_on("9node:4core");
    for (const std::int32_t root : {0, 7}) {
        std::int32_t far = 0;
        const plan::Plan made = plan_of(job, "node_pieces:relays=1", 7200, root);
        const auto node_of = [&](Rank rank) { return job.nodes().groups.group_of(job.position_of(rank).value); };
        for (const Program& program : made.programs)
            for (const plan::Step& step : program.steps)
                if (step.kind == StepKind::send && node_of(program.rank) == node_of({root}) &&
                    node_of(step.peer) != node_of({root})) {
                    EXPECT_EQ(program.rank, Rank{root});
                    ++far;
                }
        EXPECT_EQ(far, 8);
    }
    EXPECT_THAT(test::error_of([&] { plan_of(job, "node_pieces:relays=2", 7200); }), HasSubstr("relays"));
}

TEST(BcastCirculant, takes_n_minus_1_plus_ceil_lg_p_rounds_with_one_block_each_way) {
    for (const auto& [p, lg] : {std::pair(2, 1), std::pair(5, 3), std::pair(16, 4), std::pair(17, 5), std::pair(33, 6)})
        for (const int blocks : {1, 2, 6, 13}) {
            const Job job = job_on("33node", "block", p);
            const plan::Plan made = plan_of(job, "circulant:segments=" + std::to_string(blocks), 1300, p / 2);
            EXPECT_EQ(plan::count(made, job, {1300}).messages, (p - 1) * blocks);
            int last = 0;
            for (const Program& program : made.programs) {
                // A message's tag is its round.
                std::map<std::pair<StepKind, int>, int> in_round;
                for (const plan::Step& step : program.steps) {
                    EXPECT_EQ(++in_round[std::pair(step.kind, step.tag)], 1);
                    last = std::max(last, step.tag);
                }
            }
            EXPECT_EQ(last + 1, blocks - 1 + lg) << p << " ranks, " << blocks << " blocks";
        }
}

TEST(BcastOfAMillion, has_small_programs) {
    const Job job = Job::regular({{"leaf", 1024}, {"node", 64}, {"core", 16}});
    for (const char* text : {"by_topology:leaf=binomial,node=binomial,top=binomial", "by_topology", "k_nomial:radix=4",
                             "by_topology:leaf=binomial,node=binomial,top=binomial,lanes=2", "k_ary", "chain", "bine",
                             "leaders:leaders=4,level=leaf,inside=chain", "circulant:segments=8"})
        for (const std::int32_t root : {0, 654'321})
            for (const std::int32_t rank : {0, 1, 16, 1024, 654'321, 1'048'575}) {
                Request request{Collective::bcast, Rank{root}, 1 << 20};
                const Program program = make_program(job, Rank{rank}, request, Spec::parse(text));
                EXPECT_LT(program.steps.size() + program.regions.size() + program.waits.size(), 900U) << text;
                request.block_bytes = 64;
                EXPECT_LT(make_program(job, Rank{rank}, request, Spec::parse(text)).steps.size(), 40U) << text;
            }
}

TEST(Bcast, refuses_what_can_not_be_and_says_why) {
    const auto refusal = [](const char* text) {
        const Job job = job_on("2leaf:2node:2core");
        return test::error_of([&] { make_program(job, Rank{0}, {Collective::bcast, Rank{0}, 64}, Spec::parse(text)); });
    };
    EXPECT_THAT(refusal("by_topology:leaf=shared"), HasSubstr("'shared' is no tree: there are linear"));
    EXPECT_THAT(refusal("by_topology:top=shared"), HasSubstr("'shared' is no tree"));
    EXPECT_THAT(refusal("by_topology:node=ring"), HasSubstr("and, for levels inside of a node, shared"));
    EXPECT_THAT(refusal("by_topology:direct=1K"), HasSubstr("key 'direct' is unknown"));
    EXPECT_THAT(refusal("chain:radix=2"), HasSubstr("key 'radix' is unknown"));
    EXPECT_THAT(refusal("k_nomial:window=0"), HasSubstr("window must be a whole number of at least 1"));
    EXPECT_THAT(refusal("k_ary:radix=0"), HasSubstr("radix must be a whole number of at least 1"));
    EXPECT_THAT(refusal("circulant:segments=2000"), HasSubstr("there are at most 1024 segments"));
    EXPECT_THAT(refusal("scatter_allgather:allgather=linear"), HasSubstr("'linear' is no exchange"));
    EXPECT_EQ(refusal("by_topology:l3=shared,chassis=linear"), "no error") << "levels that this job lacks";
}

}  // namespace
}  // namespace palmette::collectives::bcast_tests
