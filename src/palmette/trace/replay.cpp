#include "palmette/trace/replay.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "palmette/trace/prices.hpp"
#include "palmette/trace/replay_state.hpp"
#include "palmette/trace/roles.hpp"

namespace palmette::trace {
namespace {

class Replayer {
  public:
    Replayer(const Trace& trace, Costs costs, const Sources& sources, WaitGraph* awaited)
        : trace_(trace), roles_(trace), prices_(trace, costs, sources), costs_(costs), awaited_(awaited) {
        for (std::size_t p = 0; p < trace.processes.size(); ++p)
            for (const TracedThread& thread : trace.processes[p].threads) {
                threads_.emplace_back(thread, static_cast<std::int32_t>(p));
                if (thread.dropped > 0) window_ns_ = std::max(window_ns_, thread.first_ns());
            }
    }

    Replay run() {
        gather();
        link();
        for (std::size_t t = 0; t < threads_.size(); ++t) queue_.push_back(static_cast<std::int32_t>(t));
        for (;;) {
            while (!queue_.empty()) {
                const std::int32_t next = queue_.front();
                queue_.pop_front();
                advance(next);
            }
            if (!force()) break;
        }
        finish();
        if (awaited_) hand_out();
        return std::move(out_);
    }

  private:
    // --- What depends on what ---

    void gather() {
        begin_ns_ = std::numeric_limits<std::int64_t>::max();
        for (const TracedProcess& process : trace_.processes) begin_ns_ = std::min(begin_ns_, process.begin_ns);
        for (std::size_t t = 0; t < threads_.size(); ++t) {
            Thread& thread = threads_[t];
            for (std::size_t i = 0; i < thread.size; ++i) gather(thread.traced->at(i), thread);
            for (const Event& event : thread.traced->outstanding) gather(event, thread);
            // Mostly all of this side of its channels.
            for (Side* const side : grown_) side->shrink_to_fit();
            grown_.clear();
        }
        roles_.restart();
        gatherings_.for_each([&](std::uint32_t communicator, Gathering& one) {
            std::sort(one.parts.begin(), one.parts.end(),
                      [](const PartOfScan& a, const PartOfScan& b) { return a.rank < b.rank; });
            if (one.came < trace_.communicators[communicator].size) ++out_.without_counterpart;
        });
    }

    void gather(const Event& event, Thread& thread) {
        if (roles_.is_collective_event(event)) {
            Gathering& one = gatherings_.at(roles_.key_of(event, thread.process));
            ++one.came;
            const std::int32_t rank = roles_.rank_in(thread.process, event.communicator);
            if (roles_.kind(event) == Kind::scan) one.parts.push_back({rank, {}});
            if (costs_ != Costs::measured) prices_.note(one, roles_, event, rank);
            if (event.is_request) thread.begun.push_back({event.begin_ns, &one, rank, event.peer});
            return;
        }
        const auto add = [&](Side& side) {
            if (side.size() == side.capacity()) grown_.push_back(&side);
            side.emplace_back(event.begin_ns, static_cast<std::int32_t>(&thread - threads_.data()));
            ++thread.ends_in_all;
        };
        if (const Channel* const sent = roles_.channel_of(event, thread.process, Kind::send, roles_.begins_send(event)))
            add(ends_of(*sent, thread).sends);
        if (const Channel* const received =
                roles_.channel_of(event, thread.process, Kind::receive, roles_.completes(event)))
            add(ends_of(*received, thread).receives);
    }

    Ends& ends_of(const Channel& channel, Thread& thread) {
        const auto& [communicator, from, to, tag] = channel;
        Thread::CachedChannel& known = thread.known[static_cast<std::uint32_t>(from ^ to ^ tag) % thread.known.size()];
        if (!known.ends || known.channel != channel) known = {channel, &channels_[channel]};
        return *known.ends;
    }

    /// Both ends of a channel have its messages in the same order.
    void link() {
        const auto by_begin = [](Side& ends) {
            std::stable_sort(ends.begin(), ends.end(),
                             [](const End& a, const End& b) { return a.begin_ns < b.begin_ns; });
        };
        for (Thread& thread : threads_) thread.ends.reserve(thread.ends_in_all);
        for (auto& [channel, ends] : channels_) {
            by_begin(ends.sends);
            by_begin(ends.receives);
            if (trace_.processes[static_cast<std::size_t>(std::get<1>(channel))].dropped > 0 ||
                trace_.processes[static_cast<std::size_t>(std::get<2>(channel))].dropped > 0)
                out_.without_counterpart += ends.keep_last();
            for (Side* const side : {&ends.sends, &ends.receives})
                for (End& end : *side) threads_[end.thread].ends.push_back(&end);
        }
        for (Thread& thread : threads_) {
            std::stable_sort(
                thread.begun.begin(), thread.begun.end(),
                [](const CollectiveStart& a, const CollectiveStart& b) { return a.begin_ns < b.begin_ns; });
            std::stable_sort(thread.ends.begin(), thread.ends.end(),
                             [](const End* a, const End* b) { return a->begin_ns < b->begin_ns; });
        }
    }

    // --- Running it ---
    void advance(std::int32_t number) {
        Thread& thread = threads_[static_cast<std::size_t>(number)];
        thread.blocked = false;
        while (!thread.ended) {
            if (!thread.entered && !enter(thread, number)) break;
            if (!resolve(thread, number)) {
                thread.blocked = true;
                return;
            }
            leave(thread);
        }
    }

    /// Goes on to the next call. False: there is none.
    bool enter(Thread& thread, std::int32_t number) {
        for (;; ++thread.next) {
            if (thread.next == thread.size) {
                thread.end(thread.started ? rest_s(thread) : 0);
                return false;
            }
            const Event event = thread.traced->at(thread.next);
            if (!event.is_request) {
                thread.call = event;
                break;
            }
            thread.requests.push_back(event);
        }
        const Event& call = thread.call;
        thread.call_index = static_cast<std::uint32_t>(thread.next++);
        const bool kept = call.begin_ns < window_ns_ ||
                          (roles_.kind(call) == Kind::init && !roles_.traits(call).ends) || !thread.started;
        thread.entry_s =
            kept ? since(call.begin_ns)
                 : thread.now_s + std::max(0.0, static_cast<double>(call.begin_ns - thread.before_ns) * ns) *
                                      prices_.factor(call, thread.process, false);
        thread.started = true;
        if (roles_.kind(call) == Kind::init && roles_.traits(call).ends) {
            thread.now_s = thread.entry_s;
            thread.end(0);
            return false;
        }
        thread.entered = true;
        thread.part = 0;
        thread.dependency = {};
        thread.keys.clear();
        const Moment now{call.begin_ns, thread.entry_s, {number, thread.call_index}};
        begin_others(thread, now);
        take_keys(thread);
        if (roles_.is_collective_event(call))
            join(gatherings_.at(thread.keys[0]), roles_.rank_in(thread.process, call.communicator), call.peer, now);
        return true;
    }

    void take_keys(Thread& thread) {
        const auto take = [&](const Event& part) {
            thread.keys.push_back(roles_.is_collective_event(part) ? roles_.key_of(part, thread.process)
                                                                   : InstanceKey{});
        };
        take(thread.call);
        for (const Event& request : thread.requests) take(request);
    }

    /// What the call begins: messages, and collectives whose requests are completed later.
    void begin_others(Thread& thread, const Moment& now) {
        const auto is_later = [&](std::int64_t begin_ns) {
            return begin_ns >= thread.call.end_ns && begin_ns > thread.call.begin_ns;
        };
        for (; thread.next_begun < thread.begun.size(); ++thread.next_begun) {
            const CollectiveStart& one = thread.begun[thread.next_begun];
            if (is_later(one.begin_ns)) break;
            join(*one.gathering, one.rank, one.root, {one.begin_ns, now.replayed_s, now.at});
        }
        for (; thread.next_end < thread.ends.size(); ++thread.next_end) {
            End& one = *thread.ends[thread.next_end];
            if (is_later(one.begin_ns)) break;
            const std::int32_t waiter = one.waiter();
            one.begin(now.replayed_s, now.at.event);
            wake(waiter);
        }
    }

    void join(Gathering& one, std::int32_t rank, std::int32_t root, const Moment& now) {
        ++one.begun;
        one.last.join(now);
        if (rank >= 0 && rank == root) one.root = now;
        bool more = one.begun == one.came || one.root.is_known();
        if (!one.parts.empty()) {
            const auto own =
                std::lower_bound(one.parts.begin(), one.parts.end(), rank,
                                 [](const PartOfScan& part, std::int32_t value) { return part.rank < value; });
            if (own != one.parts.end()) own->begin = now;
            for (; one.joined < one.parts.size() && one.parts[one.joined].begin.is_known(); ++one.joined, more = true)
                if (one.joined > 0) one.parts[one.joined].begin.join(one.parts[one.joined - 1].begin);
        }
        if (!more) return;
        for (std::int32_t waiter = std::exchange(one.first_waiter, nobody); waiter != nobody;) {
            Thread& thread = threads_[static_cast<std::size_t>(waiter)];
            wake(std::exchange(waiter, std::exchange(thread.next_waiter, nobody)));
        }
    }

    void wake(std::int32_t waiter) {
        if (waiter != nobody && threads_[static_cast<std::size_t>(waiter)].blocked) queue_.push_back(waiter);
    }

    /// Whether all that the call waits for has begun.
    bool resolve(Thread& thread, std::int32_t number) {
        for (; thread.part <= thread.requests.size(); ++thread.part) {
            if (thread.part > 0 && roles_.lets_go(thread.call)) continue;
            const Event& part = thread.part == 0 ? thread.call : thread.requests[thread.part - 1];
            const Dependency found = roles_.is_collective_event(part)
                                         ? on_collective(part, thread.keys[thread.part], thread, number)
                                         : on_message(part, thread, number);
            if (found.state == Dependency::State::unknown && !thread.forced) return false;
            thread.forced = false;
            if (found.state == Dependency::State::known) thread.dependency.join(found.moment);
        }
        return true;
    }

    static Dependency on(const Moment& moment) {
        if (!moment.is_known()) return {Dependency::State::unknown, {}};
        return {Dependency::State::known, moment};
    }

    Dependency on_collective(const Event& part, const InstanceKey& key, Thread& thread, std::int32_t number) {
        Gathering& one = gatherings_.at(key);
        const std::int32_t rank = roles_.rank_in(thread.process, part.communicator);
        const bool is_complete = one.came == trace_.communicators[part.communicator].size;
        Dependency found;
        switch (roles_.kind(part)) {
            case Kind::barrier:
            case Kind::all_to_all:
                if (is_complete) found = one.begun == one.came ? on(one.last) : on({});
                break;
            case Kind::one_to_all:
                if (rank != part.peer && is_complete) found = on(one.root);
                break;
            case Kind::all_to_one:
                if (rank == part.peer && is_complete) found = one.begun == one.came ? on(one.last) : on({});
                break;
            case Kind::scan: {
                const auto own =
                    std::lower_bound(one.parts.begin(), one.parts.end(), rank,
                                     [](const PartOfScan& other, std::int32_t value) { return other.rank < value; });
                const auto index = static_cast<std::size_t>(own - one.parts.begin());
                if (own != one.parts.end() && is_complete) found = index < one.joined ? on(own->begin) : on({});
                break;
            }
            default:
                break;
        }
        if (found.state == Dependency::State::unknown && !thread.forced && thread.next_waiter == nobody &&
            one.first_waiter != number) {
            thread.next_waiter = one.first_waiter;
            one.first_waiter = number;
        }
        return found;
    }

    Dependency on_message(const Event& part, Thread& thread, std::int32_t number) {
        const bool completes = roles_.completes(part);
        if (const Channel* const channel = roles_.channel_of(part, thread.process, Kind::receive, completes)) {
            Ends& ends = ends_of(*channel, thread);
            return on_other_end(ends.receives, ends.sends, part, number, true);
        }
        if (!roles_.may_wait_for_receive(part)) return {};
        if (const Channel* const channel = roles_.channel_of(part, thread.process, Kind::send, completes)) {
            Ends& ends = ends_of(*channel, thread);
            return on_other_end(ends.sends, ends.receives, part, number, false);
        }
        return {};
    }

    Dependency on_other_end(Side& mine, Side& others, const Event& part, std::int32_t number, bool receives) {
        const auto before = [](const End& end, std::int64_t value) { return end.begin_ns < value; };
        auto at = mine.begin() + static_cast<std::ptrdiff_t>(mine.next);
        if (at == mine.end() || at->begin_ns != part.begin_ns)
            at = std::lower_bound(mine.begin(), mine.end(), part.begin_ns, before);
        // Of several that began at the same moment each is asked for once.
        while (at != mine.end() && at->begin_ns == part.begin_ns && at->completed) ++at;
        if (at == mine.end() || at->begin_ns != part.begin_ns) return {};
        const auto index = static_cast<std::size_t>(at - mine.begin());
        if (index >= others.size()) {
            ++out_.without_counterpart;
            return {};
        }
        End& other = others[index];
        // A send waited for its receive only where it ended after that had begun.
        const bool waits = receives || part.end_ns > other.begin_ns;
        if (waits && !other.is_begun()) {
            other.wait(number);
            return on({});
        }
        at->completed = 1;
        mine.next = index + 1;
        return waits ? on(other.moment()) : Dependency{};
    }

    void leave(Thread& thread) {
        const Event& call = thread.call;
        const bool waited = thread.dependency.measured_ns != none;
        const std::int64_t ready_ns =
            waited ? std::clamp(thread.dependency.measured_ns, call.begin_ns, call.end_ns) : call.begin_ns;
        double ready_s = thread.entry_s;
        if (waited && thread.dependency.replayed_s > ready_s) {
            ready_s = thread.dependency.replayed_s;
            if (awaited_)
                thread.add_wait({thread.call_index,
                                 static_cast<float>(static_cast<double>(ready_ns - call.begin_ns) * ns),
                                 thread.dependency.at});
        }
        const bool kept = call.begin_ns < window_ns_ || roles_.kind(call) == Kind::init;
        const double own_s =
            static_cast<double>(call.end_ns - ready_ns) * ns * prices_.factor(call, thread.process, true);
        thread.now_s = kept ? std::max(ready_s, since(call.end_ns)) : ready_s + cost_s(thread, own_s, ready_s);
        if (costs_ != Costs::measured) thread.note_in_call();
        if (!kept && !is_modelled(call)) {
            UnmodelledFunction& one = unmodelled_[call.function];
            ++one.calls;
            one.seconds += own_s;
        }
        thread.before_ns = call.end_ns;
        thread.requests.clear();
        thread.entered = false;
        thread.traced->prefetch(thread.next + 1);
    }

    bool is_modelled(const Event& call) const {
        const Kind kind = roles_.kind(call);
        return (kind != Kind::other && kind != Kind::neighbours) || prices_.is_file(call);
    }

    double cost_s(const Thread& thread, double own_s, double ready_s) {
        if (costs_ == Costs::measured || prices_.is_file(thread.call)) return own_s;
        if (costs_ == Costs::ideal) return 0;
        parts_.clear();
        for (std::size_t i = 0; i <= thread.requests.size(); ++i) {
            const Event& part = i == 0 ? thread.call : thread.requests[i - 1];
            if (roles_.is_collective_event(part)) {
                parts_.push_back(
                    {&gatherings_.at(thread.keys[i]), moves_to(part, thread.process), Prices::none_of_pairs, false});
                continue;
            }
            if (costs_ != Costs::changed) continue;
            const bool completes = roles_.completes(part);
            for (const Kind kind : {Kind::receive, Kind::send})
                if (const Channel* const channel = roles_.channel_of(part, thread.process, kind, completes))
                    parts_.push_back({nullptr, true, Changes::pair(std::get<1>(*channel), std::get<2>(*channel)),
                                      kind == Kind::receive});
        }
        return prices_.cost_s(own_s, parts_, ready_s,
                              thread.dependency.is_known() ? thread.dependency.replayed_s : ready_s);
    }

    /// Whether data must come to a process in a collective.
    bool moves_to(const Event& part, std::int32_t process) {
        const std::int32_t rank = roles_.rank_in(process, part.communicator);
        const Kind kind = roles_.kind(part);
        if (kind == Kind::one_to_all) return rank != part.peer;
        return kind == Kind::all_to_one ? rank == part.peer : true;
    }

    /// The call that waits longest for what doesn't come goes on. False: none waits.
    bool force() {
        Thread* first = nullptr;
        for (Thread& thread : threads_)
            if (thread.blocked && (!first || thread.call.begin_ns < first->call.begin_ns)) first = &thread;
        if (!first) return false;
        ++out_.forced;
        first->forced = true;
        queue_.push_back(static_cast<std::int32_t>(first - threads_.data()));
        return true;
    }

    // --- Results ---
    double since(std::int64_t time_ns) const { return static_cast<double>(time_ns - begin_ns_) * ns; }
    /// Time after the last call of a process that hasn't recorded its end.
    double rest_s(const Thread& thread) const {
        const std::int64_t end_ns = trace_.processes[static_cast<std::size_t>(thread.process)].end_ns;
        return std::max(0.0, static_cast<double>(end_ns - thread.before_ns) * ns);
    }

    void finish() {
        std::int64_t from_ns = std::numeric_limits<std::int64_t>::max(), until_ns = none;
        out_.ends_s.assign(trace_.processes.size(), 0);
        for (const Thread& thread : threads_) {
            if (!thread.started) continue;
            double& end_s = out_.ends_s[static_cast<std::size_t>(thread.process)];
            end_s = std::max(end_s, thread.now_s);
        }
        for (std::size_t p = 0; p < trace_.processes.size(); ++p) {
            const auto [begin_ns, end_ns] = program_of(p);
            from_ns = std::min(from_ns, begin_ns);
            until_ns = std::max(until_ns, end_ns);
        }
        for (double& end_s : out_.ends_s) end_s = std::max(0.0, end_s - since(from_ns));
        if (!out_.ends_s.empty()) {
            out_.time_s = *std::max_element(out_.ends_s.begin(), out_.ends_s.end());
            out_.measured_s = static_cast<double>(until_ns - from_ns) * ns;
        }
        from_ns_ = from_ns;
        for (auto& [function, one] : unmodelled_) {
            one.function = function;
            out_.unmodelled.push_back(one);
        }
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, InCalls> in_calls;
        for (const Thread& thread : threads_)
            for (const auto& [key, one] : thread.in_calls) {
                InCalls& sum = in_calls[{one.function, one.path, one.process}];
                sum = {one.function, one.path, one.process, sum.measured_s, sum.replayed_s};
                sum.measured_s += one.measured_s;
                sum.replayed_s += one.replayed_s;
            }
        for (const auto& [key, one] : in_calls) out_.in_calls.push_back(one);
        std::sort(out_.unmodelled.begin(), out_.unmodelled.end(),
                  [](const UnmodelledFunction& a, const UnmodelledFunction& b) { return a.seconds > b.seconds; });
    }

    /// Interval from the end of MPI_Init to the begin of MPI_Finalize.
    std::pair<std::int64_t, std::int64_t> program_of(std::size_t number) const {
        const TracedProcess& process = trace_.processes[number];
        std::pair<std::int64_t, std::int64_t> out{process.begin_ns, process.end_ns};
        for (const Thread& thread : threads_) {
            if (thread.process != static_cast<std::int32_t>(number) || thread.size == 0) continue;
            const auto look = [&](const Event& event) {
                if (event.is_request || roles_.kind(event) != Kind::init) return;
                if (roles_.traits(event).ends)
                    out.second = event.begin_ns;
                else
                    out.first = event.end_ns;
            };
            look(thread.traced->at(0));
            look(thread.traced->at(thread.size - 1));
        }
        out.first = std::max(out.first, window_ns_);
        return out;
    }

    void hand_out() {
        awaited_->begin_ns = from_ns_;
        for (Thread& thread : threads_) {
            if (thread.waits.capacity() - thread.waits.size() > thread.waits.size() / 8) thread.waits.shrink_to_fit();
            awaited_->threads.push_back(
                {thread.traced, thread.process, std::move(thread.waits), thread.now_s - since(from_ns_)});
        }
    }

    const Trace& trace_;
    Roles roles_;
    Prices prices_;
    const Costs costs_;
    WaitGraph* const awaited_;
    std::vector<Thread> threads_;
    std::map<Channel, Ends> channels_;
    std::vector<Side*> grown_;  ///< sides that got more memory since the last thread was gathered
    ByInstance<Gathering> gatherings_;
    std::vector<Prices::Part> parts_;
    std::map<std::uint32_t, UnmodelledFunction> unmodelled_;
    std::deque<std::int32_t> queue_;
    std::int64_t begin_ns_ = 0, from_ns_ = 0, window_ns_ = none;
    Replay out_;
};

}  // namespace

Replay replay(const Trace& trace, Costs costs, const BoundOf& bound_of, WaitGraph* awaited,
              const PredictedOf& predicted_of) {
    return Replayer(trace, costs, {bound_of, predicted_of, nullptr}, awaited).run();
}

Replay replay(const Trace& trace, const Changes& changes) {
    const BoundOf no_bounds;
    const PredictedOf no_predictions;
    return Replayer(trace, Costs::changed, {no_bounds, no_predictions, &changes}, nullptr).run();
}

}  // namespace palmette::trace
