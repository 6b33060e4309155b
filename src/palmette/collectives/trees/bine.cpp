#include "palmette/collectives/trees/bine.hpp"

#include <bit>

namespace palmette::collectives {

std::int32_t BineButterfly::steps() const { return std::bit_width(static_cast<std::uint32_t>(p)) - 1; }

std::int32_t BineButterfly::partner(std::int32_t member, std::int32_t step) const {
    std::int64_t power = -2;
    for (std::int32_t j = 0; j < step; ++j) power *= -2;
    const std::int64_t distance = (1 - power) / 3;
    const std::int64_t to = member + (member % 2 == 0 ? distance : -distance);
    return static_cast<std::int32_t>((to % p + p) % p);
}

std::int32_t BineButterfly::first_held(std::int32_t member, std::int32_t steps) const {
    // Step j adds 2^j members: below an even member where j is odd, above it where j is even; the mirror image for an
    // odd one.
    std::int64_t below = 0;
    for (std::int32_t j = member % 2 == 0 ? 1 : 0; j < steps; j += 2) below += std::int64_t{1} << j;
    return static_cast<std::int32_t>(((member - below) % p + p) % p);
}

BinePairs::BinePairs(std::int32_t p)
    : groups_(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(p)))), pairs_(p - groups_) {}

BineNeighbours bine_tree(std::int32_t p, std::int32_t member) {
    const BinePairs pairs(p);
    const std::int32_t group = pairs.group_of(member);
    BineNeighbours out;
    if (member != pairs.first(group)) {
        out.parent = pairs.first(group);
        return out;
    }
    const BineButterfly butterfly{pairs.groups()};
    // After a step the members that differ from the root, or from the root's partner in this step, by a multiple of
    // 2^(step + 1) are reached.
    std::int32_t step = butterfly.steps();
    if (group != 0)
        for (--step; step > 0; --step) {
            const std::int32_t apart = std::int32_t{1} << (step + 1);
            if (group % apart == 0 || group % apart == butterfly.partner(0, step) % apart) break;
        }
    if (group != 0) out.parent = pairs.first(butterfly.partner(group, step));
    for (std::int32_t next = step - 1; next >= 0; --next)
        out.children.push_back(pairs.first(butterfly.partner(group, next)));
    if (pairs.first(group + 1) - member > 1) out.children.push_back(member + 1);
    return out;
}

}  // namespace palmette::collectives
