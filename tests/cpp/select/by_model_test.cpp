#include "palmette/select/by_model.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "palmette/base/text.hpp"
#include "palmette/model/estimate/estimate.hpp"
#include "palmette/model/play/predict.hpp"
#include "palmette/plan/space.hpp"
#include "palmette/select/table.hpp"
#include "support/jobs.hpp"

namespace palmette::select::by_model_tests {
namespace {

using collectives::Spec;
using plan::Collective;
using topology::Job;

plan::Request request_of(Collective collective, std::int64_t bytes) {
    plan::Request request{collective, plan::Rank{0}, bytes};
    request.element_bytes = plan::is_reduction(collective) ? 4 : 1;
    return request;
}

/// Pairs of candidates whose predicted times differ by over 15 %, and those of them that the formulas rank alike.
struct Agreement {
    int pairs = 0, alike = 0;
    int cells = 0, near_best = 0;  ///< the formulas' first is within 15 % of the prediction's
};

void compare(Agreement& sums, const Job& job, Collective collective, std::int64_t bytes) {
    const plan::Request request = request_of(collective, bytes);
    const topology::Costs costs = topology::Costs::of(job);
    std::vector<std::pair<double, double>> times;  // predicted, estimated
    for (const Estimate& one : rank_by_model(job, request, candidates(collective)))
        times.emplace_back(model::predict(job, request, one.spec, costs).seconds, one.seconds);
    if (times.empty()) return;
    double best = times.front().first;
    for (const auto& [predicted, estimated] : times) best = std::min(best, predicted);
    ++sums.cells;
    if (times.front().first <= 1.15 * best) ++sums.near_best;
    for (std::size_t i = 0; i < times.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const auto& a = times[i];
            const auto& b = times[j];
            if (std::max(a.first, b.first) <= 1.15 * std::min(a.first, b.first)) continue;
            ++sums.pairs;
            if ((a.first < b.first) == (a.second < b.second)) ++sums.alike;
        }
}

TEST(ByModel, formulas_rank_algorithms_as_plays_do) {
    Agreement all;
    for (std::size_t c = 0; c < plan::collective_count; ++c) {
        const auto collective = static_cast<Collective>(c);
        Agreement sums;
        for (const char* machine :
             {"3leaf@50Mbit/s~200us:3+3+2node@100Mbit/s~200us:2core", "4leaf@12GB/s:4node@12GB/s:4core",
              "16node@12GB/s:8core", "2leaf@6GB/s:8node@12GB/s"})
            for (const std::int64_t bytes : {64, 1024, 16384, 262144})
                compare(sums, test::job_on(machine), collective, bytes);
        EXPECT_GE(sums.alike, 0.8 * sums.pairs)
            << plan::name_of(collective) << ": " << sums.alike << " of " << sums.pairs;
        EXPECT_GE(sums.near_best, 0.7 * sums.cells)
            << plan::name_of(collective) << ": " << sums.near_best << " of " << sums.cells;
        all.alike += sums.alike, all.pairs += sums.pairs;
        all.near_best += sums.near_best, all.cells += sums.cells;
    }
    RecordProperty("ranked_alike", all.alike);
    RecordProperty("pairs", all.pairs);
    EXPECT_GE(all.alike, 0.9 * all.pairs) << all.alike << " of " << all.pairs;
    EXPECT_GE(all.near_best, 0.85 * all.cells) << all.near_best << " of " << all.cells;
}

TEST(ByModel, every_candidate_parses_and_has_a_formula) {
    const Job many = test::job_on("2leaf:4node:4core");
    const Job single = test::job_on("2leaf:4node");  // for what suits nodes of one rank
    const model::Estimator estimate(many, topology::Costs::of(many)), of_single(single, topology::Costs::of(single));
    for (std::size_t c = 0; c < plan::collective_count; ++c)
        for (const Spec& spec : candidates(static_cast<Collective>(c))) {
            plan::Request request = request_of(static_cast<Collective>(c), 1024);
            request.shared_memory = true;
            if (spec.name == "shared") continue;
            ASSERT_FALSE(collectives::algorithm_named(request.collective, spec.name).refuse(many, request, spec))
                << spec.text();
            EXPECT_TRUE(spec.name == "circulant" ? of_single(request, spec) : estimate(request, spec)) << spec.text();
        }
}

/// How much longer what a run would choose is played than the best candidate.
double regret(const Job& job, Collective collective, std::int64_t bytes) {
    const plan::Request request = request_of(collective, bytes);
    const topology::Costs costs = topology::Costs::of(job);
    const auto chosen = best_by_model(job, request);
    if (!chosen) return 0;
    double best = std::numeric_limits<double>::infinity();
    for (const Estimate& one : rank_by_model(job, request, candidates(collective)))
        best = std::min(best, model::predict(job, request, one.spec, costs).seconds);
    return model::predict(job, request, chosen->spec, costs).seconds / best;
}

TEST(ByModel, shapes_that_are_easily_got_wrong) {
    // More ranks a node than there are nodes.
    EXPECT_LE(regret(test::job_on("2node@12GB/s~2us:24core"), Collective::reduce, 65536), 1.2);
    EXPECT_LE(regret(test::job_on("2node@12GB/s~2us:24core"), Collective::allreduce, 4096), 1.5);
    // A last node that isn't full.
    const char* full = "16node@12GB/s~2us:8core";
    EXPECT_LE(regret(test::job_on(full, "block", 121), Collective::allreduce, 512), 1.3);
    EXPECT_LE(regret(test::job_on("8node@12GB/s~2us:8core", "block", 57), Collective::allgather, 512), 1.7);
    // Narrow uplinks.
    const char* narrow = "2leaf@1GB/s~2us:8node@10GB/s~2us:4core";
    EXPECT_LE(regret(test::job_on(narrow), Collective::gather, 1024), 1.3);
    for (const std::int64_t bytes : {1024, 16384})
        EXPECT_LE(regret(test::job_on(narrow), Collective::bcast, bytes), 1.3);
    // The best one is a pipeline, which fast networks don't get.
    EXPECT_LE(regret(test::job_on("4leaf@3GB/s~2us:4node@12GB/s~2us:2core"), Collective::bcast, 65536), 1.6);
}

TEST(ByModel, simulated_candidates_are_chosen_where_formulas_mistake_the_placement) {
    // Formulas take ranks that are dealt out in turn for scattered ones, and memory for the limit.
    const Job job = test::job_on("3node@12.5GB/s~2us:24core", "cyclic");
    const Plays plays = play_in_turn;
    for (const auto& [collective, bytes] :
         {std::pair(Collective::bcast, 100'000), std::pair(Collective::reduce, 20'000),
          std::pair(Collective::scatter, 4000), std::pair(Collective::gather, 40)}) {
        const plan::Request request = request_of(collective, bytes);
        const auto played = best_by_model(job, request, nullptr, &plays);
        ASSERT_TRUE(played && played->played);
        EXPECT_EQ(played->seconds, model::predict(job, request, played->spec, topology::Costs::of(job)).seconds);
        for (const Estimate& one : rank_by_model(job, request, candidates(collective)))
            EXPECT_LE(played->seconds,
                      1.0001 * model::predict(job, request, one.spec, topology::Costs::of(job)).seconds)
                << one.spec.text();
    }
}

TEST(ByModel, what_is_too_long_to_simulate_is_left_to_formulas) {
    const Job job = test::job_on("32node@12GB/s~2us:32core");
    const plan::Request request = request_of(Collective::alltoall, 4096);
    const Plays plays = play_in_turn;
    const auto chosen = best_by_model(job, request, nullptr, &plays), estimated = best_by_model(job, request);
    ASSERT_TRUE(chosen && estimated);
    EXPECT_FALSE(chosen->played) << chosen->spec.text();
    EXPECT_EQ(chosen->spec.text(), estimated->spec.text());
    const topology::Costs costs = topology::Costs::of(job);
    EXPECT_FALSE(model::predict_within({}, job, request, Spec::parse("linear"), costs));
    EXPECT_FALSE(model::predict_within({1e-6}, job, request_of(Collective::bcast, 64), Spec::parse("k_nomial"), costs))
        << "longer than a microsecond";
}

TEST(ByModel, messages_to_other_groups_share_their_senders_link_with_those_to_its_own) {
    const Job job = test::job_on("2leaf@6.75GB/s:9node@3GB/s");
    const Spec stars = Spec::parse("by_topology:leaf=linear,top=linear");
    const auto estimated = model::Estimator(job, topology::Costs::of(job))(request_of(Collective::bcast, 3688), stars);
    ASSERT_TRUE(estimated);
    // The other leaf's leader hears with the root's eight nodes, and sends to eight more.
    EXPECT_GT(*estimated, 2 * 8 * 3688 / 3e9);
    const auto chosen = best_by_model(job, request_of(Collective::bcast, 3688));
    ASSERT_TRUE(chosen);
    EXPECT_LT(chosen->seconds, 0.8 * *estimated) << chosen->spec.text();
}

TEST(ByModel, the_built_in_table_leaves_machines_to_it_that_nobody_measured) {
    const auto basis = [](const char* machine, bool compared) -> std::optional<Basis> {
        const Choice choice = Table::built_in().choose(
            Function::bcast, test::job_on(machine), request_of(Collective::bcast, 4096), {"", false, true, compared});
        return choice.algorithm ? std::optional(choice.basis) : std::nullopt;
    };
    EXPECT_EQ(basis("2leaf@6GB/s~50us:4node@3GB/s~2us:2core", false), Basis::costs);
    EXPECT_EQ(basis("2leaf@6GB/s:4node@3GB/s:2core", true), Basis::assumptions);
    EXPECT_EQ(basis("2leaf@6GB/s:4node@3GB/s:2core", false), std::nullopt) << "nothing would show that it loses";
    EXPECT_EQ(basis("4node@3GB/s:2socket~1us:2core~1us", false), std::nullopt)
        << "only what is inside of nodes is known";
    EXPECT_EQ(basis("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core", false), Basis::measurement);
    EXPECT_EQ(basis("3leaf@50Mbit/s:3+3+2node@100Mbit/s:8core", true), Basis::assumptions) << "fatter nodes";
    EXPECT_EQ(basis("3leaf@2Gbit/s:3+3+2node@2Gbit/s:2core", true), Basis::assumptions) << "faster links";
}

TEST(ByModel, what_has_lost_is_not_chosen_again) {
    const Job job = test::job_on("4node@3GB/s:8core");
    std::vector<std::string> lost;
    const plan::Request request = request_of(Collective::allreduce, 65536);
    for (int i = 0; i < 3; ++i) {
        const Choice choice =
            Table::built_in().choose(Function::allreduce, job, request, {"", false, true, true, &lost});
        ASSERT_TRUE(choice.algorithm);
        EXPECT_THAT(lost, testing::Not(testing::Contains(choice.algorithm->text())));
        lost.push_back(choice.algorithm->text());
    }
}

TEST(ByModel, one_node_shares_its_memory) {
    const Job job = test::job_on("1node:8core");
    plan::Request request = request_of(Collective::bcast, 4096);
    request.shared_memory = true;
    const auto best = best_by_model(job, request);
    ASSERT_TRUE(best);
    EXPECT_EQ(best->spec.name, "shared");
}

TEST(ByModel, unknown_sizes_are_not_guessed) {
    EXPECT_FALSE(best_by_model(test::job_on("4node"), request_of(Collective::gather, -1)));
}

Table table_with(const char* row) {
    return Table::from_json(
        base::Json::parse(base::cat(R"({"format": "palmette-table", "version": 1, "rows": [)", row, "]}")));
}

TEST(ByModel, a_row_hands_a_cell_to_the_model_and_says_so) {
    const Job job = test::job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core");
    const Table table =
        table_with(R"({"function": "allgather", "min_bytes": 1, "algorithm": "model", "why": "untried"})");
    const plan::Request request = request_of(Collective::allgather, 65536);
    const Choice choice = table.choose(Function::allgather, job, request);
    ASSERT_TRUE(choice.algorithm);
    EXPECT_EQ(choice.algorithm->text(), best_by_model(job, request)->spec.text());
    EXPECT_THAT(choice.reason, testing::StartsWith("table row 0: untried; the model gives it "));
    EXPECT_EQ(Table::from_json(table.to_json()).to_json().dump(), table.to_json().dump());
    EXPECT_FALSE(table.always_mpi(Function::allgather, job, {}));
    EXPECT_FALSE(table.choose(Function::allgather, job, request_of(Collective::allgather, -1)).algorithm);
}

TEST(ByModel, cells_without_a_row_stay_with_the_mpi_where_no_costs_are_known_and_nothing_is_compared) {
    const Table table = table_with("");
    const plan::Request request = request_of(Collective::bcast, 1024);
    const Job unknown = test::job_on("2node"), known = test::job_on("2node~10us");
    const Surroundings compared{"", false, true, true};
    EXPECT_FALSE(table.choose(Function::bcast, unknown, request).algorithm);
    EXPECT_TRUE(table.always_mpi(Function::bcast, unknown, {}));
    EXPECT_TRUE(table.choose(Function::bcast, unknown, request, compared).algorithm);
    EXPECT_FALSE(table.always_mpi(Function::bcast, unknown, compared));
    EXPECT_TRUE(table.choose(Function::bcast, known, request).algorithm);
    EXPECT_FALSE(table.always_mpi(Function::bcast, known, {}));
}

TEST(ByModel, a_row_of_the_built_in_table_still_decides) {
    const Job job = test::job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core");
    const Choice choice = Table::built_in().choose(Function::gather, job, request_of(Collective::gather, 65536));
    ASSERT_TRUE(choice.algorithm);
    EXPECT_EQ(choice.algorithm->text(), "linear");
    EXPECT_THAT(choice.reason, testing::StartsWith("table row"));
}

}  // namespace
}  // namespace palmette::select::by_model_tests
