#include "palmette/topology/mapping/graph_mapping.hpp"

#include <algorithm>
#include <numeric>

#include "palmette/base/error.hpp"
#include "palmette/topology/index.hpp"
#include "palmette/topology/mapping/graph_bisection.hpp"
#include "palmette/topology/mapping/link_loads.hpp"

namespace palmette::topology {
namespace {

/// Relative differences below this are rounding.
constexpr double clearly = 1e-6;

/// Assigns the nodes `nodes[first..end)` to the positions first..end, bisected along the groups of `level` and then of
/// those inside.
void place(const Job& job, const Graph& graph, std::vector<std::int32_t>& nodes, std::int32_t first, std::int32_t end,
           std::size_t level, GraphBisection& bisection) {
    for (; level < job.levels().size(); ++level) {
        const Partition& groups = job.levels()[level].groups;
        const std::int32_t low = groups.group_of(first);
        const std::int32_t high = groups.group_of(end - 1);
        if (low == high) continue;
        const std::int32_t border = groups.first(low + (high - low + 1) / 2);
        bisection.split(graph, nodes.data() + first, border - first, end - first);
        place(job, graph, nodes, first, border, level, bisection);
        place(job, graph, nodes, border, end, level, bisection);
        return;
    }
}

LinkLoads loads_of(const Job& job, const Graph& graph, const NodePositions& position_of) {
    LinkLoads loads(job);
    for (std::int32_t node = 0; node < graph.size(); ++node)
        for (const auto* n = graph.begin(node); n != graph.end(node); ++n)
            if (node < n->node) loads.add(position_of[at(node)], position_of[at(n->node)], n->bytes);
    return loads;
}

/// Adds the traffic of a node to the links, or subtracts it with sign -1. The pair (node, other) is accounted by the
/// other one.
void put(LinkLoads& loads, const Graph& graph, const NodePositions& position_of, std::int32_t node, std::int32_t other,
         double sign) {
    for (const auto* n = graph.begin(node); n != graph.end(node); ++n)
        if (n->node != other) loads.add(position_of[at(node)], position_of[at(n->node)], sign * n->bytes);
}

}  // namespace

Graph::Graph(std::int32_t size, const std::vector<GraphEdge>& edges) : first_(at(size) + 1, 0) {
    for (const GraphEdge& edge : edges) {
        for (const std::int32_t node : {edge.from, edge.to})
            if (node < 0 || node >= size) base::fail("node ", node, " of an edge is outside of 0 to ", size - 1);
        if (!(edge.bytes >= 0)) base::fail("the edge ", edge.from, " to ", edge.to, " has ", edge.bytes, " bytes");
        if (edge.from == edge.to) continue;
        ++first_[at(edge.from) + 1];
        ++first_[at(edge.to) + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    all_.resize(first_.back());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const GraphEdge& edge : edges) {
        if (edge.from == edge.to) continue;
        all_[next[at(edge.from)]++] = {edge.to, edge.bytes};
        all_[next[at(edge.to)]++] = {edge.from, edge.bytes};
    }
    // Both directions, and duplicate edges, are merged.
    std::size_t kept = 0;
    for (std::int32_t node = 0; node < size; ++node) {
        const std::size_t begin = first_[at(node)];
        const std::size_t end = first_[at(node) + 1];
        std::sort(all_.begin() + static_cast<std::ptrdiff_t>(begin), all_.begin() + static_cast<std::ptrdiff_t>(end),
                  [](const Neighbour& a, const Neighbour& b) { return a.node < b.node; });
        first_[at(node)] = kept;
        for (std::size_t i = begin; i < end; ++i)
            if (i > begin && all_[i].node == all_[kept - 1].node)
                all_[kept - 1].bytes += all_[i].bytes;
            else
                all_[kept++] = all_[i];
    }
    first_.back() = kept;
    all_.resize(kept);
}

NodePositions map_graph(const Job& job, const Graph& graph) {
    if (graph.size() > job.size())
        base::fail("the graph has ", graph.size(), " nodes, more than the ", job.size(), " ranks");
    std::vector<std::int32_t> nodes(at(graph.size()));
    std::iota(nodes.begin(), nodes.end(), 0);
    GraphBisection bisection(graph.size());
    if (!nodes.empty()) place(job, graph, nodes, 0, graph.size(), 0, bisection);
    NodePositions position_of(nodes.size());
    for (std::int32_t position = 0; position < graph.size(); ++position)
        position_of[at(nodes[at(position)])] = position;
    return position_of;
}

void refine(const Job& job, const Graph& graph, NodePositions& position_of, std::int64_t trials) {
    LinkLoads loads = loads_of(job, graph, position_of);
    // Only nodes with neighbours in another group can gain.
    std::vector<std::int32_t> rim;
    const Partition& groups =
        job.levels().front().groups.count() > 1 ? job.levels().front().groups : job.nodes().groups;
    const auto group_of = [&](std::int32_t node) { return groups.group_of(position_of[at(node)]); };
    const auto is_rim = [&](std::int32_t node) {
        return graph.begin(node) != graph.end(node) &&
               std::any_of(graph.begin(node), graph.end(node),
                           [&](const Graph::Neighbour& n) { return group_of(n.node) != group_of(node); });
    };
    for (bool improved = true; improved && trials > 0;) {
        improved = false;
        rim.clear();
        for (std::int32_t node = 0; node < graph.size(); ++node)
            if (graph.size() <= 256 || is_rim(node)) rim.push_back(node);
        for (std::size_t i = 0; i < rim.size() && trials > 0; ++i)
            for (std::size_t j = i + 1; j < rim.size() && trials > 0; ++j) {
                const std::int32_t a = rim[i];
                const std::int32_t b = rim[j];
                --trials;
                const double before = loads.potential();
                const auto exchange = [&] {
                    put(loads, graph, position_of, a, -1, -1);
                    put(loads, graph, position_of, b, a, -1);
                    std::swap(position_of[at(a)], position_of[at(b)]);
                    put(loads, graph, position_of, a, -1, 1);
                    put(loads, graph, position_of, b, a, 1);
                };
                exchange();
                if (loads.potential() < before * (1 - clearly))
                    improved = true;
                else
                    exchange();
            }
    }
}

MappedTraffic traffic_of(const Job& job, const Graph& graph, const NodePositions& position_of) {
    const LinkLoads loads = loads_of(job, graph, position_of);
    return {loads.busiest(), loads.hop_bytes()};
}

bool is_better(const MappedTraffic& one, const MappedTraffic& other) {
    if (one.busiest < other.busiest * (1 - clearly)) return true;
    return one.busiest <= other.busiest * (1 + clearly) && one.hop_bytes < other.hop_bytes * (1 - clearly);
}

}  // namespace palmette::topology
