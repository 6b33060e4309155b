// The blocking collectives that palmette serves, with the arguments of their MPI functions.
#pragma once

#include <mpi.h>

#include <optional>

#include "palmette/runtime/communicator.hpp"
#include "palmette/runtime/counts.hpp"

namespace palmette::runtime {

/// Each returns the MPI code of the call, or nothing when the MPI must do it; then the reason has been counted. All ranks of a communicator come to the same
/// answer, since it rests on what they all know. Errors have been raised on the communicator's error handler. Counts are those of MPI_X or MPI_X_c.
std::optional<int> serve_gather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                std::int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
std::optional<int> serve_gatherv(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 Counts recvcounts, Counts displs, MPI_Datatype recvtype, int root, MPI_Comm comm);
std::optional<int> serve_scatter(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 std::int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
std::optional<int> serve_scatterv(const void* sendbuf, Counts sendcounts, Counts displs, MPI_Datatype sendtype,
                                  void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root,
                                  MPI_Comm comm);
std::optional<int> serve_allgather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                   std::int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm);
std::optional<int> serve_allgatherv(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    Counts recvcounts, Counts displs, MPI_Datatype recvtype, MPI_Comm comm);
std::optional<int> serve_bcast(void* buffer, std::int64_t count, MPI_Datatype type, int root, MPI_Comm comm);
std::optional<int> serve_reduce(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                                int root, MPI_Comm comm);
std::optional<int> serve_allreduce(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                                   MPI_Comm comm);
std::optional<int> serve_reduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, MPI_Datatype type,
                                        MPI_Op op, MPI_Comm comm);
std::optional<int> serve_reduce_scatter_block(const void* sendbuf, void* recvbuf, std::int64_t recvcount,
                                              MPI_Datatype type, MPI_Op op, MPI_Comm comm);
std::optional<int> serve_alltoall(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                  std::int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm);
std::optional<int> serve_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype,
                                   void* recvbuf, Counts recvcounts, Counts rdispls, MPI_Datatype recvtype,
                                   MPI_Comm comm);
std::optional<int> serve_alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls,
                                   const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Counts rdispls,
                                   const MPI_Datatype* recvtypes, MPI_Comm comm);
std::optional<int> serve_barrier(MPI_Comm comm);
std::optional<int> serve_scan(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm);
std::optional<int> serve_exscan(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm);

/// The plan of the call that a serve_X has just left to the MPI, if the time that the MPI takes is to be compared with ours; asked once.
CachedPlan* take_measured();
/// Takes note of what a comparison has found.
void compared(MPI_Comm comm, CachedPlan& plan);

/// Lets the MPI do such a call, and times it. `run` returns the MPI code.
template <class Run>
int measure_mpi(MPI_Comm comm, CachedPlan& plan, Run run) {
    int code = MPI_SUCCESS;
    if (plan.comparison->time(run, code)) compared(comm, plan);
    return code;
}

}  // namespace palmette::runtime
