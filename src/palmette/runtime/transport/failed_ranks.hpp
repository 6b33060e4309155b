// Fault tolerance: what an MPI that outlives dead ranks (ULFM, as Open MPI with --with-ft ulfm) says of them, passed on
// to the program.
#pragma once

#include <mpi.h>

namespace palmette::runtime {

/// The program's code for `code`, with which an operation on `hidden` has ended in the program's `comm`. Where a rank
/// has died, the others are told: they may wait for this one, which is as far as it gets. They learn the same as this
/// one, since their own communicator isn't revoked. Local.
int code_for_program(int code, MPI_Comm hidden, MPI_Comm comm);

/// The program revokes the communicator that belongs to `hidden`: nobody waits there any more. Local.
void revoke(MPI_Comm hidden);

/// Whether the MPI has MPIX_Comm_revoke.
bool can_revoke();

}  // namespace palmette::runtime
