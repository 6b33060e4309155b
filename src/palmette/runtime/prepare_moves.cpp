// Collectives that move data.
#include "palmette/runtime/prepare.hpp"

namespace palmette::runtime {

using InPlace = Work::InPlace;

bool prepare_gather(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                    void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root) {
    if (!call.is_rank(root)) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    const bool own_in_place = at_root && sendbuf == MPI_IN_PLACE;
    if (call.is_left_to_mpi(own_in_place ? recvcount : sendcount, own_in_place ? recvtype : sendtype)) return false;
    work.reset(call.state(), call.comm());
    // With MPI_IN_PLACE neither sendcount nor sendtype means anything.
    if (at_root && sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(sendbuf, sendcount, sendtype)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    work.recv.clear();
    if (at_root && !work.recv.blocks(recvbuf, recvcount, recvtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    const bool in_place = work.in_place != InPlace::no;
    const std::int64_t block = in_place ? work.recv.bytes() : work.send.bytes();
    if (at_root && work.recv.bytes() != block) return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, root, block);
}

bool prepare_gatherv(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                     void* recvbuf, Counts recvcounts, Counts displs, MPI_Datatype recvtype, int root) {
    if (!call.is_rank(root)) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    work.reset(call.state(), call.comm());
    if (at_root && sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(sendbuf, sendcount, sendtype)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    work.recv.clear();
    if (at_root && !work.recv.blocks(recvbuf, recvcounts, displs, recvtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && work.in_place == InPlace::no && work.send.bytes() != work.recv.bytes(root))
        return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, root, -1);
}

bool prepare_scatter(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                     void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root) {
    if (!call.is_rank(root)) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    const bool own_in_place = at_root && recvbuf == MPI_IN_PLACE;
    if (call.is_left_to_mpi(own_in_place ? sendcount : recvcount, own_in_place ? sendtype : recvtype)) return false;
    work.reset(call.state(), call.comm());
    if (at_root && recvbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::own_block_of_send;
        work.recv.clear();
    } else if (!work.recv.one(recvbuf, recvcount, recvtype)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    work.send.clear();
    if (at_root && !work.send.blocks(sendbuf, sendcount, sendtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = at_root ? work.send.bytes() : work.recv.bytes();
    if (at_root && work.in_place == InPlace::no && work.recv.bytes() != block)
        return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, root, block);
}

bool prepare_scatterv(Call& call, Work& work, const void* sendbuf, Counts sendcounts, Counts displs,
                      MPI_Datatype sendtype, void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype, int root) {
    if (!call.is_rank(root)) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    work.reset(call.state(), call.comm());
    if (at_root && recvbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::own_block_of_send;
        work.recv.clear();
    } else if (!work.recv.one(recvbuf, recvcount, recvtype)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    work.send.clear();
    if (at_root && !work.send.blocks(sendbuf, sendcounts, displs, sendtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && work.in_place == InPlace::no && work.recv.bytes() != work.send.bytes(root))
        return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, root, -1);
}

bool prepare_allgather(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                       void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype) {
    if (call.is_left_to_mpi(recvcount, recvtype)) return false;
    work.reset(call.state(), call.comm());
    if (sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(sendbuf, sendcount, sendtype)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    if (!work.recv.blocks(recvbuf, recvcount, recvtype, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (work.in_place == InPlace::no && work.send.bytes() != work.recv.bytes())
        return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, 0, work.recv.bytes());
}

bool prepare_allgatherv(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                        void* recvbuf, Counts recvcounts, Counts displs, MPI_Datatype recvtype) {
    if (call.is_left_to_mpi(mean_count(recvcounts, call.size()), recvtype)) return false;
    work.reset(call.state(), call.comm());
    if (sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(sendbuf, sendcount, sendtype)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    if (!work.recv.blocks(recvbuf, recvcounts, displs, recvtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (work.in_place == InPlace::no && work.send.bytes() != work.recv.bytes(call.rank()))
        return call.refuse(Refusal::erroneous_arguments);
    // All ranks know all lengths: their mean chooses.
    return call.plan(work, 0, (work.recv.total() + call.size() - 1) / call.size());
}

bool prepare_bcast(Call& call, Work& work, void* buffer, std::int64_t count, MPI_Datatype type, int root) {
    if (!call.is_rank(root)) return call.refuse(Refusal::erroneous_arguments);
    if (call.is_left_to_mpi(count, type)) return false;
    work.reset(call.state(), call.comm());
    const bool at_root = call.rank() == root;
    CallerBuffer& here = at_root ? work.send : work.recv;
    (at_root ? work.recv : work.send).clear();
    if (!here.one(buffer, count, type)) return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, root, here.bytes());
}

bool prepare_alltoall(Call& call, Work& work, const void* sendbuf, std::int64_t sendcount, MPI_Datatype sendtype,
                      void* recvbuf, std::int64_t recvcount, MPI_Datatype recvtype) {
    if (call.is_left_to_mpi(recvcount, recvtype)) return false;
    work.reset(call.state(), call.comm());
    if (!work.recv.blocks(recvbuf, recvcount, recvtype, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::copy_of_recv;
        work.send.blocks(recvbuf, recvcount, recvtype, call.size());
        work.send.force_room();
    } else if (!work.send.blocks(sendbuf, sendcount, sendtype, call.size())) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    if (work.send.bytes() != work.recv.bytes()) return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, 0, work.recv.bytes());
}

bool prepare_alltoallv(Call& call, Work& work, const void* sendbuf, Counts sendcounts, Counts sdispls,
                       MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts rdispls, MPI_Datatype recvtype) {
    work.reset(call.state(), call.comm());
    if (!work.recv.blocks(recvbuf, recvcounts, rdispls, recvtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::copy_of_recv;
        work.send.blocks(recvbuf, recvcounts, rdispls, recvtype, call.size());
        work.send.force_room();
    } else if (!work.send.blocks(sendbuf, sendcounts, sdispls, sendtype, call.size())) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    return call.plan(work, 0, -1);
}

bool prepare_alltoallw(Call& call, Work& work, const void* sendbuf, Counts sendcounts, Counts sdispls,
                       const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Counts rdispls,
                       const MPI_Datatype* recvtypes) {
    work.reset(call.state(), call.comm());
    if (!work.recv.blocks(recvbuf, recvcounts, rdispls, recvtypes, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (sendbuf == MPI_IN_PLACE) {
        work.in_place = InPlace::copy_of_recv;
        work.send.blocks(recvbuf, recvcounts, rdispls, recvtypes, call.size());
        work.send.force_room();
    } else if (!work.send.blocks(sendbuf, sendcounts, sdispls, sendtypes, call.size())) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    return call.plan(work, 0, -1);
}

bool prepare_barrier(Call& call, Work& work) {
    work.reset(call.state(), call.comm());
    work.send.clear();
    work.recv.clear();
    return call.plan(work, 0, 0);
}

}  // namespace palmette::runtime
