// Communicators of the groups of a level of the machine: of a chassis, a leaf switch, a node, a socket.
#pragma once

#include <mpi.h>

#include <optional>
#include <string_view>

#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// Collective over `comm`, whose state is `state`. `group`: the ranks of this rank's group, in order of `key`, then of
/// rank. `leaders`, unless null: rank 0 of each group, in topology order of the groups; MPI_COMM_NULL elsewhere. Both
/// belong to the caller. Throws base::Error on all ranks where the machine has no such level, where ranks name
/// different ones, and where `group` is null on one. Cost: two agreements, one or two splits.
void split_by_level(MPI_Comm comm, Communicator& state, std::string_view level, int key, MPI_Comm* group,
                    MPI_Comm* leaders);

/// MPI_Comm_split_type with MPI_COMM_TYPE_HW_GUIDED, where `mpi_hw_resource_type` is a level outside of hosts, or
/// `node`: of what is inside of hosts the MPI knows itself. The MPI code, or nothing where the MPI makes the
/// communicator, on all ranks alike. Collective: whatever the type, ranks compare what they ask for, as those with
/// MPI_UNDEFINED can't know.
std::optional<int> split_by_resource(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made);

}  // namespace palmette::runtime
