#include <numeric>

#include "palmette/runtime/reorder/reorder.hpp"
#include "palmette/runtime/reorder/reordering.hpp"

namespace palmette::runtime {
namespace {

/// More edges are not bisected, which takes about a second for so many.
constexpr std::size_t most_bisected = 1U << 20;

/// The edges of the arguments, or nothing where the MPI must check them.
std::optional<std::vector<topology::GraphEdge>> edges_of(int nodes, const int* index, const int* edges, int size) {
    if (nodes < 1 || nodes > size || !index) return std::nullopt;
    std::vector<topology::GraphEdge> out;
    for (int node = 0; node < nodes; ++node) {
        const int begin = node == 0 ? 0 : index[node - 1];
        if (index[node] < begin || (index[node] > begin && !edges)) return std::nullopt;
        for (int i = begin; i < index[node]; ++i) {
            if (edges[i] < 0 || edges[i] >= nodes) return std::nullopt;
            out.push_back({node, edges[i], 1});
        }
    }
    return out;
}

/// The best positions of the nodes, or nothing where the ranks' own order is as good.
std::optional<topology::NodePositions> positions_for(Reordering& call, int nodes,
                                                     const std::vector<topology::GraphEdge>& edges) {
    const topology::Graph graph(nodes, edges);
    std::vector<topology::NodePositions> candidates(1);
    candidates.front().resize(static_cast<std::size_t>(nodes));
    std::iota(candidates.front().begin(), candidates.front().end(), 0);
    if (graph.edges() <= most_bisected) {
        candidates.push_back(topology::map_graph(call.job(), graph));
        candidates.push_back(candidates.back());
        topology::refine(call.job(), graph, candidates.back());
    }
    return call.best(graph, candidates);
}

}  // namespace

std::optional<int> map_graph(MPI_Comm comm, int nodes, const int* index, const int* edges, int* number) {
    Reordering call(Constructor::graph_create, comm);
    if (!call.open_to_map()) return std::nullopt;
    const auto listed = edges_of(nodes, index, edges, call.size());
    if (!listed || !number) return std::nullopt;
    const auto best = positions_for(call, nodes, *listed);
    if (!best) return std::nullopt;
    const int found = call.number_with(*best);
    *number = found < nodes ? found : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

std::optional<int> reorder_graph(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
                                 MPI_Comm* made) {
    Reordering call(Constructor::graph_create, comm);
    if (!call.open(reorder)) return std::nullopt;
    const auto listed = edges_of(nodes, index, edges, call.size());
    if (!listed || !made) return call.keep_order(sentence_of(Refusal::erroneous_arguments));
    const auto best = positions_for(call, nodes, *listed);
    if (!best) return call.keep_order("no order is better than the ranks' own");
    int code = MPI_SUCCESS;
    const MPI_Comm renumbered = call.renumbered(call.number_with(*best), nodes, code);
    *made = MPI_COMM_NULL;
    if (renumbered == MPI_COMM_NULL) return code;
    return call.finish(renumbered, PMPI_Graph_create(renumbered, nodes, index, edges, 0, made));
}

}  // namespace palmette::runtime
