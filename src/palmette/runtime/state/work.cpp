#include "palmette/runtime/state/work.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "palmette/runtime/lengths/relayed_counts.hpp"
#include "palmette/runtime/neighbours/neighbours.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

using plan::Collective;

namespace {

/// Copies of input up to so many bytes are kept for the next call.
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
            for (std::size_t i = 0; plan->neighbours.kept_blocks && i < plan->neighbours.kept_blocks->size(); ++i)
                if (const int error = recv.pack_if_staged((*plan->neighbours.kept_blocks)[i], bases_.recv, shadow_comm))
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
    return plan->bound.steps.empty() && !plan->program.steps.empty() ? bind_own_lengths() : MPI_SUCCESS;
}

int Work::bind_own_lengths() {
    if (plan->neighbours.plans) {
        own_ = plan->neighbours.plans->bound_to(plan->key.function, send, recv);
        bound_ = &own_;
        return MPI_SUCCESS;
    }
    Layout layout;
    layout.element_bytes = plan->key.element_bytes;
    layout.send = send.ranks();
    layout.recv = recv.ranks();
    layout.by_address_from = plan->route.single_copy_from;
    layout.transports = &state->executor().transports();
    RelayedCounts some;
    if (select::sizes_unknown(plan->key.function)) {
        // Only repeated counts have a known block length.
        if (plan->route.relays && plan->key.block_bytes >= 0)
            return bind_repeated(layout, *state->repeated_counts(plan->key.function));
        if (plan->route.relays)
            if (const int error = exchange_counts(*this, some)) return error;
        some.add_own(*this);
        layout.relayed_counts = &some.sorted();
    }
    // Mostly the lengths of the last call, whose bound program is cached. A nonblocking call's program must not change.
    BoundLengths* last = plan->key.blocking ? &plan->last : nullptr;
    if (last && last->holds(layout, state->size())) {
        bound_ = &last->program;
        return MPI_SUCCESS;
    }
    BoundProgram& target = last ? last->program : own_;
    target = bind(plan->collective(), plan->program, *plan->route.job, layout);
    if (last) last->keep();
    bound_ = &target;
    return MPI_SUCCESS;
}

int Work::bind_repeated(const Layout& layout, RepeatedCounts& repeated) {
    RememberedLengths& known = repeated.remembered();
    remembered_ = known.armed();
    if (!remembered_) {
        RelayedCounts relayed;
        bool expected = true;
        if (const int error = exchange_counts(*this, relayed, &expected)) return error;
        if (!known.arm(*this, layout, std::move(relayed), expected)) {
            repeated.set_changed();
            left_to_mpi_ = Refusal::lengths_not_remembered;
            return MPI_SUCCESS;
        }
    }
    counts_changed_ = !known.are_those_of(*this);
    if (counts_changed_) {
        own_ = known.bound_to_discard(*this, layout);
        discarded_.grow(static_cast<std::size_t>(known.discarded_bytes()));
    }
    bound_ = counts_changed_ ? &own_ : &known.bound_for(*this, layout);
    return MPI_SUCCESS;
}

int Work::run_remembered(MpiExecutor& executor) {
    Environment whole = environment(executor);
    whole.counts_changed = &counts_changed_;
    if (counts_changed_) {
        whole.bases.send = whole.bases.recv = discarded_.data();
        whole.data = nullptr;
    }
    executor.prepare(*bound_);
    const int error = executor.run(*bound_, whole);
    discarded_ = {};
    if (error || !counts_changed_) return error;
    state->repeated_counts(plan->key.function)->set_changed();
    left_to_mpi_ = Refusal::counts_changed;
    // What has arrived may have overwritten input in the same place.
    return in_place == InPlace::copy_of_recv ? send.close(bases_.send, state->shadow_comm(), -1) : MPI_SUCCESS;
}

Environment Work::environment(MpiExecutor& executor) {
    executor.messages().use(state->shadow_comm(), plan->buffered_sends);
    memory_.use(operation ? &*operation : nullptr);
    Environment out;
    named_.assign(plan->neighbours.named_buffers, bases_.recv);
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

int Work::run_slots(MpiExecutor& executor) {
    NeighbourPlans& neighbours = *plan->neighbours.plans;
    const std::int64_t slot = plan->neighbours.padded_bytes;
    const int sent = neighbours.sent_blocks(plan->key.function);
    slots_.grow(static_cast<std::size_t>((sent + neighbours.sources() + 1) * slot));
    char* const arrived = slots_.data() + sent * slot;
    bool any_longer = false;
    for (int i = 0; i < sent; ++i) {
        const std::int64_t bytes = neighbours.has_target(plan->key.function, i) ? send.bytes(i) : 0;
        if (bytes > slot)
            any_longer = true;
        else if (bytes > 0)
            std::memcpy(slots_.data() + i * slot, bases_.send + send.offset(i), static_cast<std::size_t>(bytes));
    }
    Environment padded = environment(executor);
    named_.assign(plan->neighbours.named_buffers, arrived);
    padded.bases.send = slots_.data();
    padded.bases.recv = arrived;
    executor.prepare(plan->bound);
    if (const int error = executor.run(plan->bound, padded)) return error;
    for (int j = 0; j < neighbours.sources(); ++j) {
        const std::int64_t bytes = neighbours.has_source(j) ? recv.bytes(j) : 0;
        if (bytes > slot)
            any_longer = true;
        else if (bytes > 0)
            std::memcpy(bases_.recv + recv.offset(j), arrived + j * slot, static_cast<std::size_t>(bytes));
    }
    if (!any_longer) return MPI_SUCCESS;
    own_ = neighbours.bound_to(plan->key.function, send, recv, slot);
    executor.prepare(own_);
    return executor.run(own_, environment(executor));
}

int Work::run_batches(Executor& executor, const Environment& whole) {
    Environment part = whole;
    const std::int64_t batch = plan->batches.bytes;
    const std::int64_t bytes = plan->key.block_bytes;
    executor.prepare(plan->bound);
    executor.prepare(plan->batches.tail);
    for (std::int64_t at = 0; at < bytes; at += batch) {
        part.bases.send = whole.bases.send ? whole.bases.send + at : nullptr;
        part.bases.recv = whole.bases.recv ? whole.bases.recv + at : nullptr;
        const int error = executor.run(at + batch <= bytes ? plan->bound : plan->batches.tail, part);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

int Work::run_aggregated(MpiExecutor& executor) {
    Environment whole = environment(executor);
    Process& process = Process::instance();
    Aggregation& aggregation = *plan->aggregates.with;
    if (aggregation.serves(*operation, plan->bound)) {
        if (whole.bases.send == whole.bases.recv) {
            const auto bytes = static_cast<std::size_t>(plan->key.block_bytes);
            kept_.grow(bytes);
            std::memcpy(kept_.data(), whole.bases.send, bytes);
            whole.bases.send = kept_.data();
        }
        const Operation::Known known = *operation->known();
        executor.aggregation().use(&aggregation.channels(), &aggregation.tree(), {known.op, known.element},
                                   has_outstanding());
        executor.prepare(plan->bound);
        const int error = executor.run(plan->bound, whole);
        const bool all_have_it = error == MPI_SUCCESS && aggregation.succeeded(executor.aggregation());
        executor.aggregation().use(nullptr, nullptr, {});
        if (all_have_it && kept_.size() > most_kept) kept_ = {};
        if (error != MPI_SUCCESS || all_have_it) return error;
    }
    process.report().by_hosts_row(aggregation.why()).add(state->rank() == 0);
    executor.prepare(plan->aggregates.by_hosts);
    return executor.run(plan->aggregates.by_hosts, whole);
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
        fault != MPI_SUCCESS || plan->aggregates.with || plan->neighbours.plans || plan->neighbours.kept_blocks ||
        remembered_ || piecewise_ || send.is_staged() || recv.is_staged() ||
        (operation && !operation->layout().dense()))
        return false;
    // Messages are the MPI's, which knows no device memory.
    constexpr std::uint32_t node_only = 1U << MpiExecutor::node_index;
    if (bound_->transports != node_only || (plan->batches.tail.transports & ~node_only) != 0) return false;
    const device::StagedBuffer& sent = device_->send_staging();
    const device::StagedBuffer& received = device_->recv_staging();
    if (sent.is_open() && received.is_open() && !same_queue(sent.place(), received.place())) return false;
    // Through the ring of shared memory it would be copied as often as by staging.
    if (!forced && (block < plan->route.single_copy_from || executor.node().device_was_refused())) return false;
    if (!forced && (!exports(*bound_) || (plan->batches.bytes > 0 && !exports(plan->batches.tail)))) return false;
    const device::Place& place = sent.is_open() ? sent.place() : received.place();
    memory_.use(operation ? &*operation : nullptr);
    if (on_device_.open(memory_, place, forced ? least_forced_by_handle : least_by_handle, operation.has_value()))
        return false;
    for (const device::StagedBuffer* one : {&sent, &received})
        if (one->is_open()) on_device_.add(one->device(), one->bytes());
    device_scratch_ = on_device_.scratch(std::max(bound_->scratch_bytes, plan->batches.tail.scratch_bytes));
    bases_ = {on_device(true), on_device(false), bases_.named};
    device_->set_in_place();
    return true;
}

void Work::open_device(MpiExecutor& executor) {
    runs_on_device_ = open_on_device(executor);
    if (runs_on_device_) return;
    const bool whole =
        !plan->aggregates.with && plan->batches.bytes == 0 && !remembered_ && plan->neighbours.padded_bytes == 0;
    overlaps_ = whole && !send.is_staged() && !recv.is_staged();
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
            piecewise_ = plan->route.request.collective == Collective::alltoall && plan->batches.bytes == 0;
            if (const int error = open()) return error;
        }
        if (left_to_mpi_) return MPI_SUCCESS;
        MpiExecutor& executor = state->executor();
        int error = MPI_SUCCESS;
        if (device_) [[unlikely]]
            open_device(executor);
        if (plan->aggregates.with) {
            error = run_aggregated(executor);
        } else if (plan->batches.bytes > 0) {
            error = run_batches(executor, environment(executor));
        } else if (remembered_) {
            error = run_remembered(executor);
        } else if (plan->neighbours.padded_bytes > 0) {
            error = run_slots(executor);
        } else {
            executor.prepare(*bound_);
            error = executor.run(*bound_, environment(executor));
        }
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
