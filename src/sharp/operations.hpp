// Operations of the twin's groups, as those of a daemon.
#pragma once

#include "sharp/context.hpp"

namespace palmette::sharp_twin {

enum class Kind { allreduce, reduce, reduce_scatter };

/// They return an Error, or begin the operation.
int begin_barrier(Comm& comm, void** handle);
int begin_reduction(Comm& comm, Kind kind, const aggregate::sharp::ReduceSpec& spec, void** handle);
int begin_bcast(Comm& comm, const aggregate::sharp::BcastSpec& spec, void** handle);
int begin_allgather(Comm& comm, const aggregate::sharp::GatherSpec& spec, void** handle);

bool test(Request& request);
/// Waits; the request is gone.
int wait(Request* request);

}  // namespace palmette::sharp_twin
