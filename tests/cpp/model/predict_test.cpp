#include "palmette/model/play/predict.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "palmette/model/bound/bound.hpp"
#include "palmette/model/estimate/estimate.hpp"
#include "support/errors.hpp"
#include "support/jobs.hpp"
#include "support/specs.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using topology::Job;

double sum_of_parts(const Prediction& prediction) {
    double sum = prediction.copy_s + prediction.reduce_s;
    for (const LevelPart& level : prediction.levels) sum += level.seconds();
    return sum;
}

double sum_of_stages(const Prediction& prediction) {
    return std::accumulate(prediction.stages.begin(), prediction.stages.end(), 0.0,
                           [](double sum, const auto& stage) { return sum + stage.second; });
}

TEST(Predict, parts_and_stages_of_every_algorithm_add_up_and_stay_above_the_bound) {
    int predicted = 0;
    for (const char* machine :
         {"3leaf@50MB/s~20us:3+3+2node@100MB/s~10us:2core", "2leaf:4node:4core", "1node:6core", "9node@1GB/s"})
        for (const char* placement : {"block", "random:1"})
            for (const std::int64_t bytes : {0, 1000, 200000})
                for (const auto& [collective, text] : test::every_spec()) {
                    const Job job = test::job_on(machine, placement);
                    plan::Request request{collective, plan::Rank{1}, bytes};
                    request.shared_memory = true;
                    const collectives::Spec spec = collectives::Spec::parse(text);
                    if (collectives::algorithm_named(collective, spec.name).refuse(job, request, spec)) continue;
                    const Prediction found = predict(job, request, spec, Costs::of(job));
                    ++predicted;
                    const std::string what =
                        base::cat(machine, " ", placement, " ", bytes, " ", plan::name_of(collective), " ", text);
                    ASSERT_NEAR(sum_of_parts(found), found.seconds, found.seconds * 1e-9 + 1e-15) << what;
                    ASSERT_NEAR(sum_of_stages(found), found.seconds, found.seconds * 1e-9 + 1e-15) << what;
                    ASSERT_GE(found.seconds * (1 + 1e-9), bound(job, request, {bytes}).seconds) << what;
                }
    EXPECT_GT(predicted, 1000);
}

TEST(Predict, messages_of_a_node_share_its_memory) {
    const Job job = test::job_on("2node:8core");
    Costs costs = Costs::of(job);
    const plan::Request request{Collective::alltoall, plan::Rank{0}, 1 << 20};
    const collectives::Spec spec = collectives::Spec::parse("linear");
    const double apart = predict(job, request, spec, costs).seconds;
    costs.levels.back().together_bytes_per_s = 1e9;
    // Each of 8 ranks has a block for 7 others of its node.
    const double together = predict(job, request, spec, costs).seconds;
    EXPECT_GE(together, 56.0 * (1 << 20) / 1e9);
    EXPECT_GT(together, 2 * apart);
    EXPECT_NEAR(*Estimator(job, costs)(request, spec), together, 0.1 * together);
}

TEST(Predict, a_short_message_of_a_node_passes_a_buffer_a_long_one_is_copied_by_both_at_once) {
    const Job job = test::job_on("1node:2core");
    Costs costs = Costs::of(job);
    const auto seconds = [&](std::int64_t bytes) {
        return predict(job, {Collective::bcast, plan::Rank{0}, bytes}, collectives::Spec::parse("linear"), costs)
            .seconds;
    };
    const MessageCosts& inside = costs.levels.back();
    const double per_s = inside.stream_bytes_per_s.value;
    EXPECT_NEAR(seconds(16000), inside.latency_s.value + 2 * 16000 / per_s, 1e-12);
    EXPECT_NEAR(seconds(200000), inside.latency_s.value + 200000 / per_s, 1e-12);
}

TEST(Predict, a_receiver_may_be_busier_than_a_sender) {
    const Job job = test::job_on("9node@10GB/s~5us");
    Costs costs = Costs::of(job);
    costs.eager_copy_bytes_per_s = 0;
    const auto of = [&](Collective collective) {
        const Prediction found =
            predict(job, {collective, plan::Rank{0}, 8}, collectives::Spec::parse("linear"), costs);
        EXPECT_NEAR(sum_of_parts(found), found.seconds, 1e-15);
        return found.seconds;
    };
    EXPECT_NEAR(of(Collective::gather), of(Collective::scatter), 1e-8);
    costs.levels.front().overhead_s.value = 1e-6;
    costs.levels.front().receive_overhead_s = 1.5e-6;
    EXPECT_NEAR(of(Collective::gather) - of(Collective::scatter), 7 * 1e-6, 2e-8) << "seven more receptions";
}

TEST(Predict, a_plan_and_an_algorithm_give_the_same) {
    const Job job = test::job_on("3leaf@50MB/s:3+3+2node@100MB/s:2core", "cyclic");
    const plan::Request request{Collective::allgather, plan::Rank{0}, 4096};
    const collectives::Spec spec = collectives::Spec::parse("leaders:between=bruck");
    const plan::Plan plan = collectives::make_plan(job, request, spec);
    EXPECT_EQ(predict(plan, job, {4096}, Costs::of(job)).seconds, predict(job, request, spec, Costs::of(job)).seconds);
}

TEST(Predict, blocks_may_have_lengths_of_their_own) {
    const Job job = test::job_on("4node@1GB/s~1us");
    const plan::Request request{Collective::gather, plan::Rank{0}, -1};
    const plan::Plan plan = collectives::make_plan(job, request, collectives::Spec::parse("linear"));
    const double most = predict(plan, job, {0, 1000000, 0, 0}, Costs::of(job)).seconds;
    EXPECT_NEAR(most, 1e-3, 1e-4);
    EXPECT_THAT(test::error_of([&] { predict(plan, job, {1, 2}, Costs::of(job)); }), testing::HasSubstr("found 2"));
}

TEST(Predict, load_on_an_edge_slows_what_crosses_it) {
    const auto with = [](const char* load) {
        const topology::Machine machine = topology::Machine::from_json(base::Json::parse(base::cat(
            R"({"levels": [{"name": "node"}], "tree": {"children": [{"level": "node", "name": "a", "up_bytes_per_s": 1e9)",
            load, R"(}, {"level": "node", "name": "b", "up_bytes_per_s": 1e9}]}})")));
        const Job job(machine, topology::make_placement(machine, "block", 0));
        const plan::Request request{Collective::bcast, plan::Rank{0}, 10000000};
        return predict(job, request, collectives::Spec::parse("linear"), Costs::of(job)).seconds;
    };
    EXPECT_NEAR(with(R"(, "load": 0.5)") / with(""), 2, 0.01);
}

TEST(Predict, a_program_without_its_other_side_is_named) {
    const Job job = test::job_on("3node");
    plan::Plan plan =
        collectives::make_plan(job, {Collective::gather, plan::Rank{0}, 8}, collectives::Spec::parse("linear"));
    plan.programs[2] = plan::ProgramBuilder(plan::Rank{2}).finish();
    EXPECT_THAT(test::error_of([&] { predict(plan, job, {8}, Costs::of(job)); }),
                testing::HasSubstr("rank 0: a recv, tag 0, is unmatched"));
}

TEST(Predict, a_hundred_thousand_ranks_are_not_too_many_for_a_tree) {
    const Job job = Job::regular({{"leaf", 64}, {"node", 49}, {"core", 32}});
    const plan::Request request{Collective::gather, plan::Rank{0}, 64};
    const Prediction found = predict(job, request, collectives::Spec::parse("by_topology"), Costs::of(job));
    EXPECT_GT(found.seconds, 100352 * 64 / assumed::node_stream_bytes_per_s);
}

TEST(Costs, every_figure_says_where_it_comes_from) {
    const Job job = test::job_on("2leaf@50MB/s~20us:4node:2core");
    const auto found = assumptions(job, Costs::of(job));
    const auto provenance = [&](std::string_view what) {
        for (const CostAssumption& assumption : found)
            if (assumption.what == what) return std::string(name_of(assumption.provenance));
        return std::string("not there");
    };
    EXPECT_EQ(provenance("latency of leaf"), "given");
    EXPECT_EQ(provenance("overhead of leaf"), "assumed");
    EXPECT_EQ(provenance("latency of node"), "assumed");
    EXPECT_EQ(provenance("slowest edge of leaf"), "given");
    EXPECT_EQ(provenance("stream of ranks side by side"), "assumed");
    EXPECT_EQ(provenance("copying"), "assumed");
}

TEST(Costs, nothing_known_gives_outer_levels_more_latency_and_adapters_a_limit) {
    const Job job = test::job_on("2pod:2leaf:2node:2socket:2core");
    const Costs costs = Costs::of(job);
    ASSERT_EQ(costs.levels.size(), 5U);
    for (std::size_t l = 0; l + 1 < costs.levels.size(); ++l)
        EXPECT_GE(costs.levels[l].latency_s.value, costs.levels[l + 1].latency_s.value) << l;
    EXPECT_GT(costs.edge_bytes_per_s(job, *job.find_level("node"), 0), 0);
    EXPECT_EQ(costs.edge_bytes_per_s(job, 0, 0), 0) << "an outer level lets everything through";
}

}  // namespace
}  // namespace palmette::model
