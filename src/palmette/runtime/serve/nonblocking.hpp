// Nonblocking collectives: MPI_Ibcast and the like.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {

/// Parts of what stands below. Both need the lock.
bool may_run_in_background(Call& call, Task& task);
int begin_nonblocking(Task& task, MPI_Request* request);
/// The task has ended: so does its request.
void complete_nonblocking(Task& task);

/// Starts a call and gives the program a request for it: a generalized request, which all of MPI's functions on
/// requests
/// take, alone and among others. As begin_task.
inline std::optional<int> start_nonblocking(const CallArguments& arguments, MPI_Request* request) {
    return begin_task(arguments, request, may_run_in_background, begin_nonblocking);
}

}  // namespace palmette::runtime
