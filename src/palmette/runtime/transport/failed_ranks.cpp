#include "palmette/runtime/transport/failed_ranks.hpp"

#if defined(PALMETTE_ABI_SMPI)
// Elsewhere the table of the MPI's symbols has them (tools/generate_mpi_symbols.py).
extern "C" {
int PMPIX_Comm_revoke(MPI_Comm) __attribute__((weak));
int PMPIX_Comm_is_revoked(MPI_Comm, int*) __attribute__((weak));
}
#endif

namespace palmette::runtime {
namespace {

#if defined(MPI_ERR_REVOKED)
constexpr int failed = MPI_ERR_PROC_FAILED, pending = MPI_ERR_PROC_FAILED_PENDING, revoked = MPI_ERR_REVOKED;
#elif defined(MPIX_ERR_REVOKED)
constexpr int failed = MPIX_ERR_PROC_FAILED, pending = MPIX_ERR_PROC_FAILED_PENDING, revoked = MPIX_ERR_REVOKED;
#else
constexpr int failed = -1, pending = -1, revoked = -1;
#endif

}  // namespace

bool can_revoke() { return failed >= 0 && PMPIX_Comm_revoke; }

void revoke(MPI_Comm shadow_comm) {
    if (can_revoke() && shadow_comm != MPI_COMM_NULL) PMPIX_Comm_revoke(shadow_comm);
}

int code_for_program(int code, MPI_Comm shadow_comm, MPI_Comm comm) {
    int error_class = MPI_SUCCESS;
    if (!can_revoke() || code == MPI_SUCCESS || PMPI_Error_class(code, &error_class) != MPI_SUCCESS) return code;
    if (error_class != failed && error_class != pending && error_class != revoked) return code;
    revoke(shadow_comm);
    int by_program = 0;
    if (PMPIX_Comm_is_revoked && comm != MPI_COMM_NULL) PMPIX_Comm_is_revoked(comm, &by_program);
    // A class is a code, too.
    return by_program ? revoked : error_class == failed ? code : failed;
}

}  // namespace palmette::runtime
