#pragma once

#include <mpi.h>

namespace palmette::record {

/// Whether it joins two groups (an inter-communicator).
inline bool is_inter(MPI_Comm comm) {
    int inter = 0;
    return PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter != 0;
}

}  // namespace palmette::record
