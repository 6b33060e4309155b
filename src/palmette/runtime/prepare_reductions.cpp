// Collectives that combine data.
#include "palmette/runtime/prepare.hpp"

namespace palmette::runtime {
namespace {

using InPlace = Work::InPlace;

/// False: refused. Arguments of an operation are the same on all ranks, so all come to the same answer.
bool set_operation(Call& call, Work& work, MPI_Op op, MPI_Datatype type, std::int64_t count) {
    if (count < 0) return call.refuse(Refusal::erroneous_arguments);
    work.operation.emplace(op, type, call.comm());
    if (!work.operation->valid())
        return work.operation->obstacle() == Obstacle::undefined
                   ? call.refuse(Refusal::erroneous_arguments)
                   : call.refuse(Refusal::datatype, describe(work.operation->obstacle()));
    const ElementLayout& layout = work.operation->layout();
    if (layout.extent <= 0 || layout.extent < layout.true_extent)
        return call.refuse(Refusal::datatype, describe(Obstacle::interleaved));
    return true;
}

/// A vector on all ranks, its result on those that `receive`.
bool prepare_vector(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                    MPI_Op op, int root, bool receives) {
    if (call.is_left_to_mpi(count, type)) return false;
    work.reset(call.state(), call.comm());
    if (!set_operation(call, work, op, type, count)) return false;
    if (sendbuf == MPI_IN_PLACE) {
        if (!receives) return call.refuse(Refusal::erroneous_arguments);
        work.in_place = InPlace::all_of_recv;
        work.send.clear();
    } else {
        work.send.elements(sendbuf, count, *work.operation, type);
    }
    if (receives)
        work.recv.elements(recvbuf, count, *work.operation, type);
    else
        work.recv.clear();
    return call.plan(work, root, count * work.operation->layout().extent, &*work.operation);
}

}  // namespace

bool prepare_reduce(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                    MPI_Op op, int root) {
    if (!call.is_rank(root)) return call.refuse(Refusal::erroneous_arguments);
    return prepare_vector(call, work, sendbuf, recvbuf, count, type, op, root, call.rank() == root);
}

bool prepare_allreduce(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count,
                       MPI_Datatype type, MPI_Op op) {
    return prepare_vector(call, work, sendbuf, recvbuf, count, type, op, 0, true);
}

bool prepare_scan(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                  MPI_Op op) {
    return prepare_vector(call, work, sendbuf, recvbuf, count, type, op, 0, true);
}

bool prepare_exscan(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype type,
                    MPI_Op op) {
    if (call.rank() == 0 && sendbuf == MPI_IN_PLACE) {
        // The first rank has no result; its input lies in recvbuf, which must stay as it is.
        return prepare_vector(call, work, recvbuf, nullptr, count, type, op, 0, false);
    }
    return prepare_vector(call, work, sendbuf, recvbuf, count, type, op, 0, call.rank() != 0);
}

bool prepare_reduce_scatter(Call& call, Work& work, const void* sendbuf, void* recvbuf, Counts recvcounts,
                            MPI_Datatype type, MPI_Op op) {
    if (call.is_left_to_mpi(mean_count(recvcounts, call.size()), type)) return false;
    work.reset(call.state(), call.comm());
    if (!recvcounts) return call.refuse(Refusal::erroneous_arguments);
    for (int r = 0; r < call.size(); ++r)
        if (recvcounts[r] < 0) return call.refuse(Refusal::erroneous_arguments);
    if (!set_operation(call, work, op, type, 0)) return false;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    work.send.element_blocks(in_place ? recvbuf : sendbuf, recvcounts, 0, *work.operation, type, call.size());
    if (in_place) {
        work.in_place = InPlace::copy_of_recv;
        work.send.force_room();
    }
    work.recv.elements(recvbuf, recvcounts[call.rank()], *work.operation, type);
    return call.plan(work, 0, (work.send.total() + call.size() - 1) / call.size(), &*work.operation);
}

bool prepare_reduce_scatter_block(Call& call, Work& work, const void* sendbuf, void* recvbuf, std::int64_t recvcount,
                                  MPI_Datatype type, MPI_Op op) {
    if (call.is_left_to_mpi(recvcount, type)) return false;
    work.reset(call.state(), call.comm());
    if (!set_operation(call, work, op, type, recvcount)) return false;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    work.send.element_blocks(in_place ? recvbuf : sendbuf, Counts(), recvcount, *work.operation, type, call.size());
    if (in_place) {
        work.in_place = InPlace::copy_of_recv;
        work.send.force_room();
    }
    work.recv.elements(recvbuf, recvcount, *work.operation, type);
    return call.plan(work, 0, work.recv.bytes(), &*work.operation);
}

}  // namespace palmette::runtime
