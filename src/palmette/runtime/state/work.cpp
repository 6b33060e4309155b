#include "palmette/runtime/state/work.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "palmette/runtime/state/process.hpp"

namespace palmette::runtime {

using plan::Collective;

namespace {

/// Scratch memory up to so many bytes is kept for the next call.
constexpr std::size_t most_kept = 4 << 20;

/// Shorter blocks in device memory are copied to the host: a command on a device takes some microseconds.
constexpr std::int64_t least_on_device = 64 << 10;
/// Shorter exposures of them go through shared memory; what the setting forces there has room for a descriptor at
/// least.
constexpr std::int64_t least_by_handle = 4096, least_forced_by_handle = 128;
static_assert(least_forced_by_handle >= SharedNode::slot_bytes(sizeof(device::Exported)));

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

Environment Work::environment(MpiExecutor& executor) {
    executor.messages().use(state->shadow_comm(), plan->buffered_sends);
    memory_.use(operation ? &*operation : nullptr);
    Environment out;
    named_.assign(plan->way->named_buffers, bases_.recv);
    out.bases = bases_;
    out.bases.named = named_.data();
    out.memory = runs_on_device_ ? static_cast<Memory*>(&on_device_) : &memory_;
    out.observer = Process::instance().observers().of_steps();
    out.data = piecewise_ ? &staged_ : nullptr;
    if (runs_on_device_) out.scratch = device_scratch_;
    if (device_ && overlaps_) out.data = device_;
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

char* Work::on_device(bool of_send) const {
    char* const base = of_send ? bases_.send : bases_.recv;
    switch (in_place) {
        case InPlace::own_block_of_recv:
        case InPlace::all_of_recv:
            return device_->on_device(base, false);
        case InPlace::own_block_of_send:
            return device_->on_device(base, true);
        default:
            // There is one buffer, which the root reads and the others write; exscan's first rank may read its input
            // in the place of the output that it doesn't have.
            if (plan->route.request.collective == Collective::bcast ||
                (plan->route.request.collective == Collective::exscan && state->rank() == 0))
                of_send = device_->send_staging().is_open();
            return device_->on_device(base, of_send);
    }
}

bool Work::exports(const BoundProgram& program) const {
    const auto can = [&](std::int64_t offset, bool of_send) {
        const device::StagedBuffer& send_data = device_->send_staging();
        const char* const at = on_device(of_send) + offset;
        for (const device::StagedBuffer* one : {&send_data, &device_->recv_staging()}) {
            if (!one->is_open() || at < one->device() || at >= one->device() + one->bytes()) continue;
            device::Exported exported{};
            return device::Exports::instance().find(one->place(), one->device(), exported) &&
                   exported.offset + one->bytes() <= exported.allocation;
        }
        return true;
    };
    bool seen[2] = {false, false};
    for (const BoundStep& step : program.steps) {
        if (step.kind != plan::StepKind::expose || step.copied || step.piece_count != 1 || step.bytes == 0) continue;
        const Piece& piece = program.pieces[step.first_piece];
        const bool of_send = piece.buffer == plan::Buffer::send;
        if (!of_send && piece.buffer != plan::Buffer::recv) continue;
        if (std::exchange(seen[of_send ? 0 : 1], true)) continue;
        if (!can(piece.offset, of_send)) return false;
    }
    return true;
}

bool Work::open_on_device(MpiExecutor& executor) {
    using Path = Settings::DevicePath;
    const Path path = Process::instance().settings().device_path;
    const bool forced = path == Path::ipc;
    const std::int64_t own = std::max(send.total(), recv.total());
    const std::int64_t block = plan->key.block_bytes >= 0 ? plan->key.block_bytes : own;
    if (path == Path::staging || block < (forced ? 1 : least_on_device) || !plan->route.shares ||
        fault != MPI_SUCCESS || !plan->way->on_devices().in_place || piecewise_ || send.is_staged() ||
        recv.is_staged() || (operation && !operation->layout().dense()))
        return false;
    // Messages are the MPI's, which knows no device memory.
    constexpr std::uint32_t node_only = 1U << MpiExecutor::node_index;
    const BoundProgram* const rest = plan->way->runs(*plan).rest;
    if (bound_->transports != node_only || (rest && (rest->transports & ~node_only) != 0)) return false;
    const device::StagedBuffer& sent = device_->send_staging();
    const device::StagedBuffer& received = device_->recv_staging();
    if (sent.is_open() && received.is_open() && !same_queue(sent.place(), received.place())) return false;
    // Through the ring of shared memory it would be copied as often as by staging.
    if (!forced && (block < plan->route.single_copy_from || executor.node().device_was_refused())) return false;
    if (!forced && (!exports(*bound_) || (rest && !exports(*rest)))) return false;
    memory_.use(operation ? &*operation : nullptr);
    on_device_.use(memory_, forced ? least_forced_by_handle : least_by_handle);
    for (const device::StagedBuffer* one : {&sent, &received})
        if (one->is_open() && on_device_.add(one->device(), one->bytes(), one->place())) {
            on_device_.close();
            return false;
        }
    if (operation && !on_device_.has_kernel(0)) on_device_.prepare_reductions(operation->layout().extent);
    device_scratch_ = on_device_.scratch(std::max(bound_->scratch_bytes, rest ? rest->scratch_bytes : 0));
    bases_ = {on_device(true), on_device(false), bases_.named};
    device_->set_in_place();
    return true;
}

void Work::open_device(MpiExecutor& executor) {
    runs_on_device_ = open_on_device(executor);
    if (runs_on_device_) return;
    overlaps_ = plan->way->on_devices().overlaps && !send.is_staged() && !recv.is_staged();
    if (overlaps_)
        device_->overlap(bases_, *bound_);
    else
        device_->read_all();
}

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
        if (device_) [[unlikely]]
            open_device(executor);
        const int error = plan->way->run(*this, executor);
        if (scratch_.size() > most_kept) [[unlikely]]
            scratch_ = {};
        if (runs_on_device_) [[unlikely]]
            device_->note(on_device_.close());
        if (const std::int64_t refused = executor.take_refusals(); refused > 0) [[unlikely]]
            Process::instance().report().refused_reads.add(refused);
        if (left_to_mpi_) return mpi_code(error);
        return error ? mpi_code(error) : close();
    } catch (const std::bad_alloc&) {
        state->executor().abandon();
        on_device_.close();
        return MPI_ERR_NO_MEM;
    }
}

}  // namespace palmette::runtime
