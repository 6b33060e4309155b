// C API of communicators that follow the machine, and Fortran's way to it: see palmette.h and palmette.f90.
#include <vector>

#include "palmette/interpose/api.hpp"
#include "palmette/interpose/palmette.h"
#include "palmette/interpose/settings.hpp"
#include "palmette/runtime/composed/composed.hpp"
#include "palmette/runtime/reorder/level_groups.hpp"
#include "palmette/runtime/reorder/rank_order.hpp"

using palmette::interpose::guarded;
using palmette::interpose::non_null;

namespace {

palmette::runtime::Communicator& known(MPI_Comm comm) {
    return palmette::runtime::composing_state(comm, palmette::interpose::settings_from_environment());
}

#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)

/// Cells of a matrix with a row and a column for each rank.
std::int64_t cells_of(MPI_Comm comm) {
    int size = 0;
    if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &size);
    return std::int64_t{size} * size;
}

#endif

}  // namespace

PALMETTE_API int palmette_positions(MPI_Comm comm, int* positions) {
    return guarded([&] {
        const auto& job = known(comm).job();
        for (int r = 0; r < job.size(); ++r)
            *(&non_null(positions, "positions") + r) = job.position_of(palmette::base::Rank{r}).value;
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_comm_split(MPI_Comm comm, const char* level, int key, MPI_Comm* group, MPI_Comm* leaders) {
    return guarded([&] {
        if (group) *group = MPI_COMM_NULL;
        if (leaders) *leaders = MPI_COMM_NULL;
        palmette::runtime::split_by_level(comm, known(comm), level ? level : "", key, group, leaders);
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_reorder(MPI_Comm comm, const char* order, const double* distances, MPI_Comm* reordered) {
    return guarded([&] {
        if (reordered) *reordered = MPI_COMM_NULL;
        palmette::runtime::reorder_ranks(comm, known(comm), order ? order : "", distances, reordered);
        return MPI_SUCCESS;
    });
}

PALMETTE_API int palmette_distances(MPI_Comm comm, int64_t bytes, double* seconds) {
    return guarded([&] {
        palmette::runtime::measure_distances(comm, known(comm), bytes, seconds);
        return MPI_SUCCESS;
    });
}

// The standard ABI says nothing of Fortran's handles, and what is simulated is in C++.
#if !defined(PALMETTE_ABI_STANDARD) && !defined(PALMETTE_ABI_SMPI)

PALMETTE_API int palmette_fortran_comm_split(MPI_Fint comm, const char* level, MPI_Fint key, MPI_Fint* group,
                                             MPI_Fint* leaders) {
    MPI_Comm made = MPI_COMM_NULL, leading = MPI_COMM_NULL;
    const int code = palmette_comm_split(PMPI_Comm_f2c(comm), level, key, &made, &leading);
    *group = PMPI_Comm_c2f(made), *leaders = PMPI_Comm_c2f(leading);
    return code;
}

PALMETTE_API int palmette_fortran_reorder(MPI_Fint comm, const char* order, const double* distances, int64_t count,
                                          MPI_Fint* reordered) {
    MPI_Comm made = MPI_COMM_NULL;
    const MPI_Comm given = PMPI_Comm_f2c(comm);
    // An array of another shape is found wrong, and not read: the other ranks learn of it.
    const std::int64_t cells = cells_of(given);
    const std::vector<double> wrong(count != 0 && count != cells ? static_cast<std::size_t>(cells) : 0, -1.0);
    const double* matrix = count == 0 ? nullptr : wrong.empty() ? distances : wrong.data();
    const int code = palmette_reorder(given, order, matrix, &made);
    *reordered = PMPI_Comm_c2f(made);
    return code;
}

PALMETTE_API int palmette_fortran_distances(MPI_Fint comm, int64_t bytes, double* seconds, int64_t count) {
    const MPI_Comm given = PMPI_Comm_f2c(comm);
    return palmette_distances(given, bytes, count == cells_of(given) ? seconds : nullptr);
}

#endif
