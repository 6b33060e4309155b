// bcast, circulant: n blocks on a circulant graph, in the optimal number of rounds for any p.
//
//   p = 8, skips 1 2 4: in round k every rank sends one block to the rank skip[k mod 3] above it, and receives one from
//   below
//
//       round 0    0 → 1  block 0
//       round 1    0 → 2  block 1      1 → 3  block 0
//       round 2    0 → 4  block 2      1 → 5  block 0      2 → 6  block 1      3 → 7  block 0
//       round 3    0 → 1  block 3      ...                 every rank sends and receives, until all have all blocks
#include <algorithm>
#include <cmath>

#include "palmette/base/error.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/circulant.hpp"
#include "palmette/collectives/trees/send_window.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

constexpr std::int64_t most_segments = 1024;

/// segments=N, or as many as segment=SIZE gives; by default one below 32 KB, and 16 of at most 64 KB from there on.
std::int32_t segments_of(const Request& request, const Spec& spec) {
    if (spec.find("segments")) return spec.integer("segments", 1);
    const std::int64_t bytes = std::max<std::int64_t>(request.block_bytes, 0);
    const std::int64_t fallback = bytes < 32 << 10 ? bytes : std::min<std::int64_t>(bytes / 16, 64 << 10);
    const std::int64_t segment = std::max<std::int64_t>(spec.size("segment", fallback), 1);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>((bytes + segment - 1) / segment, 1, most_segments));
}

std::optional<std::string> refuse_circulant(const Job&, const Request& request, const Spec& spec) {
    check_keys(spec, {"segments", "segment", "order", "window"});
    SendWindow{spec};
    spec.word("order", {"topology", "rank"});
    if (segments_of(request, spec) > most_segments) return base::cat("there are at most ", most_segments, " segments");
    return std::nullopt;
}

Program make_circulant(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    using plan::Buffer;
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
    builder.stage("rounds");
    std::vector<std::vector<plan::StepId>> received(static_cast<std::size_t>(segments));
    SendWindow window(spec);
    std::int32_t tag = 0;
    for (const CirculantRound& round : circulant_broadcast(p, segments, me)) {
        if (round.sent)
            window.add(builder.send(rank_of(round.to), tag, me == 0 ? Buffer::send : Buffer::recv, {*round.sent, 1},
                                    window.after(received[static_cast<std::size_t>(*round.sent)])));
        if (round.taken)
            received[static_cast<std::size_t>(*round.taken)] = {
                builder.recv(rank_of(round.from), tag, Buffer::recv, {*round.taken, 1}, {})};
        ++tag;
    }
    return builder.finish();
}

std::int64_t tags_circulant(const Job& job, const Request& request, const Spec& spec) {
    return segments_of(request, spec) + static_cast<std::int64_t>(circulant_skips(job.size()).size());
}

/// With the segments of segments_of, at most 64 where segment=SIZE gives them.
std::optional<double> formula_circulant(const FormulaInput& input) {
    const double vector = input.bytes;
    const double fallback = vector < 32 << 10 ? 1 : std::max(16.0, std::ceil(vector / (64 << 10)));
    return circulant_vector_s(input, input.spec.find("segments")  ? input.spec.integer("segments", 1)
                                     : input.spec.find("segment") ? input.segments(vector)
                                                                  : fallback);
}

}  // namespace

const Algorithm bcast_circulant{
    .collective = Collective::bcast,
    .name = "circulant",
    .sentence =
        "n blocks on a circulant graph: n - 1 + ceil(lg p) rounds for any p, in which every rank sends and receives "
        "one block.",
    .source = "Träff, arXiv 2312.11236, 2023 (optimal schedules in logarithmic time); ACM TOPC 2025",
    .keys =
        "segments=N (1 below 32 KB, then 16 or more of up to 64 KB), segment=SIZE, order=topology|rank, window=W "
        "outstanding messages of a rank (all)",
    .preconditions = "at most 1024 segments",
    .refuse = refuse_circulant,
    .make = make_circulant,
    .tags = tags_circulant,
    .pipelined = [](const Spec& spec) { return !spec.find("window"); },
    .formula = formula_circulant,
    .candidates = "circulant circulant:segment=24K,window=1",
    .samples = "circulant circulant:segments=5,order=rank circulant:segments=4,window=1",
};

}  // namespace palmette::collectives
