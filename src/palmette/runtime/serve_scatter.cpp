#include "palmette/runtime/call.hpp"
#include "palmette/runtime/caller_buffers.hpp"
#include "palmette/runtime/serve.hpp"
#include "palmette/runtime/some_lengths.hpp"

namespace palmette::runtime {
namespace {

using select::Function;

/// One call, with counts that all share or counts of their own. `all` matters at the root only, `own` not where it is in place.
struct Scatter {
    Call& call;
    int root;
    bool at_root, in_place;
    OneBlock own;
    AllBlocks all;

    int run(const BoundProgram& bound) {
        Communicator& state = call.state();
        Bases bases;
        if (at_root)
            if (const int error = all.open_to_read(state.packed_send, call.comm(), in_place ? root : -1, bases.send))
                return error;
        if (in_place)
            bases.recv = bases.send + all.offset(root);
        else if (const int error = own.open_to_write(state.packed_recv, bases.recv))
            return error;
        state.executor().prepare(bound);
        if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
        return in_place ? MPI_SUCCESS : own.close(bases.recv, call.comm());
    }

    /// The program is bound anew, since counts may differ from call to call.
    int run_with_own_counts(const CachedPlan& plan) {
        Communicator& state = call.state();
        if (at_root)
            if (const int error = all.prepare()) return error;
        const std::int64_t own_bytes = at_root ? all.bytes(root) : own.bytes();
        Layout layout = at_root ? all.layout(plan::Buffer::send) : Layout();
        layout.all_ranks = plan::Buffer::send;
        SomeLengths some;
        if (plan.relays)
            if (const int error = learn_lengths(state, plan, own_bytes, layout.lengths, some)) return error;
        some.set(call.rank(), own_bytes);
        if (!at_root) layout.some_lengths = &some.sorted();
        return run(bind(plan.program, state.job(), layout));
    }
};

}  // namespace

std::optional<int> serve_scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Call call(Function::scatter, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    Scatter scatter{call, root, at_root, at_root && recvbuf == MPI_IN_PLACE, {}, {}};
    // With MPI_IN_PLACE neither recvcount nor recvtype means anything.
    if (!scatter.in_place && !scatter.own.set(recvbuf, recvcount, recvtype))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !scatter.all.set(sendbuf, sendcount, sendtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = at_root ? scatter.all.bytes(root) : scatter.own.bytes();
    if (at_root && !scatter.in_place && scatter.own.bytes() != block) return call.refuse(Refusal::erroneous_arguments);
    if (block == 0) return call.refuse(Refusal::nothing_to_move);
    const CachedPlan* plan = call.plan(root, block);
    if (!plan) return std::nullopt;
    return call.run(*plan, [&]() -> int {
        if (at_root)
            if (const int error = scatter.all.prepare()) return error;
        return scatter.run(plan->bound);
    });
}

std::optional<int> serve_scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype,
                                  void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Call call(Function::scatterv, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    Scatter scatter{call, root, at_root, at_root && recvbuf == MPI_IN_PLACE, {}, {}};
    if (!scatter.in_place && !scatter.own.set(recvbuf, recvcount, recvtype))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !scatter.all.set(sendbuf, sendcounts, displs, sendtype, call.size()))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !scatter.in_place && scatter.own.bytes() != scatter.all.bytes(root))
        return call.refuse(Refusal::erroneous_arguments);
    const CachedPlan* plan = call.plan(root, -1);
    if (!plan) return std::nullopt;
    return call.run(*plan, [&] { return scatter.run_with_own_counts(*plan); });
}

}  // namespace palmette::runtime
