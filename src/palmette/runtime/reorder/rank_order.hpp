// Communicators whose ranks follow an order: nearest first, along a ring or a tree, by topology or by distances.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>

#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// Collective over `comm`, whose state is `state`: a communicator of the same processes in the order of that name (see
/// palmette_reorder in interpose/palmette.h). `distances`: at rank 0 its size squared, row by row; null: by the job's
/// topology. Throws base::Error on all ranks alike, also where `made` is null on one. Cost: rank 0 finds the order; two
/// agreements, a scatter and a split.
void reorder_ranks(MPI_Comm comm, Communicator& state, std::string_view order, const double* distances, MPI_Comm* made);

/// Collective over `comm`: seconds of half a round trip of `bytes`, the median of `ping_pongs`, between each pair of
/// ranks. `seconds` at rank 0: size squared, row by row, symmetric, 0 on the diagonal; not looked at elsewhere. Throws
/// base::Error on all ranks alike. Cost: as many rounds as ranks, in each of which disjoint pairs measure at once.
void measure_distances(MPI_Comm comm, Communicator& state, std::int64_t bytes, double* seconds);
inline constexpr int ping_pongs = 20;

}  // namespace palmette::runtime
