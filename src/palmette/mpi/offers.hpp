// What a preload library shows of its entry points: a name that the process's MPI lacks isn't there.
//
// A program may ask for a function by its name before it calls it: by dlsym, or by a weak reference (mpi4py). A preload
// has the names of the MPI that it was built with, which an older one lacks, and where nobody knows which MPI a program
// will open, those of several ABIs are preloaded together. What is found must work; so what wouldn't isn't found.
//
// While there is no MPI, each entry point is one that the loader chooses when it is looked up (IFUNC): a module that
// brings its MPI is bound after that has been mapped, and gets ours where that MPI has the function. Once the MPI is
// known, names that it lacks are taken out of the library's table. Both is done to the table in memory, after this
// library was relocated: the loader complains of functions of that kind in a library that comes later in the file's
// order. Where that isn't possible (another C library), all names are there, as they are in the file.
#pragma once

#include <cstdint>

#include "palmette/mpi/library.hpp"

namespace palmette::mpi {

/// An entry point of this library. Its size keeps compilers from padding between two of them.
struct alignas(32) Offer {
    const char* name;
    void* (*resolver)();  ///< what the loader calls
    void* entry;          ///< filled in when the library is loaded
};

/// Where references to the entry point lead at this moment: to itself, to another library, or nowhere.
void* resolved(const Offer& offer);

/// Makes all entry points ones that are chosen when they are looked up. Done by the loader, before anything here is
/// initialised; called at load, which makes the loader do it.
void begin_offers();

/// Takes the names out that the process's MPI, which is known now, lacks: all, where it is of another ABI.
void settle_offers(Found known);

}  // namespace palmette::mpi

#if defined(PALMETTE_ABI_SMPI)
#define PALMETTE_OFFER(function)
#else
/// Against linkers that leave out what only the names of a section's ends refer to.
#if defined(__has_attribute) && __has_attribute(retain)
#define PALMETTE_RETAINED used, retain
#else
#define PALMETTE_RETAINED used
#endif
/// Stands once in the file that defines the exported symbol `function`.
#define PALMETTE_OFFER(function)                                                                 \
    static void* resolve_##function();                                                           \
    __attribute__((section("palmette_offers"),                                                   \
                   PALMETTE_RETAINED)) static constinit ::palmette::mpi::Offer offer_##function{ \
        #function, &resolve_##function, nullptr};                                                \
    __attribute__((used)) static void* resolve_##function() { return ::palmette::mpi::resolved(offer_##function); }
#endif
