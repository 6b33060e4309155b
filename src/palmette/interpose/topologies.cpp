// Wrappers of MPI's topology constructors, which may reorder ranks.
#include "palmette/interpose/checkable.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/reorder/grid_purpose.hpp"
#include "palmette/runtime/reorder/level_groups.hpp"
#include "palmette/runtime/reorder/reorder.hpp"

namespace palmette::interpose {

int on_MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
    const Entry entry;
    const int code = next::MPI_Comm_set_info(comm, info);
    if (entry.ours() && code == MPI_SUCCESS) runtime::note_grid_purpose(comm, info, false);
    return code;
}

static int dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
    const Entry entry;
    const int code = next::MPI_Comm_dup_with_info(comm, info, made);
    if (entry.ours() && code == MPI_SUCCESS) runtime::note_grid_purpose(*made, info, true);
    return code;
}

int on_MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
    return made_checkable(dup_with_info(comm, info, made), made);
}

static int split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
    if (const Entry entry; entry.ours()) {
        if (const auto code = runtime::split_by_resource(comm, type, key, info, made)) return *code;
    }
    return next::MPI_Comm_split_type(comm, type, key, info, made);
}

int on_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
    return made_checkable(split_type(comm, type, key, info, made), made);
}

static int create_cart(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int reorder,
                       MPI_Comm* made) {
    if (const Entry entry; entry.ours()) {
        if (const auto code = runtime::reorder_cart(comm, dimensions, extents, periodic, reorder, made)) return *code;
    }
    return next::MPI_Cart_create(comm, dimensions, extents, periodic, reorder, made);
}

int on_MPI_Cart_create(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int reorder,
                       MPI_Comm* made) {
    return made_checkable(create_cart(comm, dimensions, extents, periodic, reorder, made), made);
}

static int create_graph(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder, MPI_Comm* made) {
    if (const Entry entry; entry.ours()) {
        if (const auto code = runtime::reorder_graph(comm, nodes, index, edges, reorder, made)) return *code;
    }
    return next::MPI_Graph_create(comm, nodes, index, edges, reorder, made);
}

int on_MPI_Graph_create(MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder, MPI_Comm* made) {
    return made_checkable(create_graph(comm, nodes, index, edges, reorder, made), made);
}

int on_MPI_Cart_map(MPI_Comm comm, int dimensions, const int* extents, const int* periodic, int* number) {
    if (const Entry entry; entry.ours()) {
        if (const auto code = runtime::map_cart(comm, dimensions, extents, periodic, number)) return *code;
    }
    return next::MPI_Cart_map(comm, dimensions, extents, periodic, number);
}

int on_MPI_Graph_map(MPI_Comm comm, int nodes, const int* index, const int* edges, int* number) {
    if (const Entry entry; entry.ours()) {
        if (const auto code = runtime::map_graph(comm, nodes, index, edges, number)) return *code;
    }
    return next::MPI_Graph_map(comm, nodes, index, edges, number);
}

static int create_dist_graph(MPI_Comm comm, int count, const int* sources, const int* degrees, const int* destinations,
                             const int* weights, MPI_Info info, int reorder, MPI_Comm* made) {
    if (const Entry entry; entry.ours()) {
        if (const auto code =
                runtime::reorder_dist_graph(comm, count, sources, degrees, destinations, weights, info, reorder, made))
            return *code;
    }
    return next::MPI_Dist_graph_create(comm, count, sources, degrees, destinations, weights, info, reorder, made);
}

int on_MPI_Dist_graph_create(MPI_Comm comm, int count, const int* sources, const int* degrees, const int* destinations,
                             const int* weights, MPI_Info info, int reorder, MPI_Comm* made) {
    return made_checkable(create_dist_graph(comm, count, sources, degrees, destinations, weights, info, reorder, made),
                          made);
}

static int create_dist_graph_adjacent(MPI_Comm comm, int in_degree, const int* sources, const int* source_weights,
                                      int out_degree, const int* destinations, const int* destination_weights,
                                      MPI_Info info, int reorder, MPI_Comm* made) {
    if (const Entry entry; entry.ours()) {
        if (const auto code =
                runtime::reorder_dist_graph_adjacent(comm, in_degree, sources, source_weights, out_degree, destinations,
                                                     destination_weights, info, reorder, made))
            return *code;
    }
    return next::MPI_Dist_graph_create_adjacent(comm, in_degree, sources, source_weights, out_degree, destinations,
                                                destination_weights, info, reorder, made);
}

int on_MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int* sources, const int* source_weights,
                                      int out_degree, const int* destinations, const int* destination_weights,
                                      MPI_Info info, int reorder, MPI_Comm* made) {
    return made_checkable(create_dist_graph_adjacent(comm, in_degree, sources, source_weights, out_degree, destinations,
                                                     destination_weights, info, reorder, made),
                          made);
}

}  // namespace palmette::interpose
