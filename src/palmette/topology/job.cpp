#include "palmette/topology/job.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "palmette/base/error.hpp"

namespace palmette::topology {
namespace {

using base::fail;
using base::Json;

constexpr std::string_view node_level = "node";

/// The tree node of `level` that holds `host`: an ancestor, or, where the level is missing on the path, the next one
/// below it.
std::int32_t group_node(const Machine& machine, std::int32_t host, std::int32_t level) {
    std::int32_t node = machine.hosts()[static_cast<std::size_t>(host)];
    while (machine.nodes()[static_cast<std::size_t>(node)].parent >= 0) {
        const std::int32_t parent = machine.nodes()[static_cast<std::size_t>(node)].parent;
        if (machine.nodes()[static_cast<std::size_t>(parent)].level < level) break;
        node = parent;
    }
    return node;
}

}  // namespace

PerGroup::PerGroup(std::vector<double> values) {
    const bool uniform = std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
    if (uniform)
        uniform_ = values.empty() ? 0 : values.front();
    else
        values_ = std::move(values);
}

void Job::set_order(const std::vector<std::int32_t>& rank_at) {
    rank_at_ = Permutation(rank_at);
    std::vector<std::int32_t> position_of(rank_at.size());
    for (std::size_t i = 0; i < rank_at.size(); ++i)
        position_of[static_cast<std::size_t>(rank_at[i])] = static_cast<std::int32_t>(i);
    position_of_ = Permutation(position_of);
}

void Job::drop_empty_levels() {
    if (machine_levels_.empty())
        for (const JobLevel& level : levels_) machine_levels_.push_back(level.name);
    bool inside = false;
    bool dropped = false;
    std::vector<JobLevel> kept;
    std::vector<std::int32_t> now_at;  ///< by level: its index among those kept, or -1
    for (JobLevel& level : levels_) {
        const auto index = static_cast<std::int32_t>(now_at.size());
        now_at.push_back(-1);
        const bool is_node = level.name == node_level;
        const bool tells = inside ? !level.groups.all_single() : level.groups.count() > 1;
        if (is_node || tells) {
            now_at.back() = static_cast<std::int32_t>(kept.size());
            kept.push_back(std::move(level));
        } else if (inside && !dropped && level.costs.known()) {
            // The outermost level below all kept ones, with one rank per group: it tells apart the ranks that no kept
            // level does.
            inside_ = level.costs;
            dropped = true;
        } else if (const double edge = inside ? 0 : level.free_bytes_per_s(0); edge > 0) {
            for (JobAggregator& one : aggregators_)
                if (one.kind == Aggregator::Kind::daemon && one.level < index &&
                    (one.up_bytes_per_s == 0 || edge < one.up_bytes_per_s))
                    one.up_bytes_per_s = edge;
        }
        inside = inside || is_node;
    }
    levels_ = std::move(kept);
    for (JobAggregator& one : aggregators_)
        if (one.level >= 0) one.level = now_at[static_cast<std::size_t>(one.level)];
    find_slowest_edges();
}

void Job::set_costs(std::size_t level, const LevelCosts& costs) {
    (level < levels_.size() ? levels_[level].costs : inside_) = costs;
}

void Job::set_capacity(std::size_t level, double bytes_per_s) {
    levels_[level].up_bytes_per_s = PerGroup(bytes_per_s);
    find_slowest_edges();
}

void Job::find_slowest_edges() {
    for (JobLevel& level : levels_) {
        const bool alike = level.up_bytes_per_s.values().empty() && level.load.values().empty();
        const std::int32_t looked_at = alike ? std::min(level.groups.count(), 1) : level.groups.count();
        double slowest = 0;
        for (std::int32_t g = 0; g < looked_at; ++g) {
            const double free = level.free_bytes_per_s(g);
            if (free > 0 && (slowest == 0 || free < slowest)) slowest = free;
        }
        level.slowest_edge_bytes_per_s = slowest;
    }
}

Job::Job(const Machine& machine, const Placement& placement) {
    if (placement.empty()) fail("a job needs at least one rank");
    inside_ = machine.unlevelled();
    memory_ = machine.memory();
    const auto p = static_cast<std::int32_t>(placement.size());
    std::vector<std::int32_t> order(placement.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        const Seat& x = placement[static_cast<std::size_t>(a)];
        const Seat& y = placement[static_cast<std::size_t>(b)];
        return std::pair(x.host, x.slot) < std::pair(y.host, y.slot);
    });
    set_order(order);
    const auto seat = [&](std::int32_t position) -> const Seat& {
        return placement[static_cast<std::size_t>(order[static_cast<std::size_t>(position)])];
    };

    for (const MachineAggregator& one : machine.aggregators())
        if (machine.nodes()[static_cast<std::size_t>(one.node)].level < 0) aggregators_.push_back({one, -1, 0});
    for (std::int32_t index = 0; index < static_cast<std::int32_t>(machine.levels().size()); ++index) {
        const MachineLevel& of_machine = machine.levels()[static_cast<std::size_t>(index)];
        const bool inside = index > machine.host_level();
        // A position's group: the tree node outside of hosts, host and inner group inside of them.
        const auto key = [&](std::int32_t position) -> std::pair<std::int32_t, std::int32_t> {
            const Seat& s = seat(position);
            if (!inside) return {group_node(machine, s.host, index), 0};
            const auto& group = machine.insides()[static_cast<std::size_t>(machine.host(s.host).inside)]
                                    .group_of_slot[static_cast<std::size_t>(index)];
            if (s.slot < 0 || group.empty()) return {s.host, 0};
            return {s.host, group[static_cast<std::size_t>(s.slot)]};
        };
        JobLevel level;
        level.name = of_machine.name;
        level.costs = of_machine.costs;
        std::vector<std::int32_t> firsts;
        std::vector<double> capacity;
        std::vector<double> load;
        auto last = std::pair<std::int32_t, std::int32_t>(-1, -1);
        for (std::int32_t position = 0; position < p; ++position) {
            const auto now = key(position);
            if (now == last) continue;
            last = now;
            firsts.push_back(position);
            if (inside) continue;
            const MachineNode& node = machine.nodes()[static_cast<std::size_t>(now.first)];
            // A deeper node standing in for a missing level has its edge counted at its own level.
            capacity.push_back(node.level == index ? node.up_bytes_per_s : 0);
            load.push_back(node.level == index ? node.load : 0);
            level.names.push_back(node.name);
            for (const MachineAggregator& one : machine.aggregators())
                if (one.node == now.first && node.level == index)
                    aggregators_.push_back({one, index, static_cast<std::int32_t>(firsts.size()) - 1});
        }
        level.groups = Partition::from_firsts(p, std::move(firsts));
        if (!inside) {
            level.up_bytes_per_s = PerGroup(std::move(capacity));
            level.load = PerGroup(std::move(load));
        }
        levels_.push_back(std::move(level));
    }
    drop_empty_levels();
}

Job Job::regular(const std::vector<std::pair<std::string, std::int32_t>>& levels, bool cyclic) {
    std::int64_t total = 1;
    for (const auto& [name, count] : levels) {
        if (count < 1) fail("level '", name, "' needs at least one group, not ", count);
        total *= count;
        if (total > INT32_MAX) fail("a job of ", total, " ranks is too large");
    }
    Job job;
    const auto p = static_cast<std::int32_t>(total);
    std::int64_t groups = 1;
    std::int32_t nodes = 0;
    for (const auto& [name, count] : levels) {
        groups *= count;
        job.levels_.push_back({name, Partition::even(p, static_cast<std::int32_t>(p / groups)), {}, {}, {}, {}, 0});
        if (name == node_level) nodes = static_cast<std::int32_t>(groups);
    }
    if (nodes == 0) fail("a job needs a level called 'node'");
    if (cyclic && nodes > 1 && nodes < p) {
        const std::int32_t per_node = p / nodes;
        std::vector<Permutation::Run> rank_at;
        std::vector<Permutation::Run> position_of;
        for (std::int32_t n = 0; n < nodes; ++n) rank_at.push_back({n * per_node, n, nodes});
        for (std::int32_t s = 0; s < per_node; ++s) position_of.push_back({s * nodes, s, per_node});
        job.rank_at_ = Permutation::from_runs(p, std::move(rank_at));
        job.position_of_ = Permutation::from_runs(p, std::move(position_of));
    } else {
        job.rank_at_ = job.position_of_ = Permutation::identity(p);
    }
    job.drop_empty_levels();
    return job;
}

Job Job::flat(std::int32_t ranks) {
    Job job;
    job.rank_at_ = job.position_of_ = Permutation::identity(ranks);
    job.levels_.push_back({std::string(node_level), Partition::even(ranks, 1), {}, {}, {}, {}, 0});
    job.machine_levels_.emplace_back(node_level);
    return job;
}

Job Job::from_groups(const std::vector<std::string>& names, const std::vector<std::vector<std::int32_t>>& key_of_rank) {
    const auto p = static_cast<std::int32_t>(key_of_rank.size());
    std::map<std::int32_t, std::int32_t> first_rank;
    for (std::int32_t r = 0; r < p; ++r) first_rank.try_emplace(key_of_rank[static_cast<std::size_t>(r)].front(), r);
    auto keys = key_of_rank;
    for (auto& key : keys) key.front() = first_rank[key.front()];
    std::vector<std::int32_t> order(key_of_rank.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key_at = [&](std::int32_t position) -> const std::vector<std::int32_t>& {
        return keys[static_cast<std::size_t>(order[static_cast<std::size_t>(position)])];
    };
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    Job job;
    job.set_order(order);
    for (std::size_t level = 0; level < names.size(); ++level) {
        std::vector<std::int32_t> firsts;
        const auto depth = static_cast<std::ptrdiff_t>(level + 1);
        for (std::int32_t i = 0; i < p; ++i)
            if (i == 0 || !std::equal(key_at(i).begin(), key_at(i).begin() + depth, key_at(i - 1).begin()))
                firsts.push_back(i);
        job.levels_.push_back({names[level], Partition::from_firsts(p, std::move(firsts)), {}, {}, {}, {}, 0});
    }
    job.drop_empty_levels();
    if (!job.find_level(node_level)) fail("a job needs a level called 'node'");
    return job;
}

std::optional<std::size_t> Job::find_level(std::string_view name) const {
    for (std::size_t i = 0; i < levels_.size(); ++i)
        if (levels_[i].name == name) return i;
    return std::nullopt;
}

std::optional<Partition> Job::groups_named(std::string_view name) const {
    const auto named = [this](std::string_view one) {
        return std::find(machine_levels_.begin(), machine_levels_.end(), one);
    };
    const auto node = named(node_level);
    auto level = named(name);
    if (level == machine_levels_.end() && name == "host") level = node;
    if (level == machine_levels_.end() && (name == "switch" || name == "leaf") && node != machine_levels_.begin())
        level = node - 1;
    if (level == machine_levels_.end()) return std::nullopt;
    if (const auto kept = find_level(*level)) return levels_[*kept].groups;
    return Partition::even(size(), level < node ? std::max(size(), 1) : 1);
}

std::int32_t Job::group_at(std::size_t level, Position position) const {
    if (position.value < size()) return levels_[level].groups.group_of(position.value);
    const JobAggregator& one = aggregators_[static_cast<std::size_t>(position.value - size())];
    if (one.level < static_cast<std::int32_t>(level)) return -1 - (position.value - size());
    return levels_[level].groups.group_of(levels_[static_cast<std::size_t>(one.level)].groups.first(one.group));
}

std::size_t Job::parting_level(Position a, Position b) const {
    std::size_t level = 0;
    while (level < levels_.size() && group_at(level, a) == group_at(level, b)) ++level;
    return level;
}

const JobLevel& Job::nodes() const { return levels_[*find_level(node_level)]; }

Job Job::restricted_to(const std::vector<Rank>& ranks) const {
    const auto p = static_cast<std::int32_t>(ranks.size());
    std::vector<std::int32_t> order(ranks.size());
    std::iota(order.begin(), order.end(), 0);
    const auto position = [&](std::int32_t rank) { return position_of(ranks[static_cast<std::size_t>(rank)]).value; };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return position(a) < position(b); });
    Job job;
    job.set_order(order);
    job.machine_levels_ = machine_levels_;
    job.inside_ = inside_;
    job.memory_ = memory_;
    for (const JobAggregator& one : aggregators_)
        if (one.level < 0) job.aggregators_.push_back(one);
    for (std::size_t l = 0; l < levels_.size(); ++l) {
        const JobLevel& level = levels_[l];
        JobLevel restricted{level.name, {}, level.costs, {}, {}, {}, 0};
        std::vector<std::int32_t> firsts;
        std::vector<double> capacity;
        std::vector<double> load;
        std::int32_t last = -1;
        for (std::int32_t i = 0; i < p; ++i) {
            const std::int32_t group = level.groups.group_of(position(order[static_cast<std::size_t>(i)]));
            if (group == last) continue;
            last = group;
            firsts.push_back(i);
            capacity.push_back(level.up_bytes_per_s[group]);
            load.push_back(level.load[group]);
            for (const JobAggregator& one : aggregators_)
                if (one.level == static_cast<std::int32_t>(l) && one.group == group)
                    job.aggregators_.push_back({one, one.level, static_cast<std::int32_t>(firsts.size()) - 1});
            if (!level.names.empty()) restricted.names.push_back(level.names[static_cast<std::size_t>(group)]);
        }
        restricted.groups = Partition::from_firsts(p, std::move(firsts));
        restricted.up_bytes_per_s = PerGroup(std::move(capacity));
        restricted.load = PerGroup(std::move(load));
        job.levels_.push_back(std::move(restricted));
    }
    job.drop_empty_levels();
    return job;
}

}  // namespace palmette::topology
