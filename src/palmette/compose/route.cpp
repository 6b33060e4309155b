#include "palmette/compose/route.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::compose {
namespace {

std::int32_t rounds(std::int32_t participants, std::int32_t radix) {
    std::int32_t out = 0;
    for (std::int64_t reached = 1; reached < participants; reached *= radix) ++out;
    return out;
}

/// leaf -> leaves.
std::string plural(const std::string& word) {
    return word.ends_with("f") ? base::cat(word.substr(0, word.size() - 1), "ves") : base::cat(word, "s");
}

}  // namespace

/// Traversal state of one primitive over the levels.
struct Router::Walk {
    std::int32_t me;
    const RankSet& targets;
    std::int32_t stripe;
    Manner manner;
    std::vector<Edge>& out;
    std::vector<std::int32_t> extra;  ///< relays in the current group, which must be reached as well
    /// Groups of the current level that have targets or relays, without the own one, in ring order.
    std::vector<std::int32_t> groups;

    bool wanted(std::int32_t first, std::int32_t end) const {
        const std::int32_t next = targets.next(first);
        return (next >= 0 && next < end) || extra_in(first, end) >= 0;
    }
    std::int32_t extra_in(std::int32_t first, std::int32_t end) const {
        for (const std::int32_t position : extra)
            if (first <= position && position < end) return position;
        return -1;
    }
};

Router::Router(const Tree& tree, std::vector<Method> methods, std::int32_t stripes)
    : tree_(tree), methods_(std::move(methods)), stripes_(stripes) {
    const std::size_t depth = tree.depth();
    if (methods_.size() == 1) methods_.assign(depth, methods_.front());
    if (methods_.size() != depth)
        base::fail("methods: the tree has ", depth, " levels and ", methods_.size(),
                   " methods are given; give one for all or one for each, the outermost first");
    crossing_.assign(depth, 0);
    duration_.assign(depth + 1, 0);
    for (std::size_t l = depth; l-- > 0;) {
        const Partition& groups = tree.levels[l].groups;
        std::int32_t most = 1;
        const std::int32_t parents = l == 0 ? 1 : tree.levels[l - 1].groups.count();
        for (std::int32_t g = 0; g < parents; ++g) {
            const std::int32_t first = l == 0 ? 0 : tree.levels[l - 1].groups.first(g);
            const std::int32_t end = l == 0 ? groups.size() : tree.levels[l - 1].groups.end(g);
            most = std::max(most, groups.group_of(end - 1) - groups.group_of(first) + 1);
            // Even partitions are the same in every parent, but for the last group, which is smaller.
            if (l > 0 && tree.levels[l - 1].groups.even_size() > 0 && groups.even_size() > 0) break;
        }
        switch (methods_[l].shape) {
            case Method::Shape::direct:
                crossing_[l] = most > 1 ? 1 : 0;
                break;
            case Method::Shape::tree:
                crossing_[l] = rounds(most, methods_[l].radix);
                break;
            case Method::Shape::ring:
                crossing_[l] = most - 1;
                break;
        }
        duration_[l] = 2 * duration_[l + 1] + crossing_[l];
    }
}

Method::Transport Router::transport(std::int32_t stage) const {
    for (std::size_t l = 0; l < tree_.depth(); ++l) {
        const std::int32_t inner = duration_[l + 1];
        if (stage >= inner && stage < inner + crossing_[l]) return methods_[l].transport;
        if (stage >= inner) stage -= inner + crossing_[l];
    }
    return Method::Transport::messages;
}

std::string Router::stage_name(std::int32_t stage) const {
    std::string suffix;
    for (std::size_t l = 0; l < tree_.depth(); ++l) {
        const std::int32_t inner = duration_[l + 1];
        if (stage >= inner && stage < inner + crossing_[l])
            return base::cat("between ", plural(tree_.levels[l].name), suffix);
        suffix = stage < inner ? ", before" : ", after";
        if (stage >= inner) stage -= inner + crossing_[l];
    }
    return "inside";
}

std::int32_t Router::neighbour(std::size_t level, std::int32_t group, std::int32_t from, std::int32_t stripe) const {
    if (stripe == 0) return from;
    // Stripes stay on the node: the innermost groups of more than one rank, or the group itself where that is smaller.
    std::int32_t first = tree_.levels[level].groups.first(group), end = tree_.levels[level].groups.end(group);
    if (tree_.depth() >= 2 && level + 2 < tree_.depth()) {
        const Partition& nodes = tree_.levels[tree_.depth() - 2].groups;
        first = nodes.first(nodes.group_of(from)), end = nodes.end(nodes.group_of(from));
    }
    const auto apart = static_cast<std::int32_t>(std::int64_t{stripe} * (end - first) / stripes_);
    return first + (from - first + apart) % (end - first);
}

std::int32_t Router::lane_of(std::size_t level, std::int32_t group, const Walk& walk, std::int32_t from) const {
    const Partition& groups = tree_.levels[level].groups;
    const std::int32_t lanes = methods_[level].lanes;
    const std::int64_t own = std::int64_t{from - groups.first(group)} * lanes / groups.size_of(group);
    return static_cast<std::int32_t>((own + walk.stripe) % lanes);
}

namespace {
std::int32_t lane_rank(const Partition& groups, std::int32_t group, std::int32_t lane, std::int32_t lanes) {
    const std::int32_t size = groups.size_of(group);
    if (size < lanes) return groups.first(group) + lane % size;
    return groups.first(group) + static_cast<std::int32_t>(std::int64_t{lane} * size / lanes);
}
}  // namespace

std::int32_t Router::exit_of(std::size_t level, std::int32_t group, const Walk& walk, std::int32_t from) const {
    const std::int32_t lanes = methods_[level].lanes;
    if (walk.manner.ordered) return from;
    if (walk.manner.one_root || lanes == 0) return neighbour(level, group, from, walk.stripe);
    return lane_rank(tree_.levels[level].groups, group, lane_of(level, group, walk, from), lanes);
}

std::int32_t Router::entry_of(std::size_t level, std::int32_t from_group, std::int32_t group, const Walk& walk,
                              std::int32_t from, std::int32_t exit) const {
    const Partition& groups = tree_.levels[level].groups;
    const std::int32_t first = groups.first(group), end = groups.end(group);
    if (const std::int32_t relay = walk.extra_in(first, end); relay >= 0) return relay;
    const std::int32_t only = walk.targets.next(first);
    if (walk.manner.one_other) return only;
    const std::int32_t lanes = methods_[level].lanes;
    const std::int32_t opposite = lanes == 0 ? first + (exit - groups.first(from_group)) % (end - first)
                                             : lane_rank(groups, group, lane_of(level, from_group, walk, from), lanes);
    if (walk.targets.contains(opposite)) return opposite;
    if (walk.targets.count_in(first, end) == 1) return lanes == 0 && !walk.manner.dense ? only : opposite;
    // Another target, so that no rank relays data that it doesn't need.
    const std::int32_t behind = walk.targets.next(opposite);
    return behind >= 0 && behind < end ? behind : only;
}

void Router::across(std::size_t level, std::int32_t from_group, std::int32_t self, std::int32_t from, std::int32_t exit,
                    std::int32_t stage, Walk& walk) const {
    // Participant 0 is the source group; `groups` are the others.
    const auto participants = static_cast<std::int32_t>(walk.groups.size()) + 1;
    const auto rank_of = [&](std::int32_t participant) {
        if (participant == 0) return exit;
        return entry_of(level, from_group, walk.groups[static_cast<std::size_t>(participant) - 1], walk, from, exit);
    };
    const Method& method = methods_[level];
    // Chains and trees begin at the root's group and wrap around, which doesn't preserve the order of partial results.
    switch (walk.manner.ordered ? Method::Shape::direct : method.shape) {
        case Method::Shape::direct:
            if (self > 0) walk.out.push_back({stage, exit, false});
            for (std::int32_t other = 1; self == 0 && other < participants; ++other)
                walk.out.push_back({stage, rank_of(other), true});
            return;
        case Method::Shape::ring:
            if (self > 0) walk.out.push_back({stage + self - 1, rank_of(self - 1), false});
            if (self + 1 < participants) walk.out.push_back({stage + self, rank_of(self + 1), true});
            return;
        case Method::Shape::tree: {
            // The parent is the number with the lowest nonzero digit cleared; high digits go first, so all primitives
            // end in the same stage.
            const std::int32_t last = stage + crossing_[level] - 1;
            std::int32_t digit = 0;
            std::int64_t weight = 1;
            while (weight < participants && self / weight % method.radix == 0) weight *= method.radix, ++digit;
            if (self > 0)
                walk.out.push_back({last - digit,
                                    rank_of(static_cast<std::int32_t>(self - self / weight % method.radix * weight)),
                                    false});
            for (std::int64_t step = weight / method.radix; step >= 1; step /= method.radix) {
                --digit;
                for (std::int32_t times = 1; times < method.radix; ++times) {
                    const std::int64_t child = self + times * step;
                    if (child < participants)
                        walk.out.push_back({last - digit, rank_of(static_cast<std::int32_t>(child)), true});
                }
            }
            return;
        }
    }
}

void Router::descend(std::size_t level, std::int32_t first, std::int32_t end, std::int32_t from, std::int32_t stage,
                     Walk& walk) const {
    if (end - first <= 1 || level == tree_.depth()) return;
    const Partition& groups = tree_.levels[level].groups;
    const std::int32_t lowest = groups.group_of(first), highest = groups.group_of(end - 1);
    const std::int32_t home = groups.group_of(from), mine = groups.group_of(walk.me);
    const std::int32_t count = highest - lowest + 1;
    walk.groups.clear();
    std::int32_t self = mine == home ? 0 : -1;
    for (std::int32_t i = 1; i < count; ++i) {
        const std::int32_t group = lowest + (home - lowest + i) % count;
        if (!walk.wanted(groups.first(group), groups.end(group))) continue;
        walk.groups.push_back(group);
        if (group == mine) self = static_cast<std::int32_t>(walk.groups.size());
    }
    if (self < 0) return;
    const std::int32_t inner = duration_[level + 1];
    const std::int32_t exit = walk.groups.empty() ? from : exit_of(level, home, walk, from);
    std::int32_t next = from;
    if (self == 0) {
        if (walk.me == exit) across(level, home, 0, from, exit, stage + inner, walk);
    } else {
        next = entry_of(level, home, mine, walk, from, exit);
        if (walk.me == next) across(level, home, self, from, exit, stage + inner, walk);
        stage += inner + crossing_[level];
    }
    // Keep only relays of our own group.
    std::erase_if(walk.extra, [&](std::int32_t relay) { return groups.group_of(relay) != mine; });
    if (self == 0 && exit != from) walk.extra.push_back(exit);
    // No relay inside of the group is on the critical path between groups: then its own targets get the data in the
    // same stages as those of the other groups, so that messages coalesce.
    if (self == 0 && walk.extra.empty()) stage += inner + crossing_[level];
    descend(level + 1, groups.first(mine), groups.end(mine), next, stage, walk);
}

void Router::multicast(std::int32_t me, std::int32_t root, const RankSet& others, std::int32_t stripe, Manner manner,
                       std::vector<Edge>& out) const {
    Walk walk{me, others, stripe, manner, out, {}, {}};
    descend(0, 0, tree_.levels.front().groups.size(), root, 0, walk);
}

void Router::reduce(std::int32_t me, std::int32_t root, const RankSet& others, std::int32_t stripe, Manner manner,
                    std::vector<Edge>& out) const {
    const std::size_t before = out.size();
    multicast(me, root, others, stripe, manner, out);
    for (std::size_t i = before; i < out.size(); ++i) {
        out[i].stage = stages() - 1 - out[i].stage;
        out[i].sends = !out[i].sends;
    }
}

}  // namespace palmette::compose
