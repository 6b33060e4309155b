// Argument preparation for reductions and scans.
#include "palmette/runtime/call/prepare.hpp"

namespace palmette::runtime {
namespace {

using InPlace = Work::InPlace;

/// False: refused. Arguments of an operation are the same on all ranks, and so is the result.
bool set_operation(Call& call, Work& work, MPI_Op op, MPI_Datatype type, std::int64_t count) {
    if (count < 0) return call.refuse(Refusal::erroneous_arguments);
    if (!work.operation || !work.operation->is_again(op, type, call.comm()))
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

}  // namespace

bool prepare_reduction(Call& call, Work& work, const CallArguments& arguments) {
    const select::Function function = arguments.function;
    const bool rooted = function == select::Function::reduce;
    if (rooted && !call.is_rank(arguments.root)) return call.refuse(Refusal::erroneous_arguments);
    const int root = rooted ? arguments.root : 0;
    Side send = arguments.send;
    bool receives = !rooted || call.rank() == root;
    if (function == select::Function::exscan && call.rank() == 0) {
        // The first rank has no result; its input may lie in recvbuf, which must stay as it is.
        if (send.in_place()) send.buffer = arguments.recv.buffer;
        receives = false;
    }
    const std::int64_t count = send.count;
    if (call.is_left_to_mpi(count, send.type)) return false;
    work.reset(call.state(), call.comm());
    if (!set_operation(call, work, arguments.op, send.type, count)) return false;
    if (send.in_place()) {
        if (!receives) return call.refuse(Refusal::erroneous_arguments);
        work.in_place = InPlace::all_of_recv;
        work.send.clear();
    } else {
        work.send.elements(send.buffer, count, *work.operation, send.type);
    }
    if (receives)
        work.recv.elements(arguments.recv.buffer, count, *work.operation, send.type);
    else
        work.recv.clear();
    // Possibly erroneous at this rank only: the other ranks get their results.
    if (receives && count > 0 && send.buffer == arguments.recv.buffer && send.buffer != MPI_BOTTOM &&
        call.finds_aliases())
        work.fault = MPI_ERR_BUFFER;
    return call.plan(work, root, count * work.operation->layout().extent, &*work.operation);
}

bool prepare_reduce_scatter(Call& call, Work& work, const CallArguments& arguments) {
    const Side& recv = arguments.recv;
    const bool alike = recv.form == Side::Form::alike;
    const std::int64_t all = alike ? recv.count : sum_of(recv.counts, call.size());
    if (call.is_left_to_mpi(alike ? all : mean_count(all, call.size()), recv.type, all)) return false;
    work.reset(call.state(), call.comm());
    if (!alike && !recv.counts) return call.refuse(Refusal::erroneous_arguments);
    for (int r = 0; !alike && r < call.size(); ++r)
        if (recv.counts[r] < 0) return call.refuse(Refusal::erroneous_arguments);
    if (!set_operation(call, work, arguments.op, recv.type, alike ? recv.count : 0)) return false;
    const bool in_place = arguments.send.in_place();
    work.send.element_blocks(in_place ? recv.buffer : arguments.send.buffer, recv.counts, recv.count, *work.operation,
                             recv.type, call.size());
    if (in_place) {
        work.in_place = InPlace::copy_of_recv;
        work.send.force_staging();
    }
    work.recv.elements(recv.buffer, alike ? recv.count : recv.counts[call.rank()], *work.operation, recv.type);
    return call.plan(work, 0, (work.send.total() + call.size() - 1) / call.size(), &*work.operation);
}

}  // namespace palmette::runtime
