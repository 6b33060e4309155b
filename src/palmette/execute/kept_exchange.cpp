#include "palmette/execute/kept_exchange.hpp"

#include <algorithm>
#include <cstring>

namespace palmette::execute {

using aggregate::Reason;
using aggregate::kept::Peers;
using plan::StepKind;

template <class Visit>
int KeptExchange::each_child(Visit visit) const {
    const std::size_t me = group_.peers->member(), count = group_.peers->members();
    for (std::size_t distance = 1; me % (2 * distance) == 0 && me + distance < count; distance *= 2)
        if (const int error = visit(me + distance, std::min(distance, count - me - distance)); error != 0) return error;
    return 0;
}

int KeptExchange::start(Executor& executor, std::uint32_t index, Started& started) {
    const BoundStep& step = executor.step(index);
    started = Started::done;
    if (!group_.peers || step.bytes == 0) return 0;
    if (step.kind == StepKind::send) {
        input_ = executor.message_data(step);
        return 0;
    }
    output_ = executor.message_data(step);
    bytes_ = static_cast<std::size_t>(step.bytes);
    recv_ = index;
    started = Started::pending;
    return begin(executor);
}

int KeptExchange::begin(Executor& executor) {
    Peers& peers = *group_.peers;
    if (service_->failed()) peers.freeze(service_->reason(), service_->detail());
    if (!peers.contribute()) {
        service_->leave();  // for those that wait for this one's contribution
        return by_hosts(executor);
    }
    waits_for_ = Stage::service;
    const std::uint64_t count = bytes_ / bytes_of(elements_.element).extent;
    const Reason reason = service_->post(
        aggregate::Operation::allreduce(elements_.op, elements_.element, input_, peers.result(bytes_), count), number_);
    if (reason != Reason::none) lose(reason, service_->detail());
    return 0;
}

/// From here on the service writes nothing, and the other members hear of it.
void KeptExchange::lose(Reason reason, std::string_view detail) {
    group_.peers->freeze(reason, detail);
    service_->leave();
    waits_for_ = Stage::verdict;
}

int KeptExchange::progress(Executor& executor, bool& any) {
    Peers& peers = *group_.peers;
    if (waits_for_ == Stage::service) {
        service_->progress();
        if (service_->done(number_)) {
            any = true;
            if (peers.keep()) return complete(executor, {peers.result(bytes_), bytes_});
            lose(Reason::none, {});
        } else if (service_->failed()) {
            lose(service_->reason(), service_->detail());
        } else if (peers.frozen()) {
            lose(Reason::none, {});
        }
    }
    if (waits_for_ != Stage::verdict) return 0;
    switch (peers.verdict()) {
        case Peers::Verdict::none:
            return 0;
        case Peers::Verdict::result:
            any = true;
            return complete(executor, {peers.result(bytes_), bytes_});
        case Peers::Verdict::hosts:
            any = true;
            return by_hosts(executor);
    }
    return 0;
}

int KeptExchange::complete(Executor& executor, std::string_view result) {
    if (result.data() != output_) std::memcpy(output_, result.data(), bytes_);
    waits_for_ = Stage::nothing;
    executor.complete(recv_);
    return 0;
}

int KeptExchange::post(Executor& executor, StepKind kind, char* data, std::size_t bytes, std::size_t member) {
    const std::int32_t tag = executor.environment().first_tag + executor.program().agreement_tag;
    return messages_.post(executor, kind, data, static_cast<std::int64_t>(bytes), group_.ranks[member], tag, recv_);
}

int KeptExchange::by_hosts(Executor& executor) {
    std::size_t below = 0;
    each_child([&](std::size_t, std::size_t members) {
        below += members;
        return 0;
    });
    contributions_.resize((1 + below) * bytes_);
    std::memcpy(contributions_.data(), input_, bytes_);
    waits_for_ = Stage::contributions;
    if (below == 0) return posted_complete(executor);
    const std::size_t me = group_.peers->member();
    return each_child([&](std::size_t child, std::size_t members) {
        char* const to = contributions_.data() + (child - me) * bytes_;
        return post(executor, StepKind::recv, to, members * bytes_, child);
    });
}

void KeptExchange::combine() {
    const kernels::Kernel kernel = kernels::kernel_for(elements_.op, elements_.element);
    const std::size_t count = bytes_ / bytes_of(elements_.element).extent;
    char* const sum = contributions_.data();
    for (std::size_t at = bytes_; at < contributions_.size(); at += bytes_)
        kernel(sum, contributions_.data() + at, sum, count);
    std::memcpy(output_, sum, bytes_);
}

/// All messages of a stage have completed.
int KeptExchange::posted_complete(Executor& executor) {
    const std::size_t me = group_.peers->member();
    if (waits_for_ == Stage::contributions) {
        waits_for_ = Stage::sum;
        if (me != 0) {
            const std::size_t parent = me & (me - 1);
            const int error = post(executor, StepKind::send, contributions_.data(), contributions_.size(), parent);
            return error != 0 ? error : post(executor, StepKind::recv, output_, bytes_, parent);
        }
        combine();
    }
    if (waits_for_ == Stage::sum) {
        waits_for_ = Stage::others;
        bool any = false;
        const int error = each_child([&](std::size_t child, std::size_t) {
            any = true;
            return post(executor, StepKind::send, output_, bytes_, child);
        });
        if (error != 0 || any) return error;
    }
    group_.peers->settle({output_, bytes_});
    return complete(executor, {output_, bytes_});
}

void KeptExchange::end(bool failed) {
    if (failed && group_.peers && waits_for_ != Stage::nothing) {
        lose(Reason::left, "the operation has failed in the MPI");
        // The others count it.
        group_.peers->settle({});
    }
    waits_for_ = Stage::nothing;
}

}  // namespace palmette::execute
