// Nonblocking collectives: MPI_Ibcast and the like.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/background.hpp"
#include "palmette/runtime/prepare.hpp"

namespace palmette::runtime {

/// Starts what `prepare(call, work)` describes and gives the program a request for it: a generalized request, which all of MPI's functions on requests
/// take, alone and among others. Nothing when the MPI must do it; then the reason has been counted. All ranks come to the same answer. Local.
template <class Prepare>
std::optional<int> start_nonblocking(select::Function function, MPI_Comm comm, const Handles& handles,
                                     MPI_Request* request, Prepare prepare);

/// Parts of the above. Both need the lock.
bool may_run_in_background(Call& call, Task& task);
int begin_nonblocking(Task& task, MPI_Request* request);
/// The task has ended: so does its request.
void complete_nonblocking(Task& task);

template <class Prepare>
std::optional<int> start_nonblocking(select::Function function, MPI_Comm comm, const Handles& handles,
                                     MPI_Request* request, Prepare prepare) {
    Call call(function, comm, false);
    if (!call.open()) return std::nullopt;
    Background& background = Background::instance();
    const auto lock = background.lock();
    Task& task = background.take(call.state());
    task.handles = handles;
    if (!prepare(call, task.work) || !may_run_in_background(call, task)) {
        background.give_back(task);
        return std::nullopt;
    }
    task.call.emplace(call);
    return begin_nonblocking(task, request);
}

}  // namespace palmette::runtime
