#include "palmette/execute/ipc_transport.hpp"

#include <algorithm>

namespace palmette::execute {

using plan::StepKind;

void IpcTransport::prepare(const BoundProgram& program) {
    if (program.single_copies > 0 && rendezvous_.size() < program.steps.size())
        rendezvous_.resize(program.steps.size());
}

DeviceMemory* IpcTransport::memory(Executor& executor, const BoundStep& step) {
    DeviceMemory* const memory = executor.memory().device();
    return memory && step.bytes >= memory->by_handle_from() ? memory : nullptr;
}

char* IpcTransport::on_device(Executor& executor, const BoundStep& step) {
    const DeviceMemory* const memory = IpcTransport::memory(executor, step);
    if (!memory || step.piece_count != 1) return nullptr;
    char* const data = executor.address(*executor.pieces(step.first_piece).piece);
    return memory->holds(data) ? data : nullptr;
}

int IpcTransport::start(Executor& executor, std::uint32_t index, bool /*last*/, Started& started) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    const int tag = environment.first_tag + step.tag;
    started = Started::polled;
    Rendezvous& one = rendezvous_[index];
    one = {};
    one.state = State::meeting;
    char* const rts = reinterpret_cast<char*>(&one.offer);
    if (step.kind == StepKind::recv)
        return messages_.post(executor, StepKind::recv, rts, sizeof one.offer, step.peer, tag, index);
    const bool refused = std::find(refused_by_.begin(), refused_by_.end(), step.peer) != refused_by_.end();
    const char* const data = refused ? nullptr : on_device(executor, step);
    if (data && executor.memory().device()->find_export(data, step.bytes, one.offer.exported)) {
        one.offer.has_handle = 1;
        if (const int error = messages_.post(executor, StepKind::recv, reinterpret_cast<char*>(&one.fin),
                                             sizeof one.fin, step.peer, tag + environment.control_tags, index);
            error != 0)
            return error;
    }
    const int error = messages_.post(executor, StepKind::send, rts, sizeof one.offer, step.peer, tag, index);
    return error == 0 && one.offer.has_handle == 0 ? send_payload(executor, index) : error;
}

/// As the executor does for other transports where the message lies on a device.
int IpcTransport::send_payload(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    Rendezvous& one = rendezvous_[index];
    if (step.stages_itself) {
        executor.memory().copy(executor.message_data(step), executor.address(*executor.pieces(step.first_piece).piece),
                               step.bytes);
        if (executor.memory().has_begun()) {
            one.mark = executor.memory().mark();
            one.state = State::packing;
            return 0;
        }
    }
    return post_payload(executor, index);
}

int IpcTransport::post_payload(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    rendezvous_[index].state = step.kind == StepKind::send ? State::sending : State::receiving;
    return messages_.post(executor, step.kind, executor.message_data(step), step.bytes, step.peer,
                          environment.first_tag + step.tag + 2 * environment.control_tags, index);
}

/// False: the sender's memory can't be reached from here.
bool IpcTransport::begin_copy(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    DeviceMemory* const memory = IpcTransport::memory(executor, step);
    if (!memory) return false;
    Rendezvous& one = rendezvous_[index];
    char* const own = on_device(executor, step);
    // Not by reference: what is reached comes beside it.
    const device::Place place = own ? memory->place_of(own) : memory->place();
    const char* const from = memory->reach(one.offer.exported, step.bytes, place);
    if (!from) return false;
    memory->copy(own ? own : executor.message_data(step), from, step.bytes);
    ++copied_;
    one.mark = memory->mark();
    one.state = State::copying;
    return true;
}

int IpcTransport::receive(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    Rendezvous& one = rendezvous_[index];
    if (one.offer.has_handle != 0) {
        if (begin_copy(executor, index)) return 0;
        executor.count_refusal();
        one.fin = 1;
        if (const int error =
                messages_.post(executor, StepKind::send, reinterpret_cast<char*>(&one.fin), sizeof one.fin, step.peer,
                               environment.first_tag + step.tag + environment.control_tags, index);
            error != 0)
            return error;
    }
    return post_payload(executor, index);
}

int IpcTransport::posted_complete(Executor& executor, std::uint32_t index) {
    const BoundStep& step = executor.step(index);
    Rendezvous& one = rendezvous_[index];
    switch (one.state) {
        case State::meeting:
            if (step.kind == StepKind::recv) return receive(executor, index);
            if (one.fin == 0) {
                one.state = State::done;
                return 0;
            }
            refused_by_.push_back(step.peer);
            return send_payload(executor, index);
        case State::receiving:
            if (step.stages_itself) {
                executor.memory().copy(executor.address(*executor.pieces(step.first_piece).piece),
                                       executor.message_data(step), step.bytes);
                if (executor.memory().has_begun()) {
                    one.mark = executor.memory().mark();
                    one.state = State::unpacking;
                    return 0;
                }
            }
            one.state = State::done;
            return 0;
        case State::sending:
        case State::finishing:
            one.state = State::done;
            return 0;
        default:
            // The RTS, while the payload is still being packed.
            return 0;
    }
}

bool IpcTransport::is_through(Executor& executor, const Rendezvous& one) {
    executor.memory().look();
    return executor.memory().is_done(one.mark);
}

int IpcTransport::poll(Executor& executor, std::uint32_t index, bool& done) {
    const BoundStep& step = executor.step(index);
    const Environment& environment = executor.environment();
    Rendezvous& one = rendezvous_[index];
    done = false;
    switch (one.state) {
        case State::packing:
            return is_through(executor, one) ? post_payload(executor, index) : 0;
        case State::copying:
            if (!is_through(executor, one)) return 0;
            one.state = State::finishing;
            return messages_.post(executor, StepKind::send, reinterpret_cast<char*>(&one.fin), sizeof one.fin,
                                  step.peer, environment.first_tag + step.tag + environment.control_tags, index);
        case State::unpacking:
            if (is_through(executor, one)) one.state = State::done;
            break;
        default:
            break;
    }
    done = one.state == State::done;
    return 0;
}

void IpcTransport::end(Executor& executor, bool failed) {
    for (std::uint32_t s = 0; failed && s < executor.program().steps.size() && s < rendezvous_.size(); ++s) {
        Rendezvous& one = rendezvous_[s];
        const bool copies = one.state == State::packing || one.state == State::copying || one.state == State::unpacking;
        if (copies) executor.memory().await(one.mark);
        one.state = State::done;
    }
    if (DeviceMemory* memory = executor.memory().device()) memory->let_go();
}

}  // namespace palmette::execute
