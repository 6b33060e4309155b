// Graph bisection into two parts of given sizes with a small cut (bytes between them).
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/mapping/graph_mapping.hpp"

namespace palmette::topology {

/// Reuses its work buffers between calls.
class GraphBisection {
  public:
    explicit GraphBisection(std::int32_t nodes);

    /// Reorders the `all` nodes so that the first `part` are one part. Edges to other nodes are ignored.
    void split(const Graph& graph, std::int32_t* nodes, std::int32_t part, std::int32_t all);

  private:
    /// Nodes outside of the current subset are `outside`.
    enum Side : std::int8_t { outside, first, second };

    std::int32_t farthest_from(const Graph& graph, std::int32_t node, const std::int32_t* nodes, std::int32_t all);
    void grow(const Graph& graph, std::int32_t seed, const std::int32_t* nodes, std::int32_t part, std::int32_t all);
    void exchange(const Graph& graph, const std::int32_t* nodes, std::int32_t all);
    double between(const Graph& graph, const std::int32_t* nodes, std::int32_t all) const;
    double gain(const Graph& graph, std::int32_t node) const;

    std::vector<std::int8_t> side_;
    std::vector<double> gain_;
    std::vector<bool> locked_;
    std::vector<std::int32_t> queue_;
};

}  // namespace palmette::topology
