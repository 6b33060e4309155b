// The MPI of this process: which library it is, and where its symbols are.
//
// A preload library is loaded before the MPI. Most programs are linked with theirs, and the loader could bind us to it;
// but an interpreter or a host of plug-ins opens it at any time later (dlopen), in a scope that the loader doesn't
// search for us. So we locate it ourselves, at the first intercepted call.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace palmette::mpi {

enum class Found : std::uint8_t {
    not_yet,
    ours,  ///< of the ABI that this library was built for; the table of its symbols is filled
    other  ///< of another one: every call is forwarded unchanged
};

#if defined(PALMETTE_ABI_SMPI)

/// A simulated program has its MPI linked in.
inline bool is_ours(const void* = nullptr) { return true; }

#else

extern constinit std::atomic<Found> found;

/// Locates the MPI, unless it has been found. `caller`: an address in the calling object, which decides where several
/// MPIs are loaded. Takes milliseconds the first time, 0.1 ms as long as there is none.
Found locate(const void* caller);

/// Before anything of this library is initialised: most programs have their MPI from the start, and our initialisers
/// may use its constants.
void look_at_load();

/// Whether calls are ours to handle. Costs one load after the first call.
inline bool is_ours(const void* caller) {
    const Found known = found.load(std::memory_order_acquire);
    return known == Found::ours || (known == Found::not_yet && locate(caller) == Found::ours);
}

/// Called once where the process's MPI is the library `path` of another ABI, empty for one that palmette doesn't know.
/// A preload library may have it.
__attribute__((weak)) void on_other_abi(const char* abi, const char* path);

#endif

/// The function called `name` that comes after this library: another preloaded one's, a tool's or the MPI's. Null where
/// there is none.
void* next(const char* name);

/// A variable or function of the MPI, of its Fortran layer or of the program, wherever it was loaded. Null where there
/// is none.
void* find(const char* name);

/// All addresses that `name` has in the objects of this process: a Fortran common block may have one in each module
/// that was opened. At most `places.size()`; returns
/// how many.
std::size_t find_all(const char* name, std::span<void*> places);

/// Whether this process is the first of its job, by its launcher's environment variables: where MPI can't be queried,
/// only it prints warnings.
bool is_first_process();

// Made by tools/generate_mpi_symbols.py: the symbols by name, and as many pointers to fill.
std::span<const char* const> symbol_names();
void** symbol_places();

}  // namespace palmette::mpi
