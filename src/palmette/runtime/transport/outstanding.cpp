#include "palmette/runtime/transport/outstanding.hpp"

#include "palmette/node/spin_wait.hpp"

namespace palmette::runtime {

void wait_until(bool (*done)(void*), void* argument) {
    SpinWait spin_wait(ranks_are_oversubscribed.load(std::memory_order_relaxed) ? 2 : 1, 1);
    for (spin_wait.reset(); !done(argument); spin_wait.pause()) progress_background();
}

}  // namespace palmette::runtime
