// Argument checking (PALMETTE_CHECK): before a collective the ranks compare their arguments, so that a mismatch becomes
// an error that names the rank instead of a hang or wrong data.
#pragma once

#include <mpi.h>

#include <string>

#include "palmette/runtime/check/check_verdict.hpp"

namespace palmette::runtime {

/// Collective over `shadow_comm`, whose ranks are those of the program's `comm`; `tag` is used by no message in flight.
/// All ranks return the same: MPI_SUCCESS, or the error class, after rank 0 has reported the mismatch on standard
/// error. The caller raises the error on `comm`. Two messages a rank, serialised at rank 0: for debugging, not for
/// speed.
int check_call(const CheckedCall& mine, MPI_Comm comm, MPI_Comm shadow_comm, int tag);

/// "MPI_SUM", or whether a user-defined operation commutes.
std::string op_text(MPI_Op op);

}  // namespace palmette::runtime
