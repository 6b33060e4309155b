// Flat scan and exscan among all ranks, in rank order: linear, recursive_doubling and all. The patterns are drawn in
// scan_exchange.hpp.
#include "palmette/collectives/exchanges/scan_exchange.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;

std::optional<std::string> refuse(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"segment"});
    spec.size("segment", 0);
    return std::nullopt;
}

std::int64_t tags(const Job&, const Request& request, const Spec& spec) {
    return std::int64_t{slices_of(request, spec)} * ScanPattern::tags;
}

Program make(const Job& job, Rank rank, const Request& request, const Spec& spec) {
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

}  // namespace

const ScanMethod scan_linear{
    "linear",
    "A chain: every rank combines its own with the prefix from the rank before and forwards it; pipelined in segments.",
    "folklore; Sanders, Traeff, EuroPVM/MPI 2006",
    "segment=SIZE",
    "none",
    refuse,
    make,
    tags,
};

const ScanMethod scan_recursive_doubling{
    "recursive_doubling",
    "Critical path of lg p messages: from the ranks 1, 2, 4, ... before, each with twice as many contributions.",
    "Hillis, Steele, CACM 29(12), 1986",
    "segment=SIZE",
    "none",
    refuse,
    make,
    tags,
};

const ScanMethod scan_all{
    "all",      "Every rank sends to all later ones: critical path of one message, for tiny vectors over far links.",
    "folklore", "segment=SIZE",
    "none",     refuse,
    make,       tags,
};

}  // namespace palmette::collectives
