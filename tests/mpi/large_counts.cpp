// The functions with MPI_Count: the same results as by PMPI_, and, where told so, a broadcast of more bytes than an int
// counts. Status 77 where the MPI has none.
//
//     large_counts [--bytes N] [--timeout SECONDS]

#include <mpi.h>

#include <vector>

#include "support/outcome.hpp"

using namespace test;

#if MPI_VERSION >= 4

namespace {

constexpr int n = 500;

using Values = std::vector<int>;
Values values(int count, int salt) {
    Values out(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i) * 31 + salt * 1009 + world_rank * 7919;
    return out;
}

/// Calls `ours` and `right` on equal memory, and compares.
template <class Ours, class Right>
void same(Outcome& outcome, const char* name, int size, Ours ours, Right right) {
    std::snprintf(doing, sizeof doing, "%s", name);
    Values send = values(n * size, 1);
    Values recv = values(n * size, 2);
    Values expected = recv;
    const int code = ours(send.data(), recv.data());
    right(send.data(), expected.data());
    outcome.check(code == MPI_SUCCESS && recv == expected, "%s", name);
}

void all_forms(Outcome& outcome, MPI_Comm comm) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<MPI_Count> counts;
    std::vector<MPI_Aint> displs;
    std::vector<int> narrow_counts, narrow_displs;
    for (int r = 0; r < size; ++r) {
        narrow_counts.push_back(20 + r);
        narrow_displs.push_back(r * 100);
    }
    counts.assign(narrow_counts.begin(), narrow_counts.end());
    displs.assign(narrow_displs.begin(), narrow_displs.end());
    const int mine = narrow_counts[static_cast<std::size_t>(rank)];
    const int root = size - 1;
    const auto waited = [](MPI_Request request, int code) {
        return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
    };
#define SAME(name, ours, right)     \
    same(                           \
        outcome, name, size,        \
        [&](int* send, int* recv) { \
            (void)send;             \
            return ours;            \
        },                          \
        [&](int* send, int* recv) { \
            (void)send;             \
            return right;           \
        })
    SAME("MPI_Bcast_c", MPI_Bcast_c(recv, n, MPI_INT, root, comm), PMPI_Bcast(recv, n, MPI_INT, root, comm));
    SAME("MPI_Reduce_c", MPI_Reduce_c(send, recv, n, MPI_INT, MPI_SUM, root, comm),
         PMPI_Reduce(send, recv, n, MPI_INT, MPI_SUM, root, comm));
    SAME("MPI_Allreduce_c", MPI_Allreduce_c(send, recv, n, MPI_INT, MPI_SUM, comm),
         PMPI_Allreduce(send, recv, n, MPI_INT, MPI_SUM, comm));
    SAME("MPI_Reduce_scatter_c", MPI_Reduce_scatter_c(send, recv, counts.data(), MPI_INT, MPI_SUM, comm),
         PMPI_Reduce_scatter(send, recv, narrow_counts.data(), MPI_INT, MPI_SUM, comm));
    SAME("MPI_Reduce_scatter_block_c", MPI_Reduce_scatter_block_c(send, recv, n, MPI_INT, MPI_SUM, comm),
         PMPI_Reduce_scatter_block(send, recv, n, MPI_INT, MPI_SUM, comm));
    SAME("MPI_Gather_c", MPI_Gather_c(send, n, MPI_INT, recv, n, MPI_INT, root, comm),
         PMPI_Gather(send, n, MPI_INT, recv, n, MPI_INT, root, comm));
    SAME("MPI_Gatherv_c", MPI_Gatherv_c(send, mine, MPI_INT, recv, counts.data(), displs.data(), MPI_INT, root, comm),
         PMPI_Gatherv(send, mine, MPI_INT, recv, narrow_counts.data(), narrow_displs.data(), MPI_INT, root, comm));
    SAME("MPI_Scatter_c", MPI_Scatter_c(send, n, MPI_INT, recv, n, MPI_INT, root, comm),
         PMPI_Scatter(send, n, MPI_INT, recv, n, MPI_INT, root, comm));
    SAME("MPI_Scatterv_c", MPI_Scatterv_c(send, counts.data(), displs.data(), MPI_INT, recv, mine, MPI_INT, root, comm),
         PMPI_Scatterv(send, narrow_counts.data(), narrow_displs.data(), MPI_INT, recv, mine, MPI_INT, root, comm));
    SAME("MPI_Allgather_c", MPI_Allgather_c(send, n, MPI_INT, recv, n, MPI_INT, comm),
         PMPI_Allgather(send, n, MPI_INT, recv, n, MPI_INT, comm));
    SAME("MPI_Allgatherv_c", MPI_Allgatherv_c(send, mine, MPI_INT, recv, counts.data(), displs.data(), MPI_INT, comm),
         PMPI_Allgatherv(send, mine, MPI_INT, recv, narrow_counts.data(), narrow_displs.data(), MPI_INT, comm));
    SAME("MPI_Alltoall_c", MPI_Alltoall_c(send, n, MPI_INT, recv, n, MPI_INT, comm),
         PMPI_Alltoall(send, n, MPI_INT, recv, n, MPI_INT, comm));
    const std::vector<int> even(static_cast<std::size_t>(size), 30);
    const std::vector<MPI_Count> even_wide(even.begin(), even.end());
    SAME("MPI_Alltoallv_c",
         MPI_Alltoallv_c(send, even_wide.data(), displs.data(), MPI_INT, recv, even_wide.data(), displs.data(), MPI_INT,
                         comm),
         PMPI_Alltoallv(send, even.data(), narrow_displs.data(), MPI_INT, recv, even.data(), narrow_displs.data(),
                        MPI_INT, comm));
    SAME("MPI_Scan_c", MPI_Scan_c(send, recv, n, MPI_INT, MPI_SUM, comm),
         PMPI_Scan(send, recv, n, MPI_INT, MPI_SUM, comm));
    SAME("MPI_Exscan_c", MPI_Exscan_c(send, recv, n, MPI_INT, MPI_SUM, comm),
         PMPI_Exscan(send, recv, n, MPI_INT, MPI_SUM, comm));
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    SAME("MPI_Ibcast_c", (code = MPI_Ibcast_c(recv, n, MPI_INT, root, comm, &request), waited(request, code)),
         PMPI_Bcast(recv, n, MPI_INT, root, comm));
    SAME("MPI_Iallreduce_c",
         (code = MPI_Iallreduce_c(send, recv, n, MPI_INT, MPI_SUM, comm, &request), waited(request, code)),
         PMPI_Allreduce(send, recv, n, MPI_INT, MPI_SUM, comm));
    SAME("MPI_Iallgatherv_c",
         (code = MPI_Iallgatherv_c(send, mine, MPI_INT, recv, counts.data(), displs.data(), MPI_INT, comm, &request),
          waited(request, code)),
         PMPI_Allgatherv(send, mine, MPI_INT, recv, narrow_counts.data(), narrow_displs.data(), MPI_INT, comm));
#undef SAME
}

void broadcast(Outcome& outcome, long bytes) {
    std::snprintf(doing, sizeof doing, "a broadcast of %ld bytes", bytes);
    std::vector<char> data(static_cast<std::size_t>(bytes));
    if (world_rank == 0)
        for (std::size_t i = 0; i < data.size(); i += 4096) data[i] = static_cast<char>(i / 4096 * 37 + 11);
    if (world_rank == 0) data.back() = 99;
    const int code = MPI_Bcast_c(data.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    bool right = code == MPI_SUCCESS && data.back() == 99;
    for (std::size_t i = 0; right && i + 1 < data.size(); i += 4096)
        right = data[i] == static_cast<char>(i / 4096 * 37 + 11);
    outcome.check(right, "MPI_Bcast_c of %ld bytes", bytes);
}

}  // namespace

#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
#if MPI_VERSION >= 4
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 60)));
    Outcome outcome;
    if (const long bytes = option(argc, argv, "--bytes", 0); bytes > 0)
        broadcast(outcome, bytes);
    else
        all_forms(outcome, MPI_COMM_WORLD);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
#else
    (void)argc;
    MPI_Finalize();
    return 77;
#endif
}
