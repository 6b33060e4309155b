// From the arguments of MPI's functions to work that can be run.
#pragma once

#include <mpi.h>

#include "palmette/runtime/call.hpp"
#include "palmette/runtime/counts.hpp"
#include "palmette/runtime/work.hpp"

namespace palmette::runtime {

/// Each needs an opened call. False when the MPI must do it; then the reason has been counted. All ranks of a communicator come to the same answer, since it rests
/// on what they all know. Counts and displacements are those of MPI_X or MPI_X_c; the arrays must stay alive until the work is done.
bool prepare_gather(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                    void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root);
bool prepare_gatherv(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                     void* recvbuf, Counts recvcounts, Counts displs, MPI_Datatype recvtype, int root);
bool prepare_scatter(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                     void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root);
bool prepare_scatterv(Call& call, Work& work, const void* sendbuf, Counts sendcounts, Counts displs,
                      MPI_Datatype sendtype, void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root);
bool prepare_allgather(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                       void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype);
bool prepare_allgatherv(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                        void* recvbuf, Counts recvcounts, Counts displs, MPI_Datatype recvtype);
bool prepare_bcast(Call& call, Work& work, void* buffer, std::int64_t count, MPI_Datatype type, int root);
bool prepare_reduce(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                    MPI_Op op, int root);
bool prepare_allreduce(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count,
                       MPI_Datatype type, MPI_Op op);
bool prepare_reduce_scatter(Call& call, Work& work, const void* sendbuf, void* recvbuf, Counts recvcounts,
                            MPI_Datatype type, MPI_Op op);
bool prepare_reduce_scatter_block(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t recvcount,
                                  MPI_Datatype type, MPI_Op op);
bool prepare_alltoall(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                      void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype);
bool prepare_alltoallv(Call& call, Work& work, const void* sendbuf, Counts sendcounts, Counts sdispls,
                       MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts rdispls, MPI_Datatype recvtype);
bool prepare_alltoallw(Call& call, Work& work, const void* sendbuf, Counts sendcounts, Counts sdispls,
                       const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Counts rdispls,
                       const MPI_Datatype* recvtypes);
bool prepare_barrier(Call& call, Work& work);
bool prepare_scan(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                  MPI_Op op);
bool prepare_exscan(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                    MPI_Op op);

}  // namespace palmette::runtime
