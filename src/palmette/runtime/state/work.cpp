#include "palmette/runtime/state/work.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/ways/device.hpp"

namespace palmette::runtime {

using plan::Collective;

namespace {

/// Scratch memory up to so many bytes is kept for the next call.
constexpr std::size_t most_kept = 4 << 20;

}  // namespace

int Work::open() {
    // A persistent operation is opened at each start, and bound at the first.
    const bool again = bound_ != nullptr;
    if (!again) {
        if (const int error = send.prepare()) return error;
        if (const int error = recv.prepare()) return error;
    }
    piecewise_ = piecewise_ && (send.is_staged() || recv.is_staged());
    device_ = plan->key.blocking ? OnDevice::current() : nullptr;
    if (device_ && (send.is_staged() || recv.is_staged())) device_->read_all();
    const int rank = state->rank();
    // The program may free its own communicator while this is in flight; and errors on it would be raised before we can
    // handle them.
    const MPI_Comm shadow_comm = state->shadow_comm();
    if (operation) operation->pack_for(shadow_comm);
    switch (in_place) {
        case InPlace::no:
        case InPlace::copy_of_recv:
            if (piecewise_) {
                recv.open_to_write(bases_.recv);
                // What arrives would overwrite input that lies in the same place.
                const bool packed = in_place == InPlace::copy_of_recv;
                if (!packed)
                    send.open_to_write(bases_.send);
                else if (const int error = send.open_to_read(shadow_comm, -1, bases_.send))
                    return error;
                staged_.open(send, recv, bases_, packed, shadow_comm);
                break;
            }
            if (const int error = send.open_to_read(shadow_comm, -1, bases_.send)) return error;
            recv.open_to_write(bases_.recv);
            for (std::size_t i = 0; plan->way->kept_blocks && i < plan->way->kept_blocks->size(); ++i)
                if (const int error = recv.pack_if_staged((*plan->way->kept_blocks)[i], bases_.recv, shadow_comm))
                    return error;
            break;
        case InPlace::own_block_of_recv:
            recv.open_to_write(bases_.recv);
            bases_.send = bases_.recv + recv.offset(rank);
            if (const int error = recv.pack_if_staged(rank, bases_.recv, shadow_comm)) return error;
            break;
        case InPlace::own_block_of_send:
            if (const int error = send.open_to_read(shadow_comm, rank, bases_.send)) return error;
            bases_.recv = bases_.send + send.offset(rank);
            break;
        case InPlace::all_of_recv:
            if (const int error = recv.open_to_read(shadow_comm, -1, bases_.recv)) return error;
            bases_.send = bases_.recv;
            break;
    }
    if (again) return MPI_SUCCESS;
    bound_ = &plan->bound;
    return plan->bound.steps.empty() && !plan->program.steps.empty() ? plan->way->bind(*this) : MPI_SUCCESS;
}

execute::Environment Work::environment(MpiExecutor& executor) {
    executor.messages().use(state->shadow_comm(), plan->buffered_sends);
    execute::Environment out;
    named_.assign(plan->way->named_buffers, bases_.recv);
    out.bases = bases_;
    out.bases.named = named_.data();
    out.memory = elsewhere_.memory ? elsewhere_.memory : &host_memory();
    out.scratch = elsewhere_.scratch;
    out.observer = Process::instance().observers().of_steps();
    out.data = piecewise_ ? &staged_ : elsewhere_.data;
    out.shared = plan->route.shares ? state->shared_node() : nullptr;
    out.single_copy_from = plan->route.single_copy_from;
    return out;
}

char* Work::scratch_copy(const char* from, std::size_t bytes) {
    char* const to = scratch(bytes);
    std::memcpy(to, from, bytes);
    return to;
}

int Work::close() {
    if (piecewise_) return staged_.close();
    switch (in_place) {
        case InPlace::own_block_of_send:
            return MPI_SUCCESS;
        case InPlace::own_block_of_recv:
            return recv.close(bases_.recv, state->shadow_comm(), state->rank());
        default:
            return recv.close(bases_.recv, state->shadow_comm(), -1);
    }
}

int Work::run_on_devices(MpiExecutor& executor) { return AroundDevices(*plan->way, *device_).run(*this, executor); }

int Work::hold() {
    send.detach();
    recv.detach_and_discard();
    arguments = nullptr;
    const int error = open();
    held_ = error == MPI_SUCCESS;
    return error;
}

int Work::run() {
    try {
        if (!held_) {
            piecewise_ = plan->route.request.collective == Collective::alltoall && plan->way->runs(*plan).is_one();
            if (const int error = open()) return error;
        }
        if (left_to_mpi_) return MPI_SUCCESS;
        MpiExecutor& executor = state->executor();
        const int error = device_ ? run_on_devices(executor) : plan->way->run(*this, executor);
        if (scratch_.size() > most_kept) [[unlikely]]
            scratch_ = {};
        if (const std::int64_t refused = executor.take_refusals(); refused > 0) [[unlikely]]
            Process::instance().report().refused_reads.add(refused);
        if (left_to_mpi_) return mpi_code(error);
        return error ? mpi_code(error) : close();
    } catch (const std::bad_alloc&) {
        state->executor().abandon();
        return MPI_ERR_NO_MEM;
    }
}

}  // namespace palmette::runtime
