// Flat reduce_scatter among all ranks, without leaders: ring, recursive_halving, circulant, pat, pairwise and direct.
// Block i of all vectors is combined at rank i. The patterns are drawn in reduce_exchange_*.cpp.
#include <cmath>

#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/exchanges/ring_levels.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

bool by_skips(const Spec& spec) { return spec.name == "circulant" || spec.name == "pat"; }

bool by_rank(const Spec& spec) { return spec.word("order", {"topology", "rank"}) == "rank"; }

std::optional<std::string> refuse_flat(const Job& job, const Request& request, const Spec& spec) {
    const bool ring = spec.name == "ring";
    std::vector<std::string_view> keys{"order", "segment"};
    if (ring) keys.push_back("nested");
    check_keys(spec, keys);
    spec.size("segment", 0);
    spec.word("nested", {"auto", "yes", "no"});
    if (ring && request.ordered && job.size() > 1)
        return std::string("a ring doesn't combine contributions in rank order");
    if (by_skips(spec)) {
        const ReducePattern::Kind kind = spec.name == "pat" ? ReducePattern::Kind::pat : ReducePattern::Kind::circulant;
        if (const auto reason = ReducePattern{kind}.refuse(job.size(), request.ordered)) return reason;
    }
    return by_rank(spec) ? std::nullopt : refuse_scattered(job, request);
}

/// Tags per slice.
std::int32_t tags_of_pattern(const Job& job, const Spec& spec) {
    if (spec.name == "ring") return job.size();
    return spec.name == "recursive_halving" || by_skips(spec) ? 64 : 1;
}

std::int64_t tags_flat(const Job& job, const Request& request, const Spec& spec) {
    return std::int64_t{slices_of(request, spec)} * tags_of_pattern(job, spec);
}

void run(const ReduceContext& context, const Spec& spec, const std::vector<topology::Partition>& nested) {
    if (context.n == 1)
        context.builder.copy(context.input, context.result, context.blocks_of(0, 1), {}, context.slice);
    else if (spec.name == "ring")
        ReduceRing(context, nested).reduce_scatter();
    else if (spec.name == "recursive_halving")
        Halving(context).reduce_scatter();
    else if (by_skips(spec))
        SkipExchange(context, spec.name == "pat" ? pat_steps(context.n) : circulant_steps(context.n)).reduce_parts();
    else
        DirectExchange(context, spec.name == "pairwise" ? 2 : 0).reduce_scatter();
}

Program make_flat(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const std::int32_t n = job.size();
    const bool in_rank_order = by_rank(spec);
    plan::ProgramBuilder builder(rank, in_rank_order ? plan::BlockOrder::rank : plan::BlockOrder::topology);
    const std::vector<topology::Partition> nested =
        spec.name == "ring" ? ring_levels(job, spec) : std::vector<topology::Partition>{};
    ScratchBuffer scratch;
    builder.stage("exchange");
    const std::uint16_t of = slices_of(request, spec);
    for (std::uint16_t i = 0; i < of; ++i) {
        const ReduceContext context{
            .builder = builder,
            .scratch = scratch,
            .n = n,
            .me = in_rank_order ? rank.value : job.position_of(rank).value,
            .rank_of = [&](std::int32_t who) { return in_rank_order ? Rank{who} : job.rank_at({who}); },
            .blocks_of = [](std::int32_t first, std::int32_t count) { return plan::Blocks(first, count); },
            .input = Buffer::send,
            // Partial results lie in a buffer separate from the landings.
            .work = plan::scratch_layer(spec.name == "recursive_halving" || by_skips(spec) ? 2 : 0),
            .result = Buffer::recv,
            .ready = {},
            .first_tag = i * tags_of_pattern(job, spec),
            .slice = {i, of},
            .ordered = request.ordered,
        };
        run(context, spec, nested);
    }
    scratch.reserve(builder);
    return builder.finish();
}

constexpr std::string_view order_keys = "order=topology|rank, segment=SIZE";
constexpr std::string_view any_ranks =
    "an operation that isn't commutative needs ranks in topology order, or order=rank";

/// Time to combine the blocks of all others.
double combined_s(const FormulaInput& input) { return input.tiers.reduce_s(input.bytes * (input.tiers.ranks() - 1)); }

std::optional<double> formula_ring(const FormulaInput& input) {
    return ring_s(input, input.bytes, 1, true) + combined_s(input);
}

std::optional<double> formula_halving(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double p = tiers.ranks(), whole = std::exp2(std::floor(std::log2(p)));
    const double folded =
        whole < p ? tiers.message(tiers.crossed(1), input.bytes * p) + tiers.reduce_s(input.bytes * p) : 0;
    return doubling_s(tiers, input.bytes, 1) + combined_s(input) + folded;
}

std::optional<double> formula_skips(const FormulaInput& input) {
    return skips_s(input.tiers, input.spec.name, input.bytes, 1, 1) + combined_s(input);
}

std::optional<double> formula_direct(const FormulaInput& input) {
    return input.tiers.all_to_all(input.bytes) + combined_s(input);
}

}  // namespace

const Algorithm reduce_scatter_ring{
    .collective = Collective::reduce_scatter,
    .name = "ring",
    .sentence =
        "The allgather's nested ring reversed in time: partial results travel around and cross each link at most once "
        "per block.",
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, CCPE 19(13), 2007; the nesting is palmette's",
    .keys = "nested=auto|yes|no (auto), order=topology|rank, segment=SIZE",
    .preconditions = "the operation is commutative",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .pipelined = in_segments,
    .formula = formula_ring,
    .candidates = "ring:segment=32K ring:nested=no",
    .samples = "ring ring:nested=no,segment=32 ring:order=rank",
};

const Algorithm reduce_scatter_recursive_halving{
    .collective = Collective::reduce_scatter,
    .name = "recursive_halving",
    .sentence = "lg p exchanges of halves, the largest with the nearest; ranks beyond a power of two fold in first.",
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_halving,
    .candidates = "recursive_halving",
    .samples = "recursive_halving recursive_halving:order=rank,segment=32",
};

const Algorithm reduce_scatter_circulant{
    .collective = Collective::reduce_scatter,
    .name = "circulant",
    .sentence =
        "ceil(lg p) exchanges on a circulant graph, the largest with the farthest: p - 1 blocks a rank for any p.",
    .source = "Träff, \"Optimal, non-pipelined reduce-scatter and allreduce algorithms\", arXiv 2410.14234, 2024",
    .keys = order_keys,
    .preconditions = "the operation is commutative",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_skips,
    .samples = "circulant circulant:order=rank,segment=32",
};

const Algorithm reduce_scatter_pat{
    .collective = Collective::reduce_scatter,
    .name = "pat",
    .sentence =
        "ceil(lg p) exchanges over distances 1, 2, 4, ..., the largest with the nearest: p - 1 blocks a rank for any "
        "p.",
    .source = "Jeaugey, arXiv 2506.20252, 2025 (parallel aggregated trees), in its logarithmic form",
    .keys = order_keys,
    .preconditions = "the operation is commutative",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_skips,
    .candidates = "pat",
    .samples = "pat pat:order=rank,segment=32",
};

const Algorithm reduce_scatter_pairwise{
    .collective = Collective::reduce_scatter,
    .name = "pairwise",
    .sentence =
        "p-1 steps: in step k each rank sends a block directly to the rank k further, which combines it; two "
        "outstanding.",
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .samples = "pairwise pairwise:order=rank",
};

const Algorithm reduce_scatter_direct{
    .collective = Collective::reduce_scatter,
    .name = "direct",
    .sentence = "Every block is sent directly to its owner, all at once: critical path of one message.",
    .source = "folklore; pairwise exchange without its steps",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_direct,
    .samples = "direct direct:order=rank",
};

}  // namespace palmette::collectives
