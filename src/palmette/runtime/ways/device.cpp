#include "palmette/runtime/ways/device.hpp"

#include <algorithm>
#include <utility>

#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

using plan::Collective;

namespace {

/// Shorter blocks in device memory are copied to the host: a command on a device takes some microseconds.
constexpr std::int64_t least_on_device = 64 << 10;
/// Shorter exposures of them go through shared memory; what the setting forces there has room for a descriptor at
/// least.
constexpr std::int64_t least_by_handle = 4096, least_forced_by_handle = 128;
static_assert(least_forced_by_handle >= node::SharedNode::slot_bytes(sizeof(device::Exported)));

}  // namespace

char* AroundDevices::on_device(const Work& call, bool of_send) const {
    char* const base = of_send ? call.bases().send : call.bases().recv;
    switch (call.in_place) {
        case Work::InPlace::own_block_of_recv:
        case Work::InPlace::all_of_recv:
            return data_.on_device(base, false);
        case Work::InPlace::own_block_of_send:
            return data_.on_device(base, true);
        default:
            // There is one buffer, which the root reads and the others write; exscan's first rank may read its input
            // in the place of the output that it doesn't have.
            if (const Collective collective = call.plan->route.request.collective;
                collective == Collective::bcast || (collective == Collective::exscan && call.state->rank() == 0))
                of_send = data_.send_staging().is_open();
            return data_.on_device(base, of_send);
    }
}

bool AroundDevices::exports(const Work& call, const execute::BoundProgram& program) const {
    const auto can = [&](std::int64_t offset, bool of_send) {
        const char* const at = on_device(call, of_send) + offset;
        for (const device::StagedBuffer* one : {&data_.send_staging(), &data_.recv_staging()}) {
            if (!one->is_open() || at < one->device() || at >= one->device() + one->bytes()) continue;
            device::Exported exported{};
            return device::Exports::instance().find(one->place(), one->device(), exported) &&
                   exported.offset + one->bytes() <= exported.allocation;
        }
        return true;
    };
    bool seen[2] = {false, false};
    for (const execute::BoundStep& step : program.steps) {
        if (step.kind != plan::StepKind::expose || step.copied || step.piece_count != 1 || step.bytes == 0) continue;
        const execute::Piece& piece = program.pieces[step.first_piece];
        const bool of_send = piece.buffer == plan::Buffer::send;
        if (!of_send && piece.buffer != plan::Buffer::recv) continue;
        if (std::exchange(seen[of_send ? 0 : 1], true)) continue;
        if (!can(piece.offset, of_send)) return false;
    }
    return true;
}

bool AroundDevices::move_to_device(Work& call, MpiExecutor& executor) {
    using Path = Settings::DevicePath;
    const CachedPlan& plan = *call.plan;
    const Path path = Process::instance().settings().device_path;
    const bool forced = path == Path::ipc;
    const std::int64_t own = std::max(call.send.total(), call.recv.total());
    const std::int64_t block = plan.key.block_bytes >= 0 ? plan.key.block_bytes : own;
    if (path == Path::staging || block < (forced ? 1 : least_on_device) || !plan.route.shares ||
        call.fault != MPI_SUCCESS || !inside_.on_devices().in_place || call.is_packed() ||
        (call.operation && !call.operation->layout().dense()))
        return false;
    // Messages are the MPI's, which knows no device memory.
    constexpr std::uint32_t node_only = 1U << MpiExecutor::node_index;
    const execute::BoundProgram& bound = call.bound();
    const execute::BoundProgram* const rest = inside_.runs(plan).rest;
    if (bound.transports != node_only || (rest && (rest->transports & ~node_only) != 0)) return false;
    const device::StagedBuffer& sent = data_.send_staging();
    const device::StagedBuffer& received = data_.recv_staging();
    if (sent.is_open() && received.is_open() && !same_queue(sent.place(), received.place())) return false;
    // Through the ring of shared memory it would be copied as often as by staging.
    if (!forced && (block < plan.route.single_copy_from || executor.node().device_was_refused())) return false;
    if (!forced && (!exports(call, bound) || (rest && !exports(call, *rest)))) return false;
    memory_.use(call.host_memory(), forced ? least_forced_by_handle : least_by_handle);
    for (const device::StagedBuffer* one : {&sent, &received})
        if (one->is_open() && memory_.add(one->device(), one->bytes(), one->place())) return false;
    if (call.operation && !memory_.has_kernel(0)) memory_.prepare_reductions(call.operation->layout().extent);
    return true;
}

int AroundDevices::run(Work& call, MpiExecutor& executor) {
    const bool moves = move_to_device(call, executor);
    if (moves) {
        const execute::BoundProgram* const rest = inside_.runs(*call.plan).rest;
        char* const scratch = memory_.scratch(std::max(call.bound().scratch_bytes, rest ? rest->scratch_bytes : 0));
        call.move(memory_, on_device(call, true), on_device(call, false), scratch);
        data_.set_in_place();
    } else if (inside_.on_devices().overlaps && !call.is_packed()) {
        data_.overlap(call.bases(), call.bound());
        call.watch(data_);
    } else {
        data_.read_all();
    }
    try {
        const int error = inside_.run(call, executor);
        if (moves) data_.note(memory_.close());
        return error;
    } catch (...) {
        // It uses this one's memory.
        executor.abandon();
        throw;
    }
}

}  // namespace palmette::runtime
