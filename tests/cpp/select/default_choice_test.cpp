// What an uncalibrated job gets on machines that nobody measured: never much more than the model's best candidate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "palmette/base/text.hpp"
#include "palmette/base/units.hpp"
#include "palmette/model/estimate/estimate.hpp"
#include "palmette/plan/space.hpp"
#include "palmette/select/by_model.hpp"
#include "palmette/select/table.hpp"

namespace palmette::select {
namespace {

using topology::Job;

/// Numbers that are the same with every standard library.
class Chance {
  public:
    explicit Chance(std::uint32_t seed) : engine_(seed) {}
    double uniform(double low, double high) {
        return low + (high - low) * (static_cast<double>(engine_()) / 4294967296.0);
    }
    std::int32_t below(std::int32_t count) { return static_cast<std::int32_t>(uniform(0, count)); }
    double log_uniform(double low, double high) { return low * std::pow(high / low, uniform(0, 1)); }
    bool once_in(std::int32_t count) { return below(count) == 0; }

  private:
    std::mt19937 engine_;
};

struct RandomMachine {
    std::string text;
    Job job;
};

/// 1 to 512 nodes of 1 to 192 cores under up to three tiers of switches; links of 1 to 400 Gbit/s, latencies of 1 to 50
/// us, each known or not.
RandomMachine draw(Chance& chance) {
    const auto nodes = static_cast<std::int32_t>(std::lround(chance.log_uniform(1, 512)));
    const auto cores = static_cast<std::int32_t>(std::lround(chance.log_uniform(1, 192)));
    std::vector<std::pair<std::string, std::int32_t>> levels;
    std::int32_t left = std::max(nodes, cores == 1 ? 2 : 1);
    const bool knows_switches = !chance.once_in(3);
    for (const char* tier : {"pod", "leaf"}) {
        const std::int32_t most = std::min(left / 2, 16);
        if (!knows_switches || most < 2 || chance.once_in(2)) continue;
        levels.emplace_back(tier, 2 + chance.below(most - 1));
        left /= levels.back().second;
    }
    levels.emplace_back("node", std::max(left, 1));
    const std::int32_t sockets = cores >= 8 && cores % 2 == 0 && chance.once_in(2) ? 2 : 1;
    if (sockets > 1) levels.emplace_back("socket", sockets);
    levels.emplace_back("core", cores / sockets);
    RandomMachine out{"", Job::regular(levels, chance.once_in(4))};
    const double link = chance.log_uniform(1e9, 400e9) / 8, latency_s = chance.log_uniform(1e-6, 50e-6);
    const bool calibrated = chance.once_in(3);
    for (std::size_t l = 0; l < out.job.levels().size(); ++l) {
        const std::string& name = out.job.levels()[l].name;
        out.text += (l > 0 ? ":" : "") + std::to_string(out.job.levels()[l].groups.count()) + name;
        const bool outside = l <= *out.job.find_level("node");
        if (knows_switches && outside) {
            const double rate = name == "node" ? link : link * chance.log_uniform(0.5, 4);
            out.job.set_capacity(l, rate);
            out.text += "@" + base::format_rate(rate);
        }
        if (!calibrated) continue;
        topology::LevelCosts costs;
        costs.latency_s = outside ? latency_s : 0.5e-6;
        costs.source = topology::CostSource::calibrated;
        out.job.set_costs(l, costs);
        out.text += base::cat("~", costs.latency_s * 1e6, "us");
    }
    out.text += base::cat(", ", out.job.size(), " ranks");
    return out;
}

/// A choice that takes longer than the best candidate, by the model.
struct Exception {
    double ratio;
    std::string text;
    std::string source;
};

/// By function and MPI: choices made, and how many were the MPI's.
struct Tally {
    int calls = 0, of_mpi = 0, by_rows = 0;
    std::vector<Exception> exceptions;
};

void check(Tally& tally, const RandomMachine& drawn, Function function, std::int64_t bytes,
           const Surroundings& around) {
    plan::Request request{collective_of(function), plan::Rank{0}, bytes};
    if (plan::is_reduction(request.collective)) request.element_bytes = 8;
    request.shared_memory = around.blocking;
    const Choice choice = Table::built_in().choose(function, drawn.job, request, around);
    ++tally.calls;
    if (!choice.algorithm) {
        ++tally.of_mpi;
        return;
    }
    if (choice.basis == Basis::measurement) ++tally.by_rows;
    const auto ranked = rank_by_model(drawn.job, request, candidates(request.collective));
    const auto seconds = model::Estimator(drawn.job, topology::Costs::of(drawn.job))(request, *choice.algorithm);
    if (choice.basis == Basis::measurement && !seconds) return;  // without a formula
    ASSERT_TRUE(!ranked.empty() && seconds) << drawn.text << ' ' << choice.algorithm->text();
    const double ratio = *seconds / ranked.front().seconds;
    if (ratio <= 1.2) return;
    std::string source;
    for (const Row& row : Table::built_in().rows())
        if (choice.reason.find(row.why) != std::string::npos && row.function == function) source = row.source;
    tally.exceptions.push_back(
        {ratio,
         base::cat(name_of(function), " of ", base::format_size(bytes), " on ", drawn.text, ": ",
                   choice.algorithm->text(), " ", ratio, " times ", ranked.front().spec.text(), "; ", choice.reason),
         source});
}

TEST(DefaultChoice, is_near_the_best_candidate_of_the_model_or_the_mpis_on_2000_machines) {
    Chance chance(20261129);
    Tally tally;
    for (int i = 0; i < 2000; ++i) {
        const RandomMachine drawn = draw(chance);
        for (std::size_t f = 0; f < function_count; ++f) {
            const auto function = static_cast<Function>(f);
            const char* mpi = std::array{"mpich", "openmpi", "impi"}[static_cast<std::size_t>(chance.below(3))];
            // Blocks of all ranks fit in memory.
            const std::int64_t bytes =
                function == Function::barrier ? 0 : static_cast<std::int64_t>(chance.log_uniform(8, 4 << 20));
            const bool blocking = !chance.once_in(4);
            check(tally, drawn, function, bytes, {mpi, chance.once_in(8), blocking, blocking && !chance.once_in(4)});
        }
    }
    RecordProperty("choices", tally.calls);
    RecordProperty("left_to_the_mpi", tally.of_mpi);
    RecordProperty("by_rows", tally.by_rows);
    RecordProperty("exceptions", static_cast<int>(tally.exceptions.size()));
    EXPECT_GT(tally.calls - tally.of_mpi, tally.calls / 3) << "leaving everything to the MPI isn't meant";
    // A row may know better than the model, where it was measured.
    for (const Exception& one : tally.exceptions) EXPECT_FALSE(one.source.empty()) << one.text;
    std::map<std::string, int> by_source;
    for (const Exception& one : tally.exceptions) ++by_source[one.source];
    for (const auto& [source, count] : by_source) RecordProperty("exceptions_" + source, count);
    if (std::getenv("PALMETTE_TEST_LIST_EXCEPTIONS"))
        for (const Exception& one : tally.exceptions) std::printf("%s (%s)\n", one.text.c_str(), one.source.c_str());
}

}  // namespace
}  // namespace palmette::select
