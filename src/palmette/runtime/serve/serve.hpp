// Blocking collectives.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/data/call_arguments.hpp"
#include "palmette/runtime/state/communicator.hpp"

namespace palmette::runtime {

/// Returns the MPI code of the call, or nothing when the MPI must do it; then the reason has been counted. All ranks of
/// a communicator come to the same answer, since it
/// rests on what they all know. Errors have been raised on the communicator's error handler.
std::optional<int> serve(const CallArguments& arguments);

/// The plan of the call that `serve` has just left to the MPI, if the time that the MPI takes is to be compared with
/// ours; asked once.
CachedPlan* take_measured();
/// Takes note of what a comparison has found.
void compared(MPI_Comm comm, CachedPlan& plan);

/// Lets the MPI do such a call, and times it. `run` returns the MPI code.
template <class Run>
int measure_mpi(MPI_Comm comm, CachedPlan& plan, Run run) {
    int code = MPI_SUCCESS;
    if (plan.comparison->time(run, code)) compared(comm, plan);
    return code;
}

}  // namespace palmette::runtime
