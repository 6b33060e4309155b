#include "palmette/runtime/call.hpp"
#include "palmette/runtime/caller_buffers.hpp"
#include "palmette/runtime/serve.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

int run_allgather(Call& call, bool in_place, OneBlock& own, AllBlocks& all, const BoundProgram& bound) {
    Communicator& state = call.state();
    Bases bases;
    if (const int error = all.open_to_write(state.packed_recv, bases.recv)) return error;
    if (in_place) {
        bases.send = bases.recv + all.offset(call.rank());
        if (const int error = all.bring(call.rank(), bases.recv, call.comm())) return error;
    } else if (const int error = own.open_to_read(state.packed_send, call.comm(), bases.send)) {
        return error;
    }
    state.executor().prepare(bound);
    if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
    return all.close(bases.recv, call.comm(), in_place ? call.rank() : -1);
}

}  // namespace

std::optional<int> serve_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    Call call(Function::allgather, comm);
    if (!call.open()) return std::nullopt;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    OneBlock own;
    AllBlocks all;
    // With MPI_IN_PLACE neither sendcount nor sendtype means anything.
    if (!in_place && !own.set(sendbuf, sendcount, sendtype)) return call.refuse(Refusal::erroneous_arguments);
    if (!all.set(recvbuf, recvcount, recvtype, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (!in_place && own.bytes() != all.bytes(0)) return call.refuse(Refusal::erroneous_arguments);
    if (all.total() == 0) return call.refuse(Refusal::nothing_to_move);
    const CachedPlan* plan = call.plan(0, all.bytes(0));
    if (!plan) return std::nullopt;
    return call.run(*plan, [&]() -> int {
        if (const int error = all.prepare()) return error;
        return run_allgather(call, in_place, own, all, plan->bound);
    });
}

std::optional<int> serve_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
    Call call(Function::allgatherv, comm);
    if (!call.open()) return std::nullopt;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    OneBlock own;
    AllBlocks all;
    if (!in_place && !own.set(sendbuf, sendcount, sendtype)) return call.refuse(Refusal::erroneous_arguments);
    if (!all.set(recvbuf, recvcounts, displs, recvtype, call.size())) return call.refuse(Refusal::erroneous_arguments);
    if (!in_place && own.bytes() != all.bytes(call.rank())) return call.refuse(Refusal::erroneous_arguments);
    if (all.total() == 0) return call.refuse(Refusal::nothing_to_move);
    // All ranks know all lengths: their mean chooses.
    const CachedPlan* plan = call.plan(0, (all.total() + call.size() - 1) / call.size());
    if (!plan) return std::nullopt;
    return call.run(*plan, [&]() -> int {
        if (const int error = all.prepare()) return error;
        const BoundProgram bound = bind(plan->program, call.state().job(), all.layout(plan::Buffer::recv));
        return run_allgather(call, in_place, own, all, bound);
    });
}

}  // namespace palmette::runtime
