// reduce, reduce_scatter_gather: recursive halving reduce-scatter, then a binomial gather.
//
//   p = 8, blocks 0-7, root 0:
//
//       halving    0 ↔ 1, 2 ↔ 3, 4 ↔ 5, 6 ↔ 7    half of the vector each        0 has 0-3, 1 has 4-7, ...
//                  0 ↔ 2, 1 ↔ 3, 4 ↔ 6, 5 ↔ 7    a quarter                   0 has 0 1, 2 has 2 3, 1 has 4 5, 3 has 6 7
//                  0 ↔ 4, 1 ↔ 5, 2 ↔ 6, 3 ↔ 7    an eighth
//       gather     4 → 0 (1), 6 → 2, 5 → 1, 7 → 3, then 2 → 0 (2 3), 3 → 1, then 1 → 0 (4-7)
//
// Near partners exchange most and far ones least, and only neighbours are combined, so that rank order can be kept.
// Where p is no power of two, the first ranks are folded in pairs, and one of each pair takes part.
#include <algorithm>

#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/bine.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

bool by_rank(const Request& request, const Spec& spec) {
    if (request.ordered && !spec.find("order")) return true;
    return spec.word("order", {"topology", "rank"}) == "rank";
}

std::optional<std::string> refuse_scatter_gather(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"order"});
    if (request.ordered && !by_rank(request, spec) && !in_rank_order(job))
        return "the operation isn't commutative and topology order isn't rank order here: use order=rank";
    return std::nullopt;
}

/// One rank's part. Participants are single ranks or pairs; block i is the part of participant i, bits reversed.
class Halving {
  public:
    Halving(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : job_(job),
          by_rank_(by_rank(request, spec)),
          pairs_(job.size()),
          root_(place(request.root)),
          me_(place(rank)),
          group_(pairs_.group_of(me_)),
          builder_(rank, by_rank_ ? plan::BlockOrder::rank : plan::BlockOrder::topology, pairs_.groups()),
          total_(me_ == root_ ? Buffer::recv : Buffer::scratch) {}

    Program make() {
        if (job_.size() == 1) {
            builder_.stage("copy own vector");
            builder_.copy(Buffer::send, Buffer::recv, all(), {});
            return builder_.finish();
        }
        if (!fold()) return builder_.finish();
        halve();
        gather();
        return builder_.finish();
    }

  private:
    std::int32_t place(Rank rank) const { return by_rank_ ? rank.value : job_.position_of(rank).value; }
    Rank at(std::int32_t place) const { return by_rank_ ? Rank{place} : job_.rank_at({place}); }
    Blocks all() const { return {0, pairs_.groups()}; }

    /// The rank of a pair that takes part: the root where it is one of the two, else the first.
    std::int32_t actor(std::int32_t group) const {
        return pairs_.group_of(root_) == group ? root_ : pairs_.first(group);
    }

    /// Folds pairs. False for a rank that has sent its vector to its partner and is done.
    bool fold() {
        const std::int32_t first = pairs_.first(group_);
        if (pairs_.first(group_ + 1) - first == 1) return true;
        const std::int32_t partner = me_ == first ? first + 1 : first;
        builder_.stage("combine in pairs");
        if (actor(group_) != me_) {
            builder_.send(at(partner), 0, Buffer::send, all(), {});
            return false;
        }
        const Buffer landing = plan::scratch_layer(1);
        builder_.reserve_scratch(all(), landing);
        if (total_ == Buffer::scratch) builder_.reserve_scratch(all());
        const StepId arrived = builder_.recv(at(partner), 0, landing, all(), {});
        combined_ = {partner < me_ ? builder_.reduce(landing, Buffer::send, total_, all(), {arrived})
                                   : builder_.reduce(Buffer::send, landing, total_, all(), {arrived})};
        landed_[0] = combined_;
        own_ = total_;
        return true;
    }

    void halve() {
        builder_.stage("halving");
        Interval mine{0, pairs_.groups()};
        std::int32_t tag = 1;
        for (std::int32_t distance = 1; distance < pairs_.groups(); distance *= 2, ++tag) {
            const std::int32_t partner = group_ ^ distance;
            const bool lower = partner > group_;
            Interval kept{mine.first, mine.count / 2};
            Interval given{mine.first + kept.count, kept.count};
            if (!lower) std::swap(kept, given);
            // Double buffering: two alternating landings, so that an early arrival can be received while the previous
            // one is combined.
            const auto turn = static_cast<std::size_t>((tag + 1) % 2);
            const Buffer landing = plan::scratch_layer(1 + turn);
            reserve(blocks(kept), tag);
            const StepId sent = builder_.send(at(actor(partner)), tag, own_, blocks(given), combined_);
            std::vector<StepId> ready = combined_;
            ready.push_back(builder_.recv(at(actor(partner)), tag, landing, blocks(kept), landed_[turn]));
            combined_ = {lower ? builder_.reduce(own_, landing, total_, blocks(kept), ready)
                               : builder_.reduce(landing, own_, total_, blocks(kept), ready)};
            landed_[turn] = combined_;
            given_.push_back({given, sent});
            own_ = total_;
            mine = kept;
        }
        mine_ = mine;
    }

    void gather() {
        builder_.stage("gather");
        const std::int32_t root = pairs_.group_of(root_);
        std::vector<StepId> have = combined_;
        for (std::int32_t distance = pairs_.groups() / 2; distance > 0; distance /= 2) {
            const std::int32_t partner = group_ ^ distance;
            const auto tag = static_cast<std::int32_t>(64 + given_.size());
            const Handover back = given_.back();
            given_.pop_back();
            if ((group_ & distance) != (root & distance)) {
                builder_.send(at(actor(partner)), tag, own_, blocks(mine_), have);
                return;
            }
            // The half that was sent comes back as a part of the result, into the buffer that it was sent from.
            have.push_back(builder_.recv(at(actor(partner)), tag, total_, blocks(back.interval), {back.sent}));
            mine_ = {std::min(mine_.first, back.interval.first), 2 * mine_.count};
        }
    }

    static Blocks blocks(Interval interval) { return {interval.first, interval.count}; }
    /// Parts get smaller, so capacity for the first landing in each buffer, and its combination, suffices for all.
    /// Ranks other than the root send what they have before they receive more than that. A fold has reserved the whole
    /// vector already.
    void reserve(const Blocks& kept, std::int32_t tag) {
        if (tag == 1 && total_ == Buffer::scratch && own_ == Buffer::send) builder_.reserve_scratch(kept);
        if (tag == 2 || (tag == 1 && own_ == Buffer::send))
            builder_.reserve_scratch(kept, plan::scratch_layer(static_cast<std::size_t>(tag)));
    }

    struct Handover {
        Interval interval;
        StepId sent;
    };

    const Job& job_;
    bool by_rank_;
    BinePairs pairs_;
    std::int32_t root_, me_, group_;
    plan::ProgramBuilder builder_;
    Buffer total_;
    Buffer own_ = Buffer::send;  ///< the left-hand data to combine: the input, then the partial result
    std::vector<StepId> combined_;
    std::vector<StepId> landed_[2];  ///< the steps that read the landings last
    std::vector<Handover> given_;
    Interval mine_;
};

Program make_scatter_gather(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return Halving(job, rank, request, spec).make();
}

std::int64_t tags_scatter_gather(const Job&, const Request&, const Spec&) { return 128; }

std::optional<double> formula_scatter_gather(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    double part = input.bytes, total = shrinking_s(tiers, input.bytes);
    double whole = 1;  // ranks beyond the largest power of two are folded in first
    while (whole * 2 <= tiers.ranks()) whole *= 2;
    if (whole < tiers.ranks()) total += tiers.message(tiers.crossed(1), input.bytes) + tiers.reduce_s(input.bytes);
    for (double d = 1; d < whole; d *= 2) {
        part /= 2;
        total += tiers.round(d, part, Partners::flip) + tiers.reduce_s(part);
    }
    return total;
}

}  // namespace

const Algorithm reduce_reduce_scatter_gather{
    .collective = Collective::reduce,
    .name = "reduce_scatter_gather",
    .sentence =
        "Recursive halving with the nearest partners first, then a binomial gather of the parts: a rank moves 2 "
        "vectors.",
    .source = "Rabenseifner, Optimization of collective reduction operations, ICCS 2004; pairs for any number of ranks",
    .keys = "order=topology|rank",
    .preconditions = "an operation that doesn't commute needs order=rank (its default then)",
    .refuse = refuse_scatter_gather,
    .make = make_scatter_gather,
    .tags = tags_scatter_gather,
    .formula = formula_scatter_gather,
    .candidates = "reduce_scatter_gather reduce_scatter_gather:order=rank",
    .samples = "reduce_scatter_gather",
};

}  // namespace palmette::collectives
