#include "palmette/runtime/reorder/reorder.hpp"
#include "palmette/runtime/reorder/reordering.hpp"
#include "palmette/topology/mapping/grid_mapping.hpp"

namespace palmette::runtime {
namespace {

using topology::GridMapping;
using topology::Position;
using topology::Rank;

/// The grid of the arguments, or nothing where the MPI must check them.
std::optional<topology::Grid> grid_of(int dimensions, const int* extents, const int* periodic, int size) {
    if (dimensions < 1 || !extents || !periodic) return std::nullopt;
    topology::Grid grid;
    std::int64_t cells = 1;
    for (int k = 0; k < dimensions; ++k) {
        if (extents[k] < 1) return std::nullopt;
        cells *= extents[k];
        if (cells > size) return std::nullopt;
        grid.extents.push_back(extents[k]);
        grid.periodic.push_back(periodic[k] != 0);
    }
    return grid;
}

template <class Visit>
void each_neighbour(const topology::Grid& grid, std::int32_t cell, Visit visit) {
    const std::vector<std::int32_t> coordinates = grid.coordinates_of(cell);
    for (std::size_t k = 0; k < grid.dimensions(); ++k)
        for (const std::int32_t step : {-1, 1})
            if (const std::int32_t other = grid.neighbour(coordinates, k, step); other >= 0 && other != cell)
                visit(other);
}

/// Small grids: every rank evaluates the whole, and exchanges pairs where a cut along an axis has a step.
std::optional<int> number_in_small(Reordering& call, const GridMapping& mapping) {
    const topology::Grid& grid = mapping.grid();
    const auto cells = static_cast<std::int32_t>(grid.cells());
    std::vector<topology::GraphEdge> edges;
    topology::NodePositions by_grid;
    for (std::int32_t cell = 0; cell < cells; ++cell) {
        each_neighbour(grid, cell, [&](std::int32_t other) { edges.push_back({cell, other, 1}); });
        by_grid.push_back(mapping.position_of(cell).value);
    }
    const topology::Graph graph(cells, edges);
    topology::NodePositions refined = by_grid;
    topology::refine(call.job(), graph, refined);
    topology::NodePositions by_graph = topology::map_graph(call.job(), graph);
    topology::refine(call.job(), graph, by_graph);
    const auto best = call.best(graph, {by_grid, refined, by_graph});
    return best ? std::optional(call.number_with(*best)) : std::nullopt;
}

/// Large grids: every rank evaluates its own cell and its neighbours. Collective, unless `local`, where it evaluates
/// all cells.
std::optional<int> number_in_large(Reordering& call, const GridMapping& mapping, bool local) {
    const topology::Grid& grid = mapping.grid();
    Reordering::Crossings before(call.job());
    Reordering::Crossings after(call.job());
    const auto add_before = [&](std::int32_t rank) {
        each_neighbour(grid, rank, [&](std::int32_t other) {
            before.add(call.job().position_of(Rank{rank}), call.job().position_of(Rank{other}), 1);
        });
    };
    const auto add_after = [&](std::int32_t cell) {
        each_neighbour(grid, cell, [&](std::int32_t other) {
            after.add(mapping.position_of(cell), mapping.position_of(other), 1);
        });
    };
    const std::int32_t cell = mapping.cell_at(call.position());
    if (local) {
        for (std::int32_t any = 0; any < grid.cells(); ++any) add_before(any), add_after(any);
    } else {
        if (call.rank() < grid.cells()) add_before(call.rank());
        if (cell >= 0) add_after(cell);
    }
    if (!(local ? call.reduces_total_crossings(before, after) : call.reduces_crossings(before, after)))
        return std::nullopt;
    return cell >= 0 ? cell : call.position().value;
}

}  // namespace

std::optional<int> map_cart(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int* number) {
    Reordering call(Constructor::cart_create, comm);
    if (!call.open_to_map()) return std::nullopt;
    const auto grid = grid_of(dimensions, extents, periodic, call.size());
    if (!grid || !number) return std::nullopt;
    const GridMapping mapping(call.job(), *grid);
    const bool small = grid->cells() <= Process::instance().settings().reorder_whole_up_to;
    const auto found = small ? number_in_small(call, mapping) : number_in_large(call, mapping, true);
    if (!found) return std::nullopt;
    *number = *found < grid->cells() ? *found : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

std::optional<int> reorder_cart(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int reorder,
                                MPI_Comm* made) {
    Reordering call(Constructor::cart_create, comm);
    if (!call.open(reorder)) return std::nullopt;
    const auto grid = grid_of(dimensions, extents, periodic, call.size());
    if (!grid || !made) return call.keep_order(sentence_of(Refusal::erroneous_arguments));
    const GridMapping mapping(call.job(), *grid);
    const bool small = grid->cells() <= Process::instance().settings().reorder_whole_up_to;
    const auto number = small ? number_in_small(call, mapping) : number_in_large(call, mapping, false);
    if (!number) return call.keep_order("no order is better than the ranks' own");
    int code = MPI_SUCCESS;
    const MPI_Comm renumbered = call.renumbered(*number, grid->cells(), code);
    *made = MPI_COMM_NULL;
    if (renumbered == MPI_COMM_NULL) return code;
    return call.finish(renumbered, PMPI_Cart_create(renumbered, dimensions, extents, periodic, 0, made));
}

}  // namespace palmette::runtime
