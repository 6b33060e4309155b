// Discovery: the placement of a communicator's ranks on the machine.
#pragma once

#include <mpi.h>

#include <string>

#include "palmette/runtime/settings/settings.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

struct Discovered {
    topology::Job job;
    std::string note;  ///< what could not be used, for the report; the same on all ranks
};

/// Collective over `comm`. Every rank sends its host and, where it is bound, its place inside of it; rank 0 looks them
/// up in the topology file, or groups them by host where there is none or a host is missing in it, and broadcasts the
/// job. Memory: O(ranks) on rank 0, the job's compressed form on the others. Throws base::Error on all ranks alike.
/// `one_node`: all ranks are known to be on one, on all ranks alike.
Discovered discover(MPI_Comm comm, const Settings& settings, bool one_node = false);

}  // namespace palmette::runtime
