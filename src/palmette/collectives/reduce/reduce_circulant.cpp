// reduce, circulant: n blocks on a circulant graph, the rounds of the broadcast reversed in time.
//
//   p = 8, skips 1 2 4: in each round a rank sends its partial result of one block to the rank a skip below, and
//   combines the one that comes from above; with n = 4 blocks round 0 is
//
//       round 0    1 → 0  block 3      ...                 every rank sends and receives
//       round 3    4 → 0  block 2      5 → 1  block 0      6 → 2  block 1      7 → 3  block 0
//       round 4    2 → 0  block 1      3 → 1  block 0
//       round 5    1 → 0  block 0
//
// A rank sends each block once, after it has received all that come to it of this block.
#include <algorithm>
#include <cmath>

#include "palmette/base/error.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/circulant.hpp"
#include "palmette/collectives/trees/scratch_buffer.hpp"
#include "palmette/collectives/trees/send_window.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;
using plan::StepId;

constexpr std::int64_t most_segments = 1024;
/// Landings of one block: the first one is free again when it has been combined.
constexpr std::size_t landings = 2;
constexpr std::size_t first_landing = 1;

/// segments=N, or as many as segment=SIZE gives; by default one below 8 KB, and 16 of at most 64 KB from 128 KB on.
std::int32_t segments_of(const Request& request, const Spec& spec) {
    if (spec.find("segments")) return spec.integer("segments", 1);
    const std::int64_t bytes = std::max<std::int64_t>(request.block_bytes, 0);
    const std::int64_t fallback = std::clamp<std::int64_t>(bytes / 16, 8 << 10, 64 << 10);
    const std::int64_t segment = std::max<std::int64_t>(spec.size("segment", fallback), 1);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>((bytes + segment - 1) / segment, 1, most_segments));
}

std::optional<std::string> refuse(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"segments", "segment", "order", "window"});
    SendWindow{spec};
    spec.word("order", {"topology", "rank"});
    if (segments_of(request, spec) > most_segments) return base::cat("there are at most ", most_segments, " segments");
    if (request.ordered && job.size() > 1)
        return std::string("a circulant graph doesn't combine contributions in rank order");
    return std::nullopt;
}

/// A rank's partial result of one block.
struct Partial {
    std::size_t combined = 0;   ///< contributions of others
    std::vector<StepId> ready;  ///< after these steps it is complete so far
    std::vector<StepId> free[landings];
};

Program make(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const bool by_rank = spec.word("order", {"topology", "rank"}) == "rank";
    const auto place = [&](Rank r) { return by_rank ? r.value : job.position_of(r).value; };
    const std::int32_t p = job.size();
    const std::int32_t root = place(request.root);
    const auto rank_of = [&](std::int32_t member) {
        const auto at = static_cast<std::int32_t>((std::int64_t{member} + root) % p);
        return by_rank ? Rank{at} : job.rank_at({at});
    };
    const std::int32_t me = (place(rank) - root + p) % p;
    const std::int32_t segments = segments_of(request, spec);
    plan::ProgramBuilder builder(rank, by_rank ? plan::BlockOrder::rank : plan::BlockOrder::topology, segments);
    if (p == 1) {
        builder.stage("copy own vector");
        builder.copy(Buffer::send, Buffer::recv, {0, segments}, {});
        return builder.finish();
    }
    builder.stage("rounds");
    const Buffer work = me == 0 ? Buffer::recv : Buffer::scratch;
    std::vector<Partial> partials(static_cast<std::size_t>(segments));
    ScratchBuffer scratch;
    SendWindow window(spec);
    const std::vector<CirculantRound> rounds = circulant_broadcast(p, segments, me);
    for (std::size_t r = rounds.size(); r-- > 0;) {
        const CirculantRound& round = rounds[r];
        const auto tag = static_cast<std::int32_t>(r);
        // The broadcast's receive is a send here, and comes first: what it carries came in earlier rounds.
        if (round.taken) {
            const Partial& partial = partials[static_cast<std::size_t>(*round.taken)];
            window.add(builder.send(rank_of(round.from), tag, partial.combined == 0 ? Buffer::send : work,
                                    {*round.taken, 1}, window.after(partial.ready)));
        }
        if (!round.sent) continue;
        const plan::Blocks block(*round.sent, 1);
        Partial& partial = partials[static_cast<std::size_t>(*round.sent)];
        std::vector<StepId>& free = partial.free[partial.combined % landings];
        const Buffer landing = plan::scratch_layer(first_landing + partial.combined % landings);
        scratch.need(landing, block);
        if (plan::is_scratch(work)) scratch.need(work, block);
        std::vector<StepId> waits = partial.ready;
        waits.push_back(builder.recv(rank_of(round.to), tag, landing, block, free));
        partial.ready = {builder.reduce(partial.combined == 0 ? Buffer::send : work, landing, work, block, waits)};
        free = partial.ready;
        ++partial.combined;
    }
    scratch.reserve(builder);
    return builder.finish();
}

std::int64_t tags(const Job& job, const Request& request, const Spec& spec) {
    return segments_of(request, spec) + static_cast<std::int64_t>(circulant_skips(job.size()).size());
}

/// With the segments of segments_of, at most 64 where segment=SIZE gives them.
std::optional<double> formula_circulant(const FormulaInput& input) {
    const double vector = input.bytes;
    const double fallback = std::max(1.0, std::ceil(vector / std::clamp<double>(vector / 16, 8 << 10, 64 << 10)));
    return circulant_vector_s(input, input.spec.find("segments")  ? input.spec.integer("segments", 1)
                                     : input.spec.find("segment") ? input.segments(vector)
                                                                  : fallback);
}

}  // namespace

const Algorithm reduce_circulant{
    .collective = Collective::reduce,
    .name = "circulant",
    .sentence =
        "n blocks on a circulant graph, bcast's rounds reversed: n - 1 + ceil(lg p) rounds for any p, one block in and "
        "one out in each.",
    .source = "Träff, arXiv 2312.11236, 2023, and ACM TOPC 2025 (schedules; reduction by reversal)",
    .keys =
        "segments=N (of 8 KB, then 16 or more of up to 64 KB), segment=SIZE, order=topology|rank, window=W outstanding "
        "messages of a rank (all)",
    .preconditions = "an operation that commutes; at most 1024 segments",
    .refuse = refuse,
    .make = make,
    .tags = tags,
    .pipelined = [](const Spec& spec) { return !spec.find("window"); },
    .formula = formula_circulant,
    .candidates = "circulant circulant:segment=2K circulant:segment=4K,window=1",
    .samples = "circulant circulant:segments=5,order=rank circulant:segments=4,window=1",
};

}  // namespace palmette::collectives
