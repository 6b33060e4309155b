#include "palmette/execute/aggregation_transport.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

#include "palmette/execute/executor.hpp"

namespace palmette::execute {

using plan::StepKind;

namespace {

/// Even where only aggregators are waited for, the program's own messages may need the MPI's progress now and then.
constexpr int longest_wait_ms = 8;
/// Connections that one call of poll() watches; the others are looked at after each wait.
constexpr std::size_t most_watched = 64;

/// The tag of a step that only agrees (add_agreement).
constexpr std::int32_t agreement_alone = -1;

/// What tells more than that others have ended the group, or haven't come, counts more.
std::int64_t weight_of(aggregate::Reason reason) {
    switch (reason) {
        case aggregate::Reason::late_join:
            return 0;
        case aggregate::Reason::left:
        case aggregate::Reason::member_lost:
        case aggregate::Reason::closed:
            return 1;
        default:
            return 2;
    }
}

}  // namespace

std::vector<std::pair<std::int32_t, std::int32_t>> channels_of(const BoundProgram& program, std::int32_t ranks) {
    std::vector<std::pair<std::int32_t, std::int32_t>> out;
    for (const BoundStep& step : program.steps) {
        if (!plan::is_message(step.kind) || step.peer < ranks || step.tag == agreement_alone) continue;
        const std::pair one(step.peer, step.tag % program.channels);
        if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
    }
    return out;
}

void add_agreement(BoundProgram& program, std::int32_t ranks, std::uint8_t transport) {
    if (program.channels == 0 || !channels_of(program, ranks).empty()) return;
    BoundStep step{};
    step.kind = StepKind::recv;
    step.peer = ranks;
    step.tag = agreement_alone;
    step.transport = transport;
    step.staging = -1;
    step.first_waiter = static_cast<std::uint32_t>(program.waiters.size());
    program.first_ready.push_back(static_cast<std::uint32_t>(program.steps.size()));
    program.steps.push_back(step);
    program.transports |= 1U << transport;
    program.taking_part |= 1U << transport;
    constexpr std::int64_t most_children = 32;
    program.most_requests += most_children;
}

AgreementTree agreement_tree(const topology::Job& job, topology::Rank rank) {
    AgreementTree out;
    out.rank = rank.value;
    const std::int32_t position = job.position_of(rank).value;
    for (std::int32_t distance = 1; distance < job.size(); distance *= 2) {
        if (position % (2 * distance) != 0) {
            out.parent = job.rank_at({position - distance}).value;
            break;
        }
        if (position + distance < job.size()) out.children.push_back(job.rank_at({position + distance}).value);
    }
    return out;
}

std::int64_t agreement_code(aggregate::Reason reason, std::int32_t rank) {
    return reason == aggregate::Reason::none ? 0 : -(weight_of(reason) << 32 | (std::int64_t{rank} + 1));
}

std::int32_t rank_in(std::int64_t code) { return static_cast<std::int32_t>(-code & 0xFFFFFFFF) - 1; }

void AggregationTransport::prepare(const BoundProgram& program) {
    if (program.channels == 0) return;
    const auto grow = [](auto& vector, std::size_t size) {
        if (vector.size() < size) vector.resize(size);
    };
    grow(exchange_of_step_, program.steps.size());
    grow(exchanges_, program.steps.size());
    grow(lanes_, channels_ ? channels_->size() : 0);
    if (tree_) grow(codes_, std::max<std::size_t>(tree_->children.size(), 1));
}

AggregationTransport::Lane& AggregationTransport::lane_of(const BoundProgram& program, const BoundStep& step) {
    std::size_t lane = 0;
    for (; lane + 1 < channels_->size(); ++lane)
        if (const AggregationChannel& one = *lanes_[lane].channel;
            one.peer == step.peer && one.channel == step.tag % program.channels)
            break;
    return lanes_[lane];
}

bool AggregationTransport::begin(Executor& executor, int& error) {
    error = 0;
    pending_ = 0;
    const BoundProgram& program = executor.program();
    if (program.channels == 0 || keeps_) return true;
    failure_ = std::nullopt;
    agreeing_ = Agreeing::not_yet;
    agreed_ = 0;
    left_ = 0;
    const std::size_t count = channels_ ? channels_->size() : 0;
    for (std::size_t i = 0; i < count; ++i) lanes_[i] = {&(*channels_)[i], 0, 0, 0, 0};
    const auto is_ours = [&](std::uint32_t step, StepKind kind) {
        return program.steps[step].kind == kind && &executor.carrier(step) == this;
    };
    for (std::uint32_t s = 0; s < program.steps.size(); ++s)
        if (is_ours(s, StepKind::recv)) {
            if (count > 0) ++lane_of(program, program.steps[s]).count;
            ++left_;
            last_recv_ = s;
        }
    if (count == 0) return true;
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
            Lane& lane = lane_of(program, program.steps[s]);
            const std::size_t exchange = lane.first + lane.posted++;
            exchange_of_step_[s] = static_cast<std::uint32_t>(exchange);
            if (kind == StepKind::recv) exchanges_[exchange] = {s};
        }
    }
    for (std::size_t i = 0; i < count; ++i) lanes_[i].posted = 0;
    return true;
}

int AggregationTransport::start(Executor& executor, std::uint32_t index, bool /*last*/, Started& started) {
    if (keeps_) return kept_exchange_.start(executor, index, started);
    const BoundStep& step = executor.step(index);
    started = Started::done;
    if (channels_->empty()) {
        started = Started::pending;
        return ended(executor, {index});
    }
    Lane& lane = lane_of(executor.program(), step);
    Exchange& exchange = exchanges_[exchange_of_step_[index]];
    if (step.kind == StepKind::send) {
        exchange.input = executor.message_data(step);
        return 0;
    }
    exchange.output = executor.message_data(step);
    exchange.empty = step.bytes == 0;
    exchange.ready = true;
    started = Started::pending;
    if (failure_) {
        exchange.ready = false;  // progress() needn't end it
        return ended(executor, exchange);
    }
    ++pending_;
    post(executor, lane);
    return 0;
}

void AggregationTransport::post(Executor& executor, Lane& lane) {
    aggregate::Service& service = *lane.channel->service;
    while (lane.posted < lane.count && !failure_) {
        Exchange& next = exchanges_[lane.first + lane.posted];
        if (!next.ready) return;
        if (!next.empty) {
            const auto count =
                static_cast<std::uint64_t>(executor.step(next.recv).bytes) / bytes_of(elements_.element).extent;
            const auto operation =
                aggregate::Operation::allreduce(elements_.op, elements_.element, next.input, next.output, count);
            const aggregate::Reason reason = service.post(operation, next.number);
            if (reason == aggregate::Reason::no_resource) return;  // when an earlier one is done
            if (reason != aggregate::Reason::none) return fail(reason, service.detail());
        }
        ++lane.posted;
    }
}

int AggregationTransport::ended(Executor& executor, const Exchange& exchange) {
    --left_;
    if (exchange.recv != last_recv_) executor.complete(exchange.recv);
    return left_ == 0 ? agree(executor) : 0;
}

int AggregationTransport::complete(Executor& executor, Lane& lane, bool& any) {
    while (lane.complete < lane.posted) {
        const Exchange& oldest = exchanges_[lane.first + lane.complete];
        if (!oldest.empty && !lane.channel->service->done(oldest.number)) break;
        ++lane.complete;
        --pending_;
        any = true;
        if (const int error = ended(executor, oldest)) return error;
    }
    return 0;
}

int AggregationTransport::progress(Executor& executor, bool& any) {
    if (keeps_) return kept_exchange_.progress(executor, any);
    const std::size_t count = channels_ ? channels_->size() : 0;
    for (std::size_t i = 0; i < count && !failure_; ++i) {
        Lane& lane = lanes_[i];
        if (lane.complete == lane.count) continue;
        aggregate::Service& service = *lane.channel->service;
        service.progress();
        if (const int error = complete(executor, lane, any)) return error;
        post(executor, lane);
        if (service.failed()) fail(service.reason(), service.detail());
    }
    if (!failure_) return 0;
    // What has been started ends without effect, and what hasn't will do so when it is.
    for (std::size_t i = 0; i < count; ++i)
        for (Lane& lane = lanes_[i]; lane.complete < lane.count;) {
            const Exchange& next = exchanges_[lane.first + lane.complete++];
            if (!next.ready) continue;
            --pending_;
            any = true;
            if (const int error = ended(executor, next)) return error;
        }
    return 0;
}

int AggregationTransport::exchange_codes(Executor& executor, StepKind kind, std::span<const std::int32_t> peers) {
    const std::int32_t tag = executor.environment().first_tag + executor.program().agreement_tag;
    std::int64_t* code = kind == StepKind::recv ? codes_.data() : &agreed_;
    for (const std::int32_t peer : peers) {
        const int error =
            messages_.post(executor, kind, reinterpret_cast<char*>(code), sizeof *code, peer, tag, last_recv_);
        if (error != 0) return error;
        if (kind == StepKind::recv) ++code;
    }
    return 0;
}

/// The next stage: called when all messages of the last one have completed.
int AggregationTransport::agree(Executor& executor) {
    const std::vector<std::int32_t>& children = tree_->children;
    if (agreeing_ == Agreeing::not_yet) {
        // Not before: while these are outstanding a rank polls, instead of blocking until an aggregator sends.
        agreeing_ = Agreeing::with_children;
        if (!children.empty()) return exchange_codes(executor, StepKind::recv, children);
    }
    if (agreeing_ == Agreeing::with_children) {
        agreed_ = failure_ ? agreement_code(failure_->reason, tree_->rank) : 0;
        for (std::size_t i = 0; i < children.size(); ++i) agreed_ = std::min(agreed_, codes_[i]);
        agreeing_ = Agreeing::with_parent;
        if (tree_->parent >= 0) {
            const int error = exchange_codes(executor, StepKind::send, {&tree_->parent, 1});
            return error != 0 ? error : exchange_codes(executor, StepKind::recv, {&tree_->parent, 1});
        }
    }
    if (agreeing_ == Agreeing::with_parent) {
        if (tree_->parent >= 0) agreed_ = codes_[0];
        agreeing_ = Agreeing::telling;
        if (!children.empty()) return exchange_codes(executor, StepKind::send, children);
    }
    agreeing_ = Agreeing::done;
    executor.complete(last_recv_);
    return 0;
}

int AggregationTransport::posted_complete(Executor& executor, std::uint32_t /*step*/) {
    return keeps_ ? kept_exchange_.posted_complete(executor) : agree(executor);
}

bool AggregationTransport::waits_for(std::size_t channel) const {
    return keeps_ ? channel == 0 : lanes_[channel].complete != lanes_[channel].posted;
}

int AggregationTransport::wait(Executor& executor) {
    bool any = false;
    if (const int error = progress(executor, any); error != 0 || any) return error;
    std::array<pollfd, most_watched> watched{};
    std::size_t count = 0;
    int wait_ms = patience_ms_;
    for (std::size_t i = 0; i < channels_->size() && count < watched.size(); ++i) {
        if (!waits_for(i)) continue;
        const aggregate::Service::Watch watch = (*channels_)[i].service->watch();
        watched[count++] = {watch.fd, watch.events, 0};
        if (watch.due_ms >= 0) wait_ms = std::min(wait_ms, watch.due_ms);
    }
    if (::poll(watched.data(), count, wait_ms) > 0) {
        patience_ms_ = 1;
        return progress(executor, any);
    }
    patience_ms_ = background_ ? 1 : std::min(2 * patience_ms_, longest_wait_ms);
    if (const int error = progress(executor, any); error != 0 || any) return error;
    return executor.idle();
}

void AggregationTransport::fail(aggregate::Reason reason, std::string_view detail) {
    if (failure_) return;
    failure_ = Failure{reason, detail};
    // From here on nothing may be written to buffers of the operation.
    for (AggregationChannel& one : *channels_) one.service->leave();
}

void AggregationTransport::end(Executor& executor, bool failed) {
    if (executor.program().channels == 0 || !channels_) return;
    if (keeps_) return kept_exchange_.end(failed);
    if (failed) fail(aggregate::Reason::left, "the operation has failed in the MPI");
    pending_ = 0;
}

}  // namespace palmette::execute
