// Flat scan and exscan among all ranks, in rank order: linear, recursive_doubling and all. The patterns are drawn in
// scan_exchange.hpp.
#include <algorithm>

#include "palmette/collectives/exchanges/scan_exchange.hpp"
#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

std::optional<std::string> refuse_flat(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"segment"});
    spec.size("segment", 0);
    return std::nullopt;
}

std::int64_t tags_flat(const Job&, const Request& request, const Spec& spec) {
    return std::int64_t{slices_of(request, spec)} * ScanPattern::tags;
}

Program make_flat(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const ScanPattern pattern = ScanPattern::parse(spec.name);
    plan::ProgramBuilder builder(rank);
    ScratchBuffer scratch;
    builder.stage("exchange");
    const std::uint16_t of = slices_of(request, spec);
    for (std::uint16_t i = 0; i < of; ++i) {
        const ReduceContext context{
            .builder = builder,
            .scratch = scratch,
            .n = job.size(),
            .me = rank.value,
            .rank_of = [](std::int32_t who) { return Rank{who}; },
            .blocks_of = [](std::int32_t, std::int32_t) { return plan::Blocks(0, 1); },
            .input = Buffer::send,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .ready = {},
            .first_tag = i * ScanPattern::tags,
            .slice = {i, of},
            .ordered = true,
        };
        if (request.collective == Collective::scan) {
            pattern.inclusive(context);
            continue;
        }
        const ScanPattern::Before before = pattern.exclusive(context);
        finish_prefix(builder, request.collective, before.prefix, before.readers, context.slice);
    }
    scratch.reserve(builder);
    return builder.finish();
}

std::optional<double> formula_linear(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double n = input.bytes, p = tiers.ranks(), cuts = input.segments(n);
    double first = 0, hop = 0, inner = 1;
    for (std::size_t t = tiers.count(); t-- > 0;) {
        const double around = t == 0 ? p : tiers[t - 1].ranks;
        if (around <= inner) continue;
        const double crossings = p / inner - p / around;
        first += crossings * (tiers.message(t, n / cuts) + tiers.reduce_s(n / cuts));
        hop = std::max(hop, tiers.transfer(t, n / cuts) * (tiers[t].inside ? 2 : 1) + 2 * tiers[t].overhead_s);
        inner = around;
    }
    return first + (cuts - 1) * hop;
}

std::optional<double> formula_doubling(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    double total = 0;
    for (double d = 1; d < tiers.ranks(); d *= 2)
        total += tiers.round(d, input.bytes, Partners::shift) + tiers.reduce_s(input.bytes);
    return total;
}

std::optional<double> formula_all(const FormulaInput& input) {
    return input.tiers.all_to_all(input.bytes) + input.tiers.reduce_s(input.bytes * (input.tiers.ranks() - 1));
}

}  // namespace

const Algorithm scan_linear{
    .collective = Collective::scan,
    .name = "linear",
    .sentence =
        "A chain: every rank combines its own with the prefix from the rank before and forwards it; pipelined in "
        "segments.",
    .source = "folklore; Sanders, Traeff, EuroPVM/MPI 2006",
    .keys = "segment=SIZE",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_linear,
    .candidates = "linear:segment=2K linear:segment=8K",
    .samples = "linear linear:segment=20",
};

const Algorithm scan_recursive_doubling{
    .collective = Collective::scan,
    .name = "recursive_doubling",
    .sentence =
        "Critical path of lg p messages: from the ranks 1, 2, 4, ... before, each with twice as many contributions.",
    .source = "Hillis, Steele, CACM 29(12), 1986",
    .keys = "segment=SIZE",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_doubling,
    .candidates = "recursive_doubling",
    .samples = "recursive_doubling recursive_doubling:segment=24",
};

const Algorithm scan_all{
    .collective = Collective::scan,
    .name = "all",
    .sentence = "Every rank sends to all later ones: critical path of one message, for tiny vectors over far links.",
    .source = "folklore",
    .keys = "segment=SIZE",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_all,
    .candidates = "all",
    .samples = "all",
};

}  // namespace palmette::collectives
