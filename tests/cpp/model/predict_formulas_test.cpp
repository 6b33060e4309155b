// The closed formulas of the literature, where what they suppose holds. They charge messages one after the other
// (in_order, or chains in which nothing else is under way), and count a start-up as latency.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "palmette/model/play/predict.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using topology::Job;

constexpr double link_rate = 1e9;

/// Start-ups are latency alone, one pair fills an edge, and no message waits for its receiver.
Costs plain(const Job& job) {
    Costs costs = Costs::of(job);
    for (MessageCosts& level : costs.levels) level.overhead_s.value = 0;
    costs.eager_copy_bytes_per_s = 0;
    costs.eager_bytes = INT64_MAX;
    costs.copy_bytes_per_s.value = costs.reduce_bytes_per_s.value = 1e18;
    return costs;
}

Prediction of(const Job& job, Collective collective, const char* spec, std::int64_t bytes, const Costs& costs,
              Sharing sharing = Sharing::evenly) {
    plan::Request request{collective, plan::Rank{0}, bytes};
    return predict(job, request, collectives::Spec::parse(spec), costs, sharing);
}

TEST(PredictFormulas, ring_allgather_takes_p_minus_1_start_ups_and_blocks) {
    const Job job = test::job_on("12node@1GB/s~10us");
    const double m = 50000;
    EXPECT_NEAR(of(job, Collective::allgather, "ring", 50000, plain(job)).seconds, 11 * (10e-6 + m / link_rate), 1e-9);
}

TEST(PredictFormulas, binomial_gather_takes_lg_p_start_ups_and_all_blocks_but_one) {
    const Job job = test::job_on("16node@1GB/s~10us");
    const double m = 20000;
    EXPECT_NEAR(of(job, Collective::gather, "k_nomial", 20000, plain(job)).seconds, 4 * 10e-6 + 15 * m / link_rate,
                1e-9);
}

TEST(PredictFormulas, gather_by_topology_adds_up_node_switch_and_spine) {
    // [t_s1 lg g + t_w1 (g-1) m] + [t_s2 lg n + t_w2 (n-1) g m] + [t_s3 lg R + t_w3 N (1 - 1/R)]
    const Job job = test::job_on("4leaf@500MB/s~30us:8node@1GB/s~10us:4core~1us");
    Costs costs = plain(job);
    costs.levels.back().stream_bytes_per_s.value = 2e9;
    const double m = 4096, g = 4, n = 8, r = 4;
    const double node = 1e-6 * 2 + (g - 1) * m / 2e9;
    const double leaf = 10e-6 * 3 + (n - 1) * g * m / 1e9;
    const double top = 30e-6 * 2 + g * n * r * m * (1 - 1 / r) / 500e6;
    const Prediction found = of(job, Collective::gather, "by_topology", 4096, costs);
    EXPECT_NEAR(found.seconds, node + leaf + top, 1e-9);
    EXPECT_NEAR(found.levels[0].seconds(), top, 1e-9);
    EXPECT_NEAR(found.levels[1].seconds(), leaf, 1e-9);
    EXPECT_NEAR(found.levels[2].seconds(), node, 1e-9);
}

TEST(PredictFormulas, a_binomial_gather_adds_up_its_levels_with_a_factor_of_contention_each) {
    // T = sum over levels l of t_s,l C_l + a_l t_w,l N f_l: C_l exchanges of the root's path are at l, f_l of all N
    // bytes cross l on it, the f_l add up to (p - 1)/p. The literature's a_l stands before t_s,l too; here messages
    // that share an edge share its bytes, and their start-ups overlap.
    const char* machine = "4leaf@500MB/s~30us:8node@1GB/s~10us:4core~1us";
    const double m = 4096, g = 4, n = 8, r = 4, p = g * n * r, all = p * m;
    const auto levels_of = [&](const char* placement) {
        const Job job = test::job_on(machine, placement);
        Costs costs = plain(job);
        costs.levels.back().stream_bytes_per_s.value = 2e9;
        const Prediction found = of(job, Collective::gather, "k_nomial:order=rank", 4096, costs);
        EXPECT_NEAR(found.seconds, found.levels[0].seconds() + found.levels[1].seconds() + found.levels[2].seconds(),
                    1e-9);
        return found.levels;
    };
    // In blocks the tree follows the machine: one message over an edge at a time, first inside of nodes, then of
    // leaves, then between leaves.
    const std::vector<LevelPart> block = levels_of("block");
    EXPECT_NEAR(block[2].seconds(), 1e-6 * std::log2(g) + all * (g - 1) / p / 2e9, 1e-9);
    EXPECT_NEAR(block[1].seconds(), 10e-6 * std::log2(n) + all * (n - 1) * g / p / 1e9, 1e-9);
    EXPECT_NEAR(block[0].seconds(), 30e-6 * std::log2(r) + all * (r - 1) * n * g / p / 500e6, 1e-9);
    for (const LevelPart& level : block) EXPECT_NEAR(level.contention, 1, 1e-6) << level.level;
    // Dealt over nodes, ranks begin with those of other nodes: the g trees of the nodes' g places are gathered side by
    // side over the same edges.
    const std::vector<LevelPart> cyclic = levels_of("cyclic");
    EXPECT_NEAR(cyclic[1].seconds(), 10e-6 * std::log2(n) + g * all * (n - 1) / p / 1e9, 1e-9);
    EXPECT_NEAR(cyclic[0].seconds(), 30e-6 * std::log2(r) + g * all * (r - 1) * n / p / 500e6, 1e-9);
    EXPECT_NEAR(cyclic[2].seconds(), 1e-6 * std::log2(g) + all * (g - 1) * n * r / p / 2e9, 1e-9);
    EXPECT_NEAR(cyclic[0].contention, g, 1e-6);
    EXPECT_NEAR(cyclic[1].contention, g, 1e-6);
    EXPECT_NEAR(cyclic[2].contention, 1, 1e-6);
}

TEST(PredictFormulas, gather_by_topology_has_as_many_streams_for_contention_as_leaders_share_an_uplink) {
    // a (t_s3 C + t_w3 M) with C = 1 exchange of M bytes; a = bytes of the round over an edge / its capacity / one
    // message's time. The model's start-ups overlap, so that a stands before t_w3 alone.
    const double m = 4096;
    {
        // Leaders of nodes, and none of leaves: n (R - 1) nodes of other leaves send g m bytes each into the root's
        // leaf.
        const Job job = test::job_on("4leaf@500MB/s~30us:8node@1GB/s~10us:4core~1us");
        const double g = 4, n = 8, r = 4, message = g * m / 500e6;
        const double a = n * (r - 1) * g * m / 500e6 / message;
        const Prediction found = of(job, Collective::gather, "by_topology:node=binomial,top=linear", 4096, plain(job));
        EXPECT_NEAR(found.levels[0].seconds(), 30e-6 + a * message, 1e-9);
        EXPECT_NEAR(found.levels[0].contention, a, 1e-6);
    }
    {
        // Leaders of leaves, and none of pods: the R = 4 leaves of the other pod share its uplink. One alone has it for
        // its n g m bytes.
        const Job job = test::job_on("2pod@200MB/s~40us:4leaf@500MB/s~20us:4node@1GB/s~10us:2core~1us");
        const double g = 2, n = 4, r = 4, message = n * g * m / 200e6;
        const double a = r * n * g * m / 200e6 / message;
        const Prediction found =
            of(job, Collective::gather, "by_topology:leaf=binomial,node=binomial,top=linear", 4096, plain(job));
        EXPECT_NEAR(found.levels[0].seconds(), 40e-6 + a * message, 1e-9);
        EXPECT_NEAR(found.levels[0].contention, a, 1e-6);
        EXPECT_NEAR(of(job, Collective::gather, "by_topology", 4096, plain(job)).levels[0].contention, 1, 1e-6)
            << "with leaders of pods one message crosses";
    }
}

TEST(PredictFormulas, direct_exchange_has_all_start_ups_but_one_overlap) {
    // t = (a + d/f)(n - 1). All messages are handed over at once, so n - 2 of the start-ups pass while others' bytes
    // are on the edge.
    const double d = 100000, a = 10e-6;
    for (const int n : {2, 5, 16}) {
        const Job job = test::job_on(std::to_string(n) + "node@1GB/s~10us");
        for (const Collective collective :
             {Collective::gather, Collective::scatter, Collective::bcast, Collective::allgather, Collective::alltoall})
            for (const Sharing sharing : {Sharing::evenly, Sharing::in_order}) {
                const double found = of(job, collective, "linear", 100000, plain(job), sharing).seconds;
                EXPECT_NEAR((a + d / link_rate) * (n - 1) - found, a * (n - 2), 1e-9)
                    << plan::name_of(collective) << " " << n;
            }
    }
}

TEST(PredictFormulas, direct_messages_of_no_length_cost_their_overheads_one_by_one) {
    const Job job = test::job_on("16node@1GB/s~10us");
    Costs costs = plain(job);
    for (MessageCosts& level : costs.levels) level.overhead_s.value = 2e-6;
    // One overhead at the sender, the way, and fifteen overheads at the root.
    EXPECT_NEAR(of(job, Collective::gather, "linear", 0, costs).seconds, 2e-6 + 6e-6 + 15 * 2e-6, 1e-12);
}

TEST(PredictFormulas, a_binomial_tree_takes_lg_p_start_ups_and_vectors_where_messages_go_one_by_one) {
    const Job job = test::job_on("16node@1GB/s~10us");
    const double d = 200000;
    const double formula = (10e-6 + d / link_rate) * 4;
    EXPECT_NEAR(of(job, Collective::bcast, "k_nomial", 200000, plain(job), Sharing::in_order).seconds, formula, 1e-9);
    // A root that sends to four at once serves the one with most to do as late as the others.
    const double shared = of(job, Collective::bcast, "k_nomial", 200000, plain(job)).seconds;
    EXPECT_NEAR(shared, 4 * 10e-6 + (4 + 3 + 2 + 1) * d / link_rate, 1e-9);
}

TEST(PredictFormulas, a_pipelined_chain_takes_k_plus_n_minus_2_segments) {
    const Job job = test::job_on("10node@1GB/s~10us");
    const double d = 1600000, n = 10;
    for (const int k : {1, 4, 16}) {
        const std::string spec = "chain:segment=" + std::to_string(1600000 / k);
        const double found = of(job, Collective::bcast, spec.c_str(), 1600000, plain(job)).seconds;
        // Start-ups of segments that follow each other overlap: n - 1 of them remain of the formula's k + n - 2.
        EXPECT_NEAR(found, 10e-6 * (n - 1) + d / link_rate / k * (k + n - 2), 1e-9) << k;
        EXPECT_LE(found, (10e-6 + d / link_rate / k) * (k + n - 2) + 1e-9) << k;
    }
}

/// The number of segments, up to the 64 that there may be, with which a chain is predicted to be done first.
int best_segments(const Job& job, std::int64_t d, const Costs& costs) {
    int best = 0;
    double least = INFINITY;
    for (int k = 1; k <= 64; ++k) {
        const std::string spec = "chain:segment=" + std::to_string((d + k - 1) / k);
        const double found = of(job, Collective::bcast, spec.c_str(), d, costs).seconds;
        if (found < least) least = found, best = k;
    }
    return best;
}

TEST(PredictFormulas, a_pipelined_chain_is_fastest_near_the_best_number_of_segments) {
    // t = (a + d/(f k))(k + n - 2) is least for k = sqrt(d (n - 2)/(f a)). A start-up that no other hides is the work
    // of a rank in the middle, which takes and gives each segment: a = two overheads, and nothing on the way.
    const double a = 10e-6;
    for (const auto& [n, d] : {std::pair{10, 100000}, {18, 100000}, {34, 50000}, {34, 200000}}) {
        const Job job = test::job_on(std::to_string(n) + "node@1GB/s~10us");
        Costs costs = plain(job);
        for (MessageCosts& level : costs.levels) level.overhead_s.value = a / 2;
        const double formula = std::sqrt(d * (n - 2) / (link_rate * a));
        ASSERT_LT(formula * 2, 64);
        const int best = best_segments(job, d, costs);
        EXPECT_GE(best, formula / 2) << n << " nodes, " << d << " bytes";
        EXPECT_LE(best, formula * 2) << n << " nodes, " << d << " bytes";
        EXPECT_EQ(best_segments(job, d, plain(job)), 64) << "start-ups that overlap don't limit the segments";
    }
    // Segments of d/k bytes on an edge hide a shorter work at its ends: up to k = d/(f a) more segments cost nothing,
    // which is far above the formula for a short chain with a long vector.
    const Job job = test::job_on("4node@1GB/s~10us");
    Costs costs = plain(job);
    for (MessageCosts& level : costs.levels) level.overhead_s.value = a / 2;
    EXPECT_NEAR(std::sqrt(400000 * 2 / (link_rate * a)), 9, 0.1);
    EXPECT_EQ(best_segments(job, 400000, costs), 400000 / (link_rate * a));
}

TEST(PredictFormulas, scatter_and_allgather_take_twice_the_vector_but_for_a_part) {
    // t = 2 (a + d/(f n))(n - 1), here with a start-up of next to nothing.
    const double part = 1e6;
    const auto parts = [&](int n, const char* spec, Sharing sharing) {
        const Job job = test::job_on(std::to_string(n) + "node@1GB/s~1ns");
        return of(job, Collective::bcast, spec, std::int64_t{1000000} * n, plain(job), sharing).seconds * link_rate /
               part;
    };
    for (const int n : {2, 4, 8})
        for (const Sharing sharing : {Sharing::evenly, Sharing::in_order})
            EXPECT_NEAR(parts(n, "scatter_allgather", sharing), 2 * (n - 1), 1e-4) << n;
    // From 9 nodes on the scatter is a binomial tree, and the ring leaves out what it has brought. Rank n/2 has the
    // upper half then and passes that on before the lower half, which the ring brings it: it is done with both after as
    // many parts as the formula has, but the last one has still to go from its neighbour through the n/2 - 2 ranks
    // behind.
    for (const int n : {16, 32, 64})
        EXPECT_NEAR(parts(n, "scatter_allgather", Sharing::in_order), 2 * (n - 1) + n / 2 - 2, 1e-4) << n;
}

TEST(PredictFormulas, the_factor_of_contention_is_the_bytes_of_a_round_over_those_of_one_message) {
    const Job job = test::job_on("2leaf@1GB/s~10us:4node@1GB/s~10us");
    const double m = 30000;
    const Prediction found = of(job, Collective::allgather, "recursive_doubling", 30000, plain(job));
    // Two rounds in the switch, then all four nodes of a switch send 4 m over its one uplink.
    EXPECT_NEAR(found.seconds, 3 * 10e-6 + 3 * m / link_rate + 4 * 4 * m / link_rate, 1e-9);
    EXPECT_NEAR(found.levels[0].contention, 4, 1e-6);
    EXPECT_NEAR(found.levels[1].contention, 1, 1e-6);
}

// Multi-leader allgather (Kandalla et al. 2009) on N nodes of g ranks, L leaders a node with g' = g/L ranks each: the
// sum of three phases,
//   [t_s1 lg g' + t_w1 (g' - 1) m]  +  [allgather among leaders; a node's L leaders share its adapter, a = L]  +
//   [distribute inside of the node].
// palmette's leaders hand on each arrival at once, so that of the last phase only what the last round brought is left
// where the network is the slower one.
struct MultiLeader {
    const Job job = test::job_on("8node@1GB/s~10us:8core~1us");
    const double m = 4096, nodes = 8, g = 8, leaders = 4, part = g / leaders;
    const double inside = 20e9;
    const double aggregate = 1e-6 * std::log2(part) + (part - 1) * m / inside;

    Prediction operator()(const char* spec, double inside_bytes_per_s) const {
        Costs costs = plain(job);
        costs.levels.back().stream_bytes_per_s.value = inside_bytes_per_s;
        return of(job, Collective::allgather, spec, 4096, costs);
    }
};

TEST(PredictFormulas, multi_leader_allgather_on_rails_is_the_sum_of_its_phases) {
    const MultiLeader predicted;
    const auto& [job, m, nodes, g, leaders, part, inside, aggregate] = predicted;
    // On rails a leader exchanges with those of the same number, hands what it gets to the g - 1 others of its node,
    // and takes what the other L - 1 get.
    const auto check = [&](const char* spec, double rounds, double last_round_blocks) {
        const double exchange = 10e-6 * rounds + leaders * (nodes - 1) * part * m / link_rate;
        const double a_block_s = (g - 1 + leaders - 1) * m / inside;
        const double formula = aggregate + exchange + (nodes - 1) * part * a_block_s;
        const Prediction found = predicted(spec, inside);
        EXPECT_NEAR(formula - found.seconds, ((nodes - 1) * part - last_round_blocks) * a_block_s, 1e-9) << spec;
        EXPECT_NEAR(found.levels[0].seconds(), exchange, 1e-9) << spec;
        EXPECT_NEAR(found.levels[0].contention, leaders, 1e-6) << spec;
    };
    check("leaders:leaders=4,between=recursive_doubling", std::log2(nodes), nodes / 2 * part);
    check("leaders:leaders=4,between=ring", nodes - 1, part);
}

TEST(PredictFormulas, multi_leader_allgather_in_one_list_is_the_sum_of_its_phases) {
    const MultiLeader predicted;
    const auto& [job, m, nodes, g, leaders, part, inside, aggregate] = predicted;
    // A ring of all N L leaders, rail by rail: every hop leaves the node. Then t_s1 + t_w1 (g' - 1)(...) for what
    // members lack.
    const double hops = nodes * leaders - 1;
    const double ring = hops * (10e-6 + leaders * part * m / link_rate);
    const double distribute = 1e-6 + (part - 1) * (nodes * g - 1) * m / inside;
    const double found = predicted("leaders:leaders=4,between=ring,layout=rail_major", inside).seconds;
    const double hidden = (part - 1) * (nodes * g - 1 - part) * m / inside;
    EXPECT_NEAR(aggregate + ring + distribute - found, hidden, 1e-9);

    // Recursive doubling of N L leaders: lg N rounds between nodes, then lg L inside of them. Start-ups and the
    // network's bytes alone, memory for nothing.
    const double doubling = 10e-6 * std::log2(nodes) + leaders * (nodes - 1) * part * m / link_rate;
    const double phases = 1e-6 * std::log2(part) + doubling + 1e-6 * std::log2(leaders) + 1e-6;
    EXPECT_NEAR(predicted("leaders:leaders=4,between=recursive_doubling,layout=rail_major", 1e18).seconds, phases,
                1e-9);
}

TEST(PredictFormulas, allreduce_in_batches_hides_all_but_the_slowest_stage) {
    // T = t_red + (J-1) max(t_red, t_net) + t_net + t_bcast, the network slower than the node.
    const Job job = test::job_on("8node@1GB/s~10us:4core~1us");
    Costs costs = plain(job);
    costs.levels.back().stream_bytes_per_s.value = 40e9;
    const char* spec = "leaders:inside=linear,between=ring,segment=100000";
    const auto time = [&](std::int64_t bytes) { return of(job, Collective::allreduce, spec, bytes, costs); };
    const Prediction one = time(100000);
    double network = 0;
    for (const LevelPart& level : one.levels)
        if (level.level == "node") network = level.seconds();
    const double around = one.seconds - network;
    for (const int batches : {2, 8}) {
        const double formula = around + batches * network;
        const double found = time(100000 * batches).seconds;
        EXPECT_LE(found, formula * 1.02) << batches;
        EXPECT_GE(found, formula * 0.6) << batches << ": start-ups of batches overlap as well";
    }
}

}  // namespace
}  // namespace palmette::model
