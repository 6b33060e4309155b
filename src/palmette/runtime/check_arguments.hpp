// What PALMETTE_CHECK compares of each function's arguments.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "palmette/runtime/check.hpp"
#include "palmette/runtime/counts.hpp"

namespace palmette::runtime {

/// The rank that calls, in the communicator that it passes.
struct Caller {
    int rank = 0;
    int size = 1;
};

/// The arguments are those of prepare.hpp. None is trusted: what is wrong by itself becomes the call's fault.
CheckedCall checked_gather(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                           void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root);
CheckedCall checked_gatherv(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                            void* recvbuf, Counts recvcounts, Counts displs, MPI_Datatype recvtype, int root);
CheckedCall checked_scatter(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                            void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root);
CheckedCall checked_scatterv(Caller caller, const void* sendbuf, Counts sendcounts, Counts displs,
                             MPI_Datatype sendtype, void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype,
                             int root);
CheckedCall checked_allgather(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                              void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype);
CheckedCall checked_allgatherv(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                               void* recvbuf, Counts recvcounts, Counts displs, MPI_Datatype recvtype);
CheckedCall checked_bcast(Caller caller, void* buffer, std::int64_t count, MPI_Datatype type, int root);
CheckedCall checked_alltoall(Caller caller, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                             void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype);
CheckedCall checked_alltoallv(Caller caller, const void* sendbuf, Counts sendcounts, Counts sdispls,
                              MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts rdispls,
                              MPI_Datatype recvtype);
CheckedCall checked_alltoallw(Caller caller, const void* sendbuf, Counts sendcounts, Counts sdispls,
                              const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Counts rdispls,
                              const MPI_Datatype* recvtypes);
CheckedCall checked_barrier(Caller caller);
CheckedCall checked_reduce(Caller caller, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                           MPI_Op op, int root);
CheckedCall checked_allreduce(Caller caller, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                              MPI_Op op);
CheckedCall checked_reduce_scatter(Caller caller, const void* sendbuf, void* recvbuf, Counts recvcounts,
                                   MPI_Datatype type, MPI_Op op);
CheckedCall checked_reduce_scatter_block(Caller caller, const void* sendbuf, void* recvbuf, std::int64_t recvcount,
                                         MPI_Datatype type, MPI_Op op);
CheckedCall checked_scan(Caller caller, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                         MPI_Op op);
CheckedCall checked_exscan(Caller caller, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                           MPI_Op op);

}  // namespace palmette::runtime
