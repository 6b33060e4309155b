// Argument checking (PALMETTE_CHECK): of each collective the ranks compare their arguments, so that a mismatch becomes
// an error that names rank and line instead of a hang or wrong data. Blocking ones are compared before they begin,
// nonblocking and persistent ones while they run.
#pragma once

#include <mpi.h>

#include <string>

#include "palmette/runtime/check/check_verdict.hpp"

namespace palmette::runtime {

/// Collective over `shadow_comm`, whose ranks are those of the program's `comm`: the n-th call of each rank is compared
/// with the n-th of the others. All ranks return the same: MPI_SUCCESS, or the error class, after rank 0 has reported
/// the mismatch on standard error. The caller raises the error on `comm`. Where ranks are missing for a second rank 0
/// says who is there, where, and whom they wait for; where one of them waits for this rank in another communicator's
/// collective, that is a mismatch of order. Two messages a rank, serialised at rank 0: for debugging, not for speed.
int check_call(const CheckedCall& mine, MPI_Comm comm, MPI_Comm shadow_comm);

/// Checks a nonblocking call: waits for the others for a bounded time only. An error that is found later is raised
/// on each rank when it hears of it.
int check_started(const CheckedCall& mine, MPI_Comm comm, MPI_Comm shadow_comm);

/// Collective calls on it may be compared from now on: rank 0 hears of the others' before it makes one. Local.
void begin_checks(MPI_Comm comm, MPI_Comm shadow_comm);

/// Progresses comparisons of calls that were started. True: there are none that this rank has to wait for.
bool progress_checks();

/// "MPI_SUM", or whether a user-defined operation commutes.
std::string op_text(MPI_Op op);

}  // namespace palmette::runtime
