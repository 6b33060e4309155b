#include <algorithm>
#include <functional>
#include <map>

#include "palmette/runtime/reorder/grid_purpose.hpp"
#include "palmette/runtime/reorder/reorder.hpp"
#include "palmette/runtime/reorder/reordering.hpp"
#include "palmette/topology/mapping/exchange_mapping.hpp"
#include "palmette/topology/mapping/grid_mapping.hpp"

namespace palmette::runtime {
namespace {

using topology::GridMapping;
using topology::GridPurpose;
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

/// How grids are ordered for a purpose: mappings to try, and what each is worth.
struct Trials {
    std::vector<topology::NodePositions> candidates;
    Reordering::Cost cost;
};

Trials halo_trials(const topology::Job& job, const GridMapping& mapping) {
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
    topology::refine(job, graph, refined);
    topology::NodePositions by_graph = topology::map_graph(job, graph);
    topology::refine(job, graph, by_graph);
    return {{std::move(by_grid), std::move(refined), std::move(by_graph)},
            [&job, graph](const topology::NodePositions& positions) { return traffic_of(job, graph, positions); }};
}

Trials exchange_trials(const topology::Job& job, const topology::Grid& grid) {
    std::vector<topology::GridExchange> exchanges = topology::exchanges_of(grid);
    std::vector<topology::NodePositions> candidates = topology::exchange_mappings(job, grid, exchanges);
    return {std::move(candidates), [&job, exchanges = std::move(exchanges)](const topology::NodePositions& positions) {
                return traffic_of(job, exchanges, positions);
            }};
}

Trials trials_for(GridPurpose purpose, const topology::Job& job, const GridMapping& mapping) {
    return purpose == GridPurpose::halo ? halo_trials(job, mapping) : exchange_trials(job, mapping.grid());
}

/// How many times less the busiest link would have to carry for the other purpose with the order made for that.
double gain_of_other(GridPurpose other, const topology::Job& job, const GridMapping& mapping,
                     const topology::NodePositions& chosen) {
    const Trials trials = trials_for(other, job, mapping);
    const double now = trials.cost(chosen).busiest;
    double least = now;
    for (const auto& candidate : trials.candidates) least = std::min(least, trials.cost(candidate).busiest);
    return least > 0 ? now / least : 1;
}

/// Small grids: every rank evaluates the whole, and exchanges pairs where a cut along an axis has a step.
std::optional<int> number_in_small(Reordering& call, const GridMapping& mapping, GridPurpose purpose, bool local) {
    const auto cells = static_cast<std::int32_t>(mapping.grid().cells());
    const Trials trials = trials_for(purpose, call.job(), mapping);
    const auto best = call.best(cells, trials.candidates, trials.cost);
    const auto number = best ? std::optional(call.number_with(*best)) : std::nullopt;
    call.grid = GridOrder{purpose, 0};
    // For the rank that reports.
    if (!local && number.value_or(call.rank()) == 0 && !Process::instance().settings().report.empty()) {
        const GridPurpose other = purpose == GridPurpose::halo ? GridPurpose::exchange : GridPurpose::halo;
        call.grid->other_gain = gain_of_other(other, call.job(), mapping, best ? *best : call.in_order(cells));
    }
    return number;
}

/// A large grid's cells on the positions, and back; each takes time independent of the number of cells.
struct LargeMapping {
    std::function<Position(std::int32_t)> position_of;
    std::function<std::int32_t(Position)> cell_at;  ///< -1: none
};

/// Visits the cells that one sends to, with the share that each gets.
using Visit = std::function<void(std::int32_t, double)>;

void each_receiver(const topology::Grid& grid, GridPurpose purpose, std::int32_t cell, const Visit& visit) {
    if (purpose == GridPurpose::halo) {
        each_neighbour(grid, cell, [&](std::int32_t other) { visit(other, 1); });
        return;
    }
    for (std::size_t axis = 0; axis < grid.dimensions(); ++axis) {
        std::vector<std::int32_t> other = grid.coordinates_of(cell);
        const std::int32_t own = other[axis];
        for (std::int32_t c = 0; c < grid.extents[axis]; ++c) {
            other[axis] = c;
            if (c != own) visit(grid.index_of(other), 1.0 / grid.extents[axis]);
        }
    }
}

std::vector<LargeMapping> large_mappings(const GridMapping& mapping, GridPurpose purpose) {
    const topology::Grid& grid = mapping.grid();
    std::vector<LargeMapping> out;
    if (purpose == GridPurpose::halo) {
        out.push_back({[&](std::int32_t cell) { return mapping.position_of(cell); },
                       [&](Position position) { return mapping.cell_at(position); }});
        return out;
    }
    for (const auto& order : topology::axis_orders(grid))
        out.push_back({[&grid, order](std::int32_t cell) { return Position{topology::index_by(grid, order, cell)}; },
                       [&grid, order](Position position) {
                           return position.value < grid.cells() ? topology::cell_by(grid, order, position.value) : -1;
                       }});
    return out;
}

/// All crossings of a grid, by lines for exchanges: of n cells in groups of n_g, n^2 - sum n_g^2 pairs cross.
void add_all(Reordering::Crossings& crossings, const topology::Job& job, const topology::Grid& grid,
             GridPurpose purpose, const std::function<Position(std::int32_t)>& position_of) {
    for (std::int32_t cell = 0; purpose == GridPurpose::halo && cell < grid.cells(); ++cell)
        each_receiver(grid, purpose, cell, [&](std::int32_t other, double weight) {
            crossings.add(position_of(cell), position_of(other), weight);
        });
    if (purpose == GridPurpose::halo) return;
    std::map<std::int32_t, std::int64_t> of_group;
    for (std::size_t axis = 0; axis < grid.dimensions(); ++axis)
        for (std::int32_t cell = 0; cell < grid.cells(); ++cell) {
            std::vector<std::int32_t> at = grid.coordinates_of(cell);
            if (at[axis] != 0) continue;
            std::vector<std::int32_t> positions;
            for (; at[axis] < grid.extents[axis]; ++at[axis]) positions.push_back(position_of(grid.index_of(at)).value);
            const auto n = static_cast<double>(positions.size());
            for (std::size_t level = 0; level < job.levels().size(); ++level) {
                of_group.clear();
                for (const std::int32_t position : positions) ++of_group[job.levels()[level].groups.group_of(position)];
                double pairs = n * n;
                for (const auto& [group, count] : of_group) pairs -= static_cast<double>(count * count);
                crossings.add_at(level, pairs / n);
            }
        }
}

/// Large grids: every rank evaluates its own cell and those that it sends to. Collective, unless `local`, where it
/// evaluates all cells.
std::optional<int> number_in_large(Reordering& call, const GridMapping& mapping, GridPurpose purpose, bool local) {
    const topology::Grid& grid = mapping.grid();
    const auto of_rank = [&](std::int32_t rank) { return call.job().position_of(Rank{rank}); };
    // Of one cell, or of all.
    const auto crossings_of = [&](std::int32_t cell, const std::function<Position(std::int32_t)>& position_of) {
        Reordering::Crossings out(call.job());
        if (local)
            add_all(out, call.job(), grid, purpose, position_of);
        else if (cell >= 0 && cell < grid.cells())
            each_receiver(grid, purpose, cell, [&](std::int32_t other, double weight) {
                out.add(position_of(cell), position_of(other), weight);
            });
        return out;
    };
    const Reordering::Crossings before = crossings_of(call.rank(), of_rank);
    std::optional<int> found;
    double least = 0;
    double unmapped = 0;
    for (const LargeMapping& candidate : large_mappings(mapping, purpose)) {
        const std::int32_t cell = candidate.cell_at(call.position());
        const Reordering::Crossings after = crossings_of(cell, candidate.position_of);
        const bool less = local ? call.reduces_total_crossings(before, after) : call.reduces_crossings(before, after);
        unmapped = call.before;
        if (!less || (found && call.after >= least * (1 - 1e-6))) continue;
        least = call.after;
        found = cell >= 0 ? cell : call.position().value;
    }
    call.before = unmapped;
    call.after = least;
    call.grid = GridOrder{purpose, 0};
    return found;
}

}  // namespace

std::optional<int> map_cart(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int* number) {
    Reordering call(Constructor::cart_create, comm);
    if (!call.open_to_map()) return std::nullopt;
    const auto grid = grid_of(dimensions, extents, periodic, call.size());
    if (!grid || !number) return std::nullopt;
    const GridMapping mapping(call.job(), *grid);
    const bool small = grid->cells() <= Process::instance().settings().reorder_whole_up_to;
    const GridPurpose purpose = grid_purpose_of(comm);
    const auto found =
        small ? number_in_small(call, mapping, purpose, true) : number_in_large(call, mapping, purpose, true);
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
    const GridPurpose purpose = agreed_grid_purpose(comm);
    const auto number =
        small ? number_in_small(call, mapping, purpose, false) : number_in_large(call, mapping, purpose, false);
    if (!number) return call.keep_order("no order is better than the ranks' own");
    int code = MPI_SUCCESS;
    const MPI_Comm renumbered = call.renumbered(*number, grid->cells(), code);
    *made = MPI_COMM_NULL;
    if (renumbered == MPI_COMM_NULL) return code;
    return call.finish(renumbered, PMPI_Cart_create(renumbered, dimensions, extents, periodic, 0, made));
}

}  // namespace palmette::runtime
