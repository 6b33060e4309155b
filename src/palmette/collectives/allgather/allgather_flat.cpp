#include "palmette/collectives/allgather/allgather_flat.hpp"

#include <algorithm>

#include "palmette/collectives/exchanges/ring_levels.hpp"

namespace palmette::collectives {

Program allgather_among_ranks(const Job& job, Rank rank, const Spec& spec, const Pattern& pattern, bool nested,
                              std::uint16_t parts) {
    const bool by_rank = spec.word("order", {"topology", "rank"}) == "rank";
    const std::int32_t n = job.size();
    const std::int32_t me = by_rank ? rank.value : job.position_of(rank).value;
    plan::ProgramBuilder builder(rank, by_rank ? plan::BlockOrder::rank : plan::BlockOrder::topology);
    builder.stage("copy own block");
    const plan::StepId own = builder.copy(plan::Buffer::send, plan::Buffer::recv, plan::Blocks(me, 1), {});
    std::vector<topology::Partition> levels;
    if (nested) levels = ring_levels(job, spec);
    builder.stage("exchange");
    const auto rank_of = [&](std::int32_t i) { return by_rank ? Rank{i} : job.rank_at({i}); };
    const auto blocks_of = [n](Range range) {
        plan::Blocks blocks;
        const std::int32_t straight = std::min(range.count, n - range.first);
        blocks.insert({range.first, straight});
        blocks.insert({0, range.count - straight});
        return blocks;
    };
    Exchanger(builder, rank_of, blocks_of, n, me, {own}, 0, parts).run(pattern.schedule(n, me, levels));
    return builder.finish();
}

}  // namespace palmette::collectives
