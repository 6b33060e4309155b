// Persistent collectives: MPI_Bcast_init and the like.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/serve/background.hpp"

namespace palmette::runtime {

inline constinit std::atomic<int> persistent_requests{0};
inline bool any_persistent() { return persistent_requests.load(std::memory_order_relaxed) > 0; }

/// The program has started `request` by the MPI, or is about to free it. No effect where it isn't one of palmette's.
void persistent_was_started(MPI_Request request);
void persistent_is_freed(MPI_Request request);

/// Collective, as an initialisation may be: what the calls of a neighbourhood collective need.
void make_ready(const CallArguments& arguments);
/// Parts of start_persistent. Both need the lock.
bool may_be_persistent(Call& call, Task& task);
int make_persistent(Task& task, MPI_Request* request);
/// A zero-byte receive from this process itself, and the tag of the message that completes it. Needs the lock.
int make_self_request(int& tag, MPI_Request* request);
/// Completes it; `code` of an operation that failed makes it fail, too.
void complete_by_self(int tag, int code);
void free_self_tag(int tag);
/// Completes the request of a task that has ended.
void complete_persistent(Task& task);

/// Prepares a call that can be started any number of times, and gives the program a persistent request for it: a
/// zero-byte receive from this process itself. As begin_task.
inline std::optional<int> start_persistent(const CallArguments& arguments, MPI_Request* request) {
    make_ready(arguments);
    return begin_task(arguments, request, may_be_persistent, make_persistent);
}

}  // namespace palmette::runtime
