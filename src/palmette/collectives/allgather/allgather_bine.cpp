// allgather, bine: a butterfly with negabinary distances, which are a third shorter on average than those of recursive
// doubling.
//
//   p = 8, who exchanges with whom:   step 0 (1)    0═1 2═3 4═5 6═7
//                                     step 1 (-1)   1═2 3═4 5═6 7═0      every rank now has four neighbours' blocks
//                                     step 2 (3)    0═3 2═5 4═7 6═1
//
// Where p is no power of two, the first ranks form pairs: the first of a pair contributes the other's block, too, and
// forwards each arrival to it at once.
#include <algorithm>

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/bine.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

class Bine {
  public:
    Bine(const Job& job, Rank rank, const Spec& spec)
        : job_(job),
          by_rank_(spec.word("order", {"topology", "rank"}) == "rank"),
          pairs_(job.size()),
          me_(by_rank_ ? rank.value : job.position_of(rank).value),
          group_(pairs_.group_of(me_)),
          builder_(rank, by_rank_ ? plan::BlockOrder::rank : plan::BlockOrder::topology) {}

    Program make() {
        builder_.stage("copy own block");
        const StepId own = builder_.copy(Buffer::send, Buffer::recv, Blocks(me_, 1), {});
        const std::int32_t first = pairs_.first(group_);
        const Schedule schedule = bine(pairs_.groups(), group_);
        if (me_ != first) {
            follow(first, schedule, own);
            return builder_.finish();
        }
        const bool paired = pairs_.first(group_ + 1) - first > 1;
        std::vector<StepId> received{own};
        if (paired) {
            builder_.stage("pairs");
            received.push_back(builder_.recv(rank_of(me_ + 1), 0, Buffer::recv, Blocks(me_ + 1, 1), {}));
            builder_.send(rank_of(me_ + 1), 0, Buffer::recv, Blocks(me_, 1), {own});
        }
        builder_.stage("exchange");
        Exchanger exchanger(
            builder_, [this](std::int32_t group) { return rank_of(pairs_.first(group)); },
            [this](Range range) { return blocks_of(range); }, pairs_.groups(), group_, received, 0);
        exchanger.run(schedule);
        if (!paired) return builder_.finish();
        builder_.stage("pairs");
        std::int32_t tag = 1;
        for (const Exchanger::Arrival& arrival : exchanger.arrivals())
            builder_.send(rank_of(me_ + 1), tag++, Buffer::recv, arrival.blocks, {arrival.step});
        return builder_.finish();
    }

  private:
    void follow(std::int32_t first, const Schedule& schedule, StepId own) {
        builder_.stage("pairs");
        builder_.send(rank_of(first), 0, Buffer::recv, Blocks(me_, 1), {own});
        builder_.recv(rank_of(first), 0, Buffer::recv, Blocks(first, 1), {});
        std::int32_t tag = 1;
        for (const Exchange& exchange : schedule)
            if (!exchange.send) builder_.recv(rank_of(first), tag++, Buffer::recv, blocks_of(exchange.range), {});
    }
    Rank rank_of(std::int32_t member) const { return by_rank_ ? Rank{member} : job_.rank_at({member}); }
    Blocks blocks_of(Range range) const {
        Blocks blocks;
        const std::int32_t straight = std::min(range.count, pairs_.groups() - range.first);
        const auto run = [&](std::int32_t group, std::int32_t count) {
            blocks.insert({pairs_.first(group), pairs_.first(group + count) - pairs_.first(group)});
        };
        run(range.first, straight);
        run(0, range.count - straight);
        return blocks;
    }

    const Job& job_;
    bool by_rank_;
    BinePairs pairs_;
    std::int32_t me_, group_;
    plan::ProgramBuilder builder_;
};

std::optional<std::string> refuse_bine(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"order"});
    spec.word("order", {"topology", "rank"});
    return std::nullopt;
}

Program make_bine(const Job& job, Rank rank, const Request&, const Spec& spec) { return Bine(job, rank, spec).make(); }

}  // namespace

const Algorithm allgather_bine{
    .collective = Collective::allgather,
    .name = "bine",
    .sentence =
        "A butterfly with negabinary distances: log_2 p steps whose partners are nearer than those of recursive "
        "doubling.",
    .source =
        "De Sensi et al., \"Bine trees: enhancing collective operations by optimizing communication locality\", SC "
        "2025",
    .keys = "order=topology|rank",
    .relays = true,
    .refuse = refuse_bine,
    .make = make_bine,
    .samples = "bine bine:order=rank",
    .kin = "recursive_doubling",
};

}  // namespace palmette::collectives
