#include "palmette/model/play/predict_play.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "palmette/base/error.hpp"

namespace palmette::model {

using plan::StepKind;

Simulator::Simulator(const topology::Job& job, const Costs& costs, Sharing sharing, StepGraph& steps)
    : job_(job),
      costs_(costs),
      sharing_(sharing),
      plan_(steps),
      steps_(steps.steps),
      links_(job, costs),
      times_(steps.steps.size()),
      traffic_(costs.levels.size()),
      busy_(static_cast<std::size_t>(job.size()) + job.aggregators().size(), 0),
      last_(busy_.size(), no_step),
      next_(steps.steps.size(), no_step),
      first_waiting_(steps.steps.size(), no_step),
      tail_(steps.pairs, no_step) {
    position_of_.reserve(busy_.size());
    for (std::int32_t r = 0; r < std::ssize(busy_); ++r) position_of_.push_back(job.position_of({r}).value);
}

void Simulator::push(double at, What what, std::uint32_t index, std::uint32_t version) {
    events_.push_back({at, 8 * number_++ + static_cast<std::uint64_t>(what), index, version});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void Simulator::run() { run_within(std::numeric_limits<double>::infinity(), UINT64_MAX); }

bool Simulator::run_within(double seconds, std::uint64_t events) {
    for (std::uint32_t s = 0; s < steps_.size(); ++s)
        if (steps_[s].missing == 0) push(0, What::ready, s);
    while (!events_.empty()) {
        const Event event = events_.front();
        if (event.at > seconds || number_ > events) return false;
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
                complete_link(event.index, event.version, event.at);
                break;
            case What::through:
                left_last_edge(event.index, event.at);
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
                       " never completes; `palmette plan --verify` shows why");
    return true;
}

void Simulator::complete(std::uint32_t step, double at) {
    times_.done[step] = at;
    for (const std::uint32_t waiter : plan_.waiters(step)) {
        // Until a step starts, `begun` is its earliest start.
        if (times_.cause[waiter] == no_step || at >= times_.begun[waiter]) {
            times_.begun[waiter] = at;
            times_.cause[waiter] = step;
        }
        if (--steps_[waiter].missing == 0) push(times_.begun[waiter], What::ready, waiter);
    }
}

double Simulator::work(std::uint32_t step, double now, double seconds) {
    const std::uint32_t rank = steps_[step].rank;
    double start = now;
    if (busy_[rank] > now) {
        start = busy_[rank];
        times_.cause[step] = last_[rank];
    }
    times_.begun[step] = start;
    const bool service = static_cast<std::int64_t>(rank) >= job_.size();
    busy_[rank] = start + (service ? 0 : seconds);
    last_[rank] = step;
    return busy_[rank];
}

void Simulator::ready(std::uint32_t step, double now) {
    const GraphStep& simulated = steps_[step];
    switch (simulated.kind) {
        case StepKind::copy:
            complete(step, work(step, now, simulated.bytes / costs_.copy_bytes_per_s.value));
            return;
        case StepKind::reduce:
            complete(step, work(step, now, simulated.bytes / costs_.reduce_bytes_per_s.value));
            return;
        case StepKind::expose: {
            times_.begun[step] = now;
            const double at = simulated.copied ? work(step, now, simulated.bytes / costs_.copy_bytes_per_s.value) : now;
            if (simulated.copied) complete(step, at);
            available(step, at);
            return;
        }
        case StepKind::pull:
        case StepKind::pull_reduce: {
            const std::uint32_t expose = simulated.partner;
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
            if (is_long(simulated) && times_.mark[simulated.partner] < 0)
                times_.mark[step] = now;  // rendezvous: the recv isn't posted yet
            else
                start_send(step, now, times_.cause[step]);
            return;
        case StepKind::recv: {
            times_.mark[step] = now;
            const std::uint32_t send = simulated.partner;
            if (is_long(steps_[send]) && times_.mark[send] >= 0) start_send(send, now, times_.cause[step]);
            if (times_.through[step] >= 0) receive(step, now);
            return;
        }
    }
}

void Simulator::start_send(std::uint32_t send, double now, std::uint32_t cause) {
    const GraphStep& simulated = steps_[send];
    const MessageCosts& costs = costs_of(simulated);
    const double packed_s = simulated.staged ? simulated.bytes / costs_.copy_bytes_per_s.value : 0;
    times_.cause[send] = cause;
    if (simulated.in_node) {
        const double copied_s = simulated.bytes / costs.stream_bytes_per_s.value;
        const double end = work(send, now, costs.overhead_of_sender_s() + packed_s + copied_s);
        times_.mark[send] = end - copied_s;
        times_.through[send] = end;
        LevelTraffic& traffic = traffic_[simulated.level];
        ++traffic.messages, traffic.bytes += simulated.bytes, traffic.taken_s += copied_s,
            traffic.uncontended_s += copied_s;
        complete(send, end);
        push(times_.mark[send], What::copying, send);
        return;
    }
    const double injected =
        work(send, now, costs.overhead_of_sender_s() + packed_s + costs_.buffered_by_sender_s(simulated.bytes));
    const double round_trip_s = is_long(simulated) ? 2 * costs.latency_s.value : 0;
    times_.mark[send] = injected + round_trip_s;
    push(times_.mark[send], What::set_off, send);
    if (!is_long(simulated)) complete(send, injected);
}

void Simulator::copying(std::uint32_t send, double now) {
    const GraphStep& simulated = steps_[send];
    if (links_.memory_is_limited() && simulated.bytes > 0) {
        const std::int32_t node = job_.nodes().groups.group_of(position_of_[simulated.rank]);
        const std::uint32_t link = links_.memory_of(node), flow = new_flow({send, 1});
        const double next = links_[link].enter(now, simulated.bytes, flow);
        push(next, What::link, link, links_[link].version());
        return;
    }
    const double copied = is_buffered(simulated) ? times_.through[send] : now;
    push(copied + costs_of(simulated).wire_s(), What::arrive, send);
}

void Simulator::receive(std::uint32_t recv, double now) {
    const GraphStep& simulated = steps_[recv];
    const std::uint32_t send = simulated.partner;
    const MessageCosts& costs = costs_of(simulated);
    if (times_.through[recv] >= times_.mark[recv]) times_.cause[recv] = send;
    const double unpacked_s = simulated.staged ? simulated.bytes / costs_.copy_bytes_per_s.value : 0;
    if (!simulated.in_node) {
        complete(recv,
                 work(recv, now,
                      costs.overhead_of_receiver_s() + unpacked_s + costs_.buffered_by_receiver_s(simulated.bytes)));
        return;
    }
    // What isn't buffered is copied while it arrives.
    const double copied_s = simulated.bytes / costs.stream_bytes_per_s.value;
    const bool along = links_.memory_is_limited() && !is_buffered(simulated);
    const double copied =
        work(recv, along ? std::max(times_.mark[recv], times_.through[recv] - copied_s) : now, copied_s);
    const double end =
        std::max(copied, times_.through[send] + costs.wire_s()) + costs.overhead_of_receiver_s() + unpacked_s;
    busy_[simulated.rank] = end;
    complete(recv, end);
}

void Simulator::available(std::uint32_t expose, double at) {
    times_.mark[expose] = at;
    for (std::uint32_t p = first_waiting_[expose]; p != no_step;) {
        const std::uint32_t next = next_[p];
        times_.cause[p] = expose;
        push(at + costs_of(steps_[p]).latency_s.value, What::ready, p);
        p = next;
    }
    first_waiting_[expose] = no_step;
}

void Simulator::pull(std::uint32_t step, double now) {
    const GraphStep& simulated = steps_[step];
    const std::uint32_t expose = simulated.partner;
    // A waiting reader sees the exposed data after the latency; a late one may still have to wait for part of it.
    const double visible_s = times_.mark[expose] + costs_of(simulated).latency_s.value;
    if (visible_s > now) times_.cause[step] = expose;
    double rate = costs_.copy_bytes_per_s.value;
    if (simulated.kind == StepKind::pull_reduce) rate = std::min(rate, costs_.reduce_bytes_per_s.value);
    // Reading another rank's flag misses the cache.
    const double end = work(step, std::max(now, visible_s), assumed::cache_miss_s + simulated.bytes / rate);
    complete(step, end);
    GraphStep& exposed = steps_[expose];
    if (--exposed.pair > 0 || exposed.copied) return;
    // The last pull to start approximates the last one to complete: all read the same bytes.
    exposed.partner = step;
    complete(expose, end);
}

void Simulator::set_off(std::uint32_t send, double now) {
    const std::uint32_t pair = steps_[send].pair;
    const std::uint32_t before = tail_[pair];
    tail_[pair] = send;
    if (before != no_step)
        next_[before] = send;
    else
        transfer(send, now);
}

double Simulator::uncontended_s(const GraphStep& send) const {
    double least = costs_of(send).stream_bytes_per_s.value;
    for (const std::uint32_t link : route_) {
        const double capacity = links_[link].bytes_per_s();
        if (least <= 0 || capacity < least) least = capacity;
    }
    return least > 0 ? send.bytes / least : 0;
}

void Simulator::transfer(std::uint32_t send, double now) {
    const GraphStep& simulated = steps_[send];
    route_.clear();
    links_.route(position_of_[simulated.rank], position_of_[steps_[simulated.partner].rank], simulated.level, route_);
    LevelTraffic& traffic = traffic_[simulated.level];
    ++traffic.messages, traffic.bytes += simulated.bytes;
    traffic.uncontended_s += uncontended_s(simulated);
    traffic.taken_s -= now;
    const double stream = costs_of(simulated).stream_bytes_per_s.value;
    // Holds the lower bound from the pair's stream rate until the transfer completes.
    times_.through[send] = now + (stream > 0 ? simulated.bytes / stream : 0);
    if (route_.empty() || simulated.bytes <= 0) {
        push(times_.through[send], What::through, send);
        return;
    }
    if (sharing_ == Sharing::in_order) {
        double end = times_.through[send];
        for (const std::uint32_t link : route_) end = std::max(end, links_[link].queue(now, simulated.bytes));
        push(end, What::through, send);
        return;
    }
    const std::uint32_t flow = new_flow({send, static_cast<std::uint32_t>(route_.size())});
    for (const std::uint32_t link : route_) {
        const double next = links_[link].enter(now, simulated.bytes, flow);
        push(next, What::link, link, links_[link].version());
    }
}

std::uint32_t Simulator::new_flow(Flow flow) {
    if (free_flows_.empty()) {
        flows_.push_back(flow);
        return static_cast<std::uint32_t>(flows_.size() - 1);
    }
    const std::uint32_t index = free_flows_.back();
    free_flows_.pop_back();
    flows_[index] = flow;
    return index;
}

void Simulator::complete_link(std::uint32_t link, std::uint32_t version, double now) {
    if (links_[link].version() != version) return;
    completed_now_.clear();
    const double next = links_[link].leave(now, completed_now_);
    if (next >= 0) push(next, What::link, link, links_[link].version());
    for (const std::uint32_t flow : completed_now_) {
        if (--flows_[flow].open > 0) continue;
        free_flows_.push_back(flow);
        const std::uint32_t send = flows_[flow].send;
        if (steps_[send].in_node) {
            traffic_[steps_[send].level].taken_s += std::max(0.0, now - times_.through[send]);
            times_.through[send] = std::max(now, times_.through[send]);
            push(times_.through[send] + costs_of(steps_[send]).wire_s(), What::arrive, send);
            continue;
        }
        push(std::max(now, times_.through[send]), What::through, send);
    }
}

void Simulator::left_last_edge(std::uint32_t send, double now) {
    const GraphStep& simulated = steps_[send];
    times_.through[send] = now;
    traffic_[simulated.level].taken_s += now;
    if (is_long(simulated)) complete(send, now);
    push(now + costs_of(simulated).wire_s(), What::arrive, send);
    if (tail_[simulated.pair] == send)
        tail_[simulated.pair] = no_step;
    else
        transfer(next_[send], now);
}

}  // namespace palmette::model
