#include "palmette/collectives/trees/earliest_arrival_tree.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

namespace palmette::collectives {
namespace {

/// Set of numbers 0..n-1 with removal and successor search (union-find with path halving).
class RemainingSet {
  public:
    explicit RemainingSet(std::int32_t n) : next_(static_cast<std::size_t>(n) + 1) {
        std::iota(next_.begin(), next_.end(), 0);
    }
    bool any() { return from(0) + 1 < static_cast<std::int32_t>(next_.size()); }
    /// The smallest remaining number from `from` on, n where there is none.
    std::int32_t from(std::int32_t from) {
        std::int32_t at = from;
        while (next(at) != at) at = next(at) = next(next(at));
        return at;
    }
    void take(std::int32_t number) {
        if (next(number) == number) next(number) = number + 1;
    }

  private:
    std::int32_t& next(std::int32_t number) { return next_[static_cast<std::size_t>(number)]; }
    std::vector<std::int32_t> next_;
};

/// Costs of intra-node messages, across the outermost level inside of nodes.
const topology::LevelCosts& costs_inside(const Job& job) {
    const auto& levels = job.levels();
    const std::size_t node_level = *job.find_level("node");
    return node_level + 1 < levels.size() ? levels[node_level + 1].costs : job.inside();
}

MessageTimes times_of(const topology::LevelCosts& costs, double bytes, double link_bytes_per_s) {
    MessageTimes out{costs.overhead_s, 0, std::max(0.0, costs.latency_s - costs.overhead_s)};
    if (link_bytes_per_s > 0) out.link_s = bytes / link_bytes_per_s;
    if (costs.stream_bytes_per_s > 0) out.after_s += std::max(0.0, bytes / costs.stream_bytes_per_s - out.link_s);
    return out;
}

}  // namespace

/// Event simulation of the broadcast between nodes.
class EarliestArrivalTree::Simulation {
  public:
    explicit Simulation(EarliestArrivalTree& tree)
        : tree_(tree),
          levels_(tree.job_.levels()),
          node_level_(*tree.job_.find_level("node")),
          nodes_(levels_[node_level_].groups),
          left_(nodes_.count()),
          untouched_(node_level_ > 0 && tree.form_.groups_first ? groups().count() : 0),
          inside_(tree.times_inside()) {}

    void run() {
        inform(nodes_.group_of(tree_.root_.value), 0);
        while (!free_.empty()) {
            const Free now = free_.top();
            free_.pop();
            act(now);
        }
    }

  private:
    struct Free {
        double at_s = 0;
        std::int32_t node = 0;
        Member member = 0;
        bool operator>(const Free& other) const {
            return std::tie(at_s, node, member) > std::tie(other.at_s, other.node, other.member);
        }
    };

    NodeState& state(std::int32_t node) { return tree_.nodes_[static_cast<std::size_t>(node)]; }
    /// Groups of nodes.
    const topology::Partition& groups() const { return levels_[node_level_ - 1].groups; }

    void inform(std::int32_t node, double at_s) {
        left_.take(node);
        ++informed_;
        if (untouched_.any()) untouched_.take(groups().group_of(nodes_.first(node)));
        const std::int32_t helpers = std::min(tree_.form_.helpers, nodes_.size_of(node) - 1);
        state(node).stops_s.assign(static_cast<std::size_t>(helpers) + 1, 0);
        free_.push({at_s, node, 0});
    }

    void act(const Free& now) {
        NodeState& own = state(now.node);
        if (informed_ == nodes_.count()) {
            own.stops_s[static_cast<std::size_t>(now.member)] = now.at_s;
            return;
        }
        if (now.member == 0 && own.informed_helpers + 1 < static_cast<Member>(own.stops_s.size())) {
            ++own.informed_helpers;
            free_.push({now.at_s + inside_.busy_s + inside_.link_s + inside_.after_s, now.node, own.informed_helpers});
            free_.push({now.at_s + std::max(tree_.busy_s(inside_), inside_.link_s), now.node, 0});
            return;
        }
        const auto [other, level] = nearest(now.node);
        const MessageTimes cost = times_of(levels_[level].costs, static_cast<double>(tree_.form_.bytes),
                                           levels_[node_level_].up_bytes_per_s[now.node]);
        const double begins_s = std::max(now.at_s, own.link_free_s - cost.busy_s);
        own.link_free_s = begins_s + cost.busy_s + cost.link_s;
        own.calls.push_back({other, now.member});
        state(other).parent = now.node;
        state(other).parent_caller = now.member;
        inform(other, own.link_free_s + cost.after_s);
        free_.push({std::max(begins_s + tree_.busy_s(cost), own.link_free_s - cost.busy_s), now.node, now.member});
    }

    struct Nearest {
        std::int32_t node = 0;
        std::size_t level = 0;  ///< the outermost level that is crossed
    };
    /// The nearest uninformed node; with groups_first, one of the nearest group without any informed node. There must
    /// be one.
    Nearest nearest(std::int32_t node) {
        if (untouched_.any())
            if (const auto found = nearest_in(node, groups(), untouched_))
                return {nodes_.group_of(groups().first(found->node)), found->level};
        return *nearest_in(node, nodes_, left_);
    }
    /// The first remaining one of the job's numbered `parts` in the smallest group around `node`, of any level, that
    /// has one.
    std::optional<Nearest> nearest_in(std::int32_t node, const topology::Partition& parts, RemainingSet& left) const {
        for (std::size_t level = node_level_ + 1; level-- > 0;) {
            const topology::Partition* around = level > 0 ? &levels_[level - 1].groups : nullptr;
            const std::int32_t group = around ? around->group_of(nodes_.first(node)) : 0;
            const std::int32_t first = around ? around->first(group) : 0;
            const std::int32_t end = around ? around->end(group) : tree_.job_.size();
            const std::int32_t found = left.from(parts.group_of(first));
            if (found < parts.count() && parts.first(found) < end) return Nearest{found, level};
        }
        return std::nullopt;
    }

    EarliestArrivalTree& tree_;
    const std::vector<topology::JobLevel>& levels_;
    std::size_t node_level_;
    const topology::Partition& nodes_;
    RemainingSet left_;
    RemainingSet untouched_;  ///< groups without any informed node
    MessageTimes inside_;
    std::int32_t informed_ = 0;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> free_;
};

EarliestArrivalTree::EarliestArrivalTree(const Job& job, Position root, const EarliestForm& form)
    : job_(job), root_(root), form_(form), nodes_(static_cast<std::size_t>(job.nodes().groups.count())) {
    Simulation(*this).run();
}

double EarliestArrivalTree::busy_s(const MessageTimes& cost) const {
    return cost.busy_s + (form_.to_root ? cost.link_s : 0);
}

MessageTimes EarliestArrivalTree::times_inside() const {
    const topology::LevelCosts& costs = costs_inside(job_);
    return times_of(costs, static_cast<double>(form_.bytes), costs.together_bytes_per_s);
}

Position EarliestArrivalTree::position_of(std::int32_t node, Member member) const {
    const topology::Partition& nodes = job_.nodes().groups;
    const std::int32_t first = nodes.first(node);
    const std::int32_t first_informed = nodes.group_of(root_.value) == node ? root_.value - first : 0;
    return {first + (first_informed + member) % nodes.size_of(node)};
}

std::vector<EarliestArrivalTree::Member> EarliestArrivalTree::parents_inside(std::int32_t node) const {
    const NodeState& state = nodes_[static_cast<std::size_t>(node)];
    const std::int32_t size = job_.nodes().groups.size_of(node);
    const MessageTimes cost = times_inside();
    std::vector<Member> parents(static_cast<std::size_t>(size), 0);
    parents[0] = -1;
    using Free = std::pair<double, Member>;
    std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
    for (Member member = 0; member <= state.informed_helpers; ++member)
        free.push({state.stops_s[static_cast<std::size_t>(member)], member});
    double link_free_s = 0;
    for (Member next = state.informed_helpers + 1; next < size; ++next) {
        const auto [at_s, member] = free.top();
        free.pop();
        parents[static_cast<std::size_t>(next)] = member;
        const double begins_s = std::max(at_s, link_free_s - cost.busy_s);
        link_free_s = begins_s + cost.busy_s + cost.link_s;
        free.push({link_free_s + cost.after_s, next});
        free.push({begins_s + busy_s(cost), member});
    }
    return parents;
}

TreeNeighbours EarliestArrivalTree::of(Position position) const {
    const topology::Partition& nodes = job_.nodes().groups;
    const std::int32_t node = nodes.group_of(position.value);
    const NodeState& state = nodes_[static_cast<std::size_t>(node)];
    const std::int32_t size = nodes.size_of(node);
    const Member self = (position.value - position_of(node, 0).value + size) % size;
    const std::vector<Member> parents = parents_inside(node);
    TreeNeighbours out;
    const auto add_children = [&](Member first, Member end) {
        for (Member member = first; member < end; ++member)
            if (parents[static_cast<std::size_t>(member)] == self)
                out.children.push_back({position_of(node, member), {}, "node"});
    };
    add_children(1, state.informed_helpers + 1);
    for (const Call& call : state.calls)
        if (call.caller == self) out.children.push_back({position_of(call.node, 0), {}, "top"});
    add_children(state.informed_helpers + 1, size);
    if (self > 0)
        out.parent = TreeLink{position_of(node, parents[static_cast<std::size_t>(self)]), {}, "node"};
    else if (state.parent >= 0)
        out.parent = TreeLink{position_of(state.parent, state.parent_caller), {}, "top"};
    return out;
}

std::optional<std::string> EarliestArrivalTree::refuse(const Job& job) {
    const std::size_t node_level = *job.find_level("node");
    const topology::Partition& nodes = job.nodes().groups;
    if (nodes.count() > most_nodes)
        return "every rank simulates all nodes, at most " + std::to_string(most_nodes) + ", not " +
               std::to_string(nodes.count());
    const auto unknown = [](const topology::LevelCosts& costs) {
        return costs.latency_s <= 0 || costs.overhead_s <= 0;
    };
    const auto missing_costs = [](const std::string& where) {
        return "latency and overhead of messages " + where + " are unknown: run `palmette calibrate`";
    };
    for (std::size_t level = 0; level <= node_level; ++level)
        if (job.levels()[level].groups.count() > 1 && unknown(job.levels()[level].costs))
            return missing_costs("between groups of level '" + job.levels()[level].name + "'");
    if (nodes.largest() > 1 && unknown(costs_inside(job))) return missing_costs("inside of nodes");
    return std::nullopt;
}

}  // namespace palmette::collectives
