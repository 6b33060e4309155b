// Whether a recorded process lives: palmette/trace/format.hpp, Life.
#pragma once

#include "palmette/trace/format.hpp"

namespace palmette::record {

/// This thread holds the process's mutex from here on; nothing where the system has no such mutexes.
void begin_life(trace::Life& life);
/// If this thread holds it, nothing can be told by it any more.
void end_life(trace::Life& life);

}  // namespace palmette::record
