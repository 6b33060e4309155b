// A rank dies, under an MPI that goes on without it (ULFM): the others get the MPI's own error class, and go on among
// themselves.
//
//     dead_rank blocking|nonblocking
//
// Each rank that is left prints its own closing line, and ends without MPI_Finalize, which not every MPI survives then.
// Status 77 where the MPI has no ULFM.

#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "support/outcome.hpp"

// As in mpi-ext.h, which not every MPI has.
extern "C" {
int MPIX_Comm_revoke(MPI_Comm) __attribute__((weak));
int MPIX_Comm_shrink(MPI_Comm, MPI_Comm*) __attribute__((weak));
}

using namespace test;

#if defined(MPI_ERR_PROC_FAILED)

namespace {

constexpr int count = 2000;

bool is_right(const std::vector<int>& sum, int size) {
    for (int i = 0; i < count; ++i)
        if (sum[static_cast<std::size_t>(i)] != size * i) return false;
    return true;
}

int add_up(bool blocking, const std::vector<int>& in, std::vector<int>& sum, MPI_Comm comm) {
    sum.assign(sum.size(), -1);
    if (blocking) return MPI_Allreduce(in.data(), sum.data(), count, MPI_INT, MPI_SUM, comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Iallreduce(in.data(), sum.data(), count, MPI_INT, MPI_SUM, comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

}  // namespace

int main(int argc, char** argv) {
    const bool blocking = argc < 2 || std::strcmp(argv[1], "nonblocking") != 0;
    MPI_Init(&argc, &argv);
    const MPI_Comm world = MPI_COMM_WORLD;
    int size = 1;
    MPI_Comm_rank(world, &world_rank);
    MPI_Comm_size(world, &size);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    watch(60);
    Outcome outcome;
    std::vector<int> in(count), sum(count);
    for (int i = 0; i < count; ++i) in[static_cast<std::size_t>(i)] = i;
    for (int k = 0; k < 10; ++k) {
        const int code = add_up(blocking, in, sum, world);
        outcome.check(code == MPI_SUCCESS && is_right(sum, size), "with all ranks: code %d", code);
    }
    if (world_rank == size - 1) std::raise(SIGKILL);
    std::snprintf(doing, sizeof doing, "the first call without the last rank");
    const int code = add_up(blocking, in, sum, world);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    // Another rank may have revoked it before this one has noticed.
    outcome.check(error_class == MPI_ERR_PROC_FAILED || error_class == MPI_ERR_REVOKED, "the error class is %d",
                  error_class);
    std::snprintf(doing, sizeof doing, "going on without the last rank");
    MPIX_Comm_revoke(world);
    MPI_Comm rest = MPI_COMM_NULL;
    MPIX_Comm_shrink(world, &rest);
    int left = 0;
    MPI_Comm_size(rest, &left);
    outcome.check(left == size - 1, "%d ranks are left", left);
    for (int k = 0; k < 10; ++k) {
        const int again = add_up(true, in, sum, rest);
        outcome.check(again == MPI_SUCCESS && is_right(sum, left), "without it: code %d", again);
    }
    const int status = outcome.close_alone();
    MPI_Barrier(rest);
    _exit(status);
}

#else

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 77;
}

#endif
