#include "palmette/runtime/call.hpp"
#include "palmette/runtime/caller_buffers.hpp"
#include "palmette/runtime/serve.hpp"
#include "palmette/runtime/some_lengths.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

/// One call, with counts that all share or counts of their own. `all` matters at the root only, `own` not where it is in place.
struct Gather {
    Call& call;
    int root;
    bool at_root, in_place;
    OneBlock own;
    AllBlocks all;

    int run(const BoundProgram& bound) {
        Communicator& state = call.state();
        Bases bases;
        if (at_root)
            if (const int error = all.open_to_write(state.packed_recv, bases.recv)) return error;
        if (in_place)
            bases.send = bases.recv + all.offset(root);
        else if (const int error = own.open_to_read(state.packed_send, call.comm(), bases.send))
            return error;
        state.executor().prepare(bound);
        if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
        return at_root ? all.close(bases.recv, call.comm(), in_place ? root : -1) : MPI_SUCCESS;
    }

    /// The program is bound anew, since counts may differ from call to call.
    int run_with_own_counts(const CachedPlan& plan) {
        Communicator& state = call.state();
        if (at_root)
            if (const int error = all.prepare()) return error;
        const std::int64_t own_bytes = in_place ? all.bytes(root) : own.bytes();
        SomeLengths some;
        if (plan.relays)
            if (const int error = learn_lengths(state, plan, own_bytes, nullptr, some)) return error;
        some.set(call.rank(), own_bytes);
        Layout layout = at_root ? all.layout(plan::Buffer::recv) : Layout();
        layout.all_ranks = plan::Buffer::recv;
        if (!at_root) layout.some_lengths = &some.sorted();
        return run(bind(plan.program, state.job(), layout));
    }
};

}  // namespace

std::optional<int> serve_gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                                MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Call call(Function::gather, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    Gather gather{call, root, at_root, at_root && sendbuf == MPI_IN_PLACE, {}, {}};
    // With MPI_IN_PLACE neither sendcount nor sendtype means anything.
    if (!gather.in_place && !gather.own.set(sendbuf, sendcount, sendtype))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !gather.all.set(recvbuf, recvcount, recvtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = gather.in_place ? gather.all.bytes(root) : gather.own.bytes();
    if (at_root && gather.all.bytes(root) != block) return call.refuse(Refusal::erroneous_arguments);
    if (block == 0) return call.refuse(Refusal::nothing_to_move);
    const CachedPlan* plan = call.plan(root, block);
    if (!plan) return std::nullopt;
    return call.run(*plan, [&]() -> int {
        if (at_root)
            if (const int error = gather.all.prepare()) return error;
        return gather.run(plan->bound);
    });
}

std::optional<int> serve_gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 const int* recvcounts, const int* displs, MPI_Datatype recvtype, int root,
                                 MPI_Comm comm) {
    Call call(Function::gatherv, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    Gather gather{call, root, at_root, at_root && sendbuf == MPI_IN_PLACE, {}, {}};
    if (!gather.in_place && !gather.own.set(sendbuf, sendcount, sendtype))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !gather.all.set(recvbuf, recvcounts, displs, recvtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !gather.in_place && gather.own.bytes() != gather.all.bytes(root))
        return call.refuse(Refusal::erroneous_arguments);
    const CachedPlan* plan = call.plan(root, -1);
    if (!plan) return std::nullopt;
    return call.run(*plan, [&] { return gather.run_with_own_counts(*plan); });
}

}  // namespace palmette::runtime
