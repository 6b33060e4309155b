// Blocking collectives: serves a call, or leaves it to the MPI.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/call/call.hpp"
#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// Returns the MPI code of the call, or nothing where the call is left to the MPI; the reason has been counted. All
/// ranks of a communicator come to the same result, since it depends only on what they all know. Errors have been
/// raised on the communicator's error handler.
std::optional<int> serve(const CallArguments& arguments);

/// The second half of it, with what prepare has made of the call.
std::optional<int> run_prepared(Call& call, Work& work);

/// The plan of the call that `serve` has just left to the MPI, if the MPI's time is to be compared with ours; cleared
/// by this call.
CachedPlan* take_measured();
/// Notifies observers of what a comparison has found.
void compared(MPI_Comm comm, CachedPlan& plan);

/// Has the MPI perform such a call, and times it. `run` returns the MPI code.
template <class Run>
int measure_mpi(MPI_Comm comm, CachedPlan& plan, Run run) {
    int code = MPI_SUCCESS;
    if (plan.tally.comparison->time(run, code)) compared(comm, plan);
    return code;
}

}  // namespace palmette::runtime
