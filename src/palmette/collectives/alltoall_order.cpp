#include "palmette/collectives/alltoall_order.hpp"

#include <algorithm>

namespace palmette::collectives {
namespace {

/// index / of as a part of a turn round a clock of 2^32 ticks.
std::uint32_t part(std::int64_t index, std::int64_t of) { return static_cast<std::uint32_t>((index << 32) / of); }

}  // namespace

std::uint32_t TurnOrder::balanced(std::int32_t source, std::int32_t target) const {
    std::int32_t first = 0;
    std::int32_t end = job_.size();
    for (const topology::JobLevel& level : job_.levels()) {
        const topology::Partition& groups = level.groups;
        const std::int32_t from = groups.group_of(source);
        const std::int32_t to = groups.group_of(target);
        if (from == to) {
            first = groups.first(from);
            end = groups.end(from);
            continue;
        }
        const std::int32_t siblings = groups.group_of(end - 1) - groups.group_of(first) + 1;
        const std::int32_t apart = (to - from + siblings) % siblings;
        // Wraps round by itself.
        return part(target - groups.first(to), groups.size_of(to)) -
               part(source - groups.first(from), groups.size_of(from)) + part(apart, siblings);
    }
    return part((target - source + end - first) % (end - first), end - first);
}

Turn TurnOrder::turn(std::int32_t source, std::int32_t target) const {
    switch (kind_) {
        case Kind::balanced:
            return {balanced(source, target), source, target};
        case Kind::shift:
            return {static_cast<std::uint32_t>((target - source + job_.size()) % job_.size()), source, target};
        case Kind::exclusive_or:
            return {static_cast<std::uint32_t>(source ^ target), source, target};
    }
    return {};
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
    static const std::vector<std::string_view> all{"balanced", "shift", "xor"};
    return all;
}

TurnOrder::Kind TurnOrder::named(std::string_view word) {
    return word == "shift" ? Kind::shift : word == "xor" ? Kind::exclusive_or : Kind::balanced;
}

}  // namespace palmette::collectives
