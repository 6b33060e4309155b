// The collectives that palmette serves, with the arguments of their MPI functions.
#pragma once

#include <mpi.h>

#include <optional>

namespace palmette::runtime {

/// Each returns the MPI code of the call, or nothing when the MPI must do it; then the reason has been counted. All ranks of a communicator come to the same
/// answer, since it rests on what they all know. Errors have been raised on the communicator's error handler.
std::optional<int> serve_gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                                MPI_Datatype recvtype, int root, MPI_Comm comm);
std::optional<int> serve_gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 const int* recvcounts, const int* displs, MPI_Datatype recvtype, int root,
                                 MPI_Comm comm);
std::optional<int> serve_scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
std::optional<int> serve_scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype,
                                  void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
std::optional<int> serve_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
std::optional<int> serve_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm);

}  // namespace palmette::runtime
