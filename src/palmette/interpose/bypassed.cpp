// Warnings for programs that bypass palmette: their MPI has another ABI, or its functions are looked up by the
// program's own dlsym or called as PMPI_. They run as without palmette, and one process reports it.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

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
/// And by this one which of them is the first, which speaks for all.
extern "C" __attribute__((visibility("default"))) const char palmette_serves = 1;

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

/// Whether no other of our libraries comes before this one.
bool is_first_preload() {
    Dl_info first{};
    Dl_info own{};
    const void* const marker = dlsym(RTLD_DEFAULT, "palmette_serves");
    return !marker || !dladdr(marker, &first) || !dladdr(reinterpret_cast<const void*>(&warn_if_bypassed), &own) ||
           first.dli_fbase == own.dli_fbase;
}

/// How many processes a launcher has started that the MPI of that ABI doesn't know: each is then a job of its own. 0:
/// it knows it, or there is one process.
long started_by_others(std::string_view abi, const char*& whose) {
    // MPICH's and Intel's hydra set both, Slurm PMI_SIZE alone, and that for all MPIs.
    const bool by_hydra = std::getenv("MPI_LOCALRANKID") != nullptr;
    const bool by_prrte = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
    if (by_hydra == by_prrte || abi.empty() || abi == (by_hydra ? "mpich" : "ompi") || abi == "abi") return 0;
    const char* const size = std::getenv(by_hydra ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE");
    whose = by_hydra ? "MPICH's (or Intel MPI's)" : "Open MPI's";
    const long processes = size ? std::strtol(size, nullptr, 10) : 0;
    return processes > 1 ? processes : 0;
}

}  // namespace
}  // namespace interpose

void mpi::on_other_abi(const char* abi, const char* path) {
    const std::string marker = std::string("palmette_serves_") + abi;
    if (interpose::is_switched_off() || !is_first_process() || dlsym(RTLD_DEFAULT, marker.c_str())) return;
    if (!interpose::is_first_preload()) return;
    const char* whose = "";
    if (const long processes = interpose::started_by_others(abi, whose); processes > 0) {
        std::fprintf(stderr,
                     "palmette: nothing is served: this program loads %s, but its launcher is %s, so that it runs as "
                     "%ld jobs of one rank each; start it with the mpiexec of its MPI, or let it load the launcher's: "
                     "export LD_LIBRARY_PATH=FOLDER, the lib beside mpiexec's bin\n",
                     path, whose, processes);
        return;
    }
    std::fprintf(stderr,
                 "palmette: nothing is served: the preload is for the ABI " PALMETTE_ABI_NAME
                 ", and this program's MPI is %s; %s%s\n",
                 path, *abi ? "say palmette run --abi " : "palmette has no library for that one", abi);
}

}  // namespace palmette

#endif
