// What a section has of its node's network adapters. Nothing in a file is trusted: it throws base::Error where it is
// damaged.
#pragma once

#include "palmette/trace/section_reader.hpp"

namespace palmette::trace {

void read_adapters(const SectionReader& section, ProcessInfo& out);

}  // namespace palmette::trace
