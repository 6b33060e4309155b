#include "palmette/runtime/serve.hpp"

#include <chrono>
#include <thread>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/runtime/background.hpp"
#include "palmette/runtime/check_arguments.hpp"
#include "palmette/runtime/mpi_beside.hpp"
#include "palmette/runtime/prepare.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

/// Keeps its rooms between calls. One call at a time in a thread.
thread_local Work& kept = base::per_thread<Work, Call>();

/// Set where the MPI does this thread's current call so that it can be compared.
thread_local CachedPlan* measured_next = nullptr;

/// With what tests add.
int run_delayed(Call& call) {
    const double delay_s = Process::instance().settings().pretended_delay_s;
    if (delay_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(delay_s));
    return call.run(kept);
}

/// Both calls of a pair at once: the MPI's result is thrown away.
int run_and_compare(Call& call, Comparison& comparison) {
    const CachedPlan& plan = *kept.plan;
    before_blocking(call.comm());
    const double begin = PMPI_Wtime();
    MpiBeside beside(kept);
    comparison.prepared(PMPI_Wtime() - begin);
    if (!beside.has_room_everywhere()) {
        comparison.postpone();
        return run_delayed(call);
    }
    int code = MPI_SUCCESS;
    int of_mpi = MPI_SUCCESS;
    bool settled = false;
    for (int half = 0; half < 2; ++half)
        settled = comparison.turn() == Comparison::Turn::mpi
                      ? comparison.time([&beside] { return beside.run(); }, of_mpi)
                      : comparison.time([&call] { return run_delayed(call); }, code);
    if (settled) call.compared(plan);
    return code;
}

/// PALMETTE_CHECK: an error that all ranks get, or MPI_SUCCESS. What can't be served isn't checked either.
template <class Checked, class... Arguments>
int check(MPI_Comm comm, Checked checked, Arguments... arguments) {
    Refusal refusal = Refusal::no_state;
    Communicator* state = Process::instance().communicator(comm, refusal);
    if (!state) return MPI_SUCCESS;
    // A tag of blocking operations: none is under way.
    const int code = check_call(checked({state->rank(), state->size()}, arguments...), comm, state->hidden(), 0);
    if (code != MPI_SUCCESS) PMPI_Comm_call_errhandler(comm, code);
    return code;
}

template <class Prepare, class Checked, class... Arguments>
std::optional<int> serve(Function function, MPI_Comm comm, Prepare prepare, Checked checked, Arguments... arguments) {
    if (Process::instance().settings().check)
        if (const int code = check(comm, checked, arguments...); code != MPI_SUCCESS) return code;
    Call call(function, comm);
    if (!call.open() || !prepare(call, kept, arguments...)) return std::nullopt;
    if (Comparison* comparison = kept.plan->comparison;
        comparison && comparison->due(kept.send.total() + kept.recv.total())) [[unlikely]] {
        if (kept.plan->key.comparing == Comparing::beside) return run_and_compare(call, *comparison);
        if (comparison->turn() == Comparison::Turn::mpi) {
            call.refuse(Refusal::compared);
            measured_next = kept.plan;
            return std::nullopt;
        }
        int code = MPI_SUCCESS;
        before_blocking(comm);
        if (comparison->time([&call] { return run_delayed(call); }, code)) call.compared(*kept.plan);
        return code;
    }
    return call.run(kept);
}

}  // namespace

CachedPlan* take_measured() {
    CachedPlan* plan = measured_next;
    if (plan) [[unlikely]]
        measured_next = nullptr;
    return plan;
}

void compared(MPI_Comm comm, CachedPlan& plan) {
    Call call(plan.key.function, comm);
    if (call.open()) call.compared(plan);
}

std::optional<int> serve_gather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                std::int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    return serve(Function::gather, comm, prepare_gather, checked_gather, sendbuf, sendcount, sendtype, recvbuf,
                 recvcount, recvtype, root);
}

std::optional<int> serve_gatherv(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 Counts recvcounts, Counts displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    return serve(Function::gatherv, comm, prepare_gatherv, checked_gatherv, sendbuf, sendcount, sendtype, recvbuf,
                 recvcounts, displs, recvtype, root);
}

std::optional<int> serve_scatter(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 std::int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    return serve(Function::scatter, comm, prepare_scatter, checked_scatter, sendbuf, sendcount, sendtype, recvbuf,
                 recvcount, recvtype, root);
}

std::optional<int> serve_scatterv(const void* sendbuf, Counts sendcounts, Counts displs, MPI_Datatype sendtype,
                                  void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root,
                                  MPI_Comm comm) {
    return serve(Function::scatterv, comm, prepare_scatterv, checked_scatterv, sendbuf, sendcounts, displs, sendtype,
                 recvbuf, recvcount, recvtype, root);
}

std::optional<int> serve_allgather(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                   std::int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    return serve(Function::allgather, comm, prepare_allgather, checked_allgather, sendbuf, sendcount, sendtype, recvbuf,
                 recvcount, recvtype);
}

std::optional<int> serve_allgatherv(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    Counts recvcounts, Counts displs, MPI_Datatype recvtype, MPI_Comm comm) {
    return serve(Function::allgatherv, comm, prepare_allgatherv, checked_allgatherv, sendbuf, sendcount, sendtype,
                 recvbuf, recvcounts, displs, recvtype);
}

std::optional<int> serve_bcast(void* buffer, std::int64_t count, MPI_Datatype type, int root, MPI_Comm comm) {
    return serve(Function::bcast, comm, prepare_bcast, checked_bcast, buffer, count, type, root);
}

std::optional<int> serve_reduce(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                                int root, MPI_Comm comm) {
    return serve(Function::reduce, comm, prepare_reduce, checked_reduce, sendbuf, recvbuf, count, type, op, root);
}

std::optional<int> serve_allreduce(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                                   MPI_Comm comm) {
    return serve(Function::allreduce, comm, prepare_allreduce, checked_allreduce, sendbuf, recvbuf, count, type, op);
}

std::optional<int> serve_reduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, MPI_Datatype type,
                                        MPI_Op op, MPI_Comm comm) {
    return serve(Function::reduce_scatter, comm, prepare_reduce_scatter, checked_reduce_scatter, sendbuf, recvbuf,
                 recvcounts, type, op);
}

std::optional<int> serve_reduce_scatter_block(const void* sendbuf, void* recvbuf, std::int64_t recvcount,
                                              MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    return serve(Function::reduce_scatter_block, comm, prepare_reduce_scatter_block, checked_reduce_scatter_block,
                 sendbuf, recvbuf, recvcount, type, op);
}

std::optional<int> serve_alltoall(const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype, void* recvbuf,
                                  std::int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    return serve(Function::alltoall, comm, prepare_alltoall, checked_alltoall, sendbuf, sendcount, sendtype, recvbuf,
                 recvcount, recvtype);
}

std::optional<int> serve_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype,
                                   void* recvbuf, Counts recvcounts, Counts rdispls, MPI_Datatype recvtype,
                                   MPI_Comm comm) {
    return serve(Function::alltoallv, comm, prepare_alltoallv, checked_alltoallv, sendbuf, sendcounts, sdispls,
                 sendtype, recvbuf, recvcounts, rdispls, recvtype);
}

std::optional<int> serve_alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls,
                                   const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Counts rdispls,
                                   const MPI_Datatype* recvtypes, MPI_Comm comm) {
    return serve(Function::alltoallw, comm, prepare_alltoallw, checked_alltoallw, sendbuf, sendcounts, sdispls,
                 sendtypes, recvbuf, recvcounts, rdispls, recvtypes);
}

std::optional<int> serve_barrier(MPI_Comm comm) {
    return serve(Function::barrier, comm, prepare_barrier, checked_barrier);
}

std::optional<int> serve_scan(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm) {
    return serve(Function::scan, comm, prepare_scan, checked_scan, sendbuf, recvbuf, count, type, op);
}

std::optional<int> serve_exscan(const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm) {
    return serve(Function::exscan, comm, prepare_exscan, checked_exscan, sendbuf, recvbuf, count, type, op);
}

}  // namespace palmette::runtime
