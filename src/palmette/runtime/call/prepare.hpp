// Turns a collective's arguments into work that the executor can run.
#pragma once

#include <mpi.h>

#include "palmette/runtime/call/call.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

// By what a function does: see `prepare`.
bool prepare_gather(Call& call, Work& work, const CallArguments& arguments);     ///< gather(v)
bool prepare_scatter(Call& call, Work& work, const CallArguments& arguments);    ///< scatter(v)
bool prepare_allgather(Call& call, Work& work, const CallArguments& arguments);  ///< allgather(v)
bool prepare_bcast(Call& call, Work& work, const CallArguments& arguments);
bool prepare_alltoall(Call& call, Work& work, const CallArguments& arguments);  ///< alltoall(v, w)
bool prepare_barrier(Call& call, Work& work, const CallArguments& arguments);
bool prepare_reduction(Call& call, Work& work, const CallArguments& arguments);  ///< reduce, allreduce, scan, exscan
bool prepare_reduce_scatter(Call& call, Work& work, const CallArguments& arguments);  ///< reduce_scatter(_block)
bool prepare_neighbours(Call& call, Work& work, const CallArguments& arguments);      ///< neighbor_...

/// Needs an opened call. False where the call is left to the MPI; the reason has been counted. The result is the same
/// on all ranks of a communicator, since it depends only on what all of them know. The arrays must stay alive until the
/// work is done, or until it has copied them (CallerBuffer::copy_lists).
inline bool prepare(Call& call, Work& work, const CallArguments& arguments) {
    work.arguments = &arguments;
    switch (arguments.function) {
        case select::Function::gather:
        case select::Function::gatherv:
            return prepare_gather(call, work, arguments);
        case select::Function::scatter:
        case select::Function::scatterv:
            return prepare_scatter(call, work, arguments);
        case select::Function::allgather:
        case select::Function::allgatherv:
            return prepare_allgather(call, work, arguments);
        case select::Function::bcast:
            return prepare_bcast(call, work, arguments);
        case select::Function::alltoall:
        case select::Function::alltoallv:
        case select::Function::alltoallw:
            return prepare_alltoall(call, work, arguments);
        case select::Function::barrier:
            return prepare_barrier(call, work, arguments);
        case select::Function::reduce:
        case select::Function::allreduce:
        case select::Function::scan:
        case select::Function::exscan:
            return prepare_reduction(call, work, arguments);
        case select::Function::reduce_scatter:
        case select::Function::reduce_scatter_block:
            return prepare_reduce_scatter(call, work, arguments);
        case select::Function::neighbor_allgather:
        case select::Function::neighbor_allgatherv:
        case select::Function::neighbor_alltoall:
        case select::Function::neighbor_alltoallv:
        case select::Function::neighbor_alltoallw:
            return prepare_neighbours(call, work, arguments);
    }
    return call.refuse(Refusal::erroneous_arguments);
}

/// The error class that the MPIs return for a side that CallerBuffer rejects.
int fault_of(const Side& side, int ranks);

}  // namespace palmette::runtime
