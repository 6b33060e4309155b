// Communicators that join two groups.
#pragma once

#include <mpi.h>

namespace palmette::record {

/// Whether it is an inter-communicator. Local.
inline bool is_inter(MPI_Comm comm) {
    int inter = 0;
    return PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter != 0;
}

}  // namespace palmette::record
