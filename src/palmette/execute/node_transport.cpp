#include "palmette/execute/node_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "palmette/execute/device_memory.hpp"
#include "palmette/node/shared_single_copy.hpp"

namespace palmette::execute {

using plan::StepKind;

namespace {

/// Size of the bounce buffer for reductions of data that can't be mapped: large enough to amortise the system call (1
/// MiB took 170 us in parts of 32 KiB, 115 in parts of 128 KiB, 99 at once), small enough to stay in a core's cache.
constexpr std::int64_t bounce_bytes = 128 * 1024;

/// A refusal that concerns the process, not this piece of memory: every further read of it would fail too.
bool is_permanent(int error) { return error == EPERM || error == ESRCH || error == ENOSYS; }

}  // namespace

bool NodeTransport::can(const StepOffer& step) const {
    if (plan::traits(step.kind).needs_node) return true;
    return step.single_copy && step.same_node && rendezvous_works_ && step.bytes >= least_rendezvous;
}

void NodeTransport::prepare(const BoundProgram& program) {
    if (program.single_copies > 0 && rendezvous_.size() < program.steps.size())
        rendezvous_.resize(program.steps.size());
}

bool NodeTransport::begin(Executor& executor, int& error) {
    error = 0;
    node::SharedNode* shared = executor.environment().shared;
    if (!shared) return true;
    if (!keeps_order(executor)) shared->note_in_place();
    DeviceMemory* const device = executor.environment().memory->device();
    if (!device) [[likely]]
        return shared->begin(executor.program().exposed_bytes);
    std::int64_t bytes = executor.program().exposed_bytes;
    std::int64_t with_descriptors = bytes;
    for (const BoundStep& step : executor.program().steps)
        if (step.kind == StepKind::expose) with_descriptors += node::SharedNode::slot_bytes(sizeof(device::Exported));
    descriptors_fit_ = with_descriptors <= shared->ring_bytes();
    if (descriptors_fit_) bytes = with_descriptors;
    shared->read_device_with(device);
    return shared->begin(bytes);
}

void NodeTransport::end(Executor& executor, bool /*failed*/) {
    relayed_.clear();
    node::SharedNode* const shared = executor.environment().shared;
    if (!shared) return;
    if (DeviceMemory* device = executor.environment().memory->device()) [[unlikely]] {
        // Peers' memory may be read until here.
        for (const DeferredPull& one : deferred_) device->await(one.mark);
        deferred_.clear();
        shared->read_device_with(nullptr);
    }
    shared->end();
}

bool NodeTransport::keeps_order(const Executor& executor) const {
    // Not with exposures in place, which wait for their readers.
    const Environment& environment = executor.environment();
    return environment.shared && environment.single_copy_from == INT64_MAX && !environment.memory->device();
}

bool NodeTransport::may_wait_for_later_steps(const Executor& executor) const {
    // A member waits for the readers of its exposures in place; that they lie on a device only that member knows.
    return executor.environment().shared->any_in_place();
}

int NodeTransport::start(Executor& executor, std::uint32_t index, bool /*last*/, Started& started) {
    const BoundStep& step = executor.step(index);
    if (plan::is_message(step.kind)) {
        started = Started::pending;
        return start_rendezvous(executor, index);
    }
    if (step.kind == StepKind::expose) expose(executor, step);
    bool done = false;
    const int error = poll(executor, index, done);
    started = done ? Started::done : Started::polled;
    return error;
}

int NodeTransport::poll(Executor& executor, std::uint32_t index, bool& done) {
    const BoundStep& step = executor.step(index);
    if (step.kind != StepKind::expose) return pull(executor, index, done);
    node::SharedNode& shared = *executor.environment().shared;
    const auto tag = static_cast<unsigned>(step.tag);
    done = shared.read_by(tag, step.readers);
    if (done && executor.memory().device()) [[unlikely]]
        device_refused_ = device_refused_ || shared.was_refused(tag);
    return 0;
}

void NodeTransport::expose(Executor& executor, const BoundStep& step) {
    node::SharedNode& shared = *executor.environment().shared;
    const auto tag = static_cast<unsigned>(step.tag);
    const Piece* pieces = executor.pieces(step.first_piece).piece;
    if (const DeviceMemory* device = executor.memory().device()) [[unlikely]]
        if (step.piece_count == 1 && device->holds(executor.address(*pieces)) &&
            expose_on_device(executor, step, executor.address(*pieces)))
            return;
    if (!step.copied && step.piece_count == 1 && step.bytes >= executor.environment().single_copy_from) {
        shared.expose_address(tag, executor.address(*pieces), step.bytes);
        return;
    }
    if (step.piece_count <= 1 && step.bytes <= node::Exposure::inline_bytes) {
        shared.expose_inline(tag, step.piece_count == 1 ? executor.address(*pieces) : nullptr, step.bytes);
        return;
    }
    char* slot = shared.ring_slot(step.bytes);
    char* at = slot;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
        executor.memory().copy(at, executor.address(pieces[i]), pieces[i].bytes);
        at += pieces[i].bytes;
    }
    if (executor.memory().has_begun()) [[unlikely]]
        executor.memory().await_begun();
    shared.expose_slot(tag, slot, step.bytes);
}

/// False: it goes through the ring.
bool NodeTransport::expose_on_device(Executor& executor, const BoundStep& step, const char* data) {
    node::SharedNode& shared = *executor.environment().shared;
    DeviceMemory& device = *executor.memory().device();
    const auto tag = static_cast<unsigned>(step.tag);
    // The ring has space for all but what is read by address.
    const bool has_space = step.copied || step.bytes < executor.environment().single_copy_from;
    if (step.bytes <= node::Exposure::inline_bytes) {
        char copy[node::Exposure::inline_bytes];
        if (step.bytes > 0) device.read(copy, data, step.bytes);
        shared.expose_inline(tag, copy, step.bytes);
        return true;
    }
    device::Exported exported{};
    const bool opens = !step.copied && step.bytes >= device.by_handle_from() && descriptors_fit_ &&
                       device.find_export(data, step.bytes, exported);
    if (!opens && has_space) return false;
    char* const slot = opens ? shared.ring_slot(sizeof exported) : nullptr;
    if (slot) std::memcpy(slot, &exported, sizeof exported);
    shared.expose_device(tag, data, step.bytes, slot);
    return true;
}

/// Where an exposure in device memory is reached; null: only its owner reaches it.
const char* NodeTransport::reach(Executor& executor, const BoundStep& step, const node::Exposure& exposure) {
    const node::SharedNode& shared = *executor.environment().shared;
    DeviceMemory* const device = executor.memory().device();
    if (!device) return nullptr;
    if (step.peer == shared.me()) return reinterpret_cast<const char*>(exposure.device.address);
    const char* const descriptor = shared.descriptor(step.peer, exposure);
    // What its owner has begun to copy for one stays with that; others wait for their turn.
    if (!descriptor || !relayed_.empty()) return nullptr;
    device::Exported exported{};
    std::memcpy(&exported, descriptor, sizeof exported);
    return device->reach(exported, exposure.bytes, device->place());
}

void NodeTransport::defer(Memory& memory, std::uint32_t pull) { deferred_.push_back({pull, memory.mark()}); }

/// Whether a pull was deferred; `done`: then whether its copies have completed.
bool NodeTransport::poll_deferred(Memory& memory, std::uint32_t pull, bool& done) {
    const auto one =
        std::find_if(deferred_.begin(), deferred_.end(), [&](const DeferredPull& each) { return each.step == pull; });
    if (one == deferred_.end()) return false;
    memory.look();
    done = memory.is_done(one->mark);
    if (done) deferred_.erase(one);
    return true;
}

int NodeTransport::pull(Executor& executor, std::uint32_t index, bool& done) {
    const BoundStep& step = executor.step(index);
    node::SharedNode& shared = *executor.environment().shared;
    DeviceMemory* const device = executor.memory().device();
    if (!deferred_.empty() && poll_deferred(executor.memory(), index, done)) [[unlikely]] {
        if (done) shared.release(step.peer, static_cast<unsigned>(step.tag));
        return 0;
    }
    const node::Exposure* exposure = shared.find_exposure(step.peer, static_cast<unsigned>(step.tag));
    if (!exposure) return 0;
    done = true;
    int error = 0;
    if (step.bytes > 0) {
        const char* data = exposure->kind == node::ExposureKind::on_device ? reach(executor, step, *exposure)
                                                                           : shared.direct(step.peer, *exposure);
        if (data && !plan::combines(step.kind)) {
            executor.copy(step, data);
        } else if (data) {
            error = executor.reduce(step, data);
        } else if (const auto known = std::find_if(relayed_.begin(), relayed_.end(),
                                                   [&](const Fetch& fetch) { return fetch.step == index; });
                   known != relayed_.end()) {
            // One outstanding request at a time.
            done = known == relayed_.begin();
            if (done) error = fetch(executor, step, *exposure, *known, done);
            if (done) relayed_.erase(known);
        } else if (!relayed_.empty() && (plan::combines(step.kind) || device)) {
            // The bounce buffer holds what the first one has received of its part.
            done = false;
        } else {
            Fetch one;
            one.step = index;
            one.exposed_left = executor.pieces(step.first_piece).piece->buffer == exposed_buffer;
            const std::uint32_t first = step.first_piece, right = step.first_right;
            one.remote = executor.pieces(one.exposed_left ? first : right);
            one.own = executor.pieces(one.exposed_left ? right : first);
            one.target = executor.pieces(step.first_target);
            one.rest = step.bytes;
            error = fetch(executor, step, *exposure, one, done);
            if (!done) relayed_.push_back(one);
        }
    }
    if (done && executor.memory().has_begun()) [[unlikely]] {
        done = false;
        defer(executor.memory(), index);
    }
    if (done) shared.release(step.peer, static_cast<unsigned>(step.tag));
    return error;
}

int NodeTransport::fetch(Executor& executor, const BoundStep& step, const node::Exposure& exposure, Fetch& fetch,
                         bool& done) {
    const bool combines = plan::combines(step.kind);
    DeviceMemory* const device = executor.memory().device();
    // Neither the system nor a peer can write to a device.
    const bool bounces = combines || device;
    const std::int64_t element = combines ? executor.memory().element_bytes(step.operation) : 1;
    if (bounces) bounce_.grow(static_cast<std::size_t>(std::max(bounce_bytes, element)));
    const std::int64_t most = bounces ? std::max(std::int64_t{1}, bounce_bytes / element) * element : INT64_MAX;
    for (done = false; fetch.rest > 0;) {
        if (fetch.part == 0) {
            fetch.part = std::min({most, fetch.remote.left(), fetch.target.left()});
            if (combines) fetch.part = std::min(fetch.part, fetch.own.left());
            fetch.got = 0;
        }
        bool there = false;
        char* to = bounces ? bounce_.data() : executor.at(fetch.target);
        if (const int error = read_part(executor, step, exposure, fetch, to, there); error != 0) {
            done = true;
            return error;
        }
        if (!there) return 0;
        if (combines) {
            const char* mine = executor.at(fetch.own);
            const int error =
                executor.memory().combine(step.operation, fetch.exposed_left ? to : mine,
                                          fetch.exposed_left ? mine : to, executor.at(fetch.target), fetch.part);
            done = error != 0;
            if (error != 0) return error;
            fetch.own.advance(fetch.part);
        } else if (bounces) {
            executor.memory().copy(executor.at(fetch.target), to, fetch.part);
        }
        executor.memory().await_begun();
        fetch.remote.advance(fetch.part);
        fetch.target.advance(fetch.part);
        fetch.rest -= fetch.part;
        fetch.part = 0;
    }
    done = true;
    return 0;
}

/// Reads the current part of an exposure by address by single copy; fallback where the system refuses that: requests a
/// copy from its owner.
int NodeTransport::read_part(Executor& executor, const BoundStep& step, const node::Exposure& exposure, Fetch& fetch,
                             char* to, bool& there) {
    node::SharedNode& shared = *executor.environment().shared;
    const auto tag = static_cast<unsigned>(step.tag);
    const std::int64_t offset = fetch.remote.piece->offset + fetch.remote.used;
    if (!fetch.refused && !unreadable_.holds(step.peer)) {
        const int failed =
            node::is_injected_refusal() ? EPERM : shared.read(step.peer, exposure, offset, to, fetch.part);
        there = failed == 0;
        if (there) return 0;
        if (failed == EINVAL) return internal_error;
        if (is_permanent(failed)) unreadable_.insert(step.peer);
    }
    if (!fetch.refused) {
        shared.refuse(step.peer, tag);
        executor.count_refusal();
        fetch.refused = true;
        // Another step may have the outstanding request.
        if (!relayed_.empty()) return 0;
    }
    while (fetch.got < fetch.part) {
        if (fetch.asked == 0) {
            fetch.asked = std::min(fetch.part - fetch.got, shared.most_asked());
            shared.ask(step.peer, tag, offset + fetch.got, fetch.asked);
        }
        const char* data = shared.answer();
        if (!data) {
            if (shared.has_left(step.peer)) return internal_error;
            // The owner may itself be waiting for our answer.
            shared.answer_requests();
            return 0;
        }
        executor.memory().copy(to + fetch.got, data, fetch.asked);
        fetch.got += fetch.asked;
        fetch.asked = 0;
    }
    there = true;
    return 0;
}

int NodeTransport::start_rendezvous(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    const int tag = environment.first_tag + step.tag;
    char* data = executor.message_data(step);
    Rendezvous& one = rendezvous_[index];
    one = {static_cast<std::int64_t>(getpid()), reinterpret_cast<std::uint64_t>(data), 0, false, false};
    char* rts = reinterpret_cast<char*>(&one);
    if (step.kind == StepKind::recv)
        return messages_.post(executor, StepKind::recv, rts, rts_bytes, step.peer, tag, index);
    if (refused_by_.holds(step.peer)) {
        one.process = 0;
        one.in_messages = true;
    } else if (const int error = messages_.post(executor, StepKind::recv, reinterpret_cast<char*>(&one.fin),
                                                sizeof one.fin, step.peer, tag + environment.control_tags, index);
               error != 0) {
        return error;
    }
    const int error = messages_.post(executor, StepKind::send, rts, rts_bytes, step.peer, tag, index);
    return error == 0 && one.in_messages ? send_payload(executor, index) : error;
}

int NodeTransport::send_payload(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    rendezvous_[index].in_messages = true;
    return messages_.post(executor, step.kind, executor.message_data(step), step.bytes, step.peer,
                          environment.first_tag + step.tag + 2 * environment.control_tags, index);
}

int NodeTransport::read_and_finish(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    Rendezvous& one = rendezvous_[index];
    one.rts_received = true;
    if (one.process != 0) {
        one.fin = node::is_injected_refusal() ? EPERM
                                              : node::read_process(static_cast<pid_t>(one.process), one.address,
                                                                   executor.message_data(step), step.bytes);
        const int error = messages_.post(executor, StepKind::send, reinterpret_cast<char*>(&one.fin), sizeof one.fin,
                                         step.peer, environment.first_tag + step.tag + environment.control_tags, index);
        if (error != 0 || one.fin == 0) return error;
    }
    executor.count_refusal();
    return send_payload(executor, index);
}

/// The messages posted for a step have completed: completes the step, or starts its next protocol stage.
int NodeTransport::posted_complete(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    Rendezvous& one = rendezvous_[index];
    const bool sends = step.kind == StepKind::send;
    if (one.in_messages || (sends ? one.fin == 0 : one.rts_received)) {
        executor.complete(index);
        return 0;
    }
    if (!sends) return read_and_finish(executor, index);
    if (is_permanent(one.fin)) refused_by_.insert(step.peer);
    return send_payload(executor, index);
}

}  // namespace palmette::execute
