#include "palmette/execute/nccl_transport.hpp"

#include <algorithm>
#include <tuple>

#include "palmette/base/text.hpp"
#include "palmette/device/place.hpp"
#include "palmette/execute/executor.hpp"

namespace palmette::runtime {

using plan::StepKind;

bool NcclTransport::begin(Executor& executor, int& error) {
    error = 0;
    const BoundProgram& program = executor.program();
    if ((program.transports >> index_ & 1) == 0) return true;
    messages_.clear();
    why_.clear();
    first_ = end_ = started_ = completed_ = 0;
    bounce_bytes_ = 0;
    under_way_ = false;
    for (std::uint32_t s = 0; s < program.steps.size(); ++s)
        if (const BoundStep& step = program.steps[s]; plan::is_remote(step.kind) && step.transport == index_) {
            messages_.push_back({.tag = step.tag, .step = s, .sends = step.kind == StepKind::send});
            bounce_bytes_ += (step.bytes + 255) / 256 * 256;
        }
    std::sort(messages_.begin(), messages_.end(),
              [](const Message& a, const Message& b) { return std::tuple(a.tag, a.step) < std::tuple(b.tag, b.step); });
    message_of_step_.resize(std::max(message_of_step_.size(), program.steps.size()));
    for (std::uint32_t m = 0; m < messages_.size(); ++m) message_of_step_[messages_[m].step] = m;
    bounce_ = nullptr;
    if (!nccl_) fail("NCCL isn't in service");
    std::int64_t at = 0;
    for (Message& message : messages_) {
        message.bounced = at;
        at += (program.steps[message.step].bytes + 255) / 256 * 256;
    }
    return true;
}

void NcclTransport::fail(const std::string& why) {
    if (why_.empty()) why_ = why;
}

/// Where NCCL finds or leaves the payload.
bool NcclTransport::take_address(Executor& executor, Message& message) {
    const BoundStep& step = executor.step(message.step);
    if (message.started) {
        char* const data = executor.message_data(step);
        const device::Place place = device::place_of(data);
        if (place.on_device() && same_queue(place, nccl_->place())) {
            message.data = data;
            message.bounced = -1;
            return true;
        }
    }
    if (!bounce_) bounce_ = static_cast<char*>(nccl_->scratch(bounce_bytes_));
    if (!bounce_) {
        fail("no device memory for messages");
        return false;
    }
    message.data = bounce_ + message.bounced;
    if (!message.sends) return true;
    const device::Status status = nccl_->enqueue_copy(message.data, executor.message_data(step), step.bytes);
    if (status) fail(base::cat("a copy to the device: ", status));
    return !status;
}

/// Begins to copy what has arrived elsewhere.
void NcclTransport::deliver(Executor& executor, const Message& message) {
    const BoundStep& step = executor.step(message.step);
    const device::Status status = nccl_->begin_delivery(executor.message_data(step), message.data, step.bytes);
    if (status) fail(base::cat("a copy from the device: ", status));
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
        if (!why_.empty()) return 0;
        if (const device::Status status = nccl_->finish_deliveries())
            fail(base::cat("a copy from the device: ", status));
        return 0;
    }
    started = Started::pending;
    ++started_;
    if (!under_way_) issue(executor);
    return 0;
}

/// After a failure.
void NcclTransport::complete_started(Executor& executor) {
    if (nccl_) nccl_->abort();
    under_way_ = false;
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
        const device::Progress now = nccl_->poll();
        if (now == device::Progress::under_way) return 0;
        if (now == device::Progress::failed) fail(nccl_->why());
        bool copies = false;
        for (std::size_t m = first_; m < end_ && why_.empty(); ++m) {
            if (messages_[m].sends || messages_[m].bounced < 0 || !messages_[m].started) continue;
            copies = true;
            deliver(executor, messages_[m]);
        }
        if (copies && why_.empty())
            if (const device::Status status = nccl_->finish_deliveries())
                fail(base::cat("a copy from the device: ", status));
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
        ++completed_;
        executor.complete(messages_[m].step);
    }
    issue(executor);
    return 0;
}

void NcclTransport::end(Executor&, bool failed) {
    if (failed && under_way_ && nccl_) nccl_->abort();
    under_way_ = false;
    started_ = completed_ = 0;
}

}  // namespace palmette::runtime
