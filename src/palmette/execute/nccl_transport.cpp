#include "palmette/execute/nccl_transport.hpp"

#include <algorithm>
#include <tuple>

#include "palmette/base/text.hpp"
#include "palmette/device/place.hpp"
#include "palmette/execute/executor.hpp"

namespace palmette::execute {

using plan::StepKind;

NcclTransport::~NcclTransport() {
    for (Message& message : messages_) give_back(message);
}

bool NcclTransport::begin(Executor& executor, int& error) {
    error = 0;
    why_.clear();
    const BoundProgram& program = executor.program();
    if ((program.transports >> index_ & 1) == 0) return true;
    messages_.clear();
    first_ = end_ = started_ = completed_ = 0;
    under_way_ = false;
    for (std::uint32_t s = 0; s < program.steps.size(); ++s)
        if (const BoundStep& step = program.steps[s]; plan::is_remote(step.kind) && step.transport == index_)
            messages_.push_back({.tag = step.tag, .step = s, .sends = step.kind == StepKind::send});
    std::sort(messages_.begin(), messages_.end(),
              [](const Message& a, const Message& b) { return std::tuple(a.tag, a.step) < std::tuple(b.tag, b.step); });
    message_of_step_.resize(std::max(message_of_step_.size(), program.steps.size()));
    for (std::uint32_t m = 0; m < messages_.size(); ++m) message_of_step_[messages_[m].step] = m;
    if (!nccl_) {
        fail("NCCL isn't in service");
        return true;
    }
    const device::Status status = nccl_->follow_program();
    if (status) fail(base::cat("an event: ", status));
    return true;
}

void NcclTransport::fail(const std::string& why) {
    if (why_.empty()) why_ = why;
}

/// A message's data, wherever it lies: calls `copy` with each part, and its offset in the message.
template <class Copy>
void NcclTransport::each_part(Executor& executor, const Message& message, const Copy& copy) {
    const BoundStep& step = executor.step(message.step);
    const char* status = nullptr;
    if (!step.stages_itself) {
        status = copy(executor.message_data(step), std::int64_t{0}, step.bytes);
    } else {
        std::int64_t at = 0;
        for (std::uint32_t i = step.first_piece; i < step.first_piece + step.piece_count && !status; ++i) {
            const Piece& piece = executor.program().pieces[i];
            status = copy(executor.address(piece), at, piece.bytes);
            at += piece.bytes;
        }
    }
    if (status) fail(base::cat(message.sends ? "a copy to the device: " : "a copy from the device: ", status));
}

/// Where NCCL finds or leaves the payload.
bool NcclTransport::take_address(Executor& executor, Message& message) {
    const BoundStep& step = executor.step(message.step);
    if (message.started && !step.stages_itself) {
        char* const data = executor.message_data(step);
        const device::Place place = device::place_of(data);
        if (place.on_device() && same_queue(place, nccl_->place())) {
            message.data = data;
            return true;
        }
    }
    message.bounced = device::Resources::instance().take_device(nccl_->place(), step.bytes);
    message.data = message.bounced.data;
    if (!message.data) fail("no device memory for messages");
    if (!message.data || !message.sends) return why_.empty();
    each_part(executor, message, [&](const char* from, std::int64_t at, std::int64_t bytes) {
        return nccl_->enqueue_copy(message.data + at, from, bytes);
    });
    return why_.empty();
}

/// Begins to copy what has arrived elsewhere.
void NcclTransport::deliver(Executor& executor, const Message& message) {
    each_part(executor, message, [&](char* to, std::int64_t at, std::int64_t bytes) {
        return nccl_->begin_delivery(to, message.data + at, bytes);
    });
}

void NcclTransport::finish_deliveries() {
    const device::Status status = nccl_->finish_deliveries();
    if (status) fail(base::cat("a copy from the device: ", status));
}

/// No command may be outstanding there.
void NcclTransport::give_back(Message& message) {
    device::Resources::instance().give_back(std::exchange(message.bounced, {}));
}

void NcclTransport::issue(Executor& executor) {
    while (end_ < messages_.size() && (end_ == first_ || messages_[end_].tag == messages_[first_].tag)) ++end_;
    bool ready = first_ < end_;
    for (std::size_t m = first_; m < end_; ++m) ready = ready && (messages_[m].started || !messages_[m].sends);
    if (!ready) return;
    std::int64_t bytes = 0;
    for (std::size_t m = first_; m < end_; ++m)
        if (!take_address(executor, messages_[m])) return;
    nccl_->begin();
    for (std::size_t m = first_; m < end_; ++m) {
        const BoundStep& step = executor.step(messages_[m].step);
        bytes += step.bytes;
        if (messages_[m].sends)
            nccl_->send(messages_[m].data, step.bytes, step.peer);
        else
            nccl_->receive(messages_[m].data, step.bytes, step.peer);
    }
    nccl_->commit(bytes, limit_);
    under_way_ = true;
}

int NcclTransport::start(Executor& executor, std::uint32_t index, bool, Started& started) {
    started = Started::done;
    if (!why_.empty()) return 0;
    Message& message = messages_[message_of_step_[index]];
    message.started = true;
    if (message.arrived) {
        deliver(executor, message);
        if (why_.empty()) finish_deliveries();
        if (why_.empty()) give_back(message);
        return 0;
    }
    started = Started::pending;
    ++started_;
    if (!under_way_) issue(executor);
    return 0;
}

/// What NCCL's commands may touch yet stays.
void NcclTransport::end_by_abort() {
    if (nccl_) nccl_->abort();
    under_way_ = false;
    for (Message& message : messages_)
        if (nccl_ && nccl_->left_busy())
            message.bounced = {};
        else
            give_back(message);
}

/// After a failure.
void NcclTransport::complete_started(Executor& executor) {
    end_by_abort();
    doomed_.clear();
    for (std::size_t m = first_; m < messages_.size(); ++m)
        if (messages_[m].started) doomed_.push_back(messages_[m].step);
    first_ = end_ = messages_.size();
    for (const std::uint32_t step : doomed_) {
        ++completed_;
        executor.complete(step);
    }
}

int NcclTransport::progress(Executor& executor, bool& any) {
    if (under_way_ && why_.empty()) {
        if (!counts_time_) nccl_->count_from_now();
        const device::Progress now = nccl_->poll();
        if (now == device::Progress::under_way) return 0;
        if (now == device::Progress::failed) fail(nccl_->why());
        bool copies = false;
        for (std::size_t m = first_; m < end_ && why_.empty(); ++m) {
            if (messages_[m].sends || !messages_[m].bounced.data || !messages_[m].started) continue;
            copies = true;
            deliver(executor, messages_[m]);
        }
        if (copies && why_.empty()) finish_deliveries();
    }
    if (!why_.empty()) {
        any = true;
        complete_started(executor);
        return 0;
    }
    if (!under_way_) return 0;
    any = true;
    under_way_ = false;
    const std::size_t begin = first_, end = end_;
    first_ = end_;
    for (std::size_t m = begin; m < end; ++m) {
        messages_[m].arrived = true;
        if (!messages_[m].started) continue;
        give_back(messages_[m]);
        ++completed_;
        executor.complete(messages_[m].step);
    }
    issue(executor);
    return 0;
}

void NcclTransport::end(Executor&, bool failed) {
    if (failed || !why_.empty()) end_by_abort();
    under_way_ = false;
    started_ = completed_ = 0;
}

}  // namespace palmette::execute
