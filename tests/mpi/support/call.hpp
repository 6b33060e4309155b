// One call of any of the collectives, through MPI_ or through PMPI_.
#pragma once

#include <mpi.h>

#include <vector>

namespace test {

enum class Function {
    gather,
    gatherv,
    scatter,
    scatterv,
    allgather,
    allgatherv,
    bcast,
    alltoall,
    alltoallv,
    alltoallw,
    barrier,
    reduce,
    allreduce,
    reduce_scatter,
    reduce_scatter_block,
    scan,
    exscan,
};
inline constexpr int function_count = 17;
inline const char* const function_names[] = {
    "gather",     "gatherv", "scatter",   "scatterv",       "allgather",
    "allgatherv", "bcast",   "alltoall",  "alltoallv",      "alltoallw",
    "barrier",    "reduce",  "allreduce", "reduce_scatter", "reduce_scatter_block",
    "scan",       "exscan",
};

/// Every rank's block has a length of its own.
inline bool is_v(Function f) {
    return f == Function::gatherv || f == Function::scatterv || f == Function::allgatherv || f == Function::alltoallv ||
           f == Function::alltoallw;
}
inline bool is_gather(Function f) { return f == Function::gather || f == Function::gatherv; }
inline bool is_scatter(Function f) { return f == Function::scatter || f == Function::scatterv; }
inline bool is_allgather(Function f) { return f == Function::allgather || f == Function::allgatherv; }
/// Each rank has a block for each other rank.
inline bool is_alltoall(Function f) {
    return f == Function::alltoall || f == Function::alltoallv || f == Function::alltoallw;
}
inline bool is_reduction(Function f) { return f >= Function::reduce; }
inline bool is_rooted(Function f) {
    return is_gather(f) || is_scatter(f) || f == Function::bcast || f == Function::reduce;
}

/// The arguments. Of counts, displacements and types a function takes the plain one or the list, whichever is its own.
/// bcast: the recv side; reductions: sendbuf, recvbuf, recvcount (reduce_scatter: recvcounts), recvtype, op.
struct Call {
    Function function;
    const void* sendbuf = nullptr;
    int sendcount = 0;
    MPI_Datatype sendtype = MPI_DATATYPE_NULL;
    void* recvbuf = nullptr;
    int recvcount = 0;
    MPI_Datatype recvtype = MPI_DATATYPE_NULL;
    int root = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Op op = MPI_OP_NULL;
    const int* sendcounts = nullptr;
    const int* sdispls = nullptr;
    const MPI_Datatype* sendtypes = nullptr;
    const int* recvcounts = nullptr;
    const int* rdispls = nullptr;
    const MPI_Datatype* recvtypes = nullptr;
};

/// `S` is the suffix of the functions: nothing, or _c; `n`, `d` and the like are lists of its integers.
#define TEST_CALL(P, S, c, sn, sd, rn, rd)                                                                             \
    switch ((c).function) {                                                                                            \
        case Function::gather:                                                                                         \
            return P##Gather##S((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype,    \
                                (c).root, (c).comm);                                                                   \
        case Function::gatherv:                                                                                        \
            return P##Gatherv##S((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, rn, rd, (c).recvtype,          \
                                 (c).root, (c).comm);                                                                  \
        case Function::scatter:                                                                                        \
            return P##Scatter##S((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype,   \
                                 (c).root, (c).comm);                                                                  \
        case Function::scatterv:                                                                                       \
            return P##Scatterv##S((c).sendbuf, sn, sd, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype,         \
                                  (c).root, (c).comm);                                                                 \
        case Function::allgather:                                                                                      \
            return P##Allgather##S((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype, \
                                   (c).comm);                                                                          \
        case Function::allgatherv:                                                                                     \
            return P##Allgatherv##S((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, rn, rd, (c).recvtype,       \
                                    (c).comm);                                                                         \
        case Function::bcast:                                                                                          \
            return P##Bcast##S((c).recvbuf, (c).recvcount, (c).recvtype, (c).root, (c).comm);                          \
        case Function::alltoall:                                                                                       \
            return P##Alltoall##S((c).sendbuf, (c).sendcount, (c).sendtype, (c).recvbuf, (c).recvcount, (c).recvtype,  \
                                  (c).comm);                                                                           \
        case Function::alltoallv:                                                                                      \
            return P##Alltoallv##S((c).sendbuf, sn, sd, (c).sendtype, (c).recvbuf, rn, rd, (c).recvtype, (c).comm);    \
        case Function::alltoallw:                                                                                      \
            return P##Alltoallw##S((c).sendbuf, sn, sd, (c).sendtypes, (c).recvbuf, rn, rd, (c).recvtypes, (c).comm);  \
        case Function::barrier:                                                                                        \
            return P##Barrier((c).comm);                                                                               \
        case Function::reduce:                                                                                         \
            return P##Reduce##S((c).sendbuf, (c).recvbuf, (c).recvcount, (c).recvtype, (c).op, (c).root, (c).comm);    \
        case Function::allreduce:                                                                                      \
            return P##Allreduce##S((c).sendbuf, (c).recvbuf, (c).recvcount, (c).recvtype, (c).op, (c).comm);           \
        case Function::reduce_scatter:                                                                                 \
            return P##Reduce_scatter##S((c).sendbuf, (c).recvbuf, rn, (c).recvtype, (c).op, (c).comm);                 \
        case Function::reduce_scatter_block:                                                                           \
            return P##Reduce_scatter_block##S((c).sendbuf, (c).recvbuf, (c).recvcount, (c).recvtype, (c).op,           \
                                              (c).comm);                                                               \
        case Function::scan:                                                                                           \
            return P##Scan##S((c).sendbuf, (c).recvbuf, (c).recvcount, (c).recvtype, (c).op, (c).comm);                \
        case Function::exscan:                                                                                         \
            return P##Exscan##S((c).sendbuf, (c).recvbuf, (c).recvcount, (c).recvtype, (c).op, (c).comm);              \
    }                                                                                                                  \
    return MPI_ERR_OTHER

/// Through the symbols that a preload may replace.
inline int call_mpi(const Call& c) { TEST_CALL(MPI_, , c, (c).sendcounts, (c).sdispls, (c).recvcounts, (c).rdispls); }
/// Past any preload.
inline int call_pmpi(const Call& c) { TEST_CALL(PMPI_, , c, (c).sendcounts, (c).sdispls, (c).recvcounts, (c).rdispls); }

/// The MPI has the functions with MPI_Count arguments (MPI 4).
#if MPI_VERSION >= 4
#define TEST_HAS_LARGE_COUNTS 1
inline int call_large(const Call& c, int size) {
    auto widen = [size](const int* from, auto& to) {
        for (int i = 0; from != nullptr && i < size; ++i) to.push_back(from[i]);
        return from != nullptr ? to.data() : nullptr;
    };
    std::vector<MPI_Count> sendcounts, recvcounts;
    std::vector<MPI_Aint> sdispls, rdispls;
    const MPI_Count* sn = widen(c.sendcounts, sendcounts);
    const MPI_Count* rn = widen(c.recvcounts, recvcounts);
    const MPI_Aint* sd = widen(c.sdispls, sdispls);
    const MPI_Aint* rd = widen(c.rdispls, rdispls);
    TEST_CALL(MPI_, _c, c, sn, sd, rn, rd);
}
#endif

}  // namespace test
