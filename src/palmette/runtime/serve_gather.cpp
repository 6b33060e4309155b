#include "palmette/runtime/call.hpp"
#include "palmette/runtime/serve.hpp"
#include "palmette/runtime/some_lengths.hpp"

namespace palmette::runtime {

using select::Function;

std::optional<int> serve_gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                                MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Call call(Function::gather, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    const bool in_place = at_root && sendbuf == MPI_IN_PLACE;
    TypeShape sent, received;
    // With MPI_IN_PLACE neither sendcount nor sendtype means anything.
    if (!in_place && (sendcount < 0 || sendbuf == MPI_IN_PLACE || !shape_of(sendtype, sent)))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && (recvcount < 0 || !shape_of(recvtype, received))) return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = in_place ? recvcount * received.size : sendcount * sent.size;
    if (at_root && recvcount * received.size != block) return call.refuse(Refusal::erroneous_arguments);
    if (block == 0) return call.refuse(Refusal::nothing_to_move);
    const CachedPlan* plan = call.plan(root, block);
    if (!plan) return std::nullopt;

    return call.run(*plan, [&]() -> int {
        Communicator& state = call.state();
        const auto p = static_cast<std::size_t>(call.size());
        Executor& executor = state.executor();
        Bases bases;
        const bool through = at_root && !received.dense;
        if (at_root && through) {
            state.packed_recv.resize(p * static_cast<std::size_t>(block));
            bases.recv = state.packed_recv.data();
        } else if (at_root) {
            bases.recv = static_cast<char*>(recvbuf);
        }
        if (in_place) {
            bases.send = bases.recv + root * block;
        } else if (sent.dense) {
            bases.send = static_cast<char*>(const_cast<void*>(sendbuf));
        } else {
            state.packed_send.resize(static_cast<std::size_t>(block));
            bases.send = state.packed_send.data();
            if (const int error = pack(static_cast<const char*>(sendbuf), sendcount, sendtype, sent, bases.send, comm))
                return error;
        }
        executor.prepare(plan->bound);
        if (const int error = executor.run(plan->bound, bases, state.hidden())) return error;
        for (int r = 0; through && r < call.size(); ++r) {
            if (in_place && r == root) continue;
            char* target = static_cast<char*>(recvbuf) + r * recvcount * received.extent;
            if (const int error = unpack(bases.recv + r * block, recvcount, recvtype, received, target, comm))
                return error;
        }
        return MPI_SUCCESS;
    });
}

std::optional<int> serve_gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 const int* recvcounts, const int* displs, MPI_Datatype recvtype, int root,
                                 MPI_Comm comm) {
    Call call(Function::gatherv, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    const bool in_place = at_root && sendbuf == MPI_IN_PLACE;
    TypeShape sent, received;
    if (!in_place && (sendcount < 0 || sendbuf == MPI_IN_PLACE || !shape_of(sendtype, sent)))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !shape_of(recvtype, received)) return call.refuse(Refusal::erroneous_arguments);
    for (int r = 0; at_root && r < call.size(); ++r)
        if (recvcounts[r] < 0) return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !in_place && sendcount * sent.size != recvcounts[root] * received.size)
        return call.refuse(Refusal::erroneous_arguments);
    const CachedPlan* plan = call.plan(root, -1);
    if (!plan) return std::nullopt;

    return call.run(*plan, [&]() -> int {
        Communicator& state = call.state();
        const auto p = static_cast<std::size_t>(at_root ? call.size() : 0);
        state.lengths.resize(p);
        state.offsets.resize(p);
        std::int64_t total = 0;
        for (std::size_t r = 0; r < p; ++r) {
            state.lengths[r] = recvcounts[r] * received.size;
            state.offsets[r] = received.dense ? displs[r] * received.extent : total;
            total += state.lengths[r];
        }
        const std::int64_t own = in_place ? state.lengths[static_cast<std::size_t>(root)] : sendcount * sent.size;
        SomeLengths some;
        if (plan->relays)
            if (const int error = learn_lengths(state, *plan, own, some)) return error;
        some.set(call.rank(), own);

        Layout layout;
        layout.all_ranks = plan::Buffer::recv;
        if (at_root) {
            layout.lengths = state.lengths.data();
            layout.offsets = state.offsets.data();
        } else {
            layout.some_lengths = &some.sorted();
        }
        const BoundProgram bound = bind(plan->program, state.job(), layout);
        const bool through = at_root && !received.dense;
        Bases bases;
        if (through) {
            state.packed_recv.resize(static_cast<std::size_t>(total) + 1);
            bases.recv = state.packed_recv.data();
        } else if (at_root) {
            bases.recv = static_cast<char*>(recvbuf);
        }
        if (in_place) {
            bases.send = bases.recv + state.offsets[static_cast<std::size_t>(root)];
        } else if (sent.dense) {
            bases.send = static_cast<char*>(const_cast<void*>(sendbuf));
        } else {
            state.packed_send.resize(static_cast<std::size_t>(own) + 1);
            bases.send = state.packed_send.data();
            if (const int error = pack(static_cast<const char*>(sendbuf), sendcount, sendtype, sent, bases.send, comm))
                return error;
        }
        state.executor().prepare(bound);
        if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
        for (std::size_t r = 0; through && r < p; ++r) {
            if (in_place && static_cast<int>(r) == root) continue;
            char* target = static_cast<char*>(recvbuf) + displs[r] * received.extent;
            if (const int error =
                    unpack(bases.recv + state.offsets[r], recvcounts[r], recvtype, received, target, comm))
                return error;
        }
        return MPI_SUCCESS;
    });
}

}  // namespace palmette::runtime
