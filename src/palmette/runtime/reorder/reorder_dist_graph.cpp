// No rank holds a distributed graph, so its edges are gathered at rank 0. Nodes are numbers of the new communicator:
// "the values in sources and destinations" that a process finds there are the input of the process that had its new
// rank in the old one (MPI 4.1, 8.5.5), so the lists of neighbours are sent to the process that gets the number.
#include <algorithm>
#include <numeric>

#include "palmette/base/text.hpp"
#include "palmette/runtime/reorder/reorder.hpp"
#include "palmette/runtime/reorder/reordering.hpp"

namespace palmette::runtime {
namespace {

using topology::Position;
using topology::Rank;

/// 48 MiB at rank 0.
constexpr long long most_gathered = 1LL << 22;

/// Edges as this rank specified them: from, to, weight.
using Triples = std::vector<int>;

/// Numbers in the new communicator: this rank's own, and that of the process whose old rank is this one's new number.
struct Numbers {
    int mine = 0;
    int of_my_node = 0;
};

bool is_rank(int value, int size) { return value >= 0 && value < size; }

bool are_weights(const int* weights, int count) {
    return weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY || count == 0 ||
           (weights && std::all_of(weights, weights + count, [](int weight) { return weight >= 0; }));
}

int weight_at(const int* weights, int i) {
    return weights == MPI_UNWEIGHTED || weights == MPI_WEIGHTS_EMPTY ? 1 : weights[i];
}

/// Rank 0's part: numbers of all old ranks, empty when none are better.
std::vector<int> numbers_for(Reordering& call, const Triples& all) {
    std::vector<topology::GraphEdge> edges;
    for (std::size_t i = 0; i < all.size(); i += 3)
        edges.push_back({all[i], all[i + 1], static_cast<double>(all[i + 2])});
    const topology::Graph graph(call.size(), edges);
    std::vector<topology::NodePositions> candidates(1);
    candidates.front().resize(static_cast<std::size_t>(call.size()));
    std::iota(candidates.front().begin(), candidates.front().end(), 0);
    candidates.push_back(topology::map_graph(call.job(), graph));
    candidates.push_back(candidates.back());
    topology::refine(call.job(), graph, candidates.back());
    std::vector<int> out;
    if (const auto best = call.best(graph, candidates)) {
        out.resize(best->size());
        for (std::size_t node = 0; node < best->size(); ++node)
            out[static_cast<std::size_t>(call.job().rank_at(Position{(*best)[node]}).value)] = static_cast<int>(node);
    }
    return out;
}

/// Collective: rank 0 maps the whole graph.
std::optional<Numbers> numbers_from_root(Reordering& call, MPI_Comm comm, const Triples& mine) {
    const auto p = static_cast<std::size_t>(call.size());
    const bool root = call.rank() == 0;
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(root ? p : 0);
    std::vector<int> starts(root ? p : 0);
    if (PMPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm) != MPI_SUCCESS) return std::nullopt;
    std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
    Triples all(root ? static_cast<std::size_t>(starts.back() + lengths.back()) : 0);
    if (PMPI_Gatherv(mine.data(), length, MPI_INT, all.data(), lengths.data(), starts.data(), MPI_INT, 0, comm) !=
        MPI_SUCCESS)
        return std::nullopt;
    std::vector<int> numbers;
    if (root) try {
            numbers = numbers_for(call, all);
        } catch (const std::exception& error) {
            // The others wait for the answer: ranks stay in order.
            Process::instance().report().note(error.what());
        }
    double found[3] = {numbers.empty() ? 0.0 : 1.0, call.before, call.after};
    if (PMPI_Bcast(found, 3, MPI_DOUBLE, 0, comm) != MPI_SUCCESS || found[0] == 0) return std::nullopt;
    call.before = found[1];
    call.after = found[2];
    std::vector<int> pairs;
    for (const int number : numbers) {
        pairs.push_back(number);
        pairs.push_back(numbers[static_cast<std::size_t>(number)]);
    }
    int own[2] = {0, 0};
    if (PMPI_Scatter(pairs.data(), 2, MPI_INT, own, 2, MPI_INT, 0, comm) != MPI_SUCCESS) return std::nullopt;
    return Numbers{own[0], own[1]};
}

/// Collective: ranks in topology order, where that reduces the traffic across links.
std::optional<Numbers> numbers_in_topology_order(Reordering& call, const Triples& mine) {
    Reordering::Crossings before(call.job());
    Reordering::Crossings after(call.job());
    for (std::size_t i = 0; i < mine.size(); i += 3) {
        before.add(call.job().position_of(Rank{mine[i]}), call.job().position_of(Rank{mine[i + 1]}), mine[i + 2]);
        after.add(Position{mine[i]}, Position{mine[i + 1]}, mine[i + 2]);
    }
    if (!call.reduces_crossings(before, after)) return std::nullopt;
    const int number = call.position().value;
    return Numbers{number, call.job().position_of(Rank{number}).value};
}

/// Collective: the new numbers, or nothing, which is counted.
std::optional<Numbers> numbers_of(Reordering& call, MPI_Comm comm, const Triples& mine, bool valid) {
    const long long own[2] = {valid ? 0 : 1, static_cast<long long>(mine.size() / 3)};
    long long all[2] = {1, 0};
    if (PMPI_Allreduce(own, all, 2, MPI_LONG_LONG, MPI_SUM, comm) != MPI_SUCCESS || all[0] > 0)
        return call.keep_order(sentence_of(Refusal::erroneous_arguments));
    const long long most = std::min(most_gathered, Process::instance().settings().reorder_gathered_up_to);
    const bool whole = all[1] <= most;
    const auto numbers = whole ? numbers_from_root(call, comm, mine) : numbers_in_topology_order(call, mine);
    if (numbers) return numbers;
    if (whole) return call.keep_order("no order is better than the ranks' own");
    return call.keep_order(base::cat("over ", most, " edges only topology order is tried, which is no better"));
}

/// Neighbours of one node on one side.
struct Neighbours {
    int degree = 0;
    std::vector<int> ranks, weights;
    bool weighted = false;
    const int* weight_argument() const {
        return !weighted ? MPI_UNWEIGHTED : degree == 0 ? MPI_WEIGHTS_EMPTY : weights.data();
    }
};

/// Sends a list of neighbours to the process that gets its node, and receives the list of this rank's new number.
bool exchange_neighbours(const int* ranks, const int* weights, int degree, int to, int from, MPI_Comm comm,
                         Neighbours& got) {
    const bool weighted = weights != MPI_UNWEIGHTED;
    std::vector<int> out(ranks, ranks + degree);
    for (int i = 0; weighted && i < degree; ++i) out.push_back(weight_at(weights, i));
    const int head[2] = {degree, weighted ? 1 : 0};
    int head_got[2] = {0, 0};
    if (PMPI_Sendrecv(head, 2, MPI_INT, to, 0, head_got, 2, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
    got.degree = head_got[0];
    got.weighted = head_got[1] != 0;
    std::vector<int> in(static_cast<std::size_t>(got.degree) * (got.weighted ? 2 : 1));
    if (PMPI_Sendrecv(out.data(), static_cast<int>(out.size()), MPI_INT, to, 1, in.data(), static_cast<int>(in.size()),
                      MPI_INT, from, 1, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
    got.ranks.assign(in.begin(), in.begin() + got.degree);
    got.weights.assign(in.begin() + got.degree, in.end());
    return true;
}

}  // namespace

std::optional<int> reorder_dist_graph(MPI_Comm comm, int count, const int* sources, const int* degrees,
                                      const int* destinations, const int* weights, MPI_Info info, int reorder,
                                      MPI_Comm* made) {
    Reordering call(Constructor::dist_graph_create, comm);
    if (!call.open(reorder)) return std::nullopt;
    Triples mine;
    bool valid = made && count >= 0 && (count == 0 || (sources && degrees));
    int edge = 0;
    for (int i = 0; valid && i < count; ++i) {
        valid = is_rank(sources[i], call.size()) && degrees[i] >= 0 && (degrees[i] == 0 || destinations);
        for (int j = 0; valid && j < degrees[i]; ++j, ++edge) {
            valid = is_rank(destinations[edge], call.size()) && weights;
            if (valid) mine.insert(mine.end(), {sources[i], destinations[edge], weight_at(weights, edge)});
        }
    }
    valid = valid && are_weights(weights, edge);
    const auto numbers = numbers_of(call, comm, mine, valid);
    if (!numbers) return std::nullopt;
    int code = MPI_SUCCESS;
    const MPI_Comm renumbered = call.renumbered(numbers->mine, call.size(), code);
    if (renumbered == MPI_COMM_NULL) return code;
    return call.finish(
        renumbered, PMPI_Dist_graph_create(renumbered, count, sources, degrees, destinations, weights, info, 0, made));
}

std::optional<int> reorder_dist_graph_adjacent(MPI_Comm comm, int in_degree, const int* sources,
                                               const int* source_weights, int out_degree, const int* destinations,
                                               const int* destination_weights, MPI_Info info, int reorder,
                                               MPI_Comm* made) {
    Reordering call(Constructor::dist_graph_create_adjacent, comm);
    if (!call.open(reorder)) return std::nullopt;
    const auto is_side = [&](int degree, const int* ranks, const int* weights) {
        return degree >= 0 && (degree == 0 || (ranks && weights)) && are_weights(weights, degree) &&
               std::all_of(ranks, ranks + degree, [&](int rank) { return is_rank(rank, call.size()); });
    };
    const bool valid =
        made && is_side(in_degree, sources, source_weights) && is_side(out_degree, destinations, destination_weights);
    // Each edge is specified at both of its ends; one is enough.
    Triples mine;
    for (int i = 0; valid && i < out_degree; ++i)
        mine.insert(mine.end(), {call.rank(), destinations[i], weight_at(destination_weights, i)});
    const auto numbers = numbers_of(call, comm, mine, valid);
    if (!numbers) return std::nullopt;
    int code = MPI_SUCCESS;
    const MPI_Comm renumbered = call.renumbered(numbers->mine, call.size(), code);
    if (renumbered == MPI_COMM_NULL) return code;
    Neighbours in;
    Neighbours out;
    // Whoever gets this rank's old number needs its lists; in the new communicator that is its rank.
    const int to = call.rank();
    if (!exchange_neighbours(sources, source_weights, in_degree, to, numbers->of_my_node, renumbered, in) ||
        !exchange_neighbours(destinations, destination_weights, out_degree, to, numbers->of_my_node, renumbered, out))
        return call.finish(renumbered, MPI_ERR_OTHER);
    return call.finish(renumbered, PMPI_Dist_graph_create_adjacent(renumbered, in.degree, in.ranks.data(),
                                                                   in.weight_argument(), out.degree, out.ranks.data(),
                                                                   out.weight_argument(), info, 0, made));
}

}  // namespace palmette::runtime
