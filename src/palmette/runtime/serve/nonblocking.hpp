// Nonblocking collectives: MPI_Ibcast and the like.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {

/// Gives the program a generalized request, which PMPI_Grequest_complete completes. Returns the MPI's code. The error
/// of one that failed is `take_error`'s in the thread that completes it.
int start_request(ProgramRequest& one, MPI_Request* request);

/// Parts of start_nonblocking. Both need the lock.
bool may_run_in_background(Call& call, Task& task);
int begin_nonblocking(Task& task, MPI_Request* request);
/// Completes the request of a task that has ended.
void complete_nonblocking(Task& task);

/// Starts a call and gives the program a request for it: a generalized request, which all of MPI's functions on
/// requests accept, alone and in arrays. As begin_task.
inline std::optional<int> start_nonblocking(const CallArguments& arguments, MPI_Request* request) {
    return begin_task(arguments, request, may_run_in_background, begin_nonblocking);
}

}  // namespace palmette::runtime
