// Turns a collective's arguments into work that the executor can run.
#pragma once

#include <mpi.h>

#include "palmette/runtime/call/call.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

/// Needs an opened call. False where the call is left to the MPI; the reason has been counted. The result is the same
/// on all ranks of a communicator, since it depends only on what all of them know. The arrays must stay alive until the
/// work is done, or until it has copied them (CallerBuffer::copy_lists).
bool prepare(Call& call, Work& work, const CallArguments& arguments);

// Parts of it, by what a function does.
bool prepare_gather(Call& call, Work& work, const CallArguments& arguments);     ///< gather(v)
bool prepare_scatter(Call& call, Work& work, const CallArguments& arguments);    ///< scatter(v)
bool prepare_allgather(Call& call, Work& work, const CallArguments& arguments);  ///< allgather(v)
bool prepare_bcast(Call& call, Work& work, const CallArguments& arguments);
bool prepare_alltoall(Call& call, Work& work, const CallArguments& arguments);  ///< alltoall(v, w)
bool prepare_barrier(Call& call, Work& work, const CallArguments& arguments);
bool prepare_reduction(Call& call, Work& work, const CallArguments& arguments);  ///< reduce, allreduce, scan, exscan
bool prepare_reduce_scatter(Call& call, Work& work, const CallArguments& arguments);  ///< reduce_scatter(_block)
bool prepare_neighbours(Call& call, Work& work, const CallArguments& arguments);      ///< neighbor_...

/// The error class that the MPIs return for a side that CallerBuffer rejects.
int fault_of(const Side& side, int ranks);

}  // namespace palmette::runtime
