// Outstanding nonblocking operations, and waiting that progresses them.
#pragma once

#include <mpi.h>

#include <atomic>

namespace palmette::runtime {

/// Nonblocking and persistent operations that are not finished. Read before every wait: one load where there are none.
inline constinit std::atomic<int> outstanding_operations{0};
inline bool has_outstanding() { return outstanding_operations.load(std::memory_order_relaxed) > 0; }

/// Progresses all of them. Never blocks; a no-op when another thread, or a caller further up the stack, is doing so.
void progress_background();

/// Whether some node is oversubscribed; the same on all ranks; from MPI_Init on.
inline constinit std::atomic<bool> ranks_are_oversubscribed{false};

/// Waits as SpinWait does until `done` returns true, and progresses operations in the background meanwhile.
void wait_until(bool (*done)(void*), void* argument);
template <class Done>
void wait_until(Done done) {
    wait_until([](void* it) { return (*static_cast<Done*>(it))(); }, &done);
}

/// Completes a request that a call returning `code` has made; other ranks may answer only after an operation in the
/// background has completed, which needs this rank's progress, too. Returns the MPI's code.
int complete(int code, MPI_Request& request);

}  // namespace palmette::runtime
