// Maps the nodes of a communication graph to the positions of a job.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::topology {

/// Communication volume from one node to another: bytes, or weights of any unit.
struct GraphEdge {
    std::int32_t from = 0, to = 0;
    double bytes = 0;
};

/// Nodes 0..size-1 with the volume exchanged with each neighbour, both directions summed.
class Graph {
  public:
    /// Self-edges are dropped. Throws base::Error for a node outside of 0..size-1 or bytes below 0.
    Graph(std::int32_t size, const std::vector<GraphEdge>& edges);

    std::int32_t size() const { return static_cast<std::int32_t>(first_.size()) - 1; }
    struct Neighbour {
        std::int32_t node;
        double bytes;
    };
    const Neighbour* begin(std::int32_t node) const { return all_.data() + first_[static_cast<std::size_t>(node)]; }
    const Neighbour* end(std::int32_t node) const { return all_.data() + first_[static_cast<std::size_t>(node) + 1]; }
    std::size_t edges() const { return all_.size(); }

  private:
    std::vector<std::size_t> first_;
    std::vector<Neighbour> all_;
};

/// Positions by node.
using NodePositions = std::vector<std::int32_t>;

/// Recursive bisection along the tree: the groups of a level are halved, and the nodes are bisected to the same sizes
/// with a small cut, by greedy growing from a peripheral node and exchanging pairs (Kernighan and Lin 1970). Nodes take
/// the first positions. O(edges log ranks), about 1 us per edge and bisection; deterministic. Throws base::Error where
/// the graph has more nodes than the job ranks.
NodePositions map_graph(const Job& job, const Graph& graph);

/// Local search: exchanges pairs of nodes as long as that reduces the load of the busiest links, for at most `trials`
/// pairs.
void refine(const Job& job, const Graph& graph, NodePositions& position_of, std::int64_t trials = 100'000);

/// Quality of a mapping: load of the links.
struct MappedTraffic {
    double busiest = 0;    ///< seconds of the busiest link of a group; bytes where no capacity is known
    double hop_bytes = 0;  ///< bytes times edges of the tree on their route
};
MappedTraffic traffic_of(const Job& job, const Graph& graph, const NodePositions& position_of);
/// Clearly less on the busiest link, or as much there and clearly fewer hop bytes.
bool is_better(const MappedTraffic& one, const MappedTraffic& other);

}  // namespace palmette::topology
