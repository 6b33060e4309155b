// A preload of its own that stands before palmette's: every collective of a program is done once more by PMPI_, and the
// results are compared. So programs that check nothing (IMB's binary) are checked.
// It knows what such programs use: no MPI_IN_PLACE, types without holes, reductions of MPI_FLOAT, whose sums may differ
// in their last bits.
#include <dlfcn.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

long compared = 0;
long wrong = 0;

template <class F>
F next(const char* name) {
    return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

MPI_Aint bytes_of(MPI_Datatype type) {
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_extent(type, &lb, &extent);
    return extent;
}

int size_of(MPI_Comm comm) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

int rank_of(MPI_Comm comm) {
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

/// The bytes behind the last item of a v form.
MPI_Aint end_of(const int* counts, const int* displs, int ranks, MPI_Datatype type) {
    MPI_Aint end = 0;
    for (int r = 0; r < ranks; ++r) {
        if (counts[r] > 0 && displs[r] + counts[r] > end) end = displs[r] + counts[r];
    }
    return end * bytes_of(type);
}

/// Equal up to what the order of a sum of a few numbers may change.
bool nearly_equal(const char* a, const char* b, MPI_Aint bytes) {
    for (MPI_Aint i = 0; i + static_cast<MPI_Aint>(sizeof(float)) <= bytes; i += sizeof(float)) {
        float x = 0;
        float y = 0;
        std::memcpy(&x, a + i, sizeof x);
        std::memcpy(&y, b + i, sizeof y);
        if (std::isnan(x) && std::isnan(y)) continue;
        if (x != y && !(std::fabs(x - y) <= 1e-5F * (std::fabs(x) + std::fabs(y)))) return false;
    }
    return true;
}

/// Spoils the buffer first, so that a result left from before doesn't count; runs `ours` into it and `theirs` aside.
template <class Ours, class Theirs>
int compare(const char* what, void* buffer, MPI_Aint bytes, Ours ours, Theirs theirs, bool sums = false) {
    std::vector<char> aside(static_cast<std::size_t>(bytes) + 1);
    if (bytes > 0) std::memset(buffer, 0x5a, static_cast<std::size_t>(bytes));
    const int code = ours();
    theirs(aside.data());
    ++compared;
    if (bytes == 0) return code;
    const bool equal = sums ? nearly_equal(static_cast<const char*>(buffer), aside.data(), bytes)
                            : std::memcmp(buffer, aside.data(), static_cast<std::size_t>(bytes)) == 0;
    if (!equal) {
        ++wrong;
        std::fprintf(stderr, "checker: %s of %ld bytes is wrong\n", what, static_cast<long>(bytes));
    }
    return code;
}

}  // namespace

extern "C" {

#define VISIBLE __attribute__((visibility("default")))

VISIBLE int MPI_Gather(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, int recvcount,
                       MPI_Datatype recvtype, int root, MPI_Comm comm) {
    const bool here = rank_of(comm) == root;
    const MPI_Aint bytes = here ? MPI_Aint{recvcount} * size_of(comm) * bytes_of(recvtype) : 0;
    auto ours = next<decltype(&MPI_Gather)>("MPI_Gather");
    return compare(
        "gather", recv, bytes, [&] { return ours(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm); },
        [&](void* aside) { PMPI_Gather(send, sendcount, sendtype, aside, recvcount, recvtype, root, comm); });
}

VISIBLE int MPI_Gatherv(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, const int* counts,
                        const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    const MPI_Aint bytes = rank_of(comm) == root ? end_of(counts, displs, size_of(comm), recvtype) : 0;
    auto ours = next<decltype(&MPI_Gatherv)>("MPI_Gatherv");
    return compare(
        "gatherv", recv, bytes,
        [&] { return ours(send, sendcount, sendtype, recv, counts, displs, recvtype, root, comm); },
        [&](void* aside) { PMPI_Gatherv(send, sendcount, sendtype, aside, counts, displs, recvtype, root, comm); });
}

VISIBLE int MPI_Scatter(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, int recvcount,
                        MPI_Datatype recvtype, int root, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Scatter)>("MPI_Scatter");
    return compare(
        "scatter", recv, recvcount * bytes_of(recvtype),
        [&] { return ours(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm); },
        [&](void* aside) { PMPI_Scatter(send, sendcount, sendtype, aside, recvcount, recvtype, root, comm); });
}

VISIBLE int MPI_Scatterv(const void* send, const int* counts, const int* displs, MPI_Datatype sendtype, void* recv,
                         int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Scatterv)>("MPI_Scatterv");
    return compare(
        "scatterv", recv, recvcount * bytes_of(recvtype),
        [&] { return ours(send, counts, displs, sendtype, recv, recvcount, recvtype, root, comm); },
        [&](void* aside) { PMPI_Scatterv(send, counts, displs, sendtype, aside, recvcount, recvtype, root, comm); });
}

VISIBLE int MPI_Allgather(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, int recvcount,
                          MPI_Datatype recvtype, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Allgather)>("MPI_Allgather");
    return compare(
        "allgather", recv, MPI_Aint{recvcount} * size_of(comm) * bytes_of(recvtype),
        [&] { return ours(send, sendcount, sendtype, recv, recvcount, recvtype, comm); },
        [&](void* aside) { PMPI_Allgather(send, sendcount, sendtype, aside, recvcount, recvtype, comm); });
}

VISIBLE int MPI_Allgatherv(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, const int* counts,
                           const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Allgatherv)>("MPI_Allgatherv");
    return compare(
        "allgatherv", recv, end_of(counts, displs, size_of(comm), recvtype),
        [&] { return ours(send, sendcount, sendtype, recv, counts, displs, recvtype, comm); },
        [&](void* aside) { PMPI_Allgatherv(send, sendcount, sendtype, aside, counts, displs, recvtype, comm); });
}

VISIBLE int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Bcast)>("MPI_Bcast");
    const MPI_Aint bytes = count * bytes_of(type);
    // The root's buffer is what is sent: it must stay as it is.
    if (rank_of(comm) == root) {
        const int code = ours(buffer, count, type, root, comm);
        PMPI_Bcast(buffer, count, type, root, comm);
        ++compared;
        return code;
    }
    return compare(
        "bcast", buffer, bytes, [&] { return ours(buffer, count, type, root, comm); },
        [&](void* aside) { PMPI_Bcast(aside, count, type, root, comm); });
}

VISIBLE int MPI_Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Reduce)>("MPI_Reduce");
    return compare(
        "reduce", recv, rank_of(comm) == root ? count * bytes_of(type) : 0,
        [&] { return ours(send, recv, count, type, op, root, comm); },
        [&](void* aside) { PMPI_Reduce(send, aside, count, type, op, root, comm); }, true);
}

VISIBLE int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Allreduce)>("MPI_Allreduce");
    // Programs reduce their times, too: those aren't floats.
    return compare(
        "allreduce", recv, count * bytes_of(type), [&] { return ours(send, recv, count, type, op, comm); },
        [&](void* aside) { PMPI_Allreduce(send, aside, count, type, op, comm); }, type == MPI_FLOAT);
}

VISIBLE int MPI_Reduce_scatter(const void* send, void* recv, const int* counts, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Reduce_scatter)>("MPI_Reduce_scatter");
    return compare(
        "reduce_scatter", recv, counts[rank_of(comm)] * bytes_of(type),
        [&] { return ours(send, recv, counts, type, op, comm); },
        [&](void* aside) { PMPI_Reduce_scatter(send, aside, counts, type, op, comm); }, true);
}

VISIBLE int MPI_Alltoall(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, int recvcount,
                         MPI_Datatype recvtype, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Alltoall)>("MPI_Alltoall");
    return compare(
        "alltoall", recv, MPI_Aint{recvcount} * size_of(comm) * bytes_of(recvtype),
        [&] { return ours(send, sendcount, sendtype, recv, recvcount, recvtype, comm); },
        [&](void* aside) { PMPI_Alltoall(send, sendcount, sendtype, aside, recvcount, recvtype, comm); });
}

VISIBLE int MPI_Alltoallv(const void* send, const int* sendcounts, const int* sdispls, MPI_Datatype sendtype,
                          void* recv, const int* recvcounts, const int* rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
    auto ours = next<decltype(&MPI_Alltoallv)>("MPI_Alltoallv");
    return compare(
        "alltoallv", recv, end_of(recvcounts, rdispls, size_of(comm), recvtype),
        [&] { return ours(send, sendcounts, sdispls, sendtype, recv, recvcounts, rdispls, recvtype, comm); },
        [&](void* aside) {
            PMPI_Alltoallv(send, sendcounts, sdispls, sendtype, aside, recvcounts, rdispls, recvtype, comm);
        });
}

VISIBLE int MPI_Finalize(void) {
    std::fprintf(stderr, "checker: %ld compared, %ld wrong\n", compared, wrong);
    return next<decltype(&MPI_Finalize)>("MPI_Finalize")();
}

}  // extern "C"
