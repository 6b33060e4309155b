// Proves a plan right, or says where it is wrong.
#pragma once

#include <optional>
#include <string>

#include "palmette/plan/plan.hpp"

namespace palmette::plan {

/// Runs all programs over symbolic contents and checks, in this order:
///  - every send has one recv of the same blocks on the other side, and the other way round;
///  - no deadlock, whatever the order of progress, with sends as synchronous as they can be;
///  - buffers that a rank doesn't have (the root's) and the caller's input are left alone; scratch has room;
///  - no two steps of a rank touch the same part of a block, one of them writing, unless one waits for the other;
///  - the plan stays right with MPI_IN_PLACE: where input and output of a rank are one, only the copy between them writes there;
///  - nothing undefined is read, and every block of the result ends as the contribution that the collective's definition asks for.
/// Returns nothing when all holds, otherwise a sentence that names the first wrong rank, step and block.
/// Cost: one visit a step and, for races, n^2/64 words for a rank of n steps.
std::optional<std::string> verify(const Plan& plan, const Job& job);

}  // namespace palmette::plan
