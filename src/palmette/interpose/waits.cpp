// Wrappers of blocking point-to-point calls: the peer may be waiting for a collective of ours in the background, which
// progresses only inside of MPI calls. So they become polled nonblocking forms as long as any operation of ours is
// outstanding.
#include <utility>
#include <vector>

#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/serve/background.hpp"

namespace palmette::interpose {
namespace {

/// True when this call comes from the program while an operation of ours is outstanding.
class Polling {
  public:
    [[gnu::always_inline]] inline Polling()
        : active_(runtime::has_outstanding() && enters(__builtin_return_address(0), __builtin_frame_address(0))) {}
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;
    ~Polling() {
        if (active_) inside = false;
    }
    explicit operator bool() const { return active_; }

  private:
    bool active_;
};

/// Waits for a request that was started with `code`.
int finish(int code, MPI_Request* request, MPI_Status* status) {
    if (code != MPI_SUCCESS) return code;
    int done = 0;
    runtime::wait_until([&] {
        code = PMPI_Test(request, &done, status);
        return code != MPI_SUCCESS || done != 0;
    });
    return code;
}

/// Both have been started; the receive's status is wanted.
int finish_both(MPI_Request* send, MPI_Request* receive, MPI_Status* status) {
    const int received = finish(MPI_SUCCESS, receive, status);
    const int sent = finish(MPI_SUCCESS, send, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
}

}  // namespace

int on_MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    if (const Polling polling; polling) {
        MPI_Request request = MPI_REQUEST_NULL;
        return finish(PMPI_Isend(buf, count, datatype, dest, tag, comm, &request), &request, MPI_STATUS_IGNORE);
    }
    return next::MPI_Send(buf, count, datatype, dest, tag, comm);
}

int on_MPI_Ssend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    if (const Polling polling; polling) {
        MPI_Request request = MPI_REQUEST_NULL;
        return finish(PMPI_Issend(buf, count, datatype, dest, tag, comm, &request), &request, MPI_STATUS_IGNORE);
    }
    return next::MPI_Ssend(buf, count, datatype, dest, tag, comm);
}

int on_MPI_Rsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    if (const Polling polling; polling) {
        MPI_Request request = MPI_REQUEST_NULL;
        return finish(PMPI_Irsend(buf, count, datatype, dest, tag, comm, &request), &request, MPI_STATUS_IGNORE);
    }
    return next::MPI_Rsend(buf, count, datatype, dest, tag, comm);
}

int on_MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status) {
    if (const Polling polling; polling) {
        MPI_Request request = MPI_REQUEST_NULL;
        return finish(PMPI_Irecv(buf, count, datatype, source, tag, comm, &request), &request, status);
    }
    return next::MPI_Recv(buf, count, datatype, source, tag, comm, status);
}

int on_MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
    if (const Polling polling; polling) {
        MPI_Request send = MPI_REQUEST_NULL;
        MPI_Request receive = MPI_REQUEST_NULL;
        int code = PMPI_Irecv(recvbuf, recvcount, recvtype, source, recvtag, comm, &receive);
        if (code == MPI_SUCCESS) code = PMPI_Isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &send);
        return code != MPI_SUCCESS ? code : finish_both(&send, &receive, status);
    }
    return next::MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                              recvtag, comm, status);
}

int on_MPI_Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                            MPI_Comm comm, MPI_Status* status) {
    if (const Polling polling; polling) {
        int bytes = 0;
        int code = PMPI_Pack_size(count, datatype, comm, &bytes);
        if (code != MPI_SUCCESS) return code;
        std::vector<char> packed(static_cast<std::size_t>(bytes) + 1);
        int used = 0;
        code = PMPI_Pack(buf, count, datatype, packed.data(), bytes, &used, comm);
        MPI_Request send = MPI_REQUEST_NULL;
        MPI_Request receive = MPI_REQUEST_NULL;
        if (code == MPI_SUCCESS) code = PMPI_Irecv(buf, count, datatype, source, recvtag, comm, &receive);
        if (code == MPI_SUCCESS) code = PMPI_Isend(packed.data(), used, MPI_PACKED, dest, sendtag, comm, &send);
        return code != MPI_SUCCESS ? code : finish_both(&send, &receive, status);
    }
    return next::MPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
}

int on_MPI_Mrecv(void* buf, int count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
    if (const Polling polling; polling) {
        MPI_Request request = MPI_REQUEST_NULL;
        return finish(PMPI_Imrecv(buf, count, datatype, message, &request), &request, status);
    }
    return next::MPI_Mrecv(buf, count, datatype, message, status);
}

int on_MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    if (const Polling polling; polling) {
        int code = MPI_SUCCESS;
        int found = 0;
        runtime::wait_until([&] {
            code = PMPI_Iprobe(source, tag, comm, &found, status);
            return code != MPI_SUCCESS || found != 0;
        });
        return code;
    }
    return next::MPI_Probe(source, tag, comm, status);
}

int on_MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
    if (const Polling polling; polling) {
        int code = MPI_SUCCESS;
        int found = 0;
        runtime::wait_until([&] {
            code = PMPI_Improbe(source, tag, comm, &found, message, status);
            return code != MPI_SUCCESS || found != 0;
        });
        return code;
    }
    return next::MPI_Mprobe(source, tag, comm, message, status);
}

int on_MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    if (const Polling polling; polling) runtime::progress_background();
    return next::MPI_Iprobe(source, tag, comm, flag, status);
}

int on_MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
    if (const Polling polling; polling) runtime::progress_background();
    return next::MPI_Improbe(source, tag, comm, flag, message, status);
}

}  // namespace palmette::interpose
