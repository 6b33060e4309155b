#include "palmette/interpose/fortran.hpp"

#include <dlfcn.h>

#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)

namespace palmette::interpose::fortran {

#if defined(PALMETTE_ABI_OMPI)

int first_index() { return 1; }

#else

namespace {

int no_status(void*, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
int nothing_to_free(void*) { return MPI_SUCCESS; }
int not_cancelled(void*, int) { return MPI_SUCCESS; }

/// What the MPI's own function says of the only request in a list, which is complete.
int ask() {
    using Testany = void (*)(const MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
    const auto testany = reinterpret_cast<Testany>(dlsym(RTLD_NEXT, "mpi_testany_f08_"));
    MPI_Request request = MPI_REQUEST_NULL;
    if (!testany || PMPI_Grequest_start(no_status, nothing_to_free, not_cancelled, nullptr, &request) != MPI_SUCCESS)
        return 1;
    PMPI_Grequest_complete(request);
    const MPI_Fint count = 1;
    MPI_Fint handle = PMPI_Request_c2f(request);
    MPI_Fint index = 1;
    MPI_Fint flag = 0;
    MPI_Fint error = 0;
    MPI_Fint status[status_size] = {};
    testany(&count, &handle, &index, &flag, status, &error);
    return index == 0 ? 0 : 1;
}

}  // namespace

int first_index() {
    static const int first = ask();
    return first;
}

#endif

}  // namespace palmette::interpose::fortran

#endif
