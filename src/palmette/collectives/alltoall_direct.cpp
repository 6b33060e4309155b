// alltoall, linear and pairwise: every block goes straight from its source to its target.
//
//   p = 8 on leaves {0 1 2} {3 4 5} {6 7}, the targets of each rank in order (partners=balanced):
//
//       0: 7 1 3 2 4 6 5      3: 2 4 6 0 5 7 1      6: 5 0 7 1 3 2 4
//       1: 3 2 4 6 0 5 7      4: 6 0 5 7 1 3 2      7: 1 3 2 4 6 5 0
//       2: 4 6 0 5 7 1 3      5: 0 7 1 3 2 4 6
//
//   In any stretch of this table each leaf sends to the two others in proportion to their size, so no uplink waits for another.
//   linear starts all messages at once. pairwise has at most W under way: message k waits for the W-th before it, among what the rank sends
//   and among what it should have got by then, so a rank that is ahead doesn't flood the others.
#include "palmette/base/text.hpp"
#include "palmette/collectives/alltoall_order.hpp"
#include "palmette/collectives/alltoall_rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

constexpr std::int32_t default_window = 6;

/// The steps of one rank that send or take one block each.
class Direct {
  public:
    Direct(const Job& job, Rank rank)
        : job_(job), p_(job.size()), me_(job.position_of(rank).value), builder_(rank, plan::BlockOrder::topology) {}

    Program linear(const TurnOrder& order) {
        builder_.stage("exchange");
        for (const Turn& turn : order.of_target(me_)) take(turn, {});
        for (const Turn& turn : order.of_source(me_)) give(turn, {});
        return finish();
    }

    Program pairwise(const TurnOrder& order, std::size_t window) {
        builder_.stage("exchange");
        const std::vector<Turn> sends = order.of_source(me_);
        const std::vector<Turn> recvs = order.of_target(me_);
        std::vector<StepId> sent;
        std::vector<StepId> taken;
        while (sent.size() < sends.size() || taken.size() < recvs.size()) {
            const bool take_next = taken.size() < recvs.size() &&
                                   (sent.size() == sends.size() || recvs[taken.size()] < sends[sent.size()]);
            std::vector<StepId> waits;
            if (take_next) {
                // Posted ahead of time, so that messages find their buffer; yet never a list of all ranks to search.
                if (taken.size() >= 2 * window) waits.push_back(taken[taken.size() - 2 * window]);
                taken.push_back(take(recvs[taken.size()], waits));
                continue;
            }
            if (sent.size() >= window) waits.push_back(sent[sent.size() - window]);
            if (taken.size() >= window) waits.push_back(taken[taken.size() - window]);
            sent.push_back(give(sends[sent.size()], waits));
        }
        return finish();
    }

  private:
    StepId give(const Turn& turn, const std::vector<StepId>& waits) {
        return builder_.send(job_.rank_at({turn.target}), 0, Buffer::send, Blocks(me_ * p_ + turn.target, 1), waits);
    }
    StepId take(const Turn& turn, const std::vector<StepId>& waits) {
        return builder_.recv(job_.rank_at({turn.source}), 0, Buffer::recv, Blocks(turn.source * p_ + me_, 1), waits);
    }
    Program finish() {
        builder_.stage("copy own block");
        builder_.copy(Buffer::send, Buffer::recv, Blocks(me_ * p_ + me_, 1), {});
        return builder_.finish();
    }

    const Job& job_;
    std::int64_t p_;
    std::int32_t me_;
    plan::ProgramBuilder builder_;
};

TurnOrder order_of(const Job& job, const Spec& spec) {
    return {job, TurnOrder::named(spec.word("partners", TurnOrder::words()))};
}

std::optional<std::string> refuse_order(const Job& job, const Spec& spec) {
    if (spec.word("partners", TurnOrder::words()) == "xor" && (job.size() & (job.size() - 1)) != 0)
        return base::cat("partners=xor needs a power of two ranks, not ", job.size());
    return std::nullopt;
}

std::optional<std::string> refuse_linear(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"partners"});
    return refuse_order(job, spec);
}

std::optional<std::string> refuse_pairwise(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"window", "partners"});
    spec.integer("window", default_window);
    return refuse_order(job, spec);
}

Program make_linear(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return Direct(job, rank).linear(order_of(job, spec));
}

Program make_pairwise(const Job& job, Rank rank, const Request&, const Spec& spec) {
    const auto window = static_cast<std::size_t>(spec.integer("window", default_window));
    return Direct(job, rank).pairwise(order_of(job, spec), window);
}

}  // namespace

const Algorithm alltoall_linear{
    Collective::alltoall,
    "linear",
    "Every rank sends each block straight to its target, all at once, in an order that spreads every pair of groups "
    "over "
    "time.",
    "The basic algorithm of Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; the order of messages is palmette's own",
    "partners=balanced|shift|xor (balanced)",
    "partners=xor needs a power of two ranks",
    false,
    refuse_linear,
    make_linear,
};

const Algorithm alltoall_pairwise{
    Collective::alltoall,
    "pairwise",
    "As linear with at most W messages under way each way: paced by what a rank sends and by what it gets.",
    "Pairwise exchange of Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; window and order of messages are palmette's "
    "own",
    "window=W (6), partners=balanced|shift|xor (balanced)",
    "partners=xor needs a power of two ranks",
    false,
    refuse_pairwise,
    make_pairwise,
};

}  // namespace palmette::collectives
