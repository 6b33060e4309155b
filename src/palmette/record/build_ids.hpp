// Build ids of loaded modules.
#pragma once

#include "palmette/trace/format.hpp"

struct dl_phdr_info;

namespace palmette::record {

/// Copies a module's build id from its notes, if it has one. Async-signal-safe.
void take_build_id(const dl_phdr_info& module, trace::ModuleEntry& entry);

}  // namespace palmette::record
