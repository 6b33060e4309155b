#include "palmette/interpose/fortran.hpp"

#include <array>
#include <span>

#include "palmette/mpi/library.hpp"

#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)

namespace palmette::interpose::fortran {

#if defined(PALMETTE_ABI_OMPI)

int first_index() { return 1; }

namespace {

/// The addresses of one common block, under the name manglings of Fortran compilers.
class Addresses {
  public:
    Addresses(const char* plain, const char* one, const char* two, const char* upper) {
        for (const char* name : {one, plain, two, upper})
            count_ += mpi::find_all(name, std::span(places_).subspan(count_));
    }
    bool have(const void* address) const {
        return std::find(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(count_), address) !=
               places_.begin() + static_cast<std::ptrdiff_t>(count_);
    }

  private:
    std::array<void*, 8> places_{};
    std::size_t count_ = 0;
};

}  // namespace

bool is(Constant constant, const void* address) {
#define PALMETTE_BLOCK(name, NAME) Addresses(name, name "_", name "__", NAME)
    static const std::array blocks = {PALMETTE_BLOCK("mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE"),
                                      PALMETTE_BLOCK("mpi_fortran_bottom", "MPI_FORTRAN_BOTTOM"),
                                      PALMETTE_BLOCK("mpi_fortran_status_ignore", "MPI_FORTRAN_STATUS_IGNORE"),
                                      PALMETTE_BLOCK("mpi_fortran_statuses_ignore", "MPI_FORTRAN_STATUSES_IGNORE"),
                                      PALMETTE_BLOCK("mpi_fortran_unweighted", "MPI_FORTRAN_UNWEIGHTED"),
                                      PALMETTE_BLOCK("mpi_fortran_weights_empty", "MPI_FORTRAN_WEIGHTS_EMPTY")};
#undef PALMETTE_BLOCK
    return blocks[static_cast<std::size_t>(constant)].have(address);
}

#else

namespace {

int no_status(void*, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}
int nothing_to_free(void*) { return MPI_SUCCESS; }
int not_cancelled(void*, int) { return MPI_SUCCESS; }

/// The index that the MPI's own function returns for the only request in a list, which is complete.
int query_first_index() {
    using Testany = void (*)(const MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
    const auto testany = reinterpret_cast<Testany>(mpi::next("mpi_testany_f08_"));
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
    static const int first = query_first_index();
    return first;
}

const int* weights(const MPI_Fint* list) {
    // Variables of a module, as gfortran names them.
    static const void* unweighted = mpi::find("__mpi_f08_link_constants_MOD_mpi_unweighted");
    static const void* empty = mpi::find("__mpi_f08_link_constants_MOD_mpi_weights_empty");
    if (unweighted && list == unweighted) return MPI_UNWEIGHTED;
    return empty && list == empty ? MPI_WEIGHTS_EMPTY : list;
}

#endif

}  // namespace palmette::interpose::fortran

#endif
