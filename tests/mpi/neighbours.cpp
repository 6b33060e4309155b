// Neighbourhood collectives on random distributed graphs, graphs and grids, each compared byte by byte with the MPI's
// own.
//
//     neighbours [--cases N] [--calls OF_EACH] [--seed S] [--blocking 1] [--dense 1] [--driver LIBRARY]

#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "support/device.hpp"
#include "support/outcome.hpp"
#include "support/rng.hpp"

using namespace test;

namespace {

enum class Form { blocking, nonblocking, persistent };

struct Graph {
    MPI_Comm comm = MPI_COMM_NULL;
    int in = 0, out = 0;
};

/// Several edges between two ranks, from a rank to itself, and ranks without any are among them.
Graph random_graph(Rng& shared, Rng& own, MPI_Comm comm) {
    int ranks = 0, rank = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    std::vector<std::pair<int, int>> edges;
    const int most = shared.pick(std::vector<int>{0, 2, 5, 3 * ranks});
    for (int r = 0; r < ranks; ++r)
        for (int left = shared.one_in(4) ? 0 : shared.between(0, most); left > 0; --left)
            edges.emplace_back(r, shared.below(ranks));
    const int reorder = shared.below(2);
    std::vector<int> sources, targets;
    sources.reserve(edges.size() + 1);  // no null without neighbours
    targets.reserve(edges.size() + 1);
    for (const auto& [source, target] : edges) {
        if (source == rank) targets.push_back(target);
        if (target == rank) sources.push_back(source);
    }
    own.shuffle(sources);
    own.shuffle(targets);
    Graph graph;
    if (shared.one_in(3)) {
        const int degree = static_cast<int>(targets.size());
        MPI_Dist_graph_create(comm, 1, &rank, &degree, targets.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, reorder,
                              &graph.comm);
    } else {
        MPI_Dist_graph_create_adjacent(comm, static_cast<int>(sources.size()), sources.data(), MPI_UNWEIGHTED,
                                       static_cast<int>(targets.size()), targets.data(), MPI_UNWEIGHTED, MPI_INFO_NULL,
                                       reorder, &graph.comm);
    }
    int weighted = 0;
    MPI_Dist_graph_neighbors_count(graph.comm, &graph.in, &graph.out, &weighted);
    return graph;
}

/// Each rank to each, where combining pays.
Graph dense_graph(MPI_Comm comm) {
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    Graph graph;
    MPI_Dist_graph_create_adjacent(comm, ranks, all.data(), MPI_UNWEIGHTED, ranks, all.data(), MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph.comm);
    graph.in = graph.out = ranks;
    return graph;
}

/// Grids of one or two in a circle, where both neighbours are the same rank, and open ones are among them.
Graph random_grid(Rng& shared, MPI_Comm comm) {
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    const int dimensions = shared.between(1, 4);
    int extents[4] = {0, 0, 0, 0}, periodic[4];
    MPI_Dims_create(ranks, dimensions, extents);
    for (int& one : periodic) one = shared.below(2);
    Graph graph;
    MPI_Cart_create(comm, dimensions, extents, periodic, shared.below(2), &graph.comm);
    graph.in = graph.out = 2 * dimensions;
    return graph;
}

/// Each edge both ways, as MPI wants it of such graphs.
Graph random_old_graph(Rng& shared, MPI_Comm comm) {
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<std::vector<int>> lists(static_cast<std::size_t>(ranks));
    for (int left = shared.between(0, 3 * ranks); left > 0; --left) {
        const int a = shared.below(ranks), b = shared.below(ranks);
        lists[static_cast<std::size_t>(a)].push_back(b);
        if (a != b) lists[static_cast<std::size_t>(b)].push_back(a);
    }
    std::vector<int> ends, edges{};
    for (const std::vector<int>& list : lists) {
        edges.insert(edges.end(), list.begin(), list.end());
        ends.push_back(static_cast<int>(edges.size()));
    }
    edges.push_back(0);
    Graph graph;
    MPI_Graph_create(comm, ranks, ends.data(), edges.data(), shared.below(2), &graph.comm);
    int rank = 0;
    MPI_Comm_rank(graph.comm, &rank);
    MPI_Graph_neighbors_count(graph.comm, rank, &graph.in);
    graph.out = graph.in;
    return graph;
}

/// `count` elements of it have the signature of `count * ints` times MPI_INT.
struct Type {
    MPI_Datatype handle = MPI_INT;
    int ints = 1;
    MPI_Aint extent = sizeof(int);
};

/// Two of the same signature: contiguous, with gaps, or in another order.
Type random_type(Rng& rng, int ints) {
    Type type;
    type.ints = ints;
    const int kind = rng.below(3);
    if (kind == 0) {
        MPI_Type_contiguous(ints, MPI_INT, &type.handle);
    } else if (kind == 1) {
        MPI_Type_vector(ints, 1, 2, MPI_INT, &type.handle);
    } else {
        std::vector<int> lengths(static_cast<std::size_t>(ints), 1), at;
        for (int i = ints; i-- > 0;) at.push_back(i);
        MPI_Type_indexed(ints, lengths.data(), at.data(), MPI_INT, &type.handle);
    }
    MPI_Type_commit(&type.handle);
    MPI_Aint lower = 0;
    MPI_Type_get_extent(type.handle, &lower, &type.extent);
    return type;
}

enum class Function { allgather, allgatherv, alltoall, alltoallv, alltoallw };
const char* const names[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};

/// One side of a call: blocks with gaps between them, each of `counts[i]` elements of `types[i]`.
struct Blocks {
    std::vector<int> counts, at;
    std::vector<MPI_Aint> bytes_at;
    std::vector<MPI_Datatype> types;
    Type first;
    std::vector<char> data;

    Blocks(Rng& rng, const std::vector<int>& wanted, int ints, bool listed, bool typed) : counts(wanted) {
        // Open MPI takes no null for the arrays of a rank without neighbours.
        counts.reserve(wanted.size() + 1);
        at.reserve(wanted.size() + 1);
        bytes_at.reserve(wanted.size() + 1);
        types.reserve(wanted.size() + 1);
        for (std::size_t i = 0; i <= wanted.size(); ++i) {
            if (i == 0 || typed) made_.push_back(random_type(rng, ints));
            if (i < wanted.size()) types.push_back(made_.back().handle);
        }
        first = made_.front();
        MPI_Aint end = 0;
        int elements = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const MPI_Aint extent = made_[typed ? i : 0].extent;
            if (listed) elements += rng.below(3);
            at.push_back(elements);
            elements += wanted[i];
            if (typed) end += 4 * rng.below(3);
            bytes_at.push_back(end);
            end += wanted[i] * extent;
        }
        const MPI_Aint last = typed ? end : elements * first.extent;
        data.resize(static_cast<std::size_t>(last) + 64);
        rng.fill(data.data(), data.size());
    }
    ~Blocks() {
        for (Type& type : made_) MPI_Type_free(&type.handle);
    }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;

  private:
    std::vector<Type> made_;
};

/// Neighbours by rank in the order of blocks; MPI_PROC_NULL beyond the edge of a grid.
void neighbours_of(const Graph& graph, std::vector<int>& sources, std::vector<int>& targets) {
    int kind = MPI_UNDEFINED, rank = 0;
    MPI_Topo_test(graph.comm, &kind);
    MPI_Comm_rank(graph.comm, &rank);
    sources.resize(static_cast<std::size_t>(graph.in));
    targets.resize(static_cast<std::size_t>(graph.out));
    if (kind == MPI_DIST_GRAPH) {
        MPI_Dist_graph_neighbors(graph.comm, graph.in, sources.data(), MPI_UNWEIGHTED, graph.out, targets.data(),
                                 MPI_UNWEIGHTED);
        return;
    }
    if (kind == MPI_GRAPH)
        MPI_Graph_neighbors(graph.comm, rank, graph.in, sources.data());
    else
        for (int d = 0; 2 * d < graph.in; ++d)
            MPI_Cart_shift(graph.comm, d, 1, &sources[static_cast<std::size_t>(2 * d)],
                           &sources[static_cast<std::size_t>(2 * d + 1)]);
    targets = sources;
}

/// `first`: on this graph. Palmette leaves a nonblocking one to the MPI then, and Open MPI's nonblocking calls on grids
/// of one or two in a circle mistake left for right where its blocking ones don't.
void one_call(Rng& shared, Rng& own, const Graph& graph, bool blocking, Outcome& outcome, int number) {
    const Function function = static_cast<Function>(shared.below(5));
    const Form drawn = static_cast<Form>(shared.below(3));
    const Form form = blocking ? Form::blocking : drawn;
    const bool gathers = function == Function::allgather || function == Function::allgatherv;
    const bool typed = function == Function::alltoallw;
    const bool listed = typed || function == Function::allgatherv || function == Function::alltoallv;
    const int ints = shared.between(1, 3);
    const int usual = shared.pick(std::vector<int>{0, 1, 2, 17, 300, 2000});
    const std::uint64_t seed = shared.next();
    int rank = 0;
    MPI_Comm_rank(graph.comm, &rank);
    std::vector<int> sources, targets;
    neighbours_of(graph, sources, targets);
    // Both ends of an edge come to the same; several edges between two ranks are alike.
    const auto count = [&](int source, int target) {
        const auto target_stream = static_cast<std::uint64_t>(gathers ? 0 : target + 1);
        return listed ? Rng(seed, static_cast<std::uint64_t>(source + 1), target_stream).between(0, usual) : usual;
    };
    std::vector<int> sent, received;
    for (const int target : targets) sent.push_back(count(rank, target));
    for (const int source : sources) received.push_back(count(source, rank));
    if (gathers) sent.assign(1, count(rank, 0));
    Blocks in(own, sent, ints, listed && !gathers, typed), out(own, received, ints, listed, typed);
    std::vector<char> expected = out.data;
    const std::vector<char> before = in.data;
    Elsewhere in_there(own, in.data.data(), in.data.size()), out_there(own, out.data.data(), out.data.size());
    char* input = in_there.at(in.data.data());
    char* const output = out_there.at(out.data.data());

    MPI_Request request = MPI_REQUEST_NULL;
    // The three forms, and the MPI's own, take the same arguments.
    const auto call = [&](auto allgather, auto allgatherv, auto alltoall, auto alltoallv, auto alltoallw, void* result,
                          auto... more) {
        const MPI_Datatype from = in.first.handle, to = out.first.handle;
        switch (function) {
            case Function::allgather:
                return allgather(input, usual, from, result, usual, to, graph.comm, more...);
            case Function::allgatherv:
                return allgatherv(input, sent[0], from, result, out.counts.data(), out.at.data(), to, graph.comm,
                                  more...);
            case Function::alltoall:
                return alltoall(input, usual, from, result, usual, to, graph.comm, more...);
            case Function::alltoallv:
                return alltoallv(input, in.counts.data(), in.at.data(), from, result, out.counts.data(), out.at.data(),
                                 to, graph.comm, more...);
            default:
                return alltoallw(input, in.counts.data(), in.bytes_at.data(), in.types.data(), result,
                                 out.counts.data(), out.bytes_at.data(), out.types.data(), graph.comm, more...);
        }
    };
    int code = MPI_SUCCESS;
    if (form == Form::blocking)
        code = call(MPI_Neighbor_allgather, MPI_Neighbor_allgatherv, MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv,
                    MPI_Neighbor_alltoallw, output);
    else if (form == Form::nonblocking)
        code = call(MPI_Ineighbor_allgather, MPI_Ineighbor_allgatherv, MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoallv,
                    MPI_Ineighbor_alltoallw, output, &request);
    else
        code = call(MPI_Neighbor_allgather_init, MPI_Neighbor_allgatherv_init, MPI_Neighbor_alltoall_init,
                    MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallw_init, output, MPI_INFO_NULL, &request);
    for (int start = form == Form::persistent ? 3 : form == Form::nonblocking ? 1 : 0; start > 0; --start) {
        if (form == Form::persistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (form == Form::persistent) MPI_Request_free(&request);
    in_there.download();
    out_there.download();
    input = in.data.data();
    const int other = call(PMPI_Neighbor_allgather, PMPI_Neighbor_allgatherv, PMPI_Neighbor_alltoall,
                           PMPI_Neighbor_alltoallv, PMPI_Neighbor_alltoallw, expected.data());
    outcome.check(code == other && out.data == expected && in.data == before,
                  "call %d: neighbor_%s, form %d, of up to %d x %d ints, %d sources, %d targets: codes %d and %d",
                  number, names[static_cast<int>(function)], static_cast<int>(form), usual, ints, graph.in, graph.out,
                  code, other);
}

}  // namespace

int main(int argc, char** argv) {
    const DriverOptions drivers(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const long cases = option(argc, argv, "--cases", 30);
    const long calls = option(argc, argv, "--calls", 10);
    const bool dense = option(argc, argv, "--dense", 0) != 0;
    // Open MPI's other forms match several edges between two ranks otherwise than its blocking ones do.
    const bool blocking = option(argc, argv, "--blocking", 0) != 0;
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    Rng shared(seed);
    Rng own(seed, static_cast<std::uint64_t>(world_rank) + 1, 0);
    Outcome outcome;
    int number = 0;
    for (long c = 0; c < cases; ++c) {
        watch(60);
        const int kind = shared.below(4);
        Graph graph = dense       ? dense_graph(MPI_COMM_WORLD)
                      : kind == 0 ? random_grid(shared, MPI_COMM_WORLD)
                      : kind == 1 ? random_old_graph(shared, MPI_COMM_WORLD)
                                  : random_graph(shared, own, MPI_COMM_WORLD);
        for (long call = 0; call < calls; ++call)
            one_call(shared, own, graph, blocking || call == 0, outcome, number++);
        MPI_Comm_free(&graph.comm);
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
