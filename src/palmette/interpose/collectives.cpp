// The collectives: served where palmette can, otherwise what comes next does them.
#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/serve.hpp"

namespace palmette::interpose {

#define PALMETTE_SERVE(serve, next_call)                        \
    do {                                                        \
        const Guard guard;                                      \
        if (guard.entered() && started())                       \
            if (const auto code = runtime::serve) return *code; \
    } while (false);                                            \
    return next::next_call

int on_MPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, int root, MPI_Comm comm) {
    PALMETTE_SERVE(serve_gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
                   MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm));
}

int on_MPI_Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                   const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    PALMETTE_SERVE(serve_gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),
                   MPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm));
}

int on_MPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                   MPI_Datatype recvtype, int root, MPI_Comm comm) {
    PALMETTE_SERVE(serve_scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),
                   MPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm));
}

int on_MPI_Scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    PALMETTE_SERVE(serve_scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm),
                   MPI_Scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm));
}

int on_MPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                     MPI_Datatype recvtype, MPI_Comm comm) {
    PALMETTE_SERVE(serve_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),
                   MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
}

int on_MPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                      const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
    PALMETTE_SERVE(serve_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),
                   MPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm));
}

}  // namespace palmette::interpose
