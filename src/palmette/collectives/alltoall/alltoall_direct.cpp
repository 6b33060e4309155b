// alltoall, linear and pairwise: every block is sent directly from its source to its target.
//
//   p = 8 on leaves {0 1 2} {3 4 5} {6 7}, the targets of each rank in order (partners=balanced):
//
//       0: 3 1 6 4 2 5 7      3: 6 0 4 1 5 7 2      6: 0 3 1 7 4 2 5
//       1: 6 4 2 5 7 0 3      4: 1 5 7 2 3 6 0      7: 4 2 5 6 0 3 1
//       2: 5 7 0 3 1 6 4      5: 7 2 3 6 0 4 1
//
//   In any section of this table each leaf sends to the two others in proportion to their size, so no uplink idles for
//   another. linear starts all messages at once. pairwise has at most W in flight per direction and level, a message
//   waiting for the W-th before it: few enough to avoid congestion, enough to saturate links. With
//   levels=together there are W in all, and none is sent before the W-th last receive of earlier turns has completed.
#include "palmette/base/text.hpp"
#include "palmette/collectives/exchanges/alltoall_order.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/send_window.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

constexpr std::int32_t default_window = 5;

/// Whether each level has a window of its own, or all levels share one.
std::vector<std::string_view> window_words() { return {"apart", "together"}; }

/// The steps of one rank, each of which sends or receives one block.
class DirectAlltoall {
  public:
    DirectAlltoall(const Job& job, Rank rank)
        : job_(job), p_(job.size()), me_(job.position_of(rank).value), builder_(rank, plan::BlockOrder::topology) {}

    Program linear(const TurnOrder& order) {
        builder_.stage("exchange");
        for (const Turn& turn : order.of_target(me_)) take(turn, {});
        for (const Turn& turn : order.of_source(me_)) give(turn, {});
        return finish();
    }

    /// Each level has a window of its own, so that a slow message to another leaf never delays those inside, or vice
    /// versa.
    Program pairwise(const TurnOrder& order, std::size_t window) {
        builder_.stage("exchange");
        const std::vector<Turn> sends = order.of_source(me_);
        const std::vector<Turn> recvs = order.of_target(me_);
        std::vector<std::vector<StepId>> sent(job_.levels().size() + 1);
        std::vector<std::vector<StepId>> taken(job_.levels().size() + 1);
        auto send = sends.begin();
        auto recv = recvs.begin();
        while (send != sends.end() || recv != recvs.end()) {
            if (recv != recvs.end() && (send == sends.end() || *recv < *send)) {
                // Preposted, so that messages aren't unexpected; but never so many that the MPI searches a list of all
                // ranks.
                auto& before = taken[static_cast<std::size_t>(recv->level)];
                before.push_back(take(*recv, waits_of(before, 2 * window)));
                ++recv;
                continue;
            }
            auto& before = sent[static_cast<std::size_t>(send->level)];
            before.push_back(give(*send, waits_of(before, window)));
            ++send;
        }
        return finish();
    }

    /// One window for all levels, and no rank sends ahead of its receives: where each turn of the order is a
    /// permutation, there is no endpoint contention, within a turn or between turns.
    Program in_step(const TurnOrder& order, std::size_t window) {
        builder_.stage("exchange");
        const std::vector<Turn> sends = order.of_source(me_);
        const std::vector<Turn> recvs = order.of_target(me_);
        std::vector<StepId> sent;
        std::vector<StepId> taken;
        std::size_t earlier = 0;  // receives of turns before the send's
        auto recv = recvs.begin();
        for (const Turn& turn : sends) {
            for (; recv != recvs.end() && recv->when <= turn.when; ++recv)
                taken.push_back(take(*recv, waits_of(taken, 2 * window)));
            while (earlier < taken.size() && recvs[earlier].when < turn.when) ++earlier;
            std::vector<StepId> waits = waits_of(sent, window);
            if (earlier >= window) waits.push_back(taken[earlier - window]);
            sent.push_back(give(turn, waits));
        }
        for (; recv != recvs.end(); ++recv) taken.push_back(take(*recv, waits_of(taken, 2 * window)));
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
    check_keys(spec, {"window", "partners", "levels"});
    spec.integer("window", default_window);
    spec.word("levels", window_words());
    return refuse_order(job, spec);
}

Program make_linear(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return DirectAlltoall(job, rank).linear(order_of(job, spec));
}

Program make_pairwise(const Job& job, Rank rank, const Request&, const Spec& spec) {
    const auto window = static_cast<std::size_t>(spec.integer("window", default_window));
    const TurnOrder order = order_of(job, spec);
    return spec.word("levels", window_words()) == "apart" ? DirectAlltoall(job, rank).pairwise(order, window)
                                                          : DirectAlltoall(job, rank).in_step(order, window);
}

std::optional<double> formula_direct(const FormulaInput& input) { return input.tiers.all_to_all(input.bytes); }

}  // namespace

const Algorithm alltoall_linear{
    .collective = Collective::alltoall,
    .name = "linear",
    .sentence =
        "Every rank sends each block directly to its target, all at once, in an order that spreads every pair of "
        "groups over time.",
    .source =
        "The basic algorithm of Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; the order of messages is palmette's "
        "own",
    .keys = "partners=balanced|shift|xor (balanced)",
    .preconditions = "partners=xor needs a power of two ranks",
    .refuse = refuse_linear,
    .make = make_linear,
    .formula = formula_direct,
    .candidates = "linear",
    .samples = "linear linear:partners=shift",
};

const Algorithm alltoall_pairwise{
    .collective = Collective::alltoall,
    .name = "pairwise",
    .sentence =
        "As linear with at most W messages in flight per direction, for each level that peers are separated at, or in "
        "all.",
    .source =
        "Pairwise exchange of Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; window and order of messages are "
        "palmette's own",
    .keys = "window=W (5), partners=balanced|shift|xor (balanced), levels=apart|together (apart)",
    .preconditions = "partners=xor needs a power of two ranks",
    .refuse = refuse_pairwise,
    .make = make_pairwise,
    .formula = formula_direct,
    .samples =
        "pairwise pairwise:window=1 pairwise:window=3,partners=shift pairwise:window=2,partners=xor "
        "pairwise:window=1,levels=together pairwise:window=3,partners=shift,levels=together",
};

}  // namespace palmette::collectives
