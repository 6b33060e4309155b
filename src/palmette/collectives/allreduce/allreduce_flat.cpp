// Flat allreduce among all ranks, without leaders: recursive_doubling, recursive_multiplying, all, rabenseifner,
// circulant, pat, ring and direct. The patterns are drawn in reduce_exchange_*.cpp.
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/exchanges/ring_levels.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

bool by_rank(const Spec& spec) { return spec.word("order", {"topology", "rank"}) == "rank"; }

ReducePattern pattern_of(const Spec& spec) {
    ReducePattern pattern = ReducePattern::parse(spec.name);
    if (spec.name == "recursive_multiplying") pattern.radix = spec.integer("radix", 4, 2);
    return pattern;
}

std::optional<std::string> refuse_flat(const Job& job, const Request& request, const Spec& spec) {
    std::vector<std::string_view> keys{"order", "segment"};
    if (spec.name == "ring") keys.push_back("nested");
    if (spec.name == "recursive_multiplying") keys.push_back("radix");
    check_keys(spec, keys);
    spec.size("segment", 0);
    spec.word("nested", {"auto", "yes", "no"});
    if (const auto reason = pattern_of(spec).refuse(job.size(), request.ordered)) return reason;
    return by_rank(spec) ? std::nullopt : refuse_scattered(job, request);
}

std::uint16_t slices(const Job& job, const Request& request, const Spec& spec) {
    return slices_of(request, spec, pattern_of(spec).parts(job.size()));
}

std::int64_t tags_flat(const Job& job, const Request& request, const Spec& spec) {
    return std::int64_t{slices(job, request, spec)} * pattern_of(spec).tags(job.size());
}

Program make_flat(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const ReducePattern pattern = pattern_of(spec);
    const std::int32_t n = job.size();
    const bool in_rank_order = by_rank(spec);
    plan::ProgramBuilder builder(rank, in_rank_order ? plan::BlockOrder::rank : plan::BlockOrder::topology,
                                 pattern.parts(n));
    const std::vector<topology::Partition> nested =
        spec.name == "ring" ? ring_levels(job, spec) : std::vector<topology::Partition>{};
    ScratchBuffer scratch;
    builder.stage("exchange");
    const std::uint16_t of = slices(job, request, spec);
    for (std::uint16_t i = 0; i < of; ++i) {
        const ReduceContext context{
            .builder = builder,
            .scratch = scratch,
            .n = n,
            .me = in_rank_order ? rank.value : job.position_of(rank).value,
            .rank_of = [&](std::int32_t who) { return in_rank_order ? Rank{who} : job.rank_at({who}); },
            .blocks_of = [](std::int32_t first, std::int32_t count) { return plan::Blocks(first, count); },
            .input = Buffer::send,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .ready = {},
            .first_tag = i * pattern.tags(n),
            .slice = {i, of},
            .ordered = request.ordered,
        };
        pattern.allreduce(context, nested);
    }
    scratch.reserve(builder);
    return builder.finish();
}

constexpr std::string_view order_keys = "order=topology|rank, segment=SIZE";
constexpr std::string_view any_ranks =
    "an operation that isn't commutative needs ranks in topology order, or order=rank";

// Simulated where vectors are cut into segments; a ring's are part of its formula.
std::optional<double> formula_flat(const FormulaInput& input) {
    if (input.spec.find("segment")) return std::nullopt;
    return vector_exchange_s(input, input.spec.name, input.bytes, 1, 1);
}

std::optional<double> formula_multiplying(const FormulaInput& input) {
    if (input.spec.find("segment")) return std::nullopt;
    const std::string pattern = "recursive_multiplying." + std::to_string(input.spec.integer("radix", 4, 2));
    return vector_exchange_s(input, pattern, input.bytes, 1, 1);
}

std::optional<double> formula_ring(const FormulaInput& input) {
    const double n = input.bytes, p = input.tiers.ranks();
    return 2 * ring_s(input, n / p, 1, true) + input.tiers.reduce_s(n * (p - 1) / p);
}

std::optional<double> formula_direct(const FormulaInput& input) {
    if (input.spec.find("segment")) return std::nullopt;
    const double n = input.bytes, p = input.tiers.ranks();
    return 2 * input.tiers.all_to_all(n / p) + input.tiers.reduce_s(n * (p - 1) / p);
}

}  // namespace

const Algorithm allreduce_recursive_doubling{
    .collective = Collective::allreduce,
    .name = "recursive_doubling",
    .sentence =
        "lg p exchanges of the whole vector with partners 1, 2, 4, ... positions away; ranks beyond a power of two "
        "fold in first.",
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_flat,
    .candidates = "recursive_doubling recursive_doubling:order=rank",
    .samples = "recursive_doubling recursive_doubling:order=rank,segment=20",
};

const Algorithm allreduce_recursive_multiplying{
    .collective = Collective::allreduce,
    .name = "recursive_multiplying",
    .sentence =
        "Groups of K exchange the whole vector all to all, log_K p times: a shorter critical path than doubling.",
    .source = "Ruefenacht, Bull, Booth, Parallel Computing 69, 2017",
    .keys = "radix=K (4), order=topology|rank, segment=SIZE",
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_multiplying,
    .candidates = "recursive_multiplying",
    .samples = "recursive_multiplying recursive_multiplying:radix=3,segment=24",
};

const Algorithm allreduce_all{
    .collective = Collective::allreduce,
    .name = "all",
    .sentence =
        "Every rank sends its vector to every other one and combines all: critical path of one message, tiny vectors.",
    .source = "folklore; recursive multiplying with radix p",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_flat,
    .samples = "all",
};

const Algorithm allreduce_rabenseifner{
    .collective = Collective::allreduce,
    .name = "rabenseifner",
    .sentence =
        "Recursive halving reduce-scatter, nearest partners and largest halves first, then recursive doubling "
        "allgather.",
    .source = "Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_flat,
    .candidates = "rabenseifner",
    .samples = "rabenseifner rabenseifner:order=rank,segment=4",
};

const Algorithm allreduce_circulant{
    .collective = Collective::allreduce,
    .name = "circulant",
    .sentence =
        "Reduce-scatter and allgather on a circulant graph: 2 ceil(lg p) exchanges and 2 (p-1)/p of the vector for any "
        "p, without folding.",
    .source = "Träff, \"Optimal, non-pipelined reduce-scatter and allreduce algorithms\", arXiv 2410.14234, 2024",
    .keys = order_keys,
    .preconditions = "the operation is commutative",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_flat,
    .samples = "circulant circulant:order=rank,segment=4",
};

const Algorithm allreduce_pat{
    .collective = Collective::allreduce,
    .name = "pat",
    .sentence =
        "The same numbers of exchanges and bytes as on a circulant graph, but the largest messages go to the nearest "
        "ranks.",
    .source = "Jeaugey, arXiv 2506.20252, 2025 (parallel aggregated trees), for allreduce here",
    .keys = order_keys,
    .preconditions = "the operation is commutative",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_flat,
    .candidates = "pat",
    .samples = "pat pat:order=rank,segment=4",
};

const Algorithm allreduce_ring{
    .collective = Collective::allreduce,
    .name = "ring",
    .sentence =
        "Reduce-scatter and allgather around a ring that closes inside every node and switch: 2 (p-s)/p of the vector "
        "per link.",
    .source = "Patarasuk, Yuan, JPDC 69(2), 2009; the nesting is palmette's",
    .keys = "nested=auto|yes|no (auto), order=topology|rank, segment=SIZE",
    .preconditions = "the operation is commutative",
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .pipelined = in_segments,
    .formula = formula_ring,
    .candidates = "ring:segment=32K ring",
    .samples = "ring ring:nested=no,segment=4",
};

const Algorithm allreduce_direct{
    .collective = Collective::allreduce,
    .name = "direct",
    .sentence =
        "Part i of the vector goes directly to rank i, which combines and sends it to all: critical path of two "
        "messages.",
    .source = "folklore; direct reduce-scatter and allgather as in Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
    .keys = order_keys,
    .preconditions = any_ranks,
    .relays = true,
    .refuse = refuse_flat,
    .make = make_flat,
    .tags = tags_flat,
    .formula = formula_direct,
    .candidates = "direct",
    .samples = "direct",
};

}  // namespace palmette::collectives
