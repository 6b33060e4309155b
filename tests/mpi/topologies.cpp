// Communicators with a topology and reorder true: the same graph as without, only that other processes may have the
// numbers. Rank 0 prints the numbers that the processes of the world have in some of them, for whoever counts what
// crosses links: "NAME: world rank of rank 0, 1, ...", and of graphs the edges: "edges NAME: from to weight ...".
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/outcome.hpp"
#include "support/rng.hpp"

namespace {

using namespace test;

int world_size = 0;
/// MPI_Cart_map is local: where the ranks' hints differ, it can't know what they will agree on.
bool hints_differ = false;

int rank_in(MPI_Comm comm) {
    int rank = -1;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

/// World ranks of the ranks of a communicator.
std::vector<int> members(MPI_Comm comm) {
    std::vector<int> all(static_cast<std::size_t>(size_of(comm)));
    PMPI_Allgather(&world_rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm);
    return all;
}

void print_members(const char* name, MPI_Comm comm) {
    std::vector<int> all;
    int holder = world_size;  // who prints: the lowest world rank in it
    const int mine = comm == MPI_COMM_NULL ? world_size : world_rank;
    PMPI_Allreduce(&mine, &holder, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (comm == MPI_COMM_NULL) return;
    all = members(comm);
    if (world_rank != holder) return;
    std::string line = std::string(name) + ":";
    for (const int rank : all) line.append(" ").append(std::to_string(rank));
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

void print_edges(const char* name, const std::vector<std::vector<int>>& out,
                 const std::vector<std::vector<int>>& weights) {
    if (world_rank != 0) return;
    std::string line = std::string("edges ") + name + ":";
    for (std::size_t from = 0; from < out.size(); ++from)
        for (std::size_t i = 0; i < out[from].size(); ++i)
            line.append(" ")
                .append(std::to_string(from))
                .append(" ")
                .append(std::to_string(out[from][i]))
                .append(" ")
                .append(std::to_string(weights.empty() ? 1 : weights[from][i]));
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

/// All processes are there once.
void check_members(MPI_Comm comm, MPI_Comm from, Outcome& outcome, const char* what) {
    std::vector<int> all = members(comm);
    std::vector<int> before = members(from);
    std::sort(all.begin(), all.end());
    std::sort(before.begin(), before.end());
    outcome.check(all == before, "%s: not the processes of the old communicator", what);
}

/// The error handler of the old communicator went on to the new one.
void check_handler(MPI_Comm comm, MPI_Errhandler expected, Outcome& outcome, const char* what) {
    MPI_Errhandler got = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(comm, &got);
    outcome.check(got == expected, "%s: another error handler", what);
    MPI_Errhandler_free(&got);
}

void grid(MPI_Comm comm, std::vector<int> extents, std::vector<int> periodic, Outcome& outcome) {
    std::string name = "cart";
    int cells = 1;
    for (const int extent : extents) {
        name.append(name == "cart" ? " " : "x").append(std::to_string(extent));
        cells *= extent;
    }
    std::snprintf(doing, sizeof doing, "%s of %d ranks", name.c_str(), size_of(comm));
    const auto d = static_cast<int>(extents.size());
    MPI_Comm cart = MPI_COMM_NULL;
    outcome.check(MPI_Cart_create(comm, d, extents.data(), periodic.data(), 1, &cart) == MPI_SUCCESS, "%s", doing);
    int is_in = cart != MPI_COMM_NULL ? 1 : 0;
    int in_all = 0;
    PMPI_Allreduce(&is_in, &in_all, 1, MPI_INT, MPI_SUM, comm);
    outcome.check(in_all == cells, "%s: %d processes are in it", doing, in_all);
    if (comm == MPI_COMM_WORLD) print_members(name.c_str(), cart);
    int mapped = -7;
    MPI_Cart_map(comm, d, extents.data(), periodic.data(), &mapped);
    const int number = cart == MPI_COMM_NULL ? MPI_UNDEFINED : rank_in(cart);
    // Open MPI by itself gives those without a place their old rank.
    int of_mpi = -7;
    PMPI_Cart_map(comm, d, extents.data(), periodic.data(), &of_mpi);
    outcome.check(hints_differ || mapped == number || (number == MPI_UNDEFINED && mapped == of_mpi),
                  "%s: MPI_Cart_map says %d, MPI_Cart_create gave %d", doing, mapped, number);
    if (cart == MPI_COMM_NULL) return;
    if (cells == size_of(comm)) check_members(cart, comm, outcome, doing);
    check_handler(cart, MPI_ERRORS_RETURN, outcome, doing);
    int got_d = 0;
    MPI_Cartdim_get(cart, &got_d);
    outcome.check(got_d == d, "%s: %d dimensions", doing, got_d);
    std::vector<int> got_extents(extents.size()), got_periodic(extents.size()), mine(extents.size());
    MPI_Cart_get(cart, d, got_extents.data(), got_periodic.data(), mine.data());
    outcome.check(got_extents == extents, "%s: extents", doing);
    int expected = 0;
    for (std::size_t k = 0; k < extents.size(); ++k) {
        outcome.check((got_periodic[k] != 0) == (periodic[k] != 0), "%s: periods", doing);
        expected = expected * extents[k] + mine[k];
    }
    outcome.check(expected == rank_in(cart), "%s: coordinates aren't the rank's, row by row", doing);
    // Neighbours meet.
    for (int k = 0; k < d; ++k) {
        int before = 0, after = 0, came = -7;
        MPI_Cart_shift(cart, k, 1, &before, &after);
        const int rank = rank_in(cart);
        MPI_Sendrecv(&rank, 1, MPI_INT, after, 5, &came, 1, MPI_INT, before, 5, cart, MPI_STATUS_IGNORE);
        outcome.check(came == (before == MPI_PROC_NULL ? -7 : before), "%s: %d came from %d", doing, came, before);
    }
    // Exchanges within lines, as in an FFT.
    for (int k = 0; k < d; ++k) {
        std::vector<int> remain(extents.size(), 0);
        remain[static_cast<std::size_t>(k)] = 1;
        MPI_Comm line = MPI_COMM_NULL;
        MPI_Cart_sub(cart, remain.data(), &line);
        std::vector<int> to(static_cast<std::size_t>(size_of(line)), mine[static_cast<std::size_t>(k)]);
        std::vector<int> came(to.size(), -7);
        MPI_Alltoall(to.data(), 1, MPI_INT, came.data(), 1, MPI_INT, line);
        for (std::size_t i = 0; i < came.size(); ++i)
            outcome.check(came[i] == static_cast<int>(i), "%s: %d came from %zu of line %d", doing, came[i], i, k);
        MPI_Comm_free(&line);
    }
    int sum = 0;
    const int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, cart);
    outcome.check(sum == cells, "%s: allreduce", doing);
    MPI_Comm_free(&cart);
}

void graph(MPI_Comm comm, int nodes, std::uint64_t seed, Outcome& outcome) {
    std::snprintf(doing, sizeof doing, "graph of %d nodes, seed %llu", nodes, static_cast<unsigned long long>(seed));
    Rng rng(seed, 1, 0);
    std::vector<int> index, edges;
    std::vector<std::vector<int>> out;
    for (int node = 0; node < nodes; ++node) {
        std::vector<int>& mine = out.emplace_back();
        // Partners far away in numbers, so that a reordering pays.
        if (nodes > 1) {
            mine.push_back((node + nodes / 2) % nodes);
            for (int more = rng.below(3); more > 0; --more) mine.push_back(rng.below(nodes));
        }
        edges.insert(edges.end(), mine.begin(), mine.end());
        index.push_back(static_cast<int>(edges.size()));
    }
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Graph_create(comm, nodes, index.data(), edges.data(), 1, &made);
    outcome.check(code == MPI_SUCCESS, "%s", doing);
    if (comm == MPI_COMM_WORLD && nodes == world_size) {
        print_members("graph", made);
        print_edges("graph", out, {});
    }
    int mapped = -7;
    MPI_Graph_map(comm, nodes, index.data(), edges.data(), &mapped);
    const int number = made == MPI_COMM_NULL ? MPI_UNDEFINED : rank_in(made);
    // Open MPI by itself gives those without a place their old rank.
    int of_mpi = -7;
    PMPI_Graph_map(comm, nodes, index.data(), edges.data(), &of_mpi);
    outcome.check(mapped == number || (number == MPI_UNDEFINED && mapped == of_mpi),
                  "%s: MPI_Graph_map says %d, MPI_Graph_create gave %d", doing, mapped, number);
    if (made == MPI_COMM_NULL) return;
    check_handler(made, MPI_ERRORS_RETURN, outcome, doing);
    outcome.check(size_of(made) == nodes, "%s: %d ranks", doing, size_of(made));
    std::vector<int> got_index(index.size()), got_edges(edges.size());
    MPI_Graph_get(made, nodes, static_cast<int>(edges.size()), got_index.data(), got_edges.data());
    outcome.check(got_index == index && got_edges == edges, "%s: another graph", doing);
    const int rank = rank_in(made);
    const int begin = rank == 0 ? 0 : index[static_cast<std::size_t>(rank) - 1];
    const int end = index[static_cast<std::size_t>(rank)];
    std::vector<int> neighbours(static_cast<std::size_t>(end - begin));
    MPI_Graph_neighbors(made, rank, end - begin, neighbours.data());
    outcome.check(std::equal(neighbours.begin(), neighbours.end(), edges.begin() + begin), "%s: neighbours", doing);
    MPI_Comm_free(&made);
}

/// A directed graph that all ranks know, so that each can compare.
struct Distributed {
    std::vector<std::vector<int>> out, in, out_weights, in_weights;

    Distributed(int nodes, std::uint64_t seed)
        : out(at(nodes)), in(at(nodes)), out_weights(at(nodes)), in_weights(at(nodes)) {
        Rng rng(seed, 2, 0);
        for (int node = 0; node < nodes; ++node) {
            // Some nodes have no neighbours.
            if (rng.one_in(7)) continue;
            add(node, (node + nodes / 2) % nodes, 50);
            for (int more = rng.below(3); more > 0; --more) add(node, rng.below(nodes), 1 + rng.below(9));
        }
    }
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
    void add(int from, int to, int weight) {
        out[at(from)].push_back(to);
        out_weights[at(from)].push_back(weight);
        in[at(to)].push_back(from);
        in_weights[at(to)].push_back(weight);
    }
};

std::vector<std::pair<int, int>> pairs(const std::vector<int>& ranks, const std::vector<int>& weights, bool weighted) {
    std::vector<std::pair<int, int>> out;
    for (std::size_t i = 0; i < ranks.size(); ++i) out.emplace_back(ranks[i], weighted ? weights[i] : 1);
    return out;
}

/// Whether the MPI by itself tells the neighbours that this rank's number has.
bool has_neighbours(MPI_Comm made, const Distributed& all, bool weighted) {
    const auto rank = static_cast<std::size_t>(rank_in(made));
    int in_degree = -1, out_degree = -1, has_weights = -1;
    PMPI_Dist_graph_neighbors_count(made, &in_degree, &out_degree, &has_weights);
    if (in_degree != static_cast<int>(all.in[rank].size()) || out_degree != static_cast<int>(all.out[rank].size()))
        return false;
    // One entry more, so that no list is null.
    std::vector<int> in(all.in[rank].size() + 1), out(all.out[rank].size() + 1);
    std::vector<int> in_weights(in.size(), 1), out_weights(out.size(), 1);
    PMPI_Dist_graph_neighbors(made, in_degree, in.data(), weighted ? in_weights.data() : MPI_UNWEIGHTED, out_degree,
                              out.data(), weighted ? out_weights.data() : MPI_UNWEIGHTED);
    in.pop_back();
    out.pop_back();
    auto got_in = pairs(in, in_weights, weighted), want_in = pairs(all.in[rank], all.in_weights[rank], weighted);
    auto got_out = pairs(out, out_weights, weighted), want_out = pairs(all.out[rank], all.out_weights[rank], weighted);
    for (auto* list : {&got_in, &want_in, &got_out, &want_out}) std::sort(list->begin(), list->end());
    return got_in == want_in && got_out == want_out;
}

/// What the MPI says of this rank's neighbours, against the input of the rank of the same number.
void check_neighbours(MPI_Comm made, const Distributed& all, bool weighted, bool in_order, Outcome& outcome) {
    const auto rank = static_cast<std::size_t>(rank_in(made));
    int in_degree = -1, out_degree = -1, has_weights = -1;
    MPI_Dist_graph_neighbors_count(made, &in_degree, &out_degree, &has_weights);
    outcome.check(in_degree == static_cast<int>(all.in[rank].size()), "%s: in-degree %d", doing, in_degree);
    outcome.check(out_degree == static_cast<int>(all.out[rank].size()), "%s: out-degree %d", doing, out_degree);
    outcome.check((has_weights != 0) == weighted, "%s: weighted", doing);
    if (in_degree != static_cast<int>(all.in[rank].size()) || out_degree != static_cast<int>(all.out[rank].size()))
        return;
    // One entry more, so that no list is null.
    std::vector<int> in(all.in[rank].size() + 1), out(all.out[rank].size() + 1);
    std::vector<int> in_weights(in.size(), 1), out_weights(out.size(), 1);
    MPI_Dist_graph_neighbors(made, in_degree, in.data(), weighted ? in_weights.data() : MPI_UNWEIGHTED, out_degree,
                             out.data(), weighted ? out_weights.data() : MPI_UNWEIGHTED);
    in.pop_back();
    out.pop_back();
    auto got_in = pairs(in, in_weights, weighted), want_in = pairs(all.in[rank], all.in_weights[rank], weighted);
    auto got_out = pairs(out, out_weights, weighted), want_out = pairs(all.out[rank], all.out_weights[rank], weighted);
    if (!in_order)
        for (auto* list : {&got_in, &want_in, &got_out, &want_out}) std::sort(list->begin(), list->end());
    outcome.check(got_in == want_in, "%s: sources of rank %zu", doing, rank);
    outcome.check(got_out == want_out, "%s: destinations of rank %zu", doing, rank);
    // Data goes along the edges.
    const int mine = rank_in(made);
    std::vector<int> came(in.size() + 1, -1);
    MPI_Neighbor_allgather(&mine, 1, MPI_INT, came.data(), 1, MPI_INT, made);
    came.pop_back();
    outcome.check(came == in, "%s: what neighbours sent", doing);
}

void distributed(MPI_Comm comm, std::uint64_t seed, bool weighted, Outcome& outcome) {
    const int p = size_of(comm);
    const auto rank = static_cast<std::size_t>(rank_in(comm));
    const Distributed all(p, seed);
    std::snprintf(doing, sizeof doing, "adjacent, %d ranks, seed %llu, %s", p, static_cast<unsigned long long>(seed),
                  weighted ? "weighted" : "unweighted");
    const auto weights = [&](const std::vector<int>& list) -> const int* {
        if (!weighted) return MPI_UNWEIGHTED;
        return list.empty() ? MPI_WEIGHTS_EMPTY : list.data();
    };
    MPI_Comm made = MPI_COMM_NULL;
    int code =
        MPI_Dist_graph_create_adjacent(comm, static_cast<int>(all.in[rank].size()), all.in[rank].data(),
                                       weights(all.in_weights[rank]), static_cast<int>(all.out[rank].size()),
                                       all.out[rank].data(), weights(all.out_weights[rank]), MPI_INFO_NULL, 1, &made);
    outcome.check(code == MPI_SUCCESS, "%s", doing);
    const bool printed = comm == MPI_COMM_WORLD && seed == 1;
    const auto print = [&](std::string name) {
        if (!printed) return;
        if (weighted) name += " weighted";
        print_members(name.c_str(), made);
        print_edges(name.c_str(), all.out, weighted ? all.out_weights : std::vector<std::vector<int>>{});
    };
    print("adjacent");
    check_members(made, comm, outcome, doing);
    check_handler(made, MPI_ERRORS_RETURN, outcome, doing);
    check_neighbours(made, all, weighted, true, outcome);
    MPI_Comm_free(&made);

    // Each edge is told by some rank: of node n those to even destinations by rank n, the others by rank p - 1 - n.
    std::snprintf(doing, sizeof doing, "distributed, %d ranks, seed %llu, %s", p, static_cast<unsigned long long>(seed),
                  weighted ? "weighted" : "unweighted");
    std::vector<int> sources, degrees, destinations, told;
    destinations.reserve(1);  // Open MPI takes no null list, though it may be empty
    for (const int node : {static_cast<int>(rank), p - 1 - static_cast<int>(rank)}) {
        sources.push_back(node);
        degrees.push_back(0);
        const auto n = static_cast<std::size_t>(node);
        for (std::size_t i = 0; i < all.out[n].size(); ++i) {
            const bool even = all.out[n][i] % 2 == 0;
            if (even != (sources.size() == 1)) continue;
            destinations.push_back(all.out[n][i]);
            told.push_back(all.out_weights[n][i]);
            ++degrees.back();
        }
    }
    // Open MPI 5.0 mistakes such edges between two ranks by itself; then there is nothing to compare with.
    for (const int reorder : {0, 1}) {
        MPI_Comm plain = MPI_COMM_NULL;
        PMPI_Dist_graph_create(comm, 2, sources.data(), degrees.data(), destinations.data(), weights(told),
                               MPI_INFO_NULL, reorder, &plain);
        const int right = has_neighbours(plain, all, weighted);
        int all_right = 0;
        PMPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, comm);
        MPI_Comm_free(&plain);
        if (!all_right) return;
    }
    code = MPI_Dist_graph_create(comm, 2, sources.data(), degrees.data(), destinations.data(), weights(told),
                                 MPI_INFO_NULL, 1, &made);
    outcome.check(code == MPI_SUCCESS, "%s", doing);
    print("distributed");
    check_members(made, comm, outcome, doing);
    check_handler(made, MPI_ERRORS_RETURN, outcome, doing);
    check_neighbours(made, all, weighted, false, outcome);
    MPI_Comm_free(&made);
}

/// What the MPI refuses is refused with the same class, and nobody hangs.
void errors(Outcome& outcome) {
    const int periodic[2] = {0, 0};
    const auto class_of = [](int code) {
        int result = -1;
        MPI_Error_class(code, &result);
        return result;
    };
    for (const std::vector<int>& extents : {std::vector<int>{world_size, 2}, std::vector<int>{-1, 1}}) {
        std::snprintf(doing, sizeof doing, "a grid of %d x %d", extents[0], extents[1]);
        MPI_Comm one = MPI_COMM_NULL, other = MPI_COMM_NULL;
        const int ours = MPI_Cart_create(MPI_COMM_WORLD, 2, extents.data(), periodic, 1, &one);
        const int theirs = PMPI_Cart_create(MPI_COMM_WORLD, 2, extents.data(), periodic, 0, &other);
        outcome.check(class_of(ours) == class_of(theirs), "%s: class %d, not %d", doing, class_of(ours),
                      class_of(theirs));
        if (extents[0] > 0) outcome.check(ours != MPI_SUCCESS, "%s: no error", doing);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    const auto seeds = static_cast<std::uint64_t>(option(argc, argv, "--seeds", 6));
    Outcome outcome;
    watch(60);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm original = MPI_COMM_NULL, replaced = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &original);
    if (const std::string value = word_option(argc, argv, "--grids", ""); !value.empty()) {
        // `differing`: each rank says something else, which counts for none; `replaced`: a duplicate made with an info
        // that doesn't say it has none.
        hints_differ = value == "differing";
        MPI_Info info = MPI_INFO_NULL;
        MPI_Info_create(&info);
        const bool halo = value == "differing" && world_rank % 2 == 0;
        const bool exchange = value == "replaced" || (value == "differing" && !halo);
        MPI_Info_set(info, "palmette_grid", halo ? "halo" : exchange ? "exchange" : value.c_str());
        MPI_Comm_set_info(value == "replaced" ? original : MPI_COMM_WORLD, info);
        MPI_Info_delete(info, "palmette_grid");
        if (value == "replaced") MPI_Comm_dup_with_info(original, info, &replaced);
        MPI_Info_free(&info);
    }
    if (replaced != MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(replaced, MPI_ERRORS_RETURN);
        grid(replaced, {world_size}, {0}, outcome);
        MPI_Comm_free(&replaced);
    }
    MPI_Comm_free(&original);
    MPI_Comm backwards = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &backwards);
    MPI_Comm_set_errhandler(backwards, MPI_ERRORS_RETURN);
    for (MPI_Comm comm : {MPI_COMM_WORLD, backwards}) {
        int extents[2] = {0, 0};
        MPI_Dims_create(world_size, 2, extents);
        grid(comm, {world_size}, {0}, outcome);
        grid(comm, {world_size}, {1}, outcome);
        grid(comm, {extents[0], extents[1]}, {0, 0}, outcome);
        grid(comm, {extents[1], extents[0]}, {1, 0}, outcome);
        if (world_size % 2 == 0) grid(comm, {world_size / 2, 2}, {0, 0}, outcome);
        if (world_size > 2) grid(comm, {world_size - 1}, {1}, outcome);
        if (world_size > 4) grid(comm, {2, (world_size - 1) / 2}, {0, 1}, outcome);
        graph(comm, world_size, 1, outcome);
        if (world_size > 2) graph(comm, world_size - 1, 2, outcome);
        for (std::uint64_t seed = 1; seed <= seeds; ++seed)
            for (const bool weighted : {false, true}) distributed(comm, seed, weighted, outcome);
    }
    grid(MPI_COMM_SELF, {1}, {1}, outcome);
    errors(outcome);
    MPI_Comm_free(&backwards);
    std::snprintf(doing, sizeof doing, "MPI_Finalize");
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
