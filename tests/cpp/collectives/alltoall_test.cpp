// All-to-all: the message counts of the literature, exactly, and what the forms for uneven blocks may rely on.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "palmette/base/text.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/space.hpp"
#include "palmette/plan/verify.hpp"
#include "support/crossings.hpp"
#include "support/errors.hpp"
#include "support/fair_links.hpp"
#include "support/jobs.hpp"
#include "support/plan_times.hpp"
#include "support/specs.hpp"

namespace palmette::collectives::alltoall_tests {
namespace {

using plan::LevelCount;
using plan::LinkCount;
using plan::Plan;
using plan::PlanCount;
using plan::StepKind;
using test::job_on;

Plan alltoall(const Job& job, std::string_view text, bool shared_memory = false) {
    Request request{Collective::alltoall, Rank{0}, 1};
    request.shared_memory = shared_memory;
    return make_plan(job, request, Spec::parse(text));
}

PlanCount count(const Job& job, std::string_view text, bool shared_memory = false) {
    return plan::count(alltoall(job, text, shared_memory), job, {1});
}

const LevelCount& level(const PlanCount& count, std::string_view name) {
    return *std::find_if(count.levels.begin(), count.levels.end(),
                         [&](const LevelCount& l) { return l.level == name; });
}

struct Form {
    std::string text;
    std::int64_t messages;  ///< messages that each node sends to others
};

class AlltoallOf8NodesOf16Ranks : public testing::TestWithParam<Form> {};

TEST_P(AlltoallOf8NodesOf16Ranks, sends_so_many_messages_out_of_each_node_and_always_the_same_bytes) {
    const std::int64_t g = 16;
    const std::int64_t p = 8 * g;
    for (const bool cyclic : {false, true}) {
        const Job job = Job::regular({{"node", 8}, {"core", 16}}, cyclic);
        const PlanCount made = count(job, GetParam().text);
        for (const LinkCount& link : made.levels.front().links) {
            EXPECT_EQ(link.messages_out, GetParam().messages);
            EXPECT_EQ(link.messages_in, GetParam().messages);
            EXPECT_EQ(link.bytes_out, g * (p - g));
            EXPECT_EQ(link.bytes_in, g * (p - g));
        }
    }
}

// g = 16 ranks on each of N = 8 nodes: g^2 (N-1) = 1792 flat, g (N-1) = 112 combined, N-1 = 7 by leaders, L (N-1) where
// each of L leaders sends for its own part of the node.
INSTANTIATE_TEST_SUITE_P(Forms, AlltoallOf8NodesOf16Ranks,
                         testing::Values(Form{"linear", 1792}, Form{"pairwise", 1792},
                                         Form{"pairwise:partners=xor", 1792}, Form{"node_aware", 112},
                                         Form{"leaders", 7}, Form{"leaders:leaders=2", 7}, Form{"leaders:leaders=7", 7},
                                         Form{"leaders:leaders=16", 7}, Form{"leaders:leaders=2,split=sources", 14},
                                         Form{"leaders:leaders=4,split=sources", 28},
                                         Form{"leaders:leaders=16,split=sources", 112}),
                         [](const auto& made) {
                             std::string name;
                             for (const char c : made.param.text)
                                 name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                             return name;
                         });

TEST(AlltoallBetweenUnevenNodes, sends_as_many_messages_a_pair_of_nodes_as_the_sender_has_members_or_one) {
    const Job job = job_on("4leaf:1+5+2+3node:1+4+3core", "random:3");
    const topology::Partition& nodes = job.nodes().groups;
    const std::int32_t others = nodes.count() - 1;
    for (const auto& [text, by_leader] :
         {std::pair("node_aware", false), {"leaders", true}, {"leaders:leaders=3", true}}) {
        const PlanCount made = count(job, text);
        for (std::int32_t n = 0; n < nodes.count(); ++n) {
            const LinkCount& link = level(made, "node").links[static_cast<std::size_t>(n)];
            const std::int64_t size = nodes.size_of(n);
            EXPECT_EQ(link.messages_out, others * (by_leader ? 1 : size)) << text << " node " << n;
            EXPECT_EQ(link.bytes_out, size * (job.size() - size)) << text << " node " << n;
            EXPECT_EQ(link.bytes_in, size * (job.size() - size)) << text << " node " << n;
        }
    }
}

TEST(AlltoallByLeafSwitch, crosses_an_uplink_with_one_message_for_each_pair_of_leaves) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    const PlanCount led = count(job, "leaders:level=leaf");
    for (const LinkCount& link : level(led, "leaf").links) EXPECT_EQ(link.messages_out, 2);
    const PlanCount combined = count(job, "node_aware:level=leaf");
    for (std::int32_t leaf = 0; leaf < 3; ++leaf)
        EXPECT_EQ(level(combined, "leaf").links[static_cast<std::size_t>(leaf)].messages_out, leaf == 2 ? 8 : 12);
}

TEST(AlltoallByLeaders, shares_the_other_nodes_out_evenly) {
    const Job job = Job::regular({{"node", 9}, {"core", 8}});
    const Plan made = alltoall(job, "leaders:leaders=4");
    const topology::Partition& nodes = job.nodes().groups;
    for (const Program& program : made.programs) {
        const std::int32_t node = nodes.group_of(program.rank.value);
        std::int32_t out = 0;
        std::int32_t in = 0;
        for (const plan::Step& step : program.steps)
            if (step.peer.value >= 0 && nodes.group_of(step.peer.value) != node)
                ++(step.kind == StepKind::send ? out : in);
        const bool leads = program.rank.value % 2 == 0;
        EXPECT_EQ(out, leads ? 2 : 0) << program.rank;
        EXPECT_EQ(in, leads ? 2 : 0) << program.rank;
    }
}

/// The other nodes that a program's messages of one kind go to or come from, as steps.
std::vector<plan::StepId> between_nodes(const Job& job, const Program& program, StepKind kind) {
    const topology::Partition& nodes = job.nodes().groups;
    const std::int32_t node = nodes.group_of(job.position_of(program.rank).value);
    std::vector<plan::StepId> steps;
    for (plan::StepId s = 0; s < program.steps.size(); ++s)
        if (program.steps[s].kind == kind && nodes.group_of(job.position_of(program.steps[s].peer).value) != node)
            steps.push_back(s);
    return steps;
}

TEST(AlltoallNodeAware, has_every_rank_of_a_larger_node_take_its_share_from_smaller_ones) {
    const Job job = job_on("9node:8+4+4+4+4+4+4+4+4core", "block");
    const Plan made = alltoall(job, "node_aware");
    for (std::size_t rank = 0; rank < 8; ++rank)
        EXPECT_EQ(between_nodes(job, made.programs[rank], StepKind::recv).size(), 4U) << "rank " << rank;
}

TEST(AlltoallInRounds, has_as_many_messages_in_each_that_wait_for_the_last_round_but_one) {
    const Job job = Job::regular({{"node", 9}, {"core", 4}});
    const Plan made = alltoall(job, "node_aware:rounds=4");
    for (const Program& program : made.programs) {
        const auto sends = between_nodes(job, program, StepKind::send);
        const auto recvs = between_nodes(job, program, StepKind::recv);
        ASSERT_EQ(sends.size(), 8U);
        for (std::size_t i = 0; i < 8; ++i) {
            const auto waits = program.waits_of(program.steps[sends[i]]);
            std::vector<plan::StepId> expected;
            if (const std::size_t round = i / 2; round >= 2) {
                const std::size_t first = 2 * (round - 2);
                expected = {recvs[first], recvs[first + 1], sends[first], sends[first + 1]};
            }
            EXPECT_THAT(std::vector(waits.begin(), waits.end()), testing::UnorderedElementsAreArray(expected))
                << "rank " << program.rank << ", message " << i;
        }
    }
}

TEST(AlltoallInRounds, says_how_many_there_may_be) {
    const Job job = Job::regular({{"node", 3}, {"core", 2}});
    EXPECT_NO_THROW(alltoall(job, "node_aware:rounds=256"));
    EXPECT_THAT(test::error_of([&] { alltoall(job, "node_aware:rounds=257"); }), testing::HasSubstr("256 rounds"));
}

TEST(AlltoallInRounds, distributes_what_a_round_received_without_waiting_for_others) {
    const Job job = Job::regular({{"node", 9}, {"core", 4}});
    const Plan made = alltoall(job, "node_aware:rounds=4");
    const topology::Partition& nodes = job.nodes().groups;
    for (const Program& program : made.programs) {
        const auto recvs = between_nodes(job, program, StepKind::recv);
        std::size_t handed_out = 0;
        for (const plan::Step& step : program.steps) {
            const auto waits = program.waits_of(step);
            const bool inside =
                step.kind == StepKind::send && nodes.group_of(step.peer.value) == nodes.group_of(program.rank.value);
            if (!inside || waits.size() == 0) continue;
            const std::size_t first = handed_out++ / 3 * 2;
            EXPECT_THAT(std::vector(waits.begin(), waits.end()),
                        testing::UnorderedElementsAre(recvs[first], recvs[first + 1]));
        }
        EXPECT_EQ(handed_out, 4U * 3U) << program.rank;
    }
}

TEST(AlltoallInRounds, has_each_uplink_carry_its_share_in_each_round) {
    const Job job = job_on("2leaf:2+6node:4core", "block");
    const Plan made = alltoall(job, "node_aware:rounds=4");
    const topology::Partition& leaves = job.levels().front().groups;
    // 2 x 4 ranks send to 6 nodes, and 6 x 4 ranks to 2.
    std::map<std::size_t, int> up;
    std::map<std::size_t, int> down;
    for (const Program& program : made.programs) {
        std::map<plan::StepId, std::size_t> depth;
        for (plan::StepId s = 0; s < program.steps.size(); ++s) {
            const plan::Step& step = program.steps[s];
            if (step.kind != StepKind::send || leaves.group_of(step.peer.value) == leaves.group_of(program.rank.value))
                continue;
            for (const plan::StepId wait : program.waits_of(step))
                if (const auto before = depth.find(wait); before != depth.end())
                    depth[s] = std::max(depth[s], before->second + 1);
            ++(leaves.group_of(program.rank.value) == 0 ? up : down)[depth[s]];
        }
    }
    // Two rounds are under way at once.
    EXPECT_EQ(up, (std::map<std::size_t, int>{{0, 24}, {1, 24}}));
    EXPECT_EQ(down[0], 24) << "of 48";
}

TEST(AlltoallBruck, sends_k_minus_1_messages_for_each_digit_and_a_block_for_each_digit_of_its_distance) {
    for (const auto& [p, radix, messages, blocks] : std::vector<std::array<std::int64_t, 4>>{{64, 2, 6, 192},
                                                                                             {64, 4, 9, 144},
                                                                                             {64, 8, 14, 112},
                                                                                             {64, 64, 63, 63},
                                                                                             {27, 3, 6, 54},
                                                                                             {13, 2, 4, 22},
                                                                                             {13, 100, 12, 12}}) {
        const PlanCount made = count(Job::flat(static_cast<std::int32_t>(p)), base::cat("bruck:radix=", radix));
        EXPECT_EQ(made.messages, p * messages) << p << " ranks, radix " << radix;
        EXPECT_EQ(made.bytes, p * blocks) << p << " ranks, radix " << radix;
    }
    EXPECT_EQ(count(Job::flat(64), "bruck").longest_chain, 6);
    EXPECT_EQ(count(Job::flat(64), "bruck:radix=8").longest_chain, 2);
}

TEST(AlltoallPairwise, never_has_more_messages_under_way_than_its_window_at_each_level) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    const topology::Partition& leaves = job.levels().front().groups;
    const topology::Partition& nodes = job.nodes().groups;
    for (const std::uint32_t window : {1U, 2U, 4U})
        for (const char* partners : {"balanced", "shift", "xor"}) {
            const Plan made = alltoall(job, base::cat("pairwise:window=", window, ",partners=", partners));
            for (const Program& program : made.programs) {
                const std::int32_t me = job.position_of(program.rank).value;
                std::array<std::vector<plan::StepId>, 3> sends;
                for (plan::StepId s = 0; s < program.steps.size(); ++s) {
                    if (program.steps[s].kind != StepKind::send) continue;
                    const std::int32_t to = job.position_of(program.steps[s].peer).value;
                    const std::size_t level = leaves.group_of(me) != leaves.group_of(to) ? 0
                                              : nodes.group_of(me) != nodes.group_of(to) ? 1
                                                                                         : 2;
                    const auto waits = program.waits_of(program.steps[s]);
                    if (sends[level].size() >= window) {
                        EXPECT_EQ(std::count(waits.begin(), waits.end(), sends[level][sends[level].size() - window]),
                                  1);
                    }
                    sends[level].push_back(s);
                }
                EXPECT_EQ(sends[0].size() + sends[1].size() + sends[2].size(), 15U);
            }
        }
}

TEST(AlltoallPairwise, has_no_more_messages_under_way_than_its_window_where_levels_share_it) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    for (const std::uint32_t window : {1U, 3U}) {
        const Plan made = alltoall(job, base::cat("pairwise:levels=together,window=", window));
        for (const Program& program : made.programs)
            for (const auto& [kind, allowed] : {std::pair{StepKind::send, window}, {StepKind::recv, 2 * window}}) {
                std::vector<plan::StepId> before;
                for (plan::StepId s = 0; s < program.steps.size(); ++s) {
                    if (program.steps[s].kind != kind) continue;
                    const auto waits = program.waits_of(program.steps[s]);
                    if (before.size() >= allowed) {
                        EXPECT_EQ(std::count(waits.begin(), waits.end(), before[before.size() - allowed]), 1);
                    }
                    before.push_back(s);
                }
                EXPECT_EQ(before.size(), 15U);
            }
    }
}

/// How many of the first `messages` that every rank sends leave each leaf, for each leaf that they go to.
std::vector<std::vector<int>> first_messages(const Job& job, const Plan& made, int messages) {
    const topology::Partition& leaves = job.levels().front().groups;
    std::vector<std::vector<int>> out(static_cast<std::size_t>(leaves.count()),
                                      std::vector<int>(static_cast<std::size_t>(leaves.count()), 0));
    for (const Program& program : made.programs) {
        int sent = 0;
        for (const plan::Step& step : program.steps)
            if (step.kind == StepKind::send && sent++ < messages)
                ++out[static_cast<std::size_t>(leaves.group_of(job.position_of(program.rank).value))]
                     [static_cast<std::size_t>(leaves.group_of(job.position_of(step.peer).value))];
    }
    return out;
}

TEST(AlltoallInBalancedOrder, fills_every_uplink_in_proportion_from_the_first_message_to_the_last) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    // Leaves of 6, 6 and 4 ranks. After k of 15 messages a rank has sent about k/15 of what it has for each leaf, give
    // or take one message.
    const std::vector<int> size{6, 6, 4};
    const Plan balanced = alltoall(job, "linear");
    for (int k = 1; k <= 15; ++k) {
        const auto sent = first_messages(job, balanced, k);
        for (std::size_t from = 0; from < 3; ++from)
            for (std::size_t to = 0; to < 3; ++to) {
                if (from == to) continue;
                const double all = size[from] * size[to];
                EXPECT_NEAR(sent[from][to], all * k / 15, size[from])
                    << k << " messages from leaf " << from << " to " << to;
            }
    }
    // In the order of distance, the first third crosses hardly anything.
    const auto by_distance = first_messages(job, alltoall(job, "linear:partners=shift"), 2);
    EXPECT_EQ(by_distance[0][0] + by_distance[0][1] + by_distance[0][2], 12);
    EXPECT_EQ(by_distance[0][0], 9);
}

/// Time over the physical bound s (p-s) b / C of the slowest edge, with fair sharing of links.
double over_the_bound(const Job& job, std::string_view text) {
    const Request request{Collective::alltoall, Rank{0}, 16384};
    double bound = 0;
    for (const topology::JobLevel& level : job.levels())
        for (std::int32_t g = 0; g < level.groups.count(); ++g) {
            const double size = level.groups.size_of(g);
            if (level.up_bytes_per_s[g] > 0)
                bound = std::max(bound, size * (job.size() - size) * 16384 / level.up_bytes_per_s[g]);
        }
    return test::FairLinks(make_plan(job, request, Spec::parse(text)), job).run() / bound;
}

TEST(AlltoallPairwise, ends_close_to_the_bound_where_messages_share_links_fairly) {
    for (const char* machine :
         {"3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", "8node@100Mbit/s:4core", "5node@100Mbit/s:1+4+3+2+6core",
          "4leaf@100Mbit/s:4+4+3+2node@100Mbit/s:2core", "2pod@50Mbit/s:2+3leaf@60Mbit/s:2+1+3node@100Mbit/s:2core"}) {
        EXPECT_LT(over_the_bound(job_on(machine, "random:1"), "pairwise"), 1.02) << machine;
        EXPECT_LT(over_the_bound(job_on(machine, "random:1"), "pairwise:levels=together"), 1.3) << machine;
        EXPECT_LT(over_the_bound(job_on(machine, "random:1"), "linear"), 1.001) << machine;
    }
    // In order of distance uplinks take turns in being empty.
    const Job two_pods = job_on("2pod@50Mbit/s:2+3leaf@60Mbit/s:2+1+3node@100Mbit/s:2core", "random:1");
    EXPECT_GT(over_the_bound(two_pods, "pairwise:partners=shift"), 1.1);
}

TEST(AlltoallAcrossASlowSpine, crosses_it_once_in_a_row_but_for_bruck) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    for (const char* text : {"linear", "node_aware", "node_aware:level=leaf", "leaders", "leaders:level=leaf"})
        EXPECT_EQ(test::crossings_in_a_row(alltoall(job, text), job, "leaf"), 1) << text;
    EXPECT_EQ(test::crossings_in_a_row(alltoall(job, "bruck"), job, "leaf"), 3) << "of its four rounds";
}

TEST(AlltoallInSharedMemory, moves_nothing_inside_a_node_by_messages) {
    const Job job = job_on("3leaf:3+3+2node:2core", "random:4");
    for (const char* text : {"node_aware:inside=shared", "leaders:inside=shared", "leaders:leaders=2,inside=shared"}) {
        const PlanCount made = count(job, text, true);
        EXPECT_EQ(made.messages, level(made, "node").messages) << text;
        EXPECT_GT(made.pulled_bytes, 0) << text;
        EXPECT_EQ(count(job, text, false).pulled_bytes, 0) << text;
    }
}

TEST(AlltoallInSharedMemory, sends_messages_where_a_rank_would_expose_too_many_pieces) {
    const PlanCount made = count(Job::regular({{"node", 70}, {"core", 2}}), "node_aware:inside=shared", true);
    EXPECT_EQ(made.pulled_bytes, 0);
}

class AlltoallvForm : public testing::TestWithParam<std::string> {};

/// Where ranks don't know each other's lengths, a rank that reads or takes several blocks must know the length of each:
/// from its own arguments, or because the block itself came to it.
TEST_P(AlltoallvForm, is_right_and_needs_only_lengths_that_a_rank_can_know) {
    const Spec spec = Spec::parse(GetParam());
    for (const char* machine : {"1node:33core", "3leaf:3+3+3node:4core", "4leaf:1+5+2+3node:2+4+3core"})
        for (const std::int32_t p : {1, 4, 7, 16, 27}) {
            const Job job = job_on(machine, "random:3", p);
            Request request{Collective::alltoall, Rank{0}, -1};
            request.shared_memory = true;
            if (algorithm_named(Collective::alltoall, spec.name).refuse(job, request, spec)) continue;
            const Plan made = make_plan(job, request, spec);
            ASSERT_EQ(plan::verify(made, job), std::nullopt) << machine << ' ' << p;
            const bool relays = algorithm_named(Collective::alltoall, spec.name).relays;
            for (const Program& program : made.programs) {
                const std::int64_t me = job.position_of(program.rank).value;
                for (const plan::Step& step : program.steps) {
                    std::set<std::int64_t> taken;
                    for (const plan::Region& region : program.regions_of(step))
                        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) {
                            EXPECT_TRUE(relays || b / p == me || b % p == me);
                            taken.insert(b);
                        }
                    if (step.kind != StepKind::pull) continue;
                    for (std::int64_t b = step.exposed.first; b < step.exposed.end(); ++b)
                        EXPECT_TRUE(b / p == me || b % p == me || taken.contains(b)) << "block " << b;
                }
            }
        }
}

std::vector<std::string> sending_specs() {
    std::vector<std::string> out;
    for (const Algorithm& row : algorithms())
        if (row.collective == Collective::alltoall && row.node_memory != NodeMemory::always)
            for (const std::string_view text : base::split(row.samples, ' ')) out.emplace_back(text);
    return out;
}

INSTANTIATE_TEST_SUITE_P(Of, AlltoallvForm, testing::ValuesIn(sending_specs()), [](const auto& made) {
    std::string name;
    for (const char c : made.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
});

}  // namespace
}  // namespace palmette::collectives::alltoall_tests
