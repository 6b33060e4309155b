// Whether collectives run in the background, and how everything that waits lets them go on.
#pragma once

#include <atomic>

namespace palmette::runtime {

/// Nonblocking and persistent operations that are not finished. Read before every wait: one load where there are none.
inline constinit std::atomic<int> operations_under_way{0};
inline bool any_under_way() { return operations_under_way.load(std::memory_order_relaxed) > 0; }

/// Gives each of them a chance to go on. Never blocks; does nothing when another thread, or a caller further up, is at it.
void progress_background();

}  // namespace palmette::runtime
