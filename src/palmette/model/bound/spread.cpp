#include "palmette/model/bound/spread.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace palmette::model {
namespace {

/// Costs in discrete time steps, rounded down.
struct Steps {
    int gap, latency;
};

/// Weights of the objective: nodes with an informed rank, and informed ranks.
struct Weights {
    int node, rank;
};

/// Dynamic program: upper bound on the weighted number of ranks and nodes that a newly informed rank can inform,
/// directly or not, in the remaining time, in groups of one kind and beyond, by the ranks and nodes that it is
/// responsible for.
class Reach {
  public:
    Reach(std::int32_t most_ranks, std::int32_t entered_ranks, std::int32_t most_nodes, Weights weights, Steps inside,
          Steps nodes, Steps groups)
        : most_ranks_(most_ranks),
          entered_ranks_(entered_ranks),
          most_nodes_(most_nodes),
          weights_(weights),
          inside_(inside),
          nodes_(nodes),
          groups_(groups) {}

    /// Informed by a rank responsible for `ranks` of its node, itself included, and for `nodes` other nodes of its
    /// group.
    int reached(int left, std::int32_t ranks, std::int32_t nodes) const {
        return table_[static_cast<std::size_t>(left)][index(ranks, nodes)];
    }
    /// As reached(), for the first informed rank of a group, itself included.
    int entered(int left) const {
        return left < 0 ? 0 : weights_.node + weights_.rank + reached(left, entered_ranks_, most_nodes_ - 1);
    }

    /// Adds one time step. `group(t)`: the gain of a message that enters a group with t steps left.
    template <class Group>
    void add_step(const Group& group) {
        const int left = static_cast<int>(table_.size());
        table_.emplace_back(static_cast<std::size_t>(most_ranks_) * static_cast<std::size_t>(most_nodes_), 0);
        for (std::int32_t nodes = 0; nodes < most_nodes_; ++nodes)
            for (std::int32_t ranks = 1; ranks <= most_ranks_; ++ranks)
                table_.back()[index(ranks, nodes)] = best(left, ranks, nodes, group);
    }

  private:
    std::size_t index(std::int32_t ranks, std::int32_t nodes) const {
        return static_cast<std::size_t>(nodes) * static_cast<std::size_t>(most_ranks_) +
               static_cast<std::size_t>(ranks - 1);
    }

    /// The best first send, plus the optimum for the remaining time.
    template <class Group>
    int best(int left, std::int32_t ranks, std::int32_t nodes, const Group& group) const {
        int out = left > 0 ? reached(left - 1, ranks, nodes) : 0;
        // The remaining gain of the sender after its gap; 0 where no time is left.
        const auto after = [&](const Steps& cost, std::int32_t own_ranks, std::int32_t own_nodes) {
            return left < cost.gap ? 0 : reached(left - cost.gap, own_ranks, own_nodes);
        };
        if (left >= groups_.latency)
            if (const int found = group(left - groups_.latency); found > 0)
                out = std::max(out, found + after(groups_, ranks, nodes));
        if (left >= nodes_.latency && nodes_.latency > 0)
            for (std::int32_t given = 0; given <= nodes; ++given) {
                // Enters a new node, or one that was entered before: then only one more rank is informed.
                const int there = left - nodes_.latency;
                if (given > 0)
                    out = std::max(out, weights_.node + weights_.rank + reached(there, entered_ranks_, given - 1) +
                                            after(nodes_, ranks, nodes - given));
                out = std::max(
                    out, weights_.rank + reached(there, entered_ranks_, given) + after(nodes_, ranks, nodes - given));
            }
        if (left >= inside_.latency)
            for (std::int32_t given = 1; given < ranks; ++given)
                for (std::int32_t with = 0; with <= nodes; ++with)
                    out = std::max(out, weights_.rank + reached(left - inside_.latency, given, with) +
                                            after(inside_, ranks - given, nodes - with));
        return out;
    }

    std::int32_t most_ranks_, entered_ranks_, most_nodes_;
    Weights weights_;
    Steps inside_, nodes_, groups_;
    std::vector<std::vector<int>> table_;  ///< by steps left
};

constexpr double steps_a_latency = 512;  // at most: rounding down loses less than 0.2 % of it per message
constexpr double steps_a_cost = 20;      // per smallest cost, where that suffices

double step_of(const SpreadCosts& costs) {
    const double longest =
        std::max({costs.inside.latency_s, costs.between_nodes.latency_s, costs.between_groups.latency_s});
    double smallest = longest;
    for (const PostalCosts& one : {costs.inside, costs.between_nodes, costs.between_groups})
        for (const double cost : {one.gap_s, one.latency_s})
            if (cost > 0) smallest = std::min(smallest, cost);
    return std::max(smallest / steps_a_cost, longest / steps_a_latency);
}

/// Costs of all kinds in steps.
struct AllSteps {
    Steps inside, nodes, groups;
};

/// The first time step at which the upper bound reaches `wanted`.
int first_step(const SpreadShape& shape, const AllSteps& steps, Weights weights, int wanted) {
    Reach home(std::max(shape.root_ranks, shape.sibling_ranks), shape.sibling_ranks, shape.root_nodes, weights,
               steps.inside, steps.nodes, steps.groups);
    Reach away(shape.ranks, shape.ranks, shape.nodes, weights, steps.inside, steps.nodes, steps.groups);
    const auto group = [&](int left) {
        return shape.groups > 1 ? std::max(away.entered(left), home.entered(left)) : 0;
    };
    for (int left = 0;; ++left) {
        away.add_step(group);
        home.add_step(group);
        const int root = weights.node + weights.rank + home.reached(left, shape.root_ranks, shape.root_nodes - 1);
        if (root >= wanted) return left;
    }
}

}  // namespace

double least_spread_s(const SpreadShape& shape, const SpreadCosts& costs) {
    const double step_s = step_of(costs);
    if (!(step_s > 0)) return 0;
    const auto in_steps = [&](const PostalCosts& one) {
        const auto count = [&](double cost) { return static_cast<int>(std::floor(cost / step_s * (1 + 1e-12))); };
        return Steps{count(one.gap_s), count(one.latency_s)};
    };
    const AllSteps steps{in_steps(costs.inside), in_steps(costs.between_nodes), in_steps(costs.between_groups)};
    const auto is_zero_cost = [](const Steps& one) { return one.gap < 1 || one.latency < 1; };
    const bool many_nodes = shape.root_nodes > 1 || (shape.groups > 1 && shape.nodes > 1);
    if ((shape.groups > 1 && is_zero_cost(steps.groups)) || (many_nodes && is_zero_cost(steps.nodes))) return 0;
    const int each = std::max<int>(1, static_cast<int>(shape.all_ranks / shape.all_nodes));
    int latest = 0;
    for (const Weights& weights : {Weights{1, 0}, Weights{0, 1}, Weights{each, 1}})
        latest = std::max(
            latest, first_step(shape, steps, weights, weights.node * shape.all_nodes + weights.rank * shape.all_ranks));
    return latest * step_s;
}

}  // namespace palmette::model
