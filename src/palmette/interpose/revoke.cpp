// MPIX_Comm_revoke of MPIs with fault tolerance: ranks that wait on the shadow communicator must be notified, too.
// Written by hand, since it isn't in all mpi.h.
#include <mpi.h>

#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/next.hpp"
#include "palmette/mpi/offers.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/failed_ranks.hpp"

#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)

namespace palmette::interpose {
namespace {

using Revoke = int (*)(MPI_Comm);
int find(MPI_Comm comm);
constinit Next<Revoke> next_revoke(&find);
int find(MPI_Comm comm) { return next_revoke.find_and_call("MPIX_Comm_revoke", &PMPIX_Comm_revoke, comm); }

}  // namespace

namespace {

int on_revoke(MPI_Comm comm) {
    if (is_up.load(std::memory_order_acquire))
        if (const Guard guard; guard.entered()) {
            runtime::Refusal refusal = runtime::Refusal::no_state;
            const auto* state =
                runtime::Process::instance().communicator(comm, refusal, runtime::Process::Making::never);
            if (state) runtime::revoke(state->shadow_comm());
        }
    return next_revoke(comm);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int entry_MPIX_Comm_revoke(Word comm) __asm__("MPIX_Comm_revoke");
int entry_MPIX_Comm_revoke(Word comm) {
    static constinit PassOn pass_on{"MPIX_Comm_revoke"};
    return mpi::is_ours(__builtin_return_address(0)) ? on_revoke(argument<MPI_Comm>(comm)) : pass_on(comm);
}

}  // namespace palmette::interpose

PALMETTE_OFFER(MPIX_Comm_revoke)

#endif
