// alltoall, bruck: few messages, each with the blocks of many pairs, for latency-bound (small) blocks.
//
//   A block for the rank j places to the right travels by the digits of j in base k: digit z at weight w = k^x takes it
//   z*w places further. p = 8, k = 2, who gets what from rank 0's neighbours:
//
//       w = 1:   0 → 1   blocks that still have 1, 3, 5, 7 places to go
//       w = 2:   0 → 2   those with 2, 3, 6, 7, half of which came from rank 7
//       w = 4:   0 → 4   those with 4, 5, 6, 7
//
//   One message for each digit that isn't zero: (k-1) ceil(log_k p) where p is a power of k, p-1 for k >= p, which is
//   the direct exchange. So k trades messages for bytes (p/k blocks per message). Blocks are sent and received in
//   place: neither rotation is needed.
#include <algorithm>
#include <cmath>

#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Region;
using plan::StepId;

/// One rank's part. A block is named by j, the places between its source and its target.
class Bruck {
  public:
    Bruck(const Job& job, Rank rank, std::int64_t radix)
        : job_(job),
          p_(job.size()),
          me_(job.position_of(rank).value),
          radix_(radix),
          builder_(rank, plan::BlockOrder::topology) {}

    Program make() {
        reserve();
        std::vector<StepId> arrived;  // in earlier rounds
        std::int32_t tag = 0;
        for (std::int64_t weight = 1; weight < p_; weight *= radix_) {
            builder_.stage("exchange blocks by digit");
            std::vector<StepId> arriving;
            for (std::int64_t digit = 1; digit < radix_ && digit * weight < p_; ++digit, ++tag) {
                const std::int64_t distance = digit * weight;
                arriving.push_back(builder_.recv(rank_at(me_ - distance), tag, arriving_blocks(weight, digit), {}));
                // Blocks at their first digit are in the input and have no dependencies.
                builder_.send(rank_at(me_ + distance), tag, leaving_blocks(weight, digit), arrived);
            }
            arrived.insert(arrived.end(), arriving.begin(), arriving.end());
        }
        builder_.stage("copy own block");
        builder_.copy(Buffer::send, Buffer::recv, Blocks(me_ * p_ + me_, 1), {});
        return builder_.finish();
    }

  private:
    std::int64_t wrap(std::int64_t position) const { return ((position % p_) + p_) % p_; }
    Rank rank_at(std::int64_t position) const { return job_.rank_at({static_cast<std::int32_t>(wrap(position))}); }

    template <class Visit>
    void for_each_with(std::int64_t weight, std::int64_t digit, const Visit& visit) const {
        for (std::int64_t high = digit * weight; high < p_; high += radix_ * weight)
            for (std::int64_t j = high; j < std::min(high + weight, p_); ++j) visit(j);
    }
    /// The block with total distance j that is on this rank after `made` of its places.
    std::int64_t block(std::int64_t j, std::int64_t made) const { return wrap(me_ - made) * p_ + wrap(me_ - made + j); }

    std::vector<Region> leaving_blocks(std::int64_t weight, std::int64_t digit) const {
        std::vector<Region> regions;
        for_each_with(weight, digit, [&](std::int64_t j) {
            const std::int64_t made = j % weight;
            regions.push_back({made == 0 ? Buffer::send : Buffer::scratch, {block(j, made), 1}});
        });
        return regions;
    }
    std::vector<Region> arriving_blocks(std::int64_t weight, std::int64_t digit) const {
        std::vector<Region> regions;
        for_each_with(weight, digit, [&](std::int64_t j) {
            const std::int64_t made = j % (weight * radix_);
            regions.push_back({made == j ? Buffer::recv : Buffer::scratch, {block(j, made), 1}});
        });
        return regions;
    }
    void reserve() {
        std::vector<std::int64_t> passing;
        for (std::int64_t weight = 1; weight < p_; weight *= radix_)
            for (std::int64_t digit = 1; digit < radix_ && digit * weight < p_; ++digit)
                for (const Region& region : arriving_blocks(weight, digit))
                    if (region.buffer == Buffer::scratch) passing.push_back(region.blocks.first);
        std::sort(passing.begin(), passing.end());
        Blocks blocks;
        for (const std::int64_t b : passing) blocks.insert({b, 1});
        if (!blocks.empty()) builder_.reserve_scratch(blocks);
    }

    const Job& job_;
    std::int64_t p_, me_, radix_;
    plan::ProgramBuilder builder_;
};

std::optional<std::string> refuse_bruck(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"radix"});
    spec.integer("radix", 2, 2);
    return std::nullopt;
}

Program make_bruck(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return Bruck(job, rank, spec.integer("radix", 2, 2)).make();
}

std::optional<double> formula_bruck(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double p = tiers.ranks(), radix = input.spec.integer("radix", 2, 2);
    double total = 0;
    for (double d = 1; d < p; d *= radix) {
        // Messages for the other digits of this position are outstanding concurrently.
        const double digits = std::min(radix, std::ceil(p / d)) - 1;
        const double moved = input.bytes * p * digits / (digits + 1);
        total += tiers.round(std::min(d * (digits + 1) / 2, p / 2), moved, Partners::shift) + 2 * tiers.copy_s(moved) +
                 (digits - 1) * 2 * tiers[tiers.crossed(d)].overhead_s;
    }
    return total;
}

}  // namespace

const Algorithm alltoall_bruck{
    .collective = Collective::alltoall,
    .name = "bruck",
    .sentence =
        "Blocks travel by the digits of their distance in base k: (k-1) ceil(log_k p) messages per rank instead of "
        "p-1.",
    .source =
        "Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8(11), 1997; any radix, also for uneven blocks, as in Fan, "
        "Domke, Ba, Kumar (TuNA), 2024",
    .keys = "radix=K (2)",
    .relays = true,
    .refuse = refuse_bruck,
    .make = make_bruck,
    .formula = formula_bruck,
    .candidates = "bruck bruck:radix=4 bruck:radix=8",
    .samples = "bruck bruck:radix=3 bruck:radix=8",
};

}  // namespace palmette::collectives
