// Counters of this node's network adapters, which the kernel keeps: what the job sends and what others do. One process
// of each node reads them when it starts and ends, and each second in between, on a thread of its own that does nothing
// else.
#pragma once

#include "palmette/trace/format.hpp"

namespace palmette::record {

/// Makes the tables' capacities.
void size_adapters(trace::AdaptersHeader& header);
/// Begins to read them into the section. Once. Where there are none nothing is done.
void watch_adapters(trace::SectionHeader& section);
/// Reads them for the last time, in MPI_Finalize.
void end_watch_of_adapters();

}  // namespace palmette::record
