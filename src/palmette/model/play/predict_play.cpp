#include "palmette/model/play/predict_play.hpp"

#include <algorithm>
#include <functional>

#include "palmette/base/error.hpp"

namespace palmette::model {

using plan::StepKind;

Player::Player(const topology::Job& job, const Costs& costs, Sharing sharing, PlayedSteps& steps)
    : job_(job),
      costs_(costs),
      sharing_(sharing),
      node_level_(*job.find_level("node")),
      plan_(steps),
      steps_(steps.steps),
      links_(job, costs),
      times_(steps.steps.size()),
      traffic_(costs.levels.size()),
      busy_(static_cast<std::size_t>(job.size()), 0),
      last_(static_cast<std::size_t>(job.size()), no_step),
      next_(steps.steps.size(), no_step),
      first_waiting_(steps.steps.size(), no_step),
      tail_(steps.pairs, no_step),
      memory_busy_(static_cast<std::size_t>(job.nodes().groups.count()), 0) {
    position_of_.reserve(static_cast<std::size_t>(job.size()));
    for (std::int32_t r = 0; r < job.size(); ++r) position_of_.push_back(job.position_of({r}).value);
}

void Player::push(double at, What what, std::uint32_t index, std::uint32_t version) {
    events_.push_back({at, 8 * number_++ + static_cast<std::uint64_t>(what), index, version});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void Player::run() {
    for (std::uint32_t s = 0; s < steps_.size(); ++s)
        if (steps_[s].missing == 0) push(0, What::ready, s);
    while (!events_.empty()) {
        const Event event = events_.front();
        std::pop_heap(events_.begin(), events_.end(), std::greater<>());
        events_.pop_back();
        switch (static_cast<What>(event.order % 8)) {
            case What::ready:
                ready(event.index, event.at);
                break;
            case What::set_off:
                set_off(event.index, event.at);
                break;
            case What::link:
                let_through(event.index, event.version, event.at);
                break;
            case What::through:
                arrived_at_edge_end(event.index, event.at);
                break;
            case What::copying:
                copying(event.index, event.at);
                break;
            case What::arrive: {
                const std::uint32_t recv = steps_[event.index].partner;
                times_.through[recv] = event.at;
                if (times_.mark[recv] >= 0) receive(recv, event.at);
                break;
            }
        }
    }
    for (std::uint32_t s = 0; s < steps_.size(); ++s)
        if (times_.done[s] < 0)
            base::fail("rank ", steps_[s].rank, ": a ", plan::name_of(steps_[s].kind),
                       " never ends; `palmette plan --verify` tells why");
}

void Player::complete(std::uint32_t step, double at) {
    times_.done[step] = at;
    for (const std::uint32_t* w = plan_.waiters_begin(step); w != plan_.waiters_end(step); ++w) {
        // Until a step begins, `begun` is when it may.
        if (times_.cause[*w] == no_step || at >= times_.begun[*w]) {
            times_.begun[*w] = at;
            times_.cause[*w] = step;
        }
        if (--steps_[*w].missing == 0) push(times_.begun[*w], What::ready, *w);
    }
}

double Player::work(std::uint32_t step, double now, double seconds) {
    const std::uint32_t rank = steps_[step].rank;
    double start = now;
    if (busy_[rank] > now) {
        start = busy_[rank];
        times_.cause[step] = last_[rank];
    }
    times_.begun[step] = start;
    busy_[rank] = start + seconds;
    last_[rank] = step;
    return busy_[rank];
}

void Player::ready(std::uint32_t step, double now) {
    const PlayedStep& played = steps_[step];
    switch (played.kind) {
        case StepKind::copy:
            complete(step, work(step, now, played.bytes / costs_.copy_bytes_per_s.value));
            return;
        case StepKind::reduce:
            complete(step, work(step, now, played.bytes / costs_.reduce_bytes_per_s.value));
            return;
        case StepKind::expose: {
            times_.begun[step] = now;
            const double at = played.copied ? work(step, now, played.bytes / costs_.copy_bytes_per_s.value) : now;
            if (played.copied) complete(step, at);
            available(step, at);
            return;
        }
        case StepKind::pull:
        case StepKind::pull_reduce: {
            const std::uint32_t expose = played.partner;
            if (times_.mark[expose] >= 0) {
                pull(step, now);
            } else {
                times_.mark[step] = now;
                next_[step] = first_waiting_[expose];
                first_waiting_[expose] = step;
            }
            return;
        }
        case StepKind::send:
            if (is_long(played) && times_.mark[played.partner] < 0)
                times_.mark[step] = now;  // its receiver isn't there yet
            else
                start_send(step, now, times_.cause[step]);
            return;
        case StepKind::recv: {
            times_.mark[step] = now;
            const std::uint32_t send = played.partner;
            if (is_long(steps_[send]) && times_.mark[send] >= 0) start_send(send, now, times_.cause[step]);
            if (times_.through[step] >= 0) receive(step, now);
            return;
        }
    }
}

void Player::start_send(std::uint32_t send, double now, std::uint32_t cause) {
    const PlayedStep& played = steps_[send];
    const MessageCosts& costs = costs_of(played);
    const double packed_s = played.staged ? played.bytes / costs_.copy_bytes_per_s.value : 0;
    times_.cause[send] = cause;
    if (in_node(played)) {
        const double copied_s = played.bytes / costs.stream_bytes_per_s.value;
        const double end = work(send, now, costs.overhead_s.value + packed_s + copied_s);
        times_.mark[send] = end - copied_s;
        times_.through[send] = end;
        LevelTraffic& traffic = traffic_[played.level];
        ++traffic.messages, traffic.bytes += played.bytes, traffic.taken_s += copied_s, traffic.alone_s += copied_s;
        complete(send, end);
        push(times_.mark[send], What::copying, send);
        return;
    }
    const double handed_over = work(send, now, costs.overhead_s.value + packed_s + costs_.buffered_s(played.bytes));
    const double round_trip_s = is_long(played) ? 2 * costs.latency_s.value : 0;
    times_.mark[send] = handed_over + round_trip_s;
    push(times_.mark[send], What::set_off, send);
    if (!is_long(played)) complete(send, handed_over);
}

void Player::copying(std::uint32_t send, double now) {
    const PlayedStep& played = steps_[send];
    const MessageCosts& costs = costs_of(played);
    double begun = now;
    if (costs.together_bytes_per_s > 0) {
        // In the order in which copies begin, like a queue: so many bytes of the node are through then.
        const std::int32_t node = job_.levels()[node_level_].groups.group_of(position_of_[played.rank]);
        double& busy = memory_busy_[static_cast<std::size_t>(node)];
        busy = std::max(busy, now) + played.bytes / costs.together_bytes_per_s;
        const double alone_s = times_.through[send] - now;
        times_.through[send] = std::max(times_.through[send], busy);
        begun = times_.through[send] - alone_s;
        traffic_[played.level].taken_s += begun - now;
    }
    push(begun + costs.on_the_way_s(), What::arrive, send);
}

void Player::receive(std::uint32_t recv, double now) {
    const PlayedStep& played = steps_[recv];
    const std::uint32_t send = played.partner;
    const MessageCosts& costs = costs_of(played);
    if (times_.through[recv] >= times_.mark[recv]) times_.cause[recv] = send;
    const double unpacked_s = played.staged ? played.bytes / costs_.copy_bytes_per_s.value : 0;
    if (!in_node(played)) {
        complete(recv, work(recv, now, costs.overhead_s.value + unpacked_s + costs_.buffered_s(played.bytes)));
        return;
    }
    const double copied = work(recv, now, played.bytes / costs.stream_bytes_per_s.value);
    const double end =
        std::max(copied, times_.through[send] + costs.on_the_way_s()) + costs.overhead_s.value + unpacked_s;
    busy_[played.rank] = end;
    complete(recv, end);
}

void Player::available(std::uint32_t expose, double at) {
    times_.mark[expose] = at;
    for (std::uint32_t p = first_waiting_[expose]; p != no_step;) {
        const std::uint32_t next = next_[p];
        times_.cause[p] = expose;
        push(at + costs_of(steps_[p]).latency_s.value, What::ready, p);
        p = next;
    }
    first_waiting_[expose] = no_step;
}

void Player::pull(std::uint32_t step, double now) {
    const PlayedStep& played = steps_[step];
    const std::uint32_t expose = played.partner;
    // A reader that is there first is told after the latency; one that comes late may still be ahead of the news.
    const double told = times_.mark[expose] + costs_of(played).latency_s.value;
    if (told > now) times_.cause[step] = expose;
    const CostValue& rate = played.kind == StepKind::pull ? costs_.copy_bytes_per_s : costs_.reduce_bytes_per_s;
    const double end = work(step, std::max(now, told), played.bytes / rate.value);
    complete(step, end);
    PlayedStep& exposed = steps_[expose];
    if (--exposed.pair > 0 || exposed.copied) return;
    // The last one to be started need not be the last one to end, but it nearly is: all read the same bytes.
    exposed.partner = step;
    complete(expose, end);
}

void Player::set_off(std::uint32_t send, double now) {
    const std::uint32_t pair = steps_[send].pair;
    const std::uint32_t before = tail_[pair];
    tail_[pair] = send;
    if (before != no_step)
        next_[before] = send;
    else
        transfer(send, now);
}

double Player::alone_s(const PlayedStep& send) const {
    double least = costs_of(send).stream_bytes_per_s.value;
    for (const std::uint32_t link : way_) {
        const double capacity = links_[link].bytes_per_s();
        if (least <= 0 || capacity < least) least = capacity;
    }
    return least > 0 ? send.bytes / least : 0;
}

void Player::transfer(std::uint32_t send, double now) {
    const PlayedStep& played = steps_[send];
    way_.clear();
    links_.way(position_of_[played.rank], position_of_[steps_[played.partner].rank], played.level, way_);
    LevelTraffic& traffic = traffic_[played.level];
    ++traffic.messages, traffic.bytes += played.bytes;
    traffic.alone_s += alone_s(played);
    traffic.taken_s -= now;
    const double stream = costs_of(played).stream_bytes_per_s.value;
    // Kept here until the message is through: the pair alone isn't faster.
    times_.through[send] = now + (stream > 0 ? played.bytes / stream : 0);
    if (way_.empty() || played.bytes <= 0) {
        push(times_.through[send], What::through, send);
        return;
    }
    if (sharing_ == Sharing::in_order) {
        double end = times_.through[send];
        for (const std::uint32_t link : way_) end = std::max(end, links_[link].queue(now, played.bytes));
        push(end, What::through, send);
        return;
    }
    std::uint32_t flow = static_cast<std::uint32_t>(flows_.size());
    if (free_flows_.empty()) {
        flows_.push_back({});
    } else {
        flow = free_flows_.back();
        free_flows_.pop_back();
    }
    flows_[flow] = {send, static_cast<std::uint32_t>(way_.size())};
    for (const std::uint32_t link : way_) {
        const double next = links_[link].enter(now, played.bytes, flow);
        push(next, What::link, link, links_[link].version());
    }
}

void Player::let_through(std::uint32_t link, std::uint32_t version, double now) {
    if (links_[link].version() != version) return;
    through_now_.clear();
    const double next = links_[link].leave(now, through_now_);
    if (next >= 0) push(next, What::link, link, links_[link].version());
    for (const std::uint32_t flow : through_now_) {
        if (--flows_[flow].open > 0) continue;
        free_flows_.push_back(flow);
        const std::uint32_t send = flows_[flow].send;
        push(std::max(now, times_.through[send]), What::through, send);
    }
}

void Player::arrived_at_edge_end(std::uint32_t send, double now) {
    const PlayedStep& played = steps_[send];
    times_.through[send] = now;
    traffic_[played.level].taken_s += now;
    if (is_long(played)) complete(send, now);
    push(now + costs_of(played).on_the_way_s(), What::arrive, send);
    if (tail_[played.pair] == send)
        tail_[played.pair] = no_step;
    else
        transfer(next_[send], now);
}

}  // namespace palmette::model
