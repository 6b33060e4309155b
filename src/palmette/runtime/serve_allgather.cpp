#include "palmette/runtime/call.hpp"
#include "palmette/runtime/serve.hpp"

namespace palmette::runtime {

using select::Function;

std::optional<int> serve_allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    Call call(Function::allgather, comm);
    if (!call.open()) return std::nullopt;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    TypeShape sent, received;
    if (!in_place && (sendcount < 0 || !shape_of(sendtype, sent))) return call.refuse(Refusal::erroneous_arguments);
    if (recvcount < 0 || !shape_of(recvtype, received)) return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = recvcount * received.size;
    if (!in_place && sendcount * sent.size != block) return call.refuse(Refusal::erroneous_arguments);
    if (block == 0) return call.refuse(Refusal::nothing_to_move);
    const CachedPlan* plan = call.plan(0, block);
    if (!plan) return std::nullopt;

    return call.run(*plan, [&]() -> int {
        Communicator& state = call.state();
        const int me = call.rank();
        Bases bases;
        const bool through = !received.dense;
        const auto block_in = [&](int r) { return static_cast<char*>(recvbuf) + r * recvcount * received.extent; };
        if (through) {
            state.packed_recv.resize(static_cast<std::size_t>(call.size()) * static_cast<std::size_t>(block));
            bases.recv = state.packed_recv.data();
        } else {
            bases.recv = static_cast<char*>(recvbuf);
        }
        if (in_place) {
            bases.send = bases.recv + me * block;
            if (through)
                if (const int error = pack(block_in(me), recvcount, recvtype, received, bases.send, comm)) return error;
        } else if (sent.dense) {
            bases.send = static_cast<char*>(const_cast<void*>(sendbuf));
        } else {
            state.packed_send.resize(static_cast<std::size_t>(block));
            bases.send = state.packed_send.data();
            if (const int error = pack(static_cast<const char*>(sendbuf), sendcount, sendtype, sent, bases.send, comm))
                return error;
        }
        state.executor().prepare(plan->bound);
        if (const int error = state.executor().run(plan->bound, bases, state.hidden())) return error;
        for (int r = 0; through && r < call.size(); ++r) {
            if (in_place && r == me) continue;
            if (const int error = unpack(bases.recv + r * block, recvcount, recvtype, received, block_in(r), comm))
                return error;
        }
        return MPI_SUCCESS;
    });
}

std::optional<int> serve_allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                    const int* recvcounts, const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
    Call call(Function::allgatherv, comm);
    if (!call.open()) return std::nullopt;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    TypeShape sent, received;
    if (!in_place && (sendcount < 0 || !shape_of(sendtype, sent))) return call.refuse(Refusal::erroneous_arguments);
    if (!shape_of(recvtype, received)) return call.refuse(Refusal::erroneous_arguments);
    std::int64_t total = 0;
    for (int r = 0; r < call.size(); ++r) {
        if (recvcounts[r] < 0) return call.refuse(Refusal::erroneous_arguments);
        total += recvcounts[r] * received.size;
    }
    if (!in_place && sendcount * sent.size != recvcounts[call.rank()] * received.size)
        return call.refuse(Refusal::erroneous_arguments);
    if (total == 0) return call.refuse(Refusal::nothing_to_move);
    // All ranks know all lengths: their mean chooses.
    const CachedPlan* plan = call.plan(0, (total + call.size() - 1) / call.size());
    if (!plan) return std::nullopt;

    return call.run(*plan, [&]() -> int {
        Communicator& state = call.state();
        const auto p = static_cast<std::size_t>(call.size());
        const auto me = static_cast<std::size_t>(call.rank());
        state.lengths.resize(p);
        state.offsets.resize(p);
        std::int64_t packed = 0;
        for (std::size_t r = 0; r < p; ++r) {
            state.lengths[r] = recvcounts[r] * received.size;
            state.offsets[r] = received.dense ? displs[r] * received.extent : packed;
            packed += state.lengths[r];
        }
        Layout layout;
        layout.lengths = state.lengths.data();
        layout.offsets = state.offsets.data();
        const BoundProgram bound = bind(plan->program, state.job(), layout);
        Bases bases;
        const bool through = !received.dense;
        const auto block_in = [&](std::size_t r) { return static_cast<char*>(recvbuf) + displs[r] * received.extent; };
        if (through) {
            state.packed_recv.resize(static_cast<std::size_t>(total));
            bases.recv = state.packed_recv.data();
        } else {
            bases.recv = static_cast<char*>(recvbuf);
        }
        if (in_place) {
            bases.send = bases.recv + state.offsets[me];
            if (through)
                if (const int error = pack(block_in(me), recvcounts[me], recvtype, received, bases.send, comm))
                    return error;
        } else if (sent.dense) {
            bases.send = static_cast<char*>(const_cast<void*>(sendbuf));
        } else {
            state.packed_send.resize(static_cast<std::size_t>(state.lengths[me]) + 1);
            bases.send = state.packed_send.data();
            if (const int error = pack(static_cast<const char*>(sendbuf), sendcount, sendtype, sent, bases.send, comm))
                return error;
        }
        state.executor().prepare(bound);
        if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
        for (std::size_t r = 0; through && r < p; ++r) {
            if (in_place && r == me) continue;
            if (const int error =
                    unpack(bases.recv + state.offsets[r], recvcounts[r], recvtype, received, block_in(r), comm))
                return error;
        }
        return MPI_SUCCESS;
    });
}

}  // namespace palmette::runtime
