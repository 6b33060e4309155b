// Outstanding nonblocking operations, and how everything that waits progresses them.
#pragma once

#include <atomic>

namespace palmette::runtime {

/// Nonblocking and persistent operations that are not finished. Read before every wait: one load where there are none.
inline constinit std::atomic<int> outstanding_operations{0};
inline bool has_outstanding() { return outstanding_operations.load(std::memory_order_relaxed) > 0; }

/// Gives each of them a chance to go on. Never blocks; does nothing when another thread, or a caller further up, is at
/// it.
void progress_background();

/// Whether the ranks of some node outnumber its cores, as all ranks know; from MPI_Init on.
inline constinit std::atomic<bool> ranks_are_oversubscribed{false};

/// Waits as SpinWait does, for whatever `done` says, while operations in the background go on.
void wait_until(bool (*done)(void*), void* argument);
template <class Done>
void wait_until(Done done) {
    wait_until([](void* it) { return (*static_cast<Done*>(it))(); }, &done);
}

}  // namespace palmette::runtime
