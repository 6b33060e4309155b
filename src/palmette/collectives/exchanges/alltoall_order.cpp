#include "palmette/collectives/exchanges/alltoall_order.hpp"
#include "palmette/base/never_destroyed.hpp"

#include <algorithm>

namespace palmette::collectives {

TurnOrder::TurnOrder(const Job& job, const topology::Partition& groups)
    : job_(job), kind_(Kind::balanced), groups_(&groups), depth_(0) {
    while (depth_ < job.levels().size() && &job.levels()[depth_].groups != &groups) ++depth_;
}

std::uint32_t TurnOrder::part(std::int64_t index, std::int64_t of) {
    return static_cast<std::uint32_t>((index << 32) / of);
}

std::int32_t TurnOrder::separating_level(std::int32_t source, std::int32_t target) const {
    std::int32_t level = 0;
    for (const topology::JobLevel& one : job_.levels()) {
        if (one.groups.group_of(source) != one.groups.group_of(target)) break;
        ++level;
    }
    return level;
}

std::uint32_t TurnOrder::balanced(std::int32_t source, std::int32_t target, std::int32_t level) const {
    const auto depth = static_cast<std::size_t>(level);
    // The group that contains both: of the level above the one that separates them.
    std::int32_t first = 0;
    std::int32_t end = job_.size();
    if (depth > 0) {
        const topology::Partition& above = job_.levels()[depth - 1].groups;
        first = above.first(above.group_of(source));
        end = above.end(above.group_of(source));
    }
    const std::int64_t all = index(end - 1) - index(first) + 1;
    if (depth >= depth_) return part((index(target) - index(source) + all) % all, all);
    const topology::Partition& groups = job_.levels()[depth].groups;
    const std::int32_t from = groups.group_of(source);
    const std::int32_t to = groups.group_of(target);
    const std::int64_t siblings = groups.group_of(end - 1) - groups.group_of(first) + 1;
    const std::int64_t apart = (to - from + siblings) % siblings;
    // Round-robin over the other groups, and over the members of each; every member of the source's group begins at a
    // different one. The sum wraps around (unsigned).
    const auto members = [&](std::int32_t group) {
        return index(groups.end(group) - 1) - index(groups.first(group)) + 1;
    };
    return part(index(target) - index(groups.first(to)), members(to)) -
           part(index(source) - index(groups.first(from)), members(from)) + part(apart, siblings * members(to));
}

std::uint32_t TurnOrder::when(std::int32_t source, std::int32_t target, std::int32_t level) const {
    switch (kind_) {
        case Kind::balanced:
            return balanced(source, target, level);
        case Kind::shift:
            return static_cast<std::uint32_t>((target - source + job_.size()) % job_.size());
        case Kind::exclusive_or:
            return static_cast<std::uint32_t>(source ^ target);
    }
    return 0;
}

Turn TurnOrder::turn(std::int32_t source, std::int32_t target) const {
    const std::int32_t level = separating_level(source, target);
    return {when(source, target, level), source, target, level};
}

std::vector<Turn> TurnOrder::of_source(std::int32_t source) const {
    std::vector<Turn> out;
    out.reserve(static_cast<std::size_t>(job_.size()));
    for (std::int32_t target = 0; target < job_.size(); ++target)
        if (target != source) out.push_back(turn(source, target));
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<Turn> TurnOrder::of_target(std::int32_t target) const {
    std::vector<Turn> out;
    out.reserve(static_cast<std::size_t>(job_.size()));
    for (std::int32_t source = 0; source < job_.size(); ++source)
        if (source != target) out.push_back(turn(source, target));
    std::sort(out.begin(), out.end());
    return out;
}

const std::vector<std::string_view>& TurnOrder::words() {
    static const base::NeverDestroyed all(std::vector<std::string_view>{"balanced", "shift", "xor"});
    return *all;
}

TurnOrder::Kind TurnOrder::named(std::string_view word) {
    return word == "shift" ? Kind::shift : word == "xor" ? Kind::exclusive_or : Kind::balanced;
}

}  // namespace palmette::collectives
