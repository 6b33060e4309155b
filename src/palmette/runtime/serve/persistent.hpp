// Persistent collectives: MPI_Bcast_init and the like.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {

inline constinit std::atomic<int> persistent_requests{0};
inline bool any_persistent() { return persistent_requests.load(std::memory_order_relaxed) > 0; }

/// The program has started `request` by the MPI, or is about to free it. Nothing happens when it isn't one of ours.
void persistent_was_started(MPI_Request request);
void persistent_is_freed(MPI_Request request);

/// Parts of what stands below. Both need the lock.
bool may_be_persistent(Call& call, Task& task);
int make_persistent(Task& task, MPI_Request* request);
/// The task has ended: so does what the program waits for.
void complete_persistent(Task& task);

/// Makes a call ready to be started, any number of times, and gives the program a persistent request for it: a receive
/// of no
/// bytes from this process itself. As begin_task.
inline std::optional<int> start_persistent(const CallArguments& arguments, MPI_Request* request) {
    return begin_task(arguments, request, may_be_persistent, make_persistent);
}

}  // namespace palmette::runtime
