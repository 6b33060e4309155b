#include "palmette/execute/aggregation_transport.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "palmette/execute/executor.hpp"

namespace palmette::runtime {

using plan::StepKind;

namespace {

/// Even where only aggregators are waited for, the program's own messages may need the MPI's progress now and then.
constexpr int longest_wait_ms = 8;
/// Connections that one call of poll() watches; the others are looked at after each wait.
constexpr std::size_t most_watched = 64;

}  // namespace

void AggregationTransport::prepare(const BoundProgram& program) {
    if (program.channels == 0) return;
    const auto grow = [](auto& vector, std::size_t size) {
        if (vector.size() < size) vector.resize(size);
    };
    grow(exchange_of_step_, program.steps.size());
    grow(exchanges_, program.steps.size());
    grow(lanes_, channels_ ? channels_->size() : 0);
}

AggregationTransport::Lane* AggregationTransport::lane_of(const BoundProgram& program, const BoundStep& step) {
    const std::size_t count = channels_ ? channels_->size() : 0;
    for (std::size_t i = 0; i < count; ++i)
        if (const AggregationChannel& one = *lanes_[i].channel;
            one.peer == step.peer && one.channel == step.tag % program.channels)
            return &lanes_[i];
    return nullptr;
}

bool AggregationTransport::begin(Executor& executor, int& error) {
    error = 0;
    pending_ = 0;
    const BoundProgram& program = executor.program();
    if (program.channels == 0) return true;
    failure_ = std::nullopt;
    const std::size_t count = channels_ ? channels_->size() : 0;
    for (std::size_t i = 0; i < count; ++i) lanes_[i] = {&(*channels_)[i], 0, 0, 0, 0};
    const auto is_ours = [&](std::uint32_t step, StepKind kind) {
        return program.steps[step].kind == kind && &executor.carrier(step) == this;
    };
    for (std::uint32_t s = 0; s < program.steps.size(); ++s)
        if (is_ours(s, StepKind::recv))
            if (Lane* lane = lane_of(program, program.steps[s])) ++lane->count;
    std::size_t first = 0;
    for (std::size_t i = 0; i < count; ++i) {
        lanes_[i].first = first;
        first += lanes_[i].count;
    }
    // Sends and receives of a channel stand in the same order in the program.
    for (const StepKind kind : {StepKind::send, StepKind::recv}) {
        for (std::size_t i = 0; i < count; ++i) lanes_[i].posted = 0;
        for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
            if (!is_ours(s, kind)) continue;
            Lane* lane = lane_of(program, program.steps[s]);
            if (!lane) {
                fail(aggregate::Reason::unknown_group, "this rank is in no group of that aggregator");
                continue;
            }
            const std::size_t exchange = lane->first + lane->posted++;
            exchange_of_step_[s] = static_cast<std::uint32_t>(exchange);
            if (kind == StepKind::recv) exchanges_[exchange] = {s};
        }
    }
    for (std::size_t i = 0; i < count; ++i) lanes_[i].posted = 0;
    return true;
}

int AggregationTransport::start(Executor& executor, std::uint32_t index, bool /*last*/, Started& started) {
    const BoundStep& step = executor.step(index);
    started = Started::done;
    if (failure_) return 0;
    Lane& lane = *lane_of(executor.program(), step);
    Exchange& exchange = exchanges_[exchange_of_step_[index]];
    if (step.kind == StepKind::send) {
        exchange.input = executor.message_data(step);
        return 0;
    }
    exchange.output = executor.message_data(step);
    exchange.empty = step.bytes == 0;
    exchange.ready = true;
    ++pending_;
    started = Started::pending;
    post(executor, lane);
    return 0;
}

void AggregationTransport::post(Executor& executor, Lane& lane) {
    aggregate::Client& client = *lane.channel->client;
    while (lane.posted < lane.count && !failure_) {
        Exchange& next = exchanges_[lane.first + lane.posted];
        if (!next.ready) return;
        if (!next.empty) {
            const auto count =
                static_cast<std::uint64_t>(executor.step(next.recv).bytes) / bytes_of(elements_.element).extent;
            const auto operation =
                aggregate::Operation::allreduce(elements_.op, elements_.element, next.input, next.output, count);
            const aggregate::Reason reason = client.post(operation, next.number);
            if (reason == aggregate::Reason::no_resource) return;  // when an earlier one is done
            if (reason != aggregate::Reason::none) return fail(reason, client.detail());
        }
        ++lane.posted;
    }
}

/// What has arrived; true where anything has.
bool AggregationTransport::complete(Executor& executor, Lane& lane) {
    const std::size_t before = lane.complete;
    while (lane.complete < lane.posted) {
        const Exchange& oldest = exchanges_[lane.first + lane.complete];
        if (!oldest.empty && !lane.channel->client->done(oldest.number)) break;
        ++lane.complete;
        --pending_;
        executor.complete(oldest.recv);
    }
    return lane.complete > before;
}

int AggregationTransport::progress(Executor& executor, bool& any) {
    const std::size_t count = channels_ ? channels_->size() : 0;
    for (std::size_t i = 0; i < count && !failure_; ++i) {
        Lane& lane = lanes_[i];
        if (lane.complete == lane.count) continue;
        aggregate::Client& client = *lane.channel->client;
        client.progress();
        if (complete(executor, lane)) any = true;
        post(executor, lane);
        if (client.failed()) fail(client.reason(), client.detail());
    }
    if (!failure_) return 0;
    // What is left completes without effect.
    for (std::size_t i = 0; i < count; ++i)
        for (Lane& lane = lanes_[i]; lane.complete < lane.count;) {
            const Exchange& next = exchanges_[lane.first + lane.complete++];
            if (!next.ready) continue;
            --pending_;
            any = true;
            executor.complete(next.recv);
        }
    return 0;
}

int AggregationTransport::wait(Executor& executor) {
    bool any = false;
    if (const int error = progress(executor, any); error != 0 || any) return error;
    std::array<pollfd, most_watched> watched{};
    std::size_t count = 0;
    int wait_ms = patience_ms_;
    for (std::size_t i = 0; i < channels_->size() && count < watched.size(); ++i) {
        if (lanes_[i].complete == lanes_[i].posted) continue;
        const aggregate::Link& link = lanes_[i].channel->client->link();
        watched[count++] = {link.fd(), link.events(), 0};
        if (const int due = link.due_ms(); due >= 0) wait_ms = std::min(wait_ms, due);
    }
    if (::poll(watched.data(), count, wait_ms) > 0) {
        patience_ms_ = 1;
        return progress(executor, any);
    }
    patience_ms_ = std::min(2 * patience_ms_, longest_wait_ms);
    if (const int error = progress(executor, any); error != 0 || any) return error;
    return executor.idle();
}

void AggregationTransport::fail(aggregate::Reason reason, std::string_view detail) {
    if (failure_) return;
    failure_ = Failure{reason, detail};
    // From here on nothing may be written to buffers of the operation.
    for (AggregationChannel& one : *channels_) one.client->leave();
}

void AggregationTransport::end(Executor& executor, bool failed) {
    if (executor.program().channels == 0) return;
    if (failed) fail(aggregate::Reason::left, "the operation has failed in the MPI");
    pending_ = 0;
}

}  // namespace palmette::runtime
