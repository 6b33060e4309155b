// One call of any of the six collectives, through MPI_ or through PMPI_.
#pragma once

#include <mpi.h>

#include <vector>

namespace test {

enum class Function { gather, gatherv, scatter, scatterv, allgather, allgatherv };
inline const char* const function_names[] = {"gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv"};
inline bool is_v(Function f) { return f == Function::gatherv || f == Function::scatterv || f == Function::allgatherv; }
inline bool is_rooted(Function f) { return f != Function::allgather && f != Function::allgatherv; }
inline bool is_scatter(Function f) { return f == Function::scatter || f == Function::scatterv; }

/// The arguments. `count` and `type` belong to the side with one block a call (or the only one); the side of the
/// v form uses `counts` and `displs`.
struct Call {
    Function function;
    const void* sendbuf = nullptr;
    int sendcount = 0;
    MPI_Datatype sendtype = MPI_DATATYPE_NULL;
    void* recvbuf = nullptr;
    int recvcount = 0;
    MPI_Datatype recvtype = MPI_DATATYPE_NULL;
    const int* counts = nullptr;
    const int* displs = nullptr;
    int root = 0;
    MPI_Comm comm = MPI_COMM_NULL;
};

#define TEST_DISPATCH(PREFIX, c)                                                                                       \
    switch ((c).function) {                                                                                            \
        case Function::gather:                                                                                         \
            return PREFIX##Gather((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype,  \
                                  (c).root, (c).comm);                                                                 \
        case Function::gatherv:                                                                                        \
            return PREFIX##Gatherv((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).counts, (c).displs,      \
                                   (c).recvtype, (c).root, (c).comm);                                                  \
        case Function::scatter:                                                                                        \
            return PREFIX##Scatter((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype, \
                                   (c).root, (c).comm);                                                                \
        case Function::scatterv:                                                                                       \
            return PREFIX##Scatterv((c).sendbuf, (c).counts, (c).displs, (c).sendtype, (c).recvbuf, (c).recvcount,     \
                                    (c).recvtype, (c).root, (c).comm);                                                 \
        case Function::allgather:                                                                                      \
            return PREFIX##Allgather((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount,             \
                                     (c).recvtype, (c).comm);                                                          \
        case Function::allgatherv:                                                                                     \
            return PREFIX##Allgatherv((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).counts, (c).displs,   \
                                      (c).recvtype, (c).comm);                                                         \
    }                                                                                                                  \
    return MPI_ERR_OTHER

/// Through the symbols that a preload may replace.
inline int call_mpi(const Call& c) { TEST_DISPATCH(MPI_, c); }
/// Past any preload.
inline int call_pmpi(const Call& c) { TEST_DISPATCH(PMPI_, c); }

/// The same result on another way: pack, move bytes with PMPI_, unpack. `bytes`: the size of each rank's block.
inline int call_by_packing(const Call& c, const std::vector<int>& bytes, int rank) {
    const bool scatter = is_scatter(c.function);
    const bool holds_all = !is_rooted(c.function) || rank == c.root;
    const MPI_Datatype many_type = scatter ? c.sendtype : c.recvtype;
    char* many = static_cast<char*>(scatter ? const_cast<void*>(c.sendbuf) : c.recvbuf);
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    if (holds_all) PMPI_Type_get_extent(many_type, &lb, &extent);
    auto count = [&](int r) { return is_v(c.function) ? c.counts[r] : scatter ? c.sendcount : c.recvcount; };
    auto place = [&](int r) { return many + extent * (is_v(c.function) ? c.displs[r] : r * MPI_Aint{count(r)}); };

    std::vector<int> offsets;
    int all = 0;
    for (int size : bytes) {
        offsets.push_back(all);
        all += size;
    }
    std::vector<char> own(static_cast<std::size_t>(all) + 1);
    std::vector<char> whole(static_cast<std::size_t>(all) + 1);
    const int size = bytes[static_cast<std::size_t>(rank)];
    int at = 0;
    if (scatter) {
        for (int r = 0; holds_all && r < static_cast<int>(bytes.size()); ++r) {
            PMPI_Pack(place(r), count(r), many_type, whole.data(), all, &at, c.comm);
        }
        const int code = PMPI_Scatterv(whole.data(), bytes.data(), offsets.data(), MPI_BYTE, own.data(), size, MPI_BYTE,
                                       c.root, c.comm);
        at = 0;
        if (c.recvbuf != MPI_IN_PLACE) PMPI_Unpack(own.data(), size, &at, c.recvbuf, c.recvcount, c.recvtype, c.comm);
        return code;
    }
    const bool in_place = c.sendbuf == MPI_IN_PLACE;
    PMPI_Pack(in_place ? place(rank) : c.sendbuf, in_place ? count(rank) : c.sendcount,
              in_place ? many_type : c.sendtype, own.data(), all, &at, c.comm);
    const int code = is_rooted(c.function) ? PMPI_Gatherv(own.data(), size, MPI_BYTE, whole.data(), bytes.data(),
                                                          offsets.data(), MPI_BYTE, c.root, c.comm)
                                           : PMPI_Allgatherv(own.data(), size, MPI_BYTE, whole.data(), bytes.data(),
                                                             offsets.data(), MPI_BYTE, c.comm);
    at = 0;
    for (int r = 0; holds_all && r < static_cast<int>(bytes.size()); ++r) {
        PMPI_Unpack(whole.data(), all, &at, place(r), count(r), many_type, c.comm);
    }
    return code;
}

/// The MPI has the functions with MPI_Count arguments (MPI 4).
#if MPI_VERSION >= 4
#define TEST_HAS_LARGE_COUNTS 1
inline int call_large(const Call& c, int size) {
    std::vector<MPI_Count> counts;
    std::vector<MPI_Aint> displs;
    for (int i = 0; c.counts != nullptr && i < size; ++i) {
        counts.push_back(c.counts[i]);
        displs.push_back(c.displs[i]);
    }
    const MPI_Count* n = c.counts != nullptr ? counts.data() : nullptr;
    const MPI_Aint* d = c.counts != nullptr ? displs.data() : nullptr;
    switch (c.function) {
        case Function::gather:
            return MPI_Gather_c(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm);
        case Function::gatherv:
            return MPI_Gatherv_c(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, n, d, c.recvtype, c.root, c.comm);
        case Function::scatter:
            return MPI_Scatter_c(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.root,
                                 c.comm);
        case Function::scatterv:
            return MPI_Scatterv_c(c.sendbuf, n, d, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.root, c.comm);
        case Function::allgather:
            return MPI_Allgather_c(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, c.recvcount, c.recvtype, c.comm);
        case Function::allgatherv:
            return MPI_Allgatherv_c(c.sendbuf, c.sendcount, c.sendtype, c.recvbuf, n, d, c.recvtype, c.comm);
    }
    return MPI_ERR_OTHER;
}
#endif

}  // namespace test
