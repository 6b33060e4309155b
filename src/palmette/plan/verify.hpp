// Proves a plan right, or says where it is wrong.
#pragma once

#include <optional>
#include <string>

#include "palmette/plan/plan.hpp"

namespace palmette::plan {

/// Runs all programs over symbolic contents and checks, in this order:
///  - every send has one recv of the same blocks on the other side, and the other way round; every pull an expose that
///    holds its blocks, on the same node, and every expose as many pulls as it waits for;
///  - no deadlock, whatever the order of progress, with sends as synchronous as they can be and exposes waiting for
///    their readers;
///  - buffers that a rank doesn't have (the root's) and the caller's input are left alone; scratch has room;
///  - no two steps of a rank touch the same part of a block, one of them writing, unless one waits for the other; an
///    expose reads until its last reader is done, so exposed memory outlives its readers;
///  - the plan stays right with MPI_IN_PLACE: gather, scatter and allgather write a rank's own block of the result only
///    by the copy from its input; for reduce, allreduce, scan and exscan all of the above is checked a second time with
///    input and output in the same memory;
///  - nothing undefined is read, no contribution is combined twice, and every block of the result ends as the
///    collective's definition says: in the order of ranks where the request is ordered, and put together in the same
///    way on all ranks of an allreduce (so equal bit for bit);
///  - after a barrier every rank has heard, directly or not, of every other one.
/// Returns nothing when all holds, otherwise a sentence that names the first wrong rank, step and block.
/// Cost: one visit a step and, for races, n^2/64 words for a rank of n steps.
std::optional<std::string> verify(const Plan& plan, const Job& job);

}  // namespace palmette::plan
