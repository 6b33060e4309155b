// Control API of the preload library, found by dlsym: for tools that compare algorithms in one job.
#pragma once

extern "C" {

/// Return values of palmette_force.
enum { PALMETTE_FORCED = 0, PALMETTE_NO_FUNCTION = 1, PALMETTE_NO_SPEC = 2, PALMETTE_NOT_RUNNING = 3 };

/// Forces an algorithm for an MPI function (`allreduce`) on communicators whose first collective comes after this call:
/// a specification (`ring:segment=32K`), `mpi` for the MPI's own, "" for what settings and table say. Communicators
/// that were used before keep what they have. Local; all ranks of such a communicator must have called it alike, or
/// else nothing is served there. Callable from any thread between MPI_Init and MPI_Finalize. Returns PALMETTE_FORCED,
/// or why nothing has changed: no such function, no algorithm of it or wrong keys, palmette isn't running.
__attribute__((visibility("default"))) int palmette_force(const char* function, const char* spec);

/// Calls of an MPI function by this process that palmette served so far, on all communicators; -1 for an unknown
/// function or where palmette isn't running. Local.
__attribute__((visibility("default"))) long long palmette_served_calls(const char* function);
}
