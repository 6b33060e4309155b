// Blocking calls whose buffers lie on devices on all ranks, by NCCL's collectives.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/call/call.hpp"
#include "palmette/runtime/data/call_arguments.hpp"

namespace palmette::runtime {

/// Needs a communicator on which NCCL is in service. Collective where blocks are long enough: the ranks agree whether
/// all of them can. Nothing where the call has to go the usual way, on all ranks alike, with its input as it was.
std::optional<int> serve_by_nccl(Call& call, const CallArguments& arguments);

}  // namespace palmette::runtime
