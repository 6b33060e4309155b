// allgather, linear: every rank sends its block to every other rank at once.
//
//   p = 8: 0 → 1 2 3 4 5 6 7 and so on: a single step, so minimal latency, but s (p-s) blocks over the uplink of
//   a group of s, where the lower bound is p-s.
//
// The order of messages is that of an all-to-all: spread evenly over pairs of groups (alltoall_order.hpp).
#include "palmette/base/text.hpp"
#include "palmette/collectives/exchanges/alltoall_order.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_linear(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"partners"});
    if (spec.word("partners", TurnOrder::words()) == "xor" && (job.size() & (job.size() - 1)) != 0)
        return base::cat("partners=xor needs a power of two ranks, not ", job.size());
    return std::nullopt;
}

Program make_linear(const Job& job, Rank rank, const Request&, const Spec& spec) {
    using plan::Blocks;
    using plan::Buffer;
    const TurnOrder order(job, TurnOrder::named(spec.word("partners", TurnOrder::words())));
    const std::int32_t me = job.position_of(rank).value;
    plan::ProgramBuilder builder(rank, plan::BlockOrder::topology);
    builder.stage("exchange");
    for (const Turn& turn : order.of_target(me))
        builder.recv(job.rank_at({turn.source}), 0, Buffer::recv, Blocks(turn.source, 1), {});
    for (const Turn& turn : order.of_source(me))
        builder.send(job.rank_at({turn.target}), 0, Buffer::send, Blocks(me, 1), {});
    builder.stage("copy own block");
    builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {});
    return builder.finish();
}

std::optional<double> formula_linear(const FormulaInput& input) { return input.tiers.all_to_all(input.bytes); }

}  // namespace

const Algorithm allgather_linear{
    .collective = Collective::allgather,
    .name = "linear",
    .sentence =
        "Every rank sends its block to every other rank at once: minimal latency, but many bytes over the uplinks.",
    .source =
        "Basic linear allgather, as in Pjesivac-Grbovic et al., Cluster Computing 10(2), 2007; the order of messages "
        "is palmette's own",
    .keys = "partners=balanced|shift|xor (balanced)",
    .preconditions = "partners=xor needs a power of two ranks",
    .refuse = refuse_linear,
    .make = make_linear,
    .formula = formula_linear,
    .candidates = "linear",
    .samples = "linear linear:partners=xor",
};

}  // namespace palmette::collectives
