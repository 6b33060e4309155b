// The closed formulas of the literature, where what they suppose holds. They charge messages one after the other (in_order, or chains in which nothing
// else is under way), and count a start-up as latency.
#include <gmock/gmock.h>

#include <cmath>

#include "palmette/model/predict.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using topology::Job;

constexpr double per_s = 1e9;

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
    EXPECT_NEAR(of(job, Collective::allgather, "ring", 50000, plain(job)).seconds, 11 * (10e-6 + m / per_s), 1e-9);
}

TEST(PredictFormulas, binomial_gather_takes_lg_p_start_ups_and_all_blocks_but_one) {
    const Job job = test::job_on("16node@1GB/s~10us");
    const double m = 20000;
    EXPECT_NEAR(of(job, Collective::gather, "k_nomial", 20000, plain(job)).seconds, 4 * 10e-6 + 15 * m / per_s, 1e-9);
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

TEST(PredictFormulas, direct_scatter_and_gather_overlap_their_start_ups) {
    const Job job = test::job_on("16node@1GB/s~10us");
    const double m = 100000;
    for (const Collective collective : {Collective::gather, Collective::scatter}) {
        const double found = of(job, collective, "linear", 100000, plain(job)).seconds;
        EXPECT_NEAR(found, 10e-6 + 15 * m / per_s, 1e-9);
        EXPECT_LT(found, (10e-6 + m / per_s) * 15) << "the formula charges each start-up by itself";
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
    const double formula = (10e-6 + d / per_s) * 4;
    EXPECT_NEAR(of(job, Collective::bcast, "k_nomial", 200000, plain(job), Sharing::in_order).seconds, formula, 1e-9);
    // A root that sends to four at once serves the one with most to do as late as the others.
    const double shared = of(job, Collective::bcast, "k_nomial", 200000, plain(job)).seconds;
    EXPECT_NEAR(shared, 4 * 10e-6 + (4 + 3 + 2 + 1) * d / per_s, 1e-9);
}

TEST(PredictFormulas, a_pipelined_chain_takes_k_plus_n_minus_2_segments) {
    const Job job = test::job_on("10node@1GB/s~10us");
    const double d = 1600000, n = 10;
    for (const int k : {1, 4, 16}) {
        const std::string spec = "chain:segment=" + std::to_string(1600000 / k);
        const double found = of(job, Collective::bcast, spec.c_str(), 1600000, plain(job)).seconds;
        // Start-ups of segments that follow each other overlap: n - 1 of them remain of the formula's k + n - 2.
        EXPECT_NEAR(found, 10e-6 * (n - 1) + d / per_s / k * (k + n - 2), 1e-9) << k;
        EXPECT_LE(found, (10e-6 + d / per_s / k) * (k + n - 2) + 1e-9) << k;
    }
}

TEST(PredictFormulas, scatter_and_allgather_take_twice_the_vector_but_for_a_part) {
    const Job job = test::job_on("16node@1GB/s~1ns");
    const double d = 16e6, n = 16;
    const double formula = 2 * d / per_s / n * (n - 1);
    const double found =
        of(job, Collective::bcast, "scatter_allgather", 16000000, plain(job), Sharing::in_order).seconds;
    // palmette's ring leaves out what the scatter has brought already, and its first rounds share the root's edge with the scatter's last messages.
    EXPECT_NEAR(found, formula, 0.25 * formula);
}

TEST(PredictFormulas, the_factor_of_contention_is_the_bytes_of_a_round_over_those_of_one_message) {
    const Job job = test::job_on("2leaf@1GB/s~10us:4node@1GB/s~10us");
    const double m = 30000;
    const Prediction found = of(job, Collective::allgather, "recursive_doubling", 30000, plain(job));
    // Two rounds in the switch, then all four nodes of a switch send 4 m over its one uplink.
    EXPECT_NEAR(found.seconds, 3 * 10e-6 + 3 * m / per_s + 4 * 4 * m / per_s, 1e-9);
    EXPECT_NEAR(found.levels[0].contention, 4, 1e-6);
    EXPECT_NEAR(found.levels[1].contention, 1, 1e-6);
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
