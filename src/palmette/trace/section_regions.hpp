// What a section has of the program's regions. Nothing in a file is trusted: it throws base::Error where it is damaged.
#pragma once

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

/// Reads the regions of all threads into `out`; regions of one name in one place are merged.
void read_regions(const SectionReader& section, ProcessInfo& out);

}  // namespace palmette::trace
