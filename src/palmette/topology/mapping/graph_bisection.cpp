#include "palmette/topology/mapping/graph_bisection.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "palmette/topology/index.hpp"

namespace palmette::topology {
namespace {

/// Ordered by gain; ties go to the lowest node, so that the result is the same on all ranks.
struct Candidate {
    double gain;
    std::int32_t node;
    bool operator<(const Candidate& other) const { return gain != other.gain ? gain < other.gain : node > other.node; }
};

}  // namespace

GraphBisection::GraphBisection(std::int32_t nodes)
    : side_(at(nodes), outside), gain_(at(nodes), 0), locked_(at(nodes)) {}

void GraphBisection::split(const Graph& graph, std::int32_t* nodes, std::int32_t part, std::int32_t all) {
    std::vector<std::int8_t> best;
    double fewest = 0;
    // Grown from both ends of a long shortest path (pseudo-peripheral nodes), and from the lowest node.
    const std::int32_t low = *std::min_element(nodes, nodes + all);
    for (std::int32_t i = 0; i < all; ++i) side_[at(nodes[i])] = second;
    const std::int32_t one = farthest_from(graph, low, nodes, all);
    const std::int32_t other = farthest_from(graph, one, nodes, all);
    for (const std::int32_t seed : {one, other, low}) {
        grow(graph, seed, nodes, part, all);
        exchange(graph, nodes, all);
        const double now = between(graph, nodes, all);
        if (!best.empty() && now >= fewest) continue;
        fewest = now;
        best.resize(at(all));
        for (std::int32_t i = 0; i < all; ++i) best[at(i)] = side_[at(nodes[i])];
    }
    for (std::int32_t i = 0; i < all; ++i) side_[at(nodes[i])] = best[at(i)];
    std::stable_partition(nodes, nodes + all, [&](std::int32_t node) { return side_[at(node)] == first; });
    for (std::int32_t i = 0; i < all; ++i) side_[at(nodes[i])] = outside;
}

std::int32_t GraphBisection::farthest_from(const Graph& graph, std::int32_t node, const std::int32_t* nodes,
                                           std::int32_t all) {
    queue_.assign(1, node);
    side_[at(node)] = first;
    for (std::size_t next = 0; next < queue_.size(); ++next)
        for (const auto* n = graph.begin(queue_[next]); n != graph.end(queue_[next]); ++n)
            if (side_[at(n->node)] == second) {
                side_[at(n->node)] = first;
                queue_.push_back(n->node);
            }
    for (std::int32_t i = 0; i < all; ++i) side_[at(nodes[i])] = second;
    return queue_.back();
}

double GraphBisection::gain(const Graph& graph, std::int32_t node) const {
    double out = 0;
    const std::int8_t mine = side_[at(node)];
    for (const auto* n = graph.begin(node); n != graph.end(node); ++n) {
        if (side_[at(n->node)] == outside) continue;
        out += side_[at(n->node)] == mine ? -n->bytes : n->bytes;
    }
    return out;
}

/// Greedy graph growing: adds the node with the best gain, one after the other.
void GraphBisection::grow(const Graph& graph, std::int32_t seed, const std::int32_t* nodes, std::int32_t part,
                          std::int32_t all) {
    for (std::int32_t i = 0; i < all; ++i) side_[at(nodes[i])] = second;
    std::priority_queue<Candidate> reached;
    gain_[at(seed)] = gain(graph, seed);
    reached.push({gain_[at(seed)], seed});
    std::int32_t next = 0;
    for (std::int32_t taken = 0; taken < part;) {
        if (reached.empty()) {
            // Continues in another connected component.
            while (side_[at(nodes[next])] == first) ++next;
            gain_[at(nodes[next])] = gain(graph, nodes[next]);
            reached.push({gain_[at(nodes[next])], nodes[next]});
        }
        const auto [value, node] = reached.top();
        reached.pop();
        if (side_[at(node)] == first || value != gain_[at(node)]) continue;
        side_[at(node)] = first;
        ++taken;
        for (const auto* n = graph.begin(node); n != graph.end(node); ++n) {
            if (side_[at(n->node)] != second) continue;
            gain_[at(n->node)] = gain(graph, n->node);
            reached.push({gain_[at(n->node)], n->node});
        }
    }
}

/// Kernighan-Lin passes: pairs are exchanged, best gains first, each node once; the best prefix of the pass is kept.
void GraphBisection::exchange(const Graph& graph, const std::int32_t* nodes, std::int32_t all) {
    constexpr int most_passes = 8;
    constexpr std::size_t patience = 64;
    for (int pass = 0; pass < most_passes; ++pass) {
        std::priority_queue<Candidate> from_first;
        std::priority_queue<Candidate> from_second;
        for (std::int32_t i = 0; i < all; ++i) locked_[at(nodes[i])] = false;
        const auto push = [&](std::int32_t node) {
            gain_[at(node)] = gain(graph, node);
            (side_[at(node)] == first ? from_first : from_second).push({gain_[at(node)], node});
        };
        for (std::int32_t i = 0; i < all; ++i) push(nodes[i]);
        const auto pop = [&](std::priority_queue<Candidate>& queue, std::int8_t side) {
            while (!queue.empty()) {
                const auto [value, node] = queue.top();
                queue.pop();
                if (!locked_[at(node)] && side_[at(node)] == side && value == gain_[at(node)]) return node;
            }
            return -1;
        };
        const auto move = [&](std::int32_t node) {
            locked_[at(node)] = true;
            side_[at(node)] = side_[at(node)] == first ? second : first;
            for (const auto* n = graph.begin(node); n != graph.end(node); ++n)
                if (side_[at(n->node)] != outside && !locked_[at(n->node)]) push(n->node);
        };
        std::vector<std::pair<std::int32_t, std::int32_t>> moved;
        double total = 0;
        double best = 0;
        std::size_t best_at = 0;
        for (;;) {
            const std::int32_t a = pop(from_first, first);
            if (a < 0) break;
            total += gain_[at(a)];
            move(a);
            const std::int32_t b = pop(from_second, second);
            if (b < 0) {
                side_[at(a)] = first;
                break;
            }
            total += gain_[at(b)];
            move(b);
            moved.emplace_back(a, b);
            if (total > best * (1 + 1e-9) + 1e-300) {
                best = total;
                best_at = moved.size();
            }
            if (moved.size() - best_at > patience) break;
        }
        for (std::size_t i = best_at; i < moved.size(); ++i)
            std::swap(side_[at(moved[i].first)], side_[at(moved[i].second)]);
        if (best_at == 0) return;
    }
}

double GraphBisection::between(const Graph& graph, const std::int32_t* nodes, std::int32_t all) const {
    double total = 0;
    for (std::int32_t i = 0; i < all; ++i) {
        if (side_[at(nodes[i])] != first) continue;
        for (const auto* n = graph.begin(nodes[i]); n != graph.end(nodes[i]); ++n)
            if (side_[at(n->node)] == second) total += n->bytes;
    }
    return total;
}

}  // namespace palmette::topology
