// What studies/neighbours.c needs where it is simulated: SimGrid has no communicators with a graph.
#include <mpi.h>

#include "costs.h"
#include "palmette/interpose/guard.hpp"
#include "palmette/runtime/neighbours/neighbours.hpp"
#include "palmette/runtime/state/process.hpp"

using namespace palmette;

extern "C" void study_neighbours(MPI_Comm comm, int source_count, const int* sources, int target_count,
                                 const int* targets) {
    const interpose::Guard guard;
    runtime::Refusal refusal = runtime::Refusal::no_state;
    runtime::Communicator* state = runtime::Process::instance().communicator(comm, refusal);
    if (!state) PMPI_Abort(MPI_COMM_WORLD, 1);
    collectives::Neighbours own;
    own.sources.assign(sources, sources + source_count);
    own.targets.assign(targets, targets + target_count);
    state->kept().add(std::make_unique<runtime::NeighbourPlans>(*state, comm, std::move(own)));
}

extern "C" int study_left(MPI_Comm comm, int alltoall, int bytes) {
    const interpose::Guard guard;
    runtime::Refusal refusal = runtime::Refusal::no_state;
    runtime::Communicator* state = runtime::Process::instance().communicator(comm, refusal);
    const auto function = alltoall ? select::Function::neighbor_alltoall : select::Function::neighbor_allgather;
    runtime::NeighbourPlans& neighbours = *state->kept().find<runtime::NeighbourPlans>();
    return neighbours.why_left(function) || neighbours.plan_for(function, bytes, true).refusal ? 1 : 0;
}
