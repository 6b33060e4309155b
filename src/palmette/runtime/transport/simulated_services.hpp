// Aggregators in SimGrid: the last processes of MPI_COMM_WORLD run the programs of a plan's service positions.
//
// The others are the ranks of the job. The simulated program calls collectives on a communicator of these, in the
// world's order, while services serve the same call on MPI_COMM_WORLD (src/programs/simbench/services.cpp). For both
// the shadow communicator is that of the whole world, where a service's rank is its position.
#pragma once

#include <mpi.h>

#include "palmette/collectives/registry.hpp"

namespace palmette::runtime {

#if defined(PALMETTE_ABI_SMPI)

/// How many there are; set before MPI_Init, the same on all processes.
inline constinit int simulated_services = 0;

/// Whether this process or `peer` is one. Local.
bool is_with_service(MPI_Comm comm, int peer);

/// The program of a rank or service; a service's is empty where the algorithm has no services.
///
/// Messages from a rank to a service, and back, wait for earlier ones. A connection serialises messages, while
/// SimGrid's share links evenly: a pipeline's parts, all sent at once, would all arrive at its end. Their sends must
/// complete when the message has arrived.
plan::Program simulated_program(const collectives::Algorithm& row, const topology::Job& job, plan::Rank rank,
                                const plan::Request& request, const collectives::Spec& spec);

#else

inline constexpr int simulated_services = 0;

#endif

}  // namespace palmette::runtime
