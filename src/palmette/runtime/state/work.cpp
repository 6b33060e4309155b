#include "palmette/runtime/state/work.hpp"

#include <cstring>
#include <new>

#include "palmette/runtime/state/neighbours.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/state/relayed_counts.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {

using plan::Collective;

namespace {

/// Copies of input up to so many bytes are kept for the next call.
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
            for (std::size_t i = 0; plan->kept_blocks && i < plan->kept_blocks->size(); ++i)
                if (const int error = recv.pack_if_staged((*plan->kept_blocks)[i], bases_.recv, shadow_comm))
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
    if (plan->neighbours) {
        own_ = plan->neighbours->bound_to(plan->key.function, send, recv);
        bound_ = &own_;
        return MPI_SUCCESS;
    }
    Layout layout;
    layout.element_bytes = plan->key.element_bytes;
    layout.send = send.ranks();
    layout.recv = recv.ranks();
    layout.by_address_from = plan->single_copy_from;
    layout.transports = &state->executor().transports();
    RelayedCounts some;
    if (select::sizes_unknown(plan->key.function)) {
        // Only repeated counts have a known block length.
        if (plan->relays && plan->key.block_bytes >= 0)
            return bind_repeated(layout, *state->repeated_counts(plan->key.function));
        if (plan->relays)
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
    target = bind(plan->collective, plan->program, *plan->job, layout);
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
    named_.assign(plan->named_buffers, bases_.recv);
    out.bases = bases_;
    out.bases.named = named_.data();
    out.memory = &memory_;
    out.observer = Process::instance().observers().of_steps();
    out.data = piecewise_ ? &staged_ : nullptr;
    if (device_ && overlaps_) out.data = device_;
    out.shared = plan->shares ? state->shared_node() : nullptr;
    out.single_copy_from = plan->single_copy_from;
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
    NeighbourPlans& neighbours = *plan->neighbours;
    const std::int64_t slot = plan->slot;
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
    named_.assign(plan->named_buffers, arrived);
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
    const std::int64_t batch = plan->batch_bytes;
    const std::int64_t bytes = plan->key.block_bytes;
    executor.prepare(plan->bound);
    executor.prepare(plan->tail);
    for (std::int64_t at = 0; at < bytes; at += batch) {
        part.bases.send = whole.bases.send ? whole.bases.send + at : nullptr;
        part.bases.recv = whole.bases.recv ? whole.bases.recv + at : nullptr;
        const int error = executor.run(at + batch <= bytes ? plan->bound : plan->tail, part);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

int Work::run_aggregated(MpiExecutor& executor) {
    Environment whole = environment(executor);
    Process& process = Process::instance();
    Aggregation& aggregation = *plan->aggregation;
    const Settings& settings = state->settings(process.settings());
    if (aggregation.serves(*operation, plan->bound, settings.aggregator_token)) {
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
    executor.prepare(plan->by_hosts);
    return executor.run(plan->by_hosts, whole);
}

int Work::run() {
    try {
        piecewise_ = plan->collective == Collective::alltoall && plan->batch_bytes == 0;
        if (const int error = open()) return error;
        if (left_to_mpi_) return MPI_SUCCESS;
        MpiExecutor& executor = state->executor();
        int error = MPI_SUCCESS;
        const bool whole = !plan->aggregation && plan->batch_bytes == 0 && !remembered_ && plan->slot == 0;
        overlaps_ = device_ && whole && !send.is_staged() && !recv.is_staged();
        if (overlaps_)
            device_->overlap(bases_, *bound_);
        else if (device_)
            device_->read_all();
        if (plan->aggregation) {
            error = run_aggregated(executor);
        } else if (plan->batch_bytes > 0) {
            error = run_batches(executor, environment(executor));
        } else if (remembered_) {
            error = run_remembered(executor);
        } else if (plan->slot > 0) {
            error = run_slots(executor);
        } else {
            executor.prepare(*bound_);
            error = executor.run(*bound_, environment(executor));
        }
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
