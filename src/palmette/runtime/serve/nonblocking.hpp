// Nonblocking collectives: MPI_Ibcast and the like.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {

/// The status of a generalized request of palmette's that has ended with `code`. Returns MPI_SUCCESS.
int describe_completion(int code, MPI_Status* status);
/// This thread has completed the request of an operation that failed: the error for `take_error`.
void set_error(int code);

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
