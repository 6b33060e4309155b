#include "palmette/runtime/call.hpp"
#include "palmette/runtime/serve.hpp"
#include "palmette/runtime/some_lengths.hpp"

namespace palmette::runtime {

using select::Function;

std::optional<int> serve_scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Call call(Function::scatter, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    const bool in_place = at_root && recvbuf == MPI_IN_PLACE;
    TypeShape sent, received;
    // With MPI_IN_PLACE neither recvcount nor recvtype means anything.
    if (!in_place && (recvcount < 0 || recvbuf == MPI_IN_PLACE || !shape_of(recvtype, received)))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && (sendcount < 0 || !shape_of(sendtype, sent))) return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = at_root ? sendcount * sent.size : recvcount * received.size;
    if (at_root && !in_place && recvcount * received.size != block) return call.refuse(Refusal::erroneous_arguments);
    if (block == 0) return call.refuse(Refusal::nothing_to_move);
    const CachedPlan* plan = call.plan(root, block);
    if (!plan) return std::nullopt;

    return call.run(*plan, [&]() -> int {
        Communicator& state = call.state();
        const auto p = static_cast<std::size_t>(call.size());
        Bases bases;
        if (at_root && !sent.dense) {
            state.packed_send.resize(p * static_cast<std::size_t>(block));
            bases.send = state.packed_send.data();
            for (int r = 0; r < call.size(); ++r) {
                const char* source = static_cast<const char*>(sendbuf) + r * sendcount * sent.extent;
                if (const int error = pack(source, sendcount, sendtype, sent, bases.send + r * block, comm))
                    return error;
            }
        } else if (at_root) {
            bases.send = static_cast<char*>(const_cast<void*>(sendbuf));
        }
        const bool through = !in_place && !received.dense;
        if (in_place) {
            bases.recv = bases.send + root * block;
        } else if (through) {
            state.packed_recv.resize(static_cast<std::size_t>(block));
            bases.recv = state.packed_recv.data();
        } else {
            bases.recv = static_cast<char*>(recvbuf);
        }
        state.executor().prepare(plan->bound);
        if (const int error = state.executor().run(plan->bound, bases, state.hidden())) return error;
        return through ? unpack(bases.recv, recvcount, recvtype, received, static_cast<char*>(recvbuf), comm)
                       : MPI_SUCCESS;
    });
}

std::optional<int> serve_scatterv(const void* sendbuf, const int* sendcounts, const int* displs, MPI_Datatype sendtype,
                                  void* recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Call call(Function::scatterv, comm);
    if (!call.open()) return std::nullopt;
    if (root < 0 || root >= call.size()) return call.refuse(Refusal::erroneous_arguments);
    const bool at_root = call.rank() == root;
    const bool in_place = at_root && recvbuf == MPI_IN_PLACE;
    TypeShape sent, received;
    if (!in_place && (recvcount < 0 || recvbuf == MPI_IN_PLACE || !shape_of(recvtype, received)))
        return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !shape_of(sendtype, sent)) return call.refuse(Refusal::erroneous_arguments);
    for (int r = 0; at_root && r < call.size(); ++r)
        if (sendcounts[r] < 0) return call.refuse(Refusal::erroneous_arguments);
    if (at_root && !in_place && recvcount * received.size != sendcounts[root] * sent.size)
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
            state.lengths[r] = sendcounts[r] * sent.size;
            state.offsets[r] = sent.dense ? displs[r] * sent.extent : total;
            total += state.lengths[r];
        }
        const std::int64_t own = at_root ? state.lengths[static_cast<std::size_t>(root)] : recvcount * received.size;
        SomeLengths some;
        if (plan->relays)
            if (const int error = learn_lengths(state, *plan, own, some)) return error;
        some.set(call.rank(), own);

        Layout layout;
        layout.all_ranks = plan::Buffer::send;
        if (at_root) {
            layout.lengths = state.lengths.data();
            layout.offsets = state.offsets.data();
        } else {
            layout.some_lengths = &some.sorted();
        }
        const BoundProgram bound = bind(plan->program, state.job(), layout);
        Bases bases;
        if (at_root && !sent.dense) {
            state.packed_send.resize(static_cast<std::size_t>(total) + 1);
            bases.send = state.packed_send.data();
            for (std::size_t r = 0; r < p; ++r) {
                if (in_place && static_cast<int>(r) == root) continue;
                const char* source = static_cast<const char*>(sendbuf) + displs[r] * sent.extent;
                if (const int error = pack(source, sendcounts[r], sendtype, sent, bases.send + state.offsets[r], comm))
                    return error;
            }
        } else if (at_root) {
            bases.send = static_cast<char*>(const_cast<void*>(sendbuf));
        }
        const bool through = !in_place && !received.dense;
        if (in_place) {
            bases.recv = bases.send + state.offsets[static_cast<std::size_t>(root)];
        } else if (through) {
            state.packed_recv.resize(static_cast<std::size_t>(own) + 1);
            bases.recv = state.packed_recv.data();
        } else {
            bases.recv = static_cast<char*>(recvbuf);
        }
        state.executor().prepare(bound);
        if (const int error = state.executor().run(bound, bases, state.hidden())) return error;
        return through ? unpack(bases.recv, recvcount, recvtype, received, static_cast<char*>(recvbuf), comm)
                       : MPI_SUCCESS;
    });
}

}  // namespace palmette::runtime
