// The choice of how coarse a sparse sum's blocks are, and what the simulation says about it.
#include "palmette/model/estimate/estimate_sparse.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "palmette/compose/factor.hpp"
#include "palmette/model/play/predict.hpp"
#include "support/jobs.hpp"

namespace palmette::model {
namespace {

using compose::Words;
using plan::Interval;
using topology::Job;

constexpr const char* lab = "3leaf@50Mbit/s~2.4us:3+3+2node@100Mbit/s~2us:2core";
constexpr const char* fast = "4leaf:4node:4core";

/// All ranks' indices; each owns as many.
struct Pattern {
    std::string name;
    std::vector<Words> touched;
    std::int64_t owned;
};

/// Rank r touches what it owns, and as much after it as `overlap` ranks own.
Pattern overlapping(std::int32_t ranks, std::int64_t owned, std::int64_t overlap) {
    Pattern out{"overlapping", {}, owned};
    for (std::int32_t r = 0; r < ranks; ++r) {
        Words& mine = out.touched.emplace_back();
        for (std::int64_t i = r * owned; i < std::min((r + 1 + overlap) * owned, ranks * owned); ++i) mine.push_back(i);
    }
    return out;
}

/// Each rank touches each index with a probability of 1 / `one_in`.
Pattern scattered(std::int32_t ranks, std::int64_t owned, unsigned one_in) {
    std::mt19937 random(7);
    Pattern out{"scattered", {}, owned};
    for (std::int32_t r = 0; r < ranks; ++r) {
        Words& mine = out.touched.emplace_back();
        for (std::int64_t i = 0; i < ranks * owned; ++i)
            if (random() % one_in == 0) mine.push_back(i);
    }
    return out;
}

/// Strips across a square of ranks, in whose rows owned indices lie: what a tile of a volume casts at each angle.
Pattern shadows(std::int32_t ranks, std::int64_t bins) {
    Pattern out{"shadows", {}, bins};
    for (std::int32_t r = 0; r < ranks; ++r) {
        Words& mine = out.touched.emplace_back();
        for (std::int64_t angle = 0; angle < ranks; ++angle) {
            const std::int64_t first = (r * 13 + angle * (r % 7 + 1)) % (bins * 3 / 4);
            for (std::int64_t bin = first; bin < first + bins / 4; ++bin) mine.push_back(angle * bins + bin);
        }
    }
    return out;
}

struct Choice {
    Words bounds{0};
    std::vector<OwnersPart> parts;
    std::vector<std::int64_t> candidates, picoseconds;
    std::int64_t coarsen = 0;
};

Choice choose(const Pattern& pattern, const Job& job, std::int64_t index_bytes) {
    Choice out;
    const auto ranks = static_cast<std::int32_t>(pattern.touched.size());
    for (std::int32_t r = 0; r < ranks; ++r) {
        out.parts.push_back({base::Rank{r}, {out.bounds.back(), pattern.owned}, {}});
        out.bounds.push_back(out.bounds.back() + pattern.owned);
    }
    for (std::int32_t r = 0; r < ranks; ++r) {
        const auto runs = compose::runs_by_owner(pattern.touched[static_cast<std::size_t>(r)], out.bounds);
        for (std::size_t owner = 0; owner < runs.size(); ++owner)
            for (std::size_t i = 0; i < runs[owner].size(); i += 2)
                out.parts[owner].touched.emplace_back(r, Interval{runs[owner][i], runs[owner][i + 1]});
    }
    out.candidates = coarsen_candidates(out.bounds);
    out.picoseconds.resize(out.candidates.size());
    for (const OwnersPart& part : out.parts) {
        const auto own = coarsen_picoseconds(part, out.candidates, index_bytes, {}, job, {}, job);
        for (std::size_t i = 0; i < own.size(); ++i) out.picoseconds[i] += own[i];
    }
    out.coarsen = out.candidates[static_cast<std::size_t>(
        std::min_element(out.picoseconds.begin(), out.picoseconds.end()) - out.picoseconds.begin())];
    return out;
}

/// Simulated time of the whole plan, and what the regions of its messages cost the rank that has most of them, which
/// the simulation doesn't know.
double simulated_s(const Choice& choice, std::int64_t coarsen, const Job& job, std::int64_t index_bytes) {
    std::vector<compose::SparseBlock> blocks;
    std::vector<std::int64_t> lengths;
    for (const OwnersPart& part : choice.parts)
        for (const compose::Signature& one : compose::signatures(part.touched, part.owned, coarsen)) {
            lengths.push_back(one.count() * index_bytes);
            blocks.push_back({std::ssize(blocks), part.owner, one.count(), compose::RankSet::of(one.contributors), {}});
        }
    compose::Composition sum(job.size(), compose::Lengths::list(lengths));
    const auto partial = sum.buffer("partial"), mine = sum.buffer("mine");
    const std::uint8_t plus = sum.operation({});
    for (const compose::SparseBlock& block : blocks)
        sum.reduce(block.contributors, block.owner, partial, {block.number, 1}, mine, plus);
    const plan::Plan plan = compose::Factory(sum, job, compose::Tree::of(job), {}).plan();
    double most = 0;
    for (const plan::Program& program : plan.programs) {
        double regions = 0;
        for (const plan::Step& step : program.steps)
            if (plan::is_message(step.kind)) regions += step.region_count;
        most = std::max(most, regions);
    }
    return predict(plan, job, lengths, Costs::of(job)).seconds + most * region_s;
}

TEST(Coarsen, candidates_are_powers_of_two_up_to_the_longest_range) {
    EXPECT_THAT(coarsen_candidates({0, 3, 8, 8}), testing::ElementsAre(1, 2, 4));
    EXPECT_THAT(coarsen_candidates({0, 0}), testing::ElementsAre(1));
    EXPECT_EQ(coarsen_candidates({0, 1000000}).back(), 4096);
}

TEST(Coarsen, stays_exact_where_ranks_overlap_in_long_ranges) {
    for (const char* machine : {lab, fast}) {
        const Job job = test::job_on(machine);
        EXPECT_EQ(choose(overlapping(job.size(), 100, 2), job, 64).coarsen, 1) << machine;
    }
}

TEST(Coarsen, joins_scattered_indices_where_a_block_costs_more_than_its_bytes) {
    const Pattern pattern = scattered(64, 64, 2);
    EXPECT_GT(choose(pattern, test::job_on(fast), 4).coarsen, 1);
    // Longer rows, or slower links: zeros cost more than blocks.
    EXPECT_EQ(choose(pattern, test::job_on(fast), 4096).coarsen, 1);
    EXPECT_EQ(choose(pattern, test::job_on("4leaf@50Mbit/s:4node@100Mbit/s:4core"), 64).coarsen, 1);
}

TEST(Coarsen, choice_is_near_the_best_in_the_simulation) {
    for (const char* machine :
         {lab, fast, "4leaf@50Mbit/s~2.4us:4node@100Mbit/s~2us:4core", "64node", "16node@1GB/s~2us"})
        for (const std::int64_t index_bytes : {4, 64}) {
            const Job job = test::job_on(machine, "random:1");
            for (const Pattern& pattern : {overlapping(job.size(), 100, 3), scattered(job.size(), 32, 2),
                                           scattered(job.size(), 64, 16), shadows(job.size(), 64)}) {
                const Choice choice = choose(pattern, job, index_bytes);
                double least = 1e9, chosen = 0;
                std::string all;
                for (const std::int64_t coarsen : choice.candidates) {
                    const double seconds = simulated_s(choice, coarsen, job, index_bytes);
                    least = std::min(least, seconds);
                    if (coarsen == choice.coarsen) chosen = seconds;
                    all += " " + std::to_string(seconds * 1e6);
                }
                all += " model";
                for (const std::int64_t one : choice.picoseconds) all += " " + std::to_string(one / 1000000);
                EXPECT_LE(chosen, 1.08 * least)
                    << machine << ", " << pattern.name << ", " << index_bytes << ": " << choice.coarsen << " of" << all;
            }
        }
}

}  // namespace
}  // namespace palmette::model
