#include "palmette/topology/mapping/graph_mapping.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "support/errors.hpp"
#include "support/jobs.hpp"

namespace palmette::topology {
namespace {

using test::error_of;
using test::job_on;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

NodePositions in_order(std::int32_t size) {
    NodePositions out(static_cast<std::size_t>(size));
    std::iota(out.begin(), out.end(), 0);
    return out;
}

/// Cliques whose members are `stride` apart in number, with a light ring through all.
Graph cliques(std::int32_t size, std::int32_t stride) {
    std::vector<GraphEdge> edges;
    for (std::int32_t a = 0; a < size; ++a) {
        for (std::int32_t b = a % stride; b < size; b += stride)
            if (a != b) edges.push_back({a, b, 100});
        edges.push_back({a, (a + 1) % size, 1});
    }
    return {size, edges};
}

TEST(GraphMapping, gives_each_node_a_position_of_its_own) {
    for (const auto& machine : test::machines())
        for (const std::int32_t nodes : {1, 2, 5, 17, 33}) {
            const Job job = job_on(machine, "random:3", 33);
            NodePositions found = map_graph(job, cliques(nodes, 3));
            EXPECT_THAT(found, UnorderedElementsAreArray(in_order(nodes)));
            refine(job, cliques(nodes, 3), found, 5000);
            EXPECT_THAT(found, UnorderedElementsAreArray(in_order(nodes)));
        }
}

TEST(GraphMapping, puts_each_clique_on_a_host_of_its_size) {
    const Job job = job_on("2leaf:4node:4core");
    const NodePositions found = map_graph(job, cliques(32, 8));
    for (std::int32_t node = 8; node < 32; ++node)
        EXPECT_EQ(found[static_cast<std::size_t>(node)] / 4, found[static_cast<std::size_t>(node % 8)] / 4);
}

TEST(GraphMapping, graphs_without_edges_or_in_pieces_are_mapped_too) {
    const Job job = job_on("3leaf:3+3+2node:2core");
    EXPECT_THAT(map_graph(job, Graph(16, {})), UnorderedElementsAreArray(in_order(16)));
    EXPECT_THAT(map_graph(job, Graph(16, {{0, 15, 1}, {3, 3, 5}, {7, 2, 0}})), UnorderedElementsAreArray(in_order(16)));
}

TEST(GraphMapping, exchanges_take_from_the_busiest_link) {
    const Job job = job_on("3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core");
    const Graph graph = cliques(16, 4);
    NodePositions found = in_order(16);
    const double before = traffic_of(job, graph, found).busiest;
    refine(job, graph, found);
    EXPECT_LT(traffic_of(job, graph, found).busiest, before / 2);
}

TEST(GraphMapping, counts_the_slowest_link_and_all_edges_on_the_way) {
    const Job job = job_on("2leaf@1KB/s:2node@4KB/s:1core");
    // One message between leaves, one inside of one.
    const MappedTraffic traffic = traffic_of(job, Graph(4, {{0, 3, 1000}, {0, 1, 500}}), in_order(4));
    EXPECT_DOUBLE_EQ(traffic.hop_bytes, 1000 * 4 + 500 * 2);
    EXPECT_DOUBLE_EQ(traffic.busiest, 1.0);
}

TEST(GraphMapping, many_ranks_take_seconds_at_most) {
    const Job job = job_on("16leaf:16node:16core", "cyclic");
    std::vector<GraphEdge> edges;
    for (std::int32_t a = 0; a < 4096; ++a) {
        if (a % 64 < 63) edges.push_back({a, a + 1, 1});
        if (a + 64 < 4096) edges.push_back({a, a + 64, 1});
    }
    const Graph graph(4096, edges);
    const NodePositions found = map_graph(job, graph);
    NodePositions scattered;
    for (std::int32_t node = 0; node < 4096; ++node) scattered.push_back(job.position_of(Rank{node}).value);
    EXPECT_LT(traffic_of(job, graph, found).hop_bytes, traffic_of(job, graph, scattered).hop_bytes / 3);
}

TEST(GraphMapping, what_is_no_graph_is_refused) {
    EXPECT_THAT(error_of([] { Graph(2, {{0, 2, 1}}); }), HasSubstr("node 2 of an edge is outside"));
    EXPECT_THAT(error_of([] { Graph(2, {{0, 1, -1}}); }), HasSubstr("-1 bytes"));
    EXPECT_THAT(error_of([] { map_graph(job_on("1node:2core"), Graph(3, {})); }), HasSubstr("more than the 2 ranks"));
}

}  // namespace
}  // namespace palmette::topology
