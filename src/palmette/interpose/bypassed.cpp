// Warnings for programs that bypass palmette: their MPI has another ABI, or its functions are looked up by the
// program's own dlsym or called as PMPI_. They run as without palmette, and one process reports it.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <string>

#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/settings.hpp"
#include "palmette/mpi/library.hpp"

#if !defined(PALMETTE_ABI_SMPI)

#if defined(PALMETTE_ABI_OMPI)
#define PALMETTE_MARKER palmette_serves_ompi
#elif defined(PALMETTE_ABI_STANDARD)
#define PALMETTE_MARKER palmette_serves_abi
#else
#define PALMETTE_MARKER palmette_serves_mpich
#endif
/// Libraries for several ABIs are preloaded together where the program's MPI isn't known beforehand: by this marker
/// each detects the others.
extern "C" __attribute__((visibility("default"))) const char PALMETTE_MARKER = 1;

namespace palmette {
namespace interpose {
namespace {

/// At the end of the process: only then is it certain that no call will be intercepted.
__attribute__((destructor)) void warn_if_bypassed() {
    if (init_was_ours.load() || api_was_used.load() || !mpi::is_first_process()) return;
    if (!mpi::is_ours(nullptr)) return;
    int initialized = 0;
    if (PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized) return;
    // Last, as it may read files: a preload may be in every process of a batch script.
    if (is_switched_off()) return;
    std::fputs(
        "palmette: nothing was served: this program looks MPI's functions up in the library by itself (dlsym), or "
        "calls "
        "them as PMPI_, so that its calls bypass palmette\n",
        stderr);
}

}  // namespace
}  // namespace interpose

void mpi::on_other_abi(const char* abi, const char* path) {
    const std::string marker = std::string("palmette_serves_") + abi;
    if (interpose::is_switched_off() || !is_first_process() || dlsym(RTLD_DEFAULT, marker.c_str())) return;
    std::fprintf(stderr,
                 "palmette: nothing is served: the preload is for the ABI " PALMETTE_ABI_NAME
                 ", and this program's MPI is %s; %s%s\n",
                 path, *abi ? "say palmette run --abi " : "palmette has no library for that one", abi);
}

}  // namespace palmette

#endif
