// Which loaded module holds an address, for those who may not wait for the loader's lock: signal handlers.
#pragma once

#include <cstdint>

struct dl_phdr_info;

namespace palmette::base {

class ReadablePages;

/// Once, before it is asked from a handler. False: this C library has nothing that finds modules without a lock
/// (_dl_find_object, of glibc 2.35).
bool know_how_modules_are_found();

/// Fills in the address, name and program headers of the module that holds `address`. Async-signal-safe. `known`: pages
/// that needn't be asked for.
bool loaded_module_at(std::uintptr_t address, dl_phdr_info& out, ReadablePages& known);

}  // namespace palmette::base
