// The verifier: proves a plan correct by symbolic execution, or reports the first error.
#pragma once

#include <optional>
#include <string>

#include "palmette/plan/plan.hpp"

namespace palmette::plan {

/// Executes all programs over symbolic contents and checks, in this order:
///  - every send matches one recv of the same blocks, and vice versa; every pull matches an expose on the same node
///    that contains its blocks, and every expose has as many pulls as it waits for;
///  - no deadlock, whatever the order of progress, with synchronous sends and exposes that wait for
///    their readers;
///  - buffers that a rank doesn't have (the root's) and the caller's input are not written; scratch is allocated;
///  - no two steps of a rank touch the same part of a block, one of them writing, unless one waits for the other; an
///    expose reads until its last reader is done, so exposed memory outlives its readers;
///  - the plan stays right with MPI_IN_PLACE: gather, scatter and allgather write a rank's own block of the result only
///    by the copy from its input; for reduce, allreduce, scan and exscan all of the above is checked a second time with
///    input and output in the same memory;
///  - nothing undefined is read, no contribution is combined twice, and every block of the result ends as the
///    collective's definition says: in the order of ranks where the request is ordered, and combined in the same
///    association on all ranks of an allreduce (so bitwise equal);
///  - service positions have scratch alone, contribute nothing and share no node's memory;
///  - after a barrier every rank is informed, directly or indirectly, that every other one has entered.
/// Returns nothing when all holds, otherwise a sentence that names the first rank, step and block in error. Cost: one
/// visit a step and, for races, n^2/64 words for a rank of n steps.
std::optional<std::string> verify(const Plan& plan, const Job& job);

}  // namespace palmette::plan
