// Rank mapping: rings, heuristics, grids and communication graphs.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "palmette/base/error.hpp"
#include "palmette/bindings/register.hpp"
#include "palmette/topology/mapping/bottleneck_ring.hpp"
#include "palmette/topology/mapping/graph_mapping.hpp"
#include "palmette/topology/mapping/grid_mapping.hpp"
#include "palmette/topology/mapping/rank_orders.hpp"

namespace palmette::bindings {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using topology::BottleneckRing;
using topology::Distances;
using topology::Graph;
using topology::Job;
using topology::Position;
using topology::Rank;
using topology::RankOrder;

RankOrder order_for(std::string_view pattern, topology::FreePlaces& places) {
    if (pattern == "ring") return topology::ring_order(places);
    if (pattern == "recursive_doubling") return topology::recursive_doubling_order(places);
    if (pattern == "gather") return topology::binomial_gather_order(places);
    if (pattern == "bcast") return topology::binomial_bcast_order(places);
    base::fail("no heuristic for pattern '", pattern, "'; there is one for ring, recursive_doubling, gather and bcast");
}

/// Converts positions to places: the ranks that sit there.
RankOrder places_at(const Job& job, const std::vector<std::int32_t>& positions) {
    RankOrder out;
    for (const std::int32_t position : positions) out.push_back(job.rank_at(Position{position}).value);
    return out;
}

Graph make_graph(const Job& job, const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to,
                 const std::vector<double>& bytes) {
    if (from.size() != to.size() || from.size() != bytes.size())
        base::fail("from, to and bytes of the edges differ in length: ", from.size(), ", ", to.size(), ", ",
                   bytes.size());
    std::vector<topology::GraphEdge> edges;
    for (std::size_t i = 0; i < from.size(); ++i) edges.push_back({from[i], to[i], bytes[i]});
    return Graph(job.size(), edges);
}

}  // namespace

void register_map(nb::module_& m) {
    nb::class_<BottleneckRing>(m, "BottleneckRing", "A ring with a minimised longest edge.")
        .def_ro("order", &BottleneckRing::order, "order[r]: the place of rank r.")
        .def_ro("slowest", &BottleneckRing::slowest, "The longest edge, the closing one included.")
        .def_ro("bound", &BottleneckRing::bound, "Lower bound on the longest edge of any ring.")
        .def_prop_ro("proven", &BottleneckRing::proven, "True when the ring is proven optimal.");
    m.def(
        "bottleneck_ring",
        [](std::int32_t size, std::vector<double> values, std::int64_t budget) {
            return topology::bottleneck_ring(Distances(size, std::move(values)), budget);
        },
        "size"_a, "distances"_a, "budget"_a = 400'000'000,
        "The ring over `size` places, given row by row how far they are from each other, whose longest edge is "
        "shortest: exact up to 20 places, otherwise searched for with at most `budget` operations. Raises Error.");
    m.def(
        "order_by_distance",
        [](std::string_view pattern, std::int32_t size, std::vector<double> values) {
            const Distances distances(size, std::move(values));
            return order_for(pattern, *topology::free_places(distances));
        },
        "pattern"_a, "size"_a, "distances"_a,
        "order[r]: the place of rank r by the heuristic of a pattern: ring, recursive_doubling, gather or bcast. "
        "Raises Error.");
    m.def(
        "order_on_job",
        [](std::string_view pattern, const Job& job) { return order_for(pattern, *topology::free_places(job)); },
        "pattern"_a, "job"_a,
        "order[r]: the place of rank r by the heuristic of a pattern, where place r is the seat of the job's rank r. "
        "Raises Error.");
    m.def(
        "grid_on_job",
        [](const Job& job, std::vector<std::int32_t> extents, std::vector<bool> periodic) {
            const topology::GridMapping mapping(job, {std::move(extents), std::move(periodic)});
            std::vector<std::int32_t> positions;
            for (std::int32_t cell = 0; cell < mapping.grid().cells(); ++cell)
                positions.push_back(mapping.position_of(cell).value);
            return places_at(job, positions);
        },
        "job"_a, "extents"_a, "periodic"_a,
        "order[c]: the place of the cell c of a Cartesian grid, by bisection of the grid along the job's tree. Raises "
        "Error.");
    m.def(
        "graph_on_job",
        [](const Job& job, const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to,
           const std::vector<double>& bytes) {
            return places_at(job, topology::map_graph(job, make_graph(job, from, to, bytes)));
        },
        "job"_a, "source"_a, "target"_a, "bytes"_a,
        "order[r]: the place of rank r, by bisection of the graph of messages along the job's tree. Raises Error.");
    m.def(
        "refined_on_job",
        [](const Job& job, const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& to,
           const std::vector<double>& bytes, const std::vector<std::int32_t>& order, std::int64_t trials) {
            const Graph graph = make_graph(job, from, to, bytes);
            std::vector<bool> seen(order.size(), false);
            topology::NodePositions positions;
            for (const std::int32_t place : order) {
                if (place < 0 || place >= job.size() || static_cast<std::int32_t>(order.size()) != job.size() ||
                    seen[static_cast<std::size_t>(place)])
                    base::fail("the order isn't a permutation of the ", job.size(), " ranks");
                seen[static_cast<std::size_t>(place)] = true;
                positions.push_back(job.position_of(Rank{place}).value);
            }
            topology::refine(job, graph, positions, trials);
            return places_at(job, positions);
        },
        "job"_a, "source"_a, "target"_a, "bytes"_a, "order"_a, "trials"_a = 100'000,
        "The order after a local search that exchanges pairs to relieve the busiest links. Raises Error.");
}

}  // namespace palmette::bindings
