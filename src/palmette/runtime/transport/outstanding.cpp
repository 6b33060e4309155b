#include "palmette/runtime/transport/outstanding.hpp"

#include "palmette/node/spin_wait.hpp"

namespace palmette::runtime {

void wait_until(bool (*done)(void*), void* argument) {
    node::SpinWait spin_wait(ranks_are_oversubscribed.load(std::memory_order_relaxed) ? 2 : 1, 1);
    for (spin_wait.reset(); !done(argument); spin_wait.pause()) progress_background();
}

int complete(int code, MPI_Request& request) {
    if (code == MPI_SUCCESS && !has_outstanding()) return PMPI_Wait(&request, MPI_STATUS_IGNORE);
    int done = 0;
    if (code == MPI_SUCCESS)
        wait_until([&] {
            code = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
            return code != MPI_SUCCESS || done != 0;
        });
    return code;
}

}  // namespace palmette::runtime
