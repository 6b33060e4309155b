#include "palmette/runtime/transport/under_way.hpp"

#include "palmette/node/patience.hpp"

namespace palmette::runtime {

void wait_until(bool (*done)(void*), void* argument) {
    Patience patience(ranks_are_crowded.load(std::memory_order_relaxed) ? 2 : 1, 1);
    for (patience.fresh(); !done(argument); patience.pause()) progress_background();
}

}  // namespace palmette::runtime
