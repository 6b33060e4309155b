// What a section has of the program's regions. Nothing in a file is trusted: it throws base::Error where it is damaged.
#pragma once

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

/// Those of all threads, those of one name in one place together.
void read_regions(const SectionReader& section, ProcessInfo& out);

}  // namespace palmette::trace
