// What may be called before MPI_Init and after MPI_Finalize, and collectives in callbacks that run inside MPI_Finalize.
// Every rank prints its closing line: after MPI_Finalize they can't add up.
//
//     lifecycle [--timeout SECONDS]

#include <mpi.h>

#include "support/outcome.hpp"
#include "support/simple.hpp"

using namespace test;

namespace {

Outcome outcome;
int callbacks = 0;

/// Libraries clean up like this (PETSc, HDF5): MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF.
int on_delete(MPI_Comm, int, void* value, void*) {
    ++callbacks;
    std::snprintf(doing, sizeof doing, "collectives inside MPI_Finalize");
    exercise(MPI_COMM_WORLD, 3, outcome, "world inside MPI_Finalize");
    exercise(MPI_COMM_SELF, 4, outcome, "self inside MPI_Finalize");
    auto* comm = static_cast<MPI_Comm*>(value);
    exercise(*comm, 5, outcome, "a communicator of a library inside MPI_Finalize");
    MPI_Comm_free(comm);
    return MPI_SUCCESS;
}

void check_callable(const char* when) {
    int initialized = -1;
    int finalized = -1;
    int version = 0;
    int subversion = 0;
    int length = 0;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    outcome.check(MPI_Initialized(&initialized) == MPI_SUCCESS, "MPI_Initialized %s", when);
    outcome.check(MPI_Finalized(&finalized) == MPI_SUCCESS, "MPI_Finalized %s", when);
    outcome.check(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version >= 3, "MPI_Get_version %s", when);
    outcome.check(MPI_Get_library_version(library, &length) == MPI_SUCCESS && length > 0, "MPI_Get_library_version %s",
                  when);
    outcome.check(initialized == (std::strcmp(when, "before MPI_Init") == 0 ? 0 : 1), "initialized %s: %d", when,
                  initialized);
    outcome.check(finalized == (std::strcmp(when, "after MPI_Finalize") == 0 ? 1 : 0), "finalized %s: %d", when,
                  finalized);
}

}  // namespace

int main(int argc, char** argv) {
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 60)));
    check_callable("before MPI_Init");
    int provided = -1;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    check_callable("in between");
    exercise(MPI_COMM_WORLD, 1, outcome, "world");

    MPI_Comm library = MPI_COMM_NULL;  // never used before MPI_Finalize
    MPI_Comm_dup(MPI_COMM_WORLD, &library);
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &library);
    MPI_Comm leaked = MPI_COMM_NULL;  // used and never freed: MPI_Finalize does so
    MPI_Comm_dup(MPI_COMM_WORLD, &leaked);
    exercise(leaked, 2, outcome, "a communicator that isn't freed");

    MPI_Finalize();
    outcome.check(callbacks == 1, "the callback ran %d times", callbacks);
    check_callable("after MPI_Finalize");
    return outcome.close_alone();
}
