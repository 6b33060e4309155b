// What the allreduces of the literature must cost, exactly, and what the hierarchical ones promise.
#include <gmock/gmock.h>

#include "palmette/base/text.hpp"
#include "palmette/collectives/exchanges/node_pieces.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/collectives/trees/chunk_tree.hpp"
#include "palmette/plan/count.hpp"
#include "palmette/plan/verify.hpp"
#include "support/crossings.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::collectives::allreduce_tests {
namespace {

using plan::LevelCount;
using plan::PlanCount;
using test::job_on;
using testing::HasSubstr;
using testing::Optional;

constexpr std::string_view lab = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core";

Request request_of(std::int64_t bytes, bool shared = false, bool ordered = false) {
    Request request{Collective::allreduce, Rank{0}, bytes};
    request.element_bytes = 8;
    request.shared_memory = shared;
    request.ordered = ordered;
    return request;
}

PlanCount count(const Job& job, const std::string& text, std::int64_t bytes, bool shared = false) {
    return plan::count(make_plan(job, request_of(bytes, shared), Spec::parse(text)), job, {bytes});
}

LevelCount level(const PlanCount& count, std::string_view name) {
    for (const LevelCount& one : count.levels)
        if (one.level == name) return one;
    throw std::runtime_error("no such level");
}

/// Bytes and messages that each rank sends, where it is the same for all.
std::pair<std::int64_t, std::int64_t> sent_by_each(const Job& job, const std::string& text, std::int64_t bytes) {
    const PlanCount made = count(job, text, bytes);
    const LevelCount ranks = level(made, "node");
    for (const plan::LinkCount& link : ranks.links) {
        EXPECT_EQ(link.bytes_out, ranks.links[0].bytes_out) << text;
        EXPECT_EQ(link.messages_out, ranks.links[0].messages_out) << text;
    }
    return {ranks.links[0].bytes_out, ranks.links[0].messages_out};
}

TEST(AllreduceRabenseifner, sends_2_p_minus_1_over_p_of_the_vector_in_2_lg_p_messages) {
    for (const std::int32_t lg : {1, 2, 3, 4, 5}) {
        const std::int64_t p = 1 << lg;
        EXPECT_EQ(sent_by_each(Job::flat(1 << lg), "rabenseifner", 8 * p),
                  std::pair(2 * (p - 1) * 8, std::int64_t{2 * lg}));
    }
}

TEST(AllreduceRing, sends_2_p_minus_1_over_p_of_the_vector_for_any_number_of_ranks) {
    for (const std::int32_t p : {2, 3, 7, 16, 33})
        EXPECT_EQ(sent_by_each(Job::flat(p), "ring", 8 * p),
                  std::pair(std::int64_t{2} * (p - 1) * 8, std::int64_t{2} * (p - 1)));
}

TEST(AllreduceNodeAware, shares_a_nodes_messages_among_its_ranks_and_crosses_once) {
    const Job job = job_on("9node:4core");
    const auto plan = make_plan(job, request_of(64), Spec::parse("node_aware"));
    EXPECT_EQ(test::crossings_in_a_row(plan, job, "node"), 1);
    for (const plan::LinkCount& link : level(count(job, "node_aware", 64), "node").links)
        EXPECT_EQ(link.messages_out, 8);  // one to each other node
    for (const Program& program : plan.programs) {
        std::int64_t away = 0;
        for (const plan::Step& step : program.steps)
            if (step.kind == plan::StepKind::send && step.peer.value / 4 != program.rank.value / 4) ++away;
        EXPECT_LE(away, 3);
        EXPECT_GE(away, 1);
    }
}

TEST(AllreduceNodeAware, with_a_radix_crosses_once_a_digit_and_sends_less_in_a_row) {
    const Job job = job_on("9node:4core");
    EXPECT_EQ(test::crossings_in_a_row(make_plan(job, request_of(64), Spec::parse("node_aware:radix=3")), job, "node"),
              2);
    for (const plan::LinkCount& link : level(count(job, "node_aware:radix=3", 64), "node").links)
        EXPECT_EQ(link.messages_out, 4);
}

TEST(AllreduceNodeAware, refuses_what_it_cannot_do) {
    const Job job = job_on("3node:4core");
    const Algorithm& row = algorithm_named(Collective::allreduce, "node_aware");
    EXPECT_THAT(row.refuse(job, request_of(64, false, true), Spec::parse("node_aware")), Optional(HasSubstr("order")));
    EXPECT_THAT(test::error_of([&] { row.refuse(job, request_of(64), Spec::parse("node_aware:inside=ring")); }),
                HasSubstr("cuts the vector"));
    EXPECT_THAT(row.refuse(job_on("2node:200core"), request_of(64), Spec::parse("node_aware:inside=all")),
                std::nullopt);
}

TEST(AllreduceNodePieces, crosses_twice_with_2_n_minus_1_over_n_of_the_vector_a_node_and_shares_the_messages) {
    const Job job = job_on("9node:4core");
    for (const char* spec : {"node_pieces", "node_pieces:inside=halving"}) {
        const auto plan = make_plan(job, request_of(72), Spec::parse(spec));
        EXPECT_EQ(test::crossings_in_a_row(plan, job, "node"), 2);
        for (const plan::LinkCount& link : level(count(job, spec, 72), "node").links) {
            EXPECT_EQ(link.messages_out, 16);  // one to each other node, there and back
            EXPECT_EQ(link.bytes_out, 2 * 64);
        }
        for (const Program& program : plan.programs) {
            std::int64_t away = 0;
            for (const plan::Step& step : program.steps)
                if (step.kind == plan::StepKind::send && step.peer.value / 4 != program.rank.value / 4) ++away;
            EXPECT_LE(away, 2 * 3);
        }
    }
}

TEST(AllreduceNodePieces, halves_in_groups_with_fewer_messages_than_all_with_all) {
    const Job job = job_on("17node:16core");
    const PlanCount direct = count(job, "node_pieces", 2048),
                    grouped = count(job, "node_pieces:inside=halving.4", 2048);
    // Inside of a node 2 * 15 messages a rank, or twice two stages of 3.
    EXPECT_EQ(direct.messages - grouped.messages, 17 * 16 * (2 * 15 - 4 * 3));
    EXPECT_EQ(level(direct, "node").messages, level(grouped, "node").messages);
    // 7 has no factor up to 4: directly there.
    EXPECT_EQ(count(job_on("9node:7core"), "node_pieces:inside=halving.4", 2048).messages,
              count(job_on("9node:7core"), "node_pieces", 2048).messages);
    for (const char* spec : {"node_pieces:inside=halving.2", "node_pieces:inside=halving.x", "node_pieces:inside=ring"})
        EXPECT_THAT(test::error_of([&] { count(job, spec, 64); }), HasSubstr("halving.K with K from 3 to 16")) << spec;
}

TEST(AllreduceNodePieces, lets_no_rank_serve_all_of_the_larger_nodes) {
    // 4 nodes of 16 and 29 of 8: each rank of a small one serves 4 or 5 nodes.
    const Job job = job_on("2leaf:4+29node:16+16+16+16+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8+8core");
    const auto plan = make_plan(job, request_of(33 * 64), Spec::parse("node_pieces"));
    for (const Program& program : plan.programs) {
        if (program.rank.value < 64) continue;
        std::int64_t from_large = 0;
        for (const plan::Step& step : program.steps)
            if (step.kind == plan::StepKind::recv && step.peer.value < 64) ++from_large;
        EXPECT_LE(from_large, 2) << "one node, there and back, of rank " << program.rank.value;
    }
}

TEST(DealtNodes, are_all_nodes_with_every_lth_next_to_each_other) {
    for (std::int32_t nodes = 1; nodes <= 40; ++nodes)
        for (std::int32_t hands = 1; hands <= 20; ++hands) {
            const DealtNodes dealt(nodes, hands);
            for (std::int32_t node = 0; node < nodes; ++node) {
                const std::int32_t number = dealt.number_of(node);
                EXPECT_TRUE(number >= 0 && number < nodes) << nodes << " " << hands;
                EXPECT_EQ(dealt.node_at(number), node) << nodes << " " << hands;
            }
        }
    const DealtNodes seven(7, 3);
    std::vector<std::int32_t> order;
    for (std::int32_t number = 0; number < 7; ++number) order.push_back(seven.node_at(number));
    EXPECT_EQ(order, (std::vector<std::int32_t>{0, 3, 6, 1, 4, 2, 5}));
}

TEST(AllreduceDirect, sends_2_p_minus_1_over_p_of_the_vector_with_two_messages_in_a_row) {
    for (const std::int32_t p : {2, 3, 7, 16, 33}) {
        EXPECT_EQ(sent_by_each(Job::flat(p), "direct", 8 * p).first, std::int64_t{2} * (p - 1) * 8);
        EXPECT_EQ(count(Job::flat(p), "direct", 8 * p).longest_chain, 2);
    }
}

TEST(AllreduceRecursiveDoubling, sends_lg_p_messages_a_rank_and_two_more_for_each_that_folds) {
    for (const std::int32_t p : {2, 3, 4, 7, 8, 9, 16, 31, 32, 33}) {
        const std::int64_t core = power_of_two_in(p);
        const std::int64_t extra = p - core;
        std::int64_t lg = 0;
        while (1 << lg < core) ++lg;
        const PlanCount made = count(Job::flat(p), "recursive_doubling", 8);
        EXPECT_EQ(made.messages, core * lg + 2 * extra) << p;
        EXPECT_EQ(made.bytes, 8 * made.messages) << p;
        EXPECT_EQ(made.longest_chain, lg + (extra > 0 ? 2 : 0)) << p;
    }
}

TEST(AllreduceRecursiveMultiplying, takes_as_many_rounds_as_factors) {
    struct Case {
        std::int32_t p, radix;
        std::int64_t rounds, messages;
    };
    for (const auto& [p, radix, rounds, messages] :
         {Case{16, 4, 2, 16 * 6}, Case{27, 3, 3, 27 * 6}, Case{12, 4, 2, 12 * 5}, Case{16, 16, 1, 16 * 15},
          Case{8, 3, 3, 8 * 3}, Case{7, 3, 4, 6 * 3 + 2}, Case{7, 8, 1, 7 * 6}}) {
        const PlanCount made = count(Job::flat(p), base::cat("recursive_multiplying:radix=", radix), 8);
        EXPECT_EQ(made.longest_chain, rounds) << p << ' ' << radix;
        EXPECT_EQ(made.messages, messages) << p << ' ' << radix;
    }
}

TEST(Factors, fold_only_what_they_must) {
    EXPECT_EQ(factors_of(33, 2).fold.core, 32);
    EXPECT_EQ(factors_of(12, 4).factors, (std::vector<std::int32_t>{4, 3}));
    EXPECT_EQ(factors_of(5, 8).factors, std::vector<std::int32_t>{5});
    EXPECT_EQ(factors_of(1, 2).factors, std::vector<std::int32_t>{});
    for (std::int32_t n = 1; n <= 300; ++n)
        for (const std::int32_t radix : {2, 3, 4, 7, 16}) {
            const Factors made = factors_of(n, radix);
            std::int32_t product = 1;
            for (const std::int32_t factor : made.factors) {
                EXPECT_GE(factor, 2);
                EXPECT_LE(factor, radix);
                product *= factor;
            }
            EXPECT_EQ(product, made.fold.core);
            EXPECT_LE(2 * made.fold.extra(), n) << "everyone that folds has a partner of its own: " << n;
        }
}

TEST(AllreduceRing, carries_p_minus_s_blocks_over_every_edge_in_each_phase) {
    for (const std::string& machine : test::machines())
        for (const std::string& placement : test::placements()) {
            const Job job = job_on(machine, placement, 33);
            const PlanCount made = count(job, "ring", 33 * 8);
            for (std::size_t l = 0; l < job.levels().size(); ++l) {
                const topology::Partition& groups = job.levels()[l].groups;
                std::int64_t out = 0;
                std::int64_t should = 0;
                for (std::int32_t g = 0; g < groups.count(); ++g) {
                    out += made.levels[l].links[static_cast<std::size_t>(g)].bytes_out;
                    should += 2 * (33 - groups.size_of(g)) * 8;
                }
                EXPECT_EQ(out, should) << machine << ' ' << placement << ' ' << job.levels()[l].name;
            }
        }
}

TEST(AllreduceLeaders, send_1_then_1_5_then_1_75_vectors_from_a_node_at_2_4_and_8_nodes_for_any_number_of_lanes) {
    for (const auto& [nodes, quarters] : {std::pair(2, 4), std::pair(4, 6), std::pair(8, 7)})
        for (const bool cyclic : {false, true})
            for (const char* leaders : {"1", "4", "all"})
                for (const char* between : {"rabenseifner", "ring", "direct"}) {
                    const Job job = Job::regular({{"node", nodes}, {"core", 16}}, cyclic);
                    const std::int64_t bytes = 8 * 128 * 16;
                    const PlanCount made =
                        count(job, base::cat("leaders:leaders=", leaders, ",between=", between), bytes);
                    for (const plan::LinkCount& link : level(made, "node").links)
                        EXPECT_EQ(link.bytes_out, bytes * quarters / 4) << between << ' ' << leaders << ' ' << nodes;
                }
}

TEST(AllreduceLeaders, drive_a_lane_from_every_rank_of_the_node) {
    const Job job = Job::regular({{"node", 8}, {"core", 16}});
    const auto plan = make_plan(job, request_of(16 * 64), Spec::parse("leaders:leaders=all"));
    for (const Program& program : plan.programs) {
        std::int64_t far = 0;
        for (const plan::Step& step : program.steps)
            if (step.kind == plan::StepKind::send && step.peer.value / 16 != program.rank.value / 16) ++far;
        EXPECT_EQ(far, 3) << "each exchanges its chunk with 3 partners, rank " << program.rank;
    }
    // 16 chunks of 64 bytes, three times.
    for (const plan::LinkCount& link : level(count(job, "leaders:leaders=all", 16 * 64), "node").links) {
        EXPECT_EQ(link.messages_out, 16 * 3);
        EXPECT_EQ(link.bytes_out, 3 * 16 * 64);
    }
}

TEST(AllreduceLeaders, read_every_chunk_in_place_where_memory_is_shared) {
    const std::int64_t g = 16;
    const std::int64_t bytes = g * 64;
    const Job job = Job::regular({{"node", 4}, {"core", 16}});
    const PlanCount made = count(job, "leaders:leaders=all,between=rabenseifner,inside=shared", bytes, true);
    // To reduce: every leader a g-th of the g - 1 others' vectors; to distribute: everybody the g - 1 other chunks.
    EXPECT_EQ(made.pulled_bytes, 4 * 2 * (g - 1) * bytes);
    EXPECT_EQ(made.messages, 4 * g * 4) << "none inside of nodes";
    EXPECT_EQ(made.copied_bytes, 0);
    // g - 1 times a whole vector inside of the node, and (N - 1) / N of it between nodes.
    EXPECT_EQ(made.reduced_bytes, 4 * ((g - 1) * bytes + bytes * 3 / 4));
}

TEST(AllreduceLeaders, take_the_same_way_with_messages_where_memory_is_not_shared) {
    const Job job = Job::regular({{"node", 4}, {"core", 16}});
    const PlanCount made = count(job, "leaders:leaders=all,between=rabenseifner,inside=shared", 1024, false);
    EXPECT_EQ(made.pulled_bytes, 0);
    EXPECT_EQ(made.messages - level(made, "node").messages, 4 * 2 * 16 * 15);
}

TEST(AllreduceLeaders, cross_the_spine_once_with_all_between_leaves) {
    for (const char* placement : {"block", "cyclic", "random:1", "random:2"}) {
        const Job job = job_on(lab, placement);
        const auto plan = [&](const char* text) { return make_plan(job, request_of(64), Spec::parse(text)); };
        EXPECT_EQ(test::crossings_in_a_row(plan("leaders:level=leaf,between=all"), job, "leaf"), 1);
        EXPECT_EQ(test::crossings_in_a_row(plan("leaders:between=all"), job, "leaf"), 1);
        EXPECT_EQ(test::crossings_in_a_row(plan("recursive_multiplying:radix=16"), job, "leaf"), 1);
        EXPECT_EQ(test::crossings_in_a_row(plan("reduce_bcast:top=linear"), job, "leaf"), 2);
        const PlanCount made = count(job, "leaders:level=leaf,between=all", 64);
        EXPECT_EQ(level(made, "leaf").messages, 3 * 2) << "each leaf to each other one";
    }
}

TEST(AllreduceLeaders, send_the_least_over_the_uplinks_of_the_lab) {
    for (const char* placement : {"block", "random:1", "random:2"})
        for (const std::int64_t bytes : {64 * 1024, 256 * 1024}) {
            const Job job = job_on(lab, placement);
            for (const char* segment : {"", ",segment=4K"}) {
                const PlanCount made =
                    count(job, base::cat("leaders:level=leaf,leaders=3,between=direct", segment), bytes);
                // The bound for three leaves: 2 (k-1) n over k uplinks; a vector of n bytes isn't a multiple of 72.
                for (const plan::LinkCount& link : level(made, "leaf").links) {
                    EXPECT_NEAR(static_cast<double>(link.bytes_out), static_cast<double>(4 * bytes) / 3, 9 * 16);
                    EXPECT_NEAR(static_cast<double>(link.bytes_in), static_cast<double>(4 * bytes) / 3, 9 * 16);
                }
            }
        }
}

TEST(AllreduceLeaders, of_one_chunk_are_five_phases_on_nodes_with_sockets) {
    const Job job = job_on("4node:2socket:4core");
    const auto plan = make_plan(job, request_of(64), Spec::parse("leaders:between=recursive_doubling"));
    const PlanCount made = plan::count(plan, job, {64});
    // In the socket, between sockets, between nodes (2 rounds) and back: 1 + 1 + 2 + 1 + 1 messages in a row.
    EXPECT_EQ(made.longest_chain, 6);
    EXPECT_EQ(level(made, "node").messages, 4 * 2);
    EXPECT_EQ(level(made, "socket").messages - level(made, "node").messages, 4 * 2) << "one up and one down a node";
}

TEST(AllreduceLeaders, let_no_slice_wait_for_another) {
    const Job job = job_on(lab, "random:1");
    for (const char* text :
         {"leaders:level=leaf,leaders=3,between=direct,segment=4K", "leaders:leaders=2,between=ring,segment=2K",
          "leaders:leaders=all,between=rabenseifner,inside=shared,segment=4K"}) {
        const auto plan = make_plan(job, request_of(256 * 1024, true), Spec::parse(text));
        int slices = 0;
        for (const Program& program : plan.programs)
            for (const plan::Step& step : program.steps) {
                slices = std::max<int>(slices, step.slice.of);
                for (const plan::StepId wait : program.waits_of(step))
                    EXPECT_EQ(program.steps[wait].slice, step.slice) << text;
            }
        EXPECT_GE(slices, 4) << text;
    }
}

TEST(AllreduceLeaders, are_right_with_uneven_nodes_and_more_leaders_than_ranks) {
    const Job job = job_on("4node:1+7+2+5core", "random:5");
    for (const char* text : {"leaders:leaders=4,between=ring", "leaders:leaders=8,between=direct,inside=shared",
                             "leaders:leaders=all,between=rabenseifner"})
        for (const bool shared : {false, true}) {
            const auto plan = make_plan(job, request_of(512, shared), Spec::parse(text));
            EXPECT_EQ(plan::verify(plan, job), std::nullopt) << text;
        }
}

TEST(AllreduceOfANonCommutativeOperation, is_refused_where_order_would_be_lost) {
    const Job block = job_on(lab, "block");
    const Job scattered = job_on(lab, "random:1");
    const auto reason = [](const Job& job, const char* text) {
        const Spec spec = Spec::parse(text);
        return algorithm_named(Collective::allreduce, spec.name).refuse(job, request_of(64, false, true), spec);
    };
    EXPECT_EQ(reason(block, "leaders"), std::nullopt);
    EXPECT_THAT(reason(scattered, "leaders"), Optional(HasSubstr("ranks are scattered")));
    EXPECT_EQ(reason(scattered, "recursive_doubling:order=rank"), std::nullopt);
    EXPECT_THAT(reason(block, "ring"), Optional(HasSubstr("in rank order")));
    EXPECT_THAT(reason(block, "leaders:leaders=2,inside=binomial"), Optional(HasSubstr("several leaders")));
}

TEST(AllreducePrograms, of_a_million_ranks_are_small) {
    const auto parts = [](const Program& program) {
        return program.steps.size() + program.regions.size() + program.waits.size();
    };
    const Job job = Job::regular({{"leaf", 1024}, {"node", 64}, {"core", 16}}, true);
    for (const char* text : {"recursive_doubling", "rabenseifner", "reduce_bcast", "leaders:leaders=all",
                             "leaders:leaders=4,between=rabenseifner",
                             "leaders:level=leaf,between=recursive_multiplying.8,inside=k_nomial.4"})
        for (const std::int32_t rank : {0, 1, 65'536, 1'048'575})
            EXPECT_LT(parts(make_program(job, Rank{rank}, request_of(1 << 20), Spec::parse(text))), 1000U) << text;
}

TEST(ChunkLeaders, are_spread_over_nodes_and_their_ranks) {
    const Job job = job_on("2leaf:3node:4core");
    const auto leaders = [&](plan::Interval range, std::int32_t chunks) {
        std::vector<std::int64_t> out;
        for (std::int32_t c = 0; c < chunks; ++c) out.push_back(chunk_leader(job, range, c, chunks));
        return out;
    };
    EXPECT_THAT(leaders({0, 4}, 4), testing::ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(leaders({4, 4}, 2), testing::ElementsAre(4, 6));
    EXPECT_THAT(leaders({4, 4}, 1), testing::ElementsAre(4));
    EXPECT_THAT(leaders({0, 12}, 3), testing::ElementsAre(0, 5, 10)) << "one on each node of the leaf";
    EXPECT_THAT(leaders({3, 1}, 3), testing::ElementsAre(3, 3, 3));
}

TEST(ReducePattern, says_what_it_can_not_use) {
    for (const char* text : {"", "bruck", "recursive_multiplying.1", "recursive_multiplying.x"})
        EXPECT_THAT(test::error_of([&] { ReducePattern::parse(text); }), HasSubstr("is no pattern of reductions"));
}

}  // namespace
}  // namespace palmette::collectives::allreduce_tests
