// allgather, ring: p-1 steps, in which each rank forwards the block received last to the next rank.
//
//   0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0    closes inside of every node and leaf, so no link carries a block twice
#include "palmette/collectives/allgather/allgather_flat.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

std::optional<std::string> refuse_ring(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"order", "nested", "segment"});
    spec.size("segment", 0);
    spec.word("order", {"topology", "rank"});
    spec.word("nested", {"auto", "yes", "no"});
    return std::nullopt;
}

Program make_ring(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return allgather_among_ranks(job, rank, spec, Pattern{Pattern::Kind::ring}, true, slices_of(request, spec));
}

std::optional<double> formula_ring(const FormulaInput& input) { return ring_s(input, input.bytes, 1, true); }

}  // namespace

const Algorithm allgather_ring{
    .collective = Collective::allgather,
    .name = "ring",
    .sentence =
        "A ring in topology order that closes inside every node, and inside switches where that relieves the fullest "
        "link.",
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, CCPE 19(13), 2007; the nesting is palmette's",
    .keys = "order=topology|rank, nested=auto|yes|no (auto), segment=SIZE",
    .relays = true,
    .refuse = refuse_ring,
    .make = make_ring,
    .pipelined = in_segments,
    .formula = formula_ring,
    .candidates = "ring:segment=32K ring ring:nested=no",
    .samples = "ring ring:nested=no ring:segment=20 ring:order=rank,segment=40 ring:order=rank",
};

}  // namespace palmette::collectives
