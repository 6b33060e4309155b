// PALMETTE_CHECK: all collectives of the program, whoever carries them out, are compared between the ranks.
#pragma once

#include <mpi.h>

#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

/// Whether calls are compared: PALMETTE_CHECK=1.
bool checks();

/// A blocking collective, before it begins: an error that all ranks get, or MPI_SUCCESS. The error has been raised.
int check_blocking(const CallArguments& arguments);
/// Any other collective that waits for all, such as MPI_Finalize, by its name.
int check_blocking(const char* function, MPI_Comm comm);
enum class CheckedAs : bool { nonblocking, persistent };
/// A nonblocking one, or one that is initialised: the same, as far as it is known within a bounded time.
int check_started(const CallArguments& arguments, CheckedAs kind);

/// Collective over a communicator that has just been made: what its checks need, so that its first collective needs
/// nothing of others. MPI_COMM_NULL has none.
void make_checkable(MPI_Comm made);

}  // namespace palmette::runtime
