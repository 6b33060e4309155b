// PALMETTE_CHECK: before a collective all ranks compare what they pass, so that a mistake becomes an error that names
// the rank instead of a hang or wrong data.
#pragma once

#include <mpi.h>

#include <string>

#include "palmette/runtime/check/check_verdict.hpp"

namespace palmette::runtime {

/// Collective over `hidden`, whose ranks are those of the program's `comm`; `tag` is one that no message under way has.
/// All ranks return the same: MPI_SUCCESS, or the error class, after rank 0 told on standard error who passes what.
/// The caller raises the error on `comm`. Two messages a rank, in turn: for debugging, not for speed.
int check_call(const CheckedCall& mine, MPI_Comm comm, MPI_Comm hidden, int tag);

/// "MPI_SUM", or whether the program's own operation commutes.
std::string op_text(MPI_Op op);

}  // namespace palmette::runtime
