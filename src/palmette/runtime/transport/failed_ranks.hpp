// Fault tolerance (ULFM, as Open MPI with --with-ft ulfm): forwards the MPI's errors about failed ranks to the program.
#pragma once

#include <mpi.h>

namespace palmette::runtime {

/// The program's code for `code`, with which an operation on `shadow_comm` has ended in the program's `comm`. Where a
/// rank has failed, `shadow_comm` is revoked to notify the others, which may wait for this one, whose operation ends
/// here. They return the same code as this one, since their own communicator isn't revoked. Local.
int code_for_program(int code, MPI_Comm shadow_comm, MPI_Comm comm);

/// The program revokes the communicator that belongs to `shadow_comm`: no rank waits on it any more. Local.
void revoke(MPI_Comm shadow_comm);

/// Whether the MPI has MPIX_Comm_revoke.
bool can_revoke();

}  // namespace palmette::runtime
