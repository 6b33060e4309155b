// Argument preparation for collectives that move data.
#include "palmette/runtime/call/prepare.hpp"

namespace palmette::runtime {

int fault_of(const Side& side, int ranks) {
    if (side.form == Side::Form::alike && side.count < 0) return MPI_ERR_COUNT;
    if (side.in_place()) return MPI_ERR_BUFFER;
    if (side.form == Side::Form::alike) return MPI_ERR_TYPE;
    if (!side.counts || !side.displacements || (side.form == Side::Form::typed && !side.types)) return MPI_ERR_ARG;
    for (int r = 0; r < ranks; ++r)
        if (side.counts[r] < 0) return MPI_ERR_COUNT;
    return MPI_ERR_TYPE;
}

namespace {

using InPlace = Work::InPlace;

/// Whether a side that CallerBuffer rejects moves no data anyway, as the other ranks assume, too. Otherwise the length
/// of its messages is unknown.
bool moves_nothing(const Side& side, int ranks) {
    if (side.form == Side::Form::alike) return side.count == 0 && !side.in_place();
    for (int r = 0; side.counts && r < ranks; ++r)
        if (side.counts[r] != 0) return false;
    return static_cast<bool>(side.counts) && !side.in_place();
}

/// The blocks of a side with lists, or none. False: the MPI must check the arguments.
bool set_lists(Call& call, Work& work, CallerBuffer& buffer, const Side& side) {
    if (buffer.blocks(side, call.size())) return true;
    if (!moves_nothing(side, call.size())) return false;
    buffer.use_placeholder_lists(call.size());
    work.fault = fault_of(side, call.size());
    return true;
}

/// One block of `bytes`, which the other ranks expect.
void set_expected(Work& work, CallerBuffer& buffer, const Side& side, std::int64_t bytes) {
    if (buffer.one(side) && buffer.bytes() == bytes) return;
    if (work.fault == MPI_SUCCESS) work.fault = buffer.one(side) ? MPI_ERR_TRUNCATE : fault_of(side, 0);
    buffer.use_placeholder(bytes);
}

/// MPICH and its derivatives check for aliased buffers; Open MPI doesn't.
void check_alias(Call& call, Work& work, const void* input, const void* output) {
    if (input == output && input != MPI_BOTTOM && work.in_place == InPlace::no && work.fault == MPI_SUCCESS &&
        call.finds_aliases())
        work.fault = MPI_ERR_BUFFER;
}

}  // namespace

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
    work.recv.clear();
    // With MPI_IN_PLACE count and type of the sending side are ignored.
    if (own_in_place) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(send)) {
        // Without a block length no plan can be chosen for uniform blocks.
        if (alike || !moves_nothing(send, 0)) return call.refuse(Refusal::erroneous_arguments);
        work.fault = fault_of(send, 0);
        work.send.use_placeholder(0);
    }
    if (!at_root) return call.plan(work, arguments.root, alike ? work.send.bytes() : -1);
    if (!alike) {
        if (!set_lists(call, work, work.recv, recv)) return call.refuse(Refusal::erroneous_arguments);
        if (!own_in_place && work.fault == MPI_SUCCESS && work.send.bytes() != work.recv.bytes(call.rank()))
            set_expected(work, work.send, send, work.recv.bytes(call.rank()));
        return call.plan(work, arguments.root, -1);
    }
    const bool valid = work.recv.blocks(recv, call.size());
    if (!valid && own_in_place) return call.refuse(Refusal::erroneous_arguments);
    const std::int64_t block = own_in_place ? work.recv.bytes() : work.send.bytes();
    if (!valid || work.recv.bytes() != block) {
        work.fault = valid ? MPI_ERR_TRUNCATE : fault_of(recv, call.size());
        work.recv.use_placeholder(block, call.size());
    }
    if (block > 0 && valid) check_alias(call, work, send.buffer, work.recv.address_of(call.rank()));
    return call.plan(work, arguments.root, block);
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
    work.send.clear();
    if (own_in_place) {
        work.in_place = InPlace::own_block_of_send;
        work.recv.clear();
    } else if (!work.recv.one(recv)) {
        if (alike ? !at_root : !moves_nothing(recv, 0)) return call.refuse(Refusal::erroneous_arguments);
        work.fault = fault_of(recv, 0);
        work.recv.use_placeholder(0);
    }
    if (!at_root) return call.plan(work, arguments.root, alike ? work.recv.bytes() : -1);
    if (!alike) {
        if (!set_lists(call, work, work.send, send)) return call.refuse(Refusal::erroneous_arguments);
        if (!own_in_place) set_expected(work, work.recv, recv, work.send.bytes(call.rank()));
        return call.plan(work, arguments.root, -1);
    }
    if (!work.send.blocks(send, call.size())) {
        if (own_in_place || work.fault != MPI_SUCCESS) return call.refuse(Refusal::erroneous_arguments);
        work.fault = fault_of(send, call.size());
        work.send.use_placeholder(work.recv.bytes(), call.size());
    }
    if (!own_in_place) set_expected(work, work.recv, recv, work.send.bytes());
    return call.plan(work, arguments.root, work.send.bytes());
}

bool prepare_allgather(Call& call, Work& work, const CallArguments& arguments) {
    const Side& send = arguments.send;
    const Side& recv = arguments.recv;
    const bool alike = recv.form == Side::Form::alike;
    const std::int64_t all = alike ? recv.count : sum_of(recv.counts, call.size());
    if (call.is_left_to_mpi(alike ? all : mean_count(all, call.size()), recv.type, all)) return false;
    work.reset(call.state(), call.comm());
    if (!work.recv.blocks(recv, call.size())) {
        // With uniform blocks this rank receives as much from each rank as it sends.
        if (!alike || !work.send.one(send)) return call.refuse(Refusal::erroneous_arguments);
        work.fault = fault_of(recv, call.size());
        work.recv.use_placeholder(work.send.bytes(), call.size());
    }
    if (send.in_place()) {
        work.in_place = InPlace::own_block_of_recv;
        work.send.clear();
    } else if (!work.send.one(send)) {
        // MPICH sometimes treats such a block as empty and raises no error.
        return call.refuse(Refusal::erroneous_arguments);
    } else {
        set_expected(work, work.send, send, work.recv.bytes(call.rank()));
        if (work.send.bytes() > 0) check_alias(call, work, send.buffer, work.recv.address_of(call.rank()));
    }
    // All ranks know all lengths: the choice depends on their mean.
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
    RepeatedCounts* repeated = !alike && call.blocking() ? repeated_counts(call.state(), arguments.function) : nullptr;
    const auto refuse_lists = [&] {
        if (repeated) repeated->count_erroneous(call.state());
        return call.refuse(Refusal::erroneous_arguments);
    };
    if (!alike) {
        if (!set_lists(call, work, work.recv, recv)) return refuse_lists();
    } else if (!work.recv.blocks(recv, call.size())) {
        if (!work.send.blocks(send, call.size())) return call.refuse(Refusal::erroneous_arguments);
        work.fault = fault_of(recv, call.size());
        work.recv.use_placeholder(work.send.bytes(), call.size());
    }
    if (send.in_place()) {
        if (work.fault != MPI_SUCCESS) {
            work.send.use_placeholder_lists(call.size());
        } else {
            work.in_place = InPlace::copy_of_recv;
            work.send.blocks(recv, call.size());
            work.send.force_staging();
        }
    } else if (!alike) {
        if (!set_lists(call, work, work.send, send)) return refuse_lists();
    } else {
        const bool valid = work.send.blocks(send, call.size());
        if (!valid || work.send.bytes() != work.recv.bytes()) {
            work.fault = valid ? MPI_ERR_TRUNCATE : fault_of(send, call.size());
            work.send.use_placeholder(work.recv.bytes(), call.size());
        }
    }
    // With lists the blocks of both sides may be disjoint parts of one buffer.
    if (alike && work.send.total() > 0) check_alias(call, work, send.buffer, recv.buffer);
    if (alike) return call.plan(work, 0, work.recv.bytes());
    const bool served = call.plan(work, 0, repeated ? repeated->agreed_block(work) : -1);
    if (repeated) repeated->set_served(served);
    return served;
}

bool prepare_barrier(Call& call, Work& work, const CallArguments&) {
    work.reset(call.state(), call.comm());
    work.send.clear();
    work.recv.clear();
    return call.plan(work, 0, 0);
}

}  // namespace palmette::runtime
