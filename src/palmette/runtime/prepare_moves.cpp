// Collectives that move data.
#include "palmette/runtime/prepare.hpp"

namespace palmette::runtime {

using InPlace = Work::InPlace;

bool prepare_gather(Call& call, Work& work, const CallArguments& arguments) {
    const Side& send = arguments.send;
    const Side& recv = arguments.recv;
    if (!call.is_rank(arguments.root)) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == arguments.root;
    const bool own_in_place = at_root && send.in_place();
    const bool alike = recv.form == Side::Form::alike;
    const Side& known = own_in_place ? recv : send;
    if (alike && call.is_left_to_mpi(known.count, known.type)) return false;
    work.reset(call.state(), call.comm());
    // With MPI_IN_PLACE neither count nor type of the sending side means anything.
    if (own_in_place) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(send)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    work.recv.clear();
    if (at_root && !work.recv.blocks(recv, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !own_in_place && work.recv.bytes(call.rank()) != work.send.bytes())
        return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, arguments.root, !alike ? -1 : own_in_place ? work.recv.bytes() : work.send.bytes());
}

bool prepare_scatter(Call& call, Work& work, const CallArguments& arguments) {
    const Side& send = arguments.send;
    const Side& recv = arguments.recv;
    if (!call.is_rank(arguments.root)) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == arguments.root;
    const bool own_in_place = at_root && recv.in_place();
    const bool alike = send.form == Side::Form::alike;
    const Side& known = own_in_place ? send : recv;
    if (alike && call.is_left_to_mpi(known.count, known.type)) return false;
    work.reset(call.state(), call.comm());
    if (own_in_place) {
        work.in_place = InPlace::own_block_of_send;
        work.recv.clear();
    } else if (!work.recv.one(recv)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    work.send.clear();
    if (at_root && !work.send.blocks(send, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !own_in_place && work.send.bytes(call.rank()) != work.recv.bytes())
        return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, arguments.root, !alike ? -1 : at_root ? work.send.bytes() : work.recv.bytes());
}

bool prepare_allgather(Call& call, Work& work, const CallArguments& arguments) {
    const Side& send = arguments.send;
    const Side& recv = arguments.recv;
    const bool alike = recv.form == Side::Form::alike;
    if (call.is_left_to_mpi(alike ? recv.count : mean_count(recv.counts, call.size()), recv.type)) return false;
    work.reset(call.state(), call.comm());
    if (send.in_place()) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(send)) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    if (!work.recv.blocks(recv, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (!send.in_place() && work.send.bytes() != work.recv.bytes(call.rank()))
        return call.refuse(Refusal::erroneous_arguments);
    // All ranks know all lengths: their mean chooses.
    return call.plan(work, 0, (work.recv.total() + call.size() - 1) / call.size());
}

bool prepare_bcast(Call& call, Work& work, const CallArguments& arguments) {
    const Side& data = arguments.send;
    if (!call.is_rank(arguments.root)) return call.refuse(Refusal::erroneous_arguments);
    if (call.is_left_to_mpi(data.count, data.type)) return false;
    work.reset(call.state(), call.comm());
    const bool at_root = call.rank() == arguments.root;
    CallerBuffer& here = at_root ? work.send : work.recv;
    (at_root ? work.recv : work.send).clear();
    if (!here.one(data)) return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, arguments.root, here.bytes());
}

bool prepare_alltoall(Call& call, Work& work, const CallArguments& arguments) {
    const Side& send = arguments.send;
    const Side& recv = arguments.recv;
    const bool alike = recv.form == Side::Form::alike;
    if (alike && call.is_left_to_mpi(recv.count, recv.type)) return false;
    work.reset(call.state(), call.comm());
    if (!work.recv.blocks(recv, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (send.in_place()) {
        work.in_place = InPlace::copy_of_recv;
        work.send.blocks(recv, call.size());
        work.send.force_room();
    } else if (!work.send.blocks(send, call.size())) {
        return call.refuse(Refusal::erroneous_arguments);
    }
    if (alike && work.send.bytes() != work.recv.bytes()) return call.refuse(Refusal::erroneous_arguments);
    return call.plan(work, 0, alike ? work.recv.bytes() : -1);
}

bool prepare_barrier(Call& call, Work& work, const CallArguments&) {
    work.reset(call.state(), call.comm());
    work.send.clear();
    work.recv.clear();
    return call.plan(work, 0, 0);
}

}  // namespace palmette::runtime
