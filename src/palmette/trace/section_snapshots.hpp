// How a section's sums have grown over time. Nothing in a file is trusted: it throws base::Error where it is damaged.
#pragma once

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

/// Reads the snapshots; requires read_regions() first.
void read_snapshots(const SectionReader& section, ProcessInfo& out);

}  // namespace palmette::trace
