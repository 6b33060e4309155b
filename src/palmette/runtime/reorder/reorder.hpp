// MPI_Cart_create, MPI_Graph_create and MPI_Dist_graph_create* with `reorder` true: ranks get numbers that fit the
// machine.
#pragma once

#include <mpi.h>

#include <optional>

namespace palmette::runtime {

/// The arguments are those of the MPI functions. Each returns the MPI code, or nothing when the MPI must make the
/// communicator; then the reason has been counted, and it is the same on all ranks. Collective over the communicator.
/// The new communicator holds the topology of the call: node r of the graph is its rank r, only that another process
/// may have that number.
///
/// Cartesian grids and MPI_Graph_create are mapped by every rank for itself: a grid of over 1,024 cells in time and
/// memory that grow with the tree's depth, a graph, which every rank holds, in O(edges log ranks). The edges of
/// MPI_Dist_graph_create* are gathered at rank 0, up to 4 million of them; with more, ranks come in topology order
/// where that is better.
std::optional<int> reorder_cart(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int reorder,
                                MPI_Comm* made);
std::optional<int> reorder_graph(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
                                 MPI_Comm* made);
/// MPI_Cart_map and MPI_Graph_map: the number that the calling process gets when the constructor is called with
/// `reorder` true. Local: with a grid of over 1,024 cells in time that grows with the cells.
std::optional<int> map_cart(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int* number);
std::optional<int> map_graph(MPI_Comm comm, int nodes, const int* index, const int* edges, int* number);
std::optional<int> reorder_dist_graph(MPI_Comm comm, int count, const int* sources, const int* degrees,
                                      const int* destinations, const int* weights, MPI_Info info, int reorder,
                                      MPI_Comm* made);
std::optional<int> reorder_dist_graph_adjacent(MPI_Comm comm, int in_degree, const int* sources,
                                               const int* source_weights, int out_degree, const int* destinations,
                                               const int* destination_weights, MPI_Info info, int reorder,
                                               MPI_Comm* made);

}  // namespace palmette::runtime
