#include "palmette/trace/replay.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "palmette/trace/matching.hpp"
#include "palmette/trace/roles.hpp"

namespace palmette::trace {
namespace {

constexpr double ns = 1e-9;
constexpr std::int32_t nobody = -1;

/// A call of a thread.
struct At {
    std::int32_t thread = nobody;
    std::uint32_t event = 0;
};

/// When something was begun: as recorded, and in the replay.
struct Moment {
    std::int64_t measured_ns = none;
    double replayed_s = std::numeric_limits<double>::quiet_NaN();
    At at;
    bool is_known() const { return !std::isnan(replayed_s); }
    /// The later of both.
    void join(const Moment& other) {
        measured_ns = std::max(measured_ns, other.measured_ns);
        if (is_known() && replayed_s >= other.replayed_s) return;
        replayed_s = other.replayed_s;
        at = other.at;
    }
};

/// One end of a message.
struct End {
    Moment begin;
    std::int32_t waiter = nobody;  ///< thread
    bool completed = false;        ///< here
};

struct Ends {
    std::vector<End> sends, receives;
};

struct PartOfScan {
    std::int32_t rank = 0;
    Moment begin;
};

struct Gathering {
    std::int32_t came = 0, begun = 0;
    Moment last, root;
    double bound_s = 0;
    std::vector<PartOfScan> parts;  ///< of scans, by rank
    std::size_t joined = 0;         ///< the first so many are known, each joined with those before it
    std::int32_t first_waiter = nobody;
};

/// What a thread begins in the call that `begin_ns` lies in.
struct Begun {
    std::int64_t begin_ns;
    End* end;
    Gathering* gathering;
    std::int32_t rank;
};

struct Jump {
    std::uint32_t event;
    At to;
};

/// Whom a part of a call depends on.
struct Dependency {
    enum class State : std::uint8_t { none, known, unknown } state = State::none;
    Moment moment;
};

class Thread {
  public:
    Thread(const TracedThread& traced, std::int32_t of) : process(of), traced_(traced) {
        reader_size_ = traced.reader ? traced.reader->size() : 0;
    }
    std::size_t size() const { return traced_.events.size() + reader_size_; }
    Event event(std::size_t index) const {
        return index < traced_.events.size() ? traced_.events[index]
                                             : traced_.reader->at(index - traced_.events.size());
    }

    std::int32_t process;
    std::vector<Begun> begun;  ///< by begin_ns
    std::size_t next_begun = 0;
    std::size_t next = 0;
    double now_s = 0;
    std::int64_t before_ns = 0;  ///< end of the call before
    bool started = false, entered = false, ended = false, blocked = false, forced = false;
    double entry_s = 0;
    Event call;
    std::uint32_t call_index = 0;
    std::vector<Event> requests;
    std::vector<InstanceKey> keys;  ///< of the parts that are collectives: call first, then requests
    std::size_t part = 0;
    Moment dependency;
    std::int32_t next_waiter = nobody;
    std::vector<Jump> jumps;

  private:
    const TracedThread& traced_;
    std::size_t reader_size_;
};

struct HashOfInstance {
    std::size_t operator()(const InstanceKey& key) const {
        return (key.instance * 0x9E3779B97F4A7C15ULL) ^ (key.communicator * 0xC2B2AE3D27D4EB4FULL);
    }
};

class Replayer {
  public:
    Replayer(const Trace& trace, Costs costs, const BoundOf& bound_of)
        : trace_(trace), roles_(trace), costs_(costs), bound_of_(bound_of) {
        for (const std::string& name : trace.functions) is_file_.push_back(name.starts_with("MPI_File") ? 1 : 0);
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
        if (costs_ == Costs::measured) walk_back();
        return std::move(out_);
    }

  private:
    // --- What depends on what ---

    void gather() {
        begin_ns_ = std::numeric_limits<std::int64_t>::max();
        for (const TracedProcess& process : trace_.processes) begin_ns_ = std::min(begin_ns_, process.begin_ns);
        for (std::size_t t = 0; t < threads_.size(); ++t) {
            Thread& thread = threads_[t];
            for (std::size_t i = 0; i < thread.size(); ++i) gather(thread.event(i), thread);
        }
        roles_.restart();
        for (auto& [key, one] : gatherings_) {
            std::sort(one.parts.begin(), one.parts.end(),
                      [](const PartOfScan& a, const PartOfScan& b) { return a.rank < b.rank; });
            if (one.came < trace_.communicators[key.communicator].size) ++out_.without_counterpart;
        }
    }

    void gather(const Event& event, Thread& thread) {
        if (roles_.is_collective_event(event)) {
            Gathering& one = gatherings_[roles_.key_of(event, thread.process)];
            ++one.came;
            const std::int32_t rank = roles_.rank_in(thread.process, event.communicator);
            if (roles_.kind(event) == Kind::scan) one.parts.push_back({rank, {}});
            if (costs_ == Costs::bound) note_bound(one, event, rank);
            if (event.is_request) thread.begun.push_back({event.begin_ns, nullptr, &one, rank});
            return;
        }
        const auto index = [&] { return static_cast<std::int32_t>(&thread - threads_.data()); };
        if (const Channel* const sent = roles_.channel_of(event, thread.process, Kind::send, roles_.begins_send(event)))
            channels_[*sent].sends.push_back({{event.begin_ns, nan(), {index(), 0}}, nobody});
        if (const Channel* const received =
                roles_.channel_of(event, thread.process, Kind::receive, roles_.completes(event)))
            channels_[*received].receives.push_back({{event.begin_ns, nan(), {index(), 0}}, nobody});
    }

    static double nan() { return std::numeric_limits<double>::quiet_NaN(); }

    void note_bound(Gathering& one, const Event& event, std::int32_t rank) {
        if (event.plan != 0) one.bound_s = std::max(one.bound_s, trace_.plans[event.plan].bound_s);
        if (event.plan != 0 || !bound_of_) return;
        const std::int32_t root = root_of(roles_.kind(event), event);
        if (rank != std::max(0, root)) return;
        const std::uint64_t bytes = bounds_.size() < most_sizes ? event.bytes : rounded_down(event.bytes);
        const auto [found, made] = bounds_.try_emplace({event.function, event.communicator, root, bytes}, 0.0);
        if (made) found->second = bound_of_(event.function, event.communicator, root, bytes);
        one.bound_s = std::max(one.bound_s, found->second);
    }

    /// Both ends of a channel have its messages in the same order.
    void link() {
        const auto by_begin = [](std::vector<End>& ends) {
            std::stable_sort(ends.begin(), ends.end(),
                             [](const End& a, const End& b) { return a.begin.measured_ns < b.begin.measured_ns; });
        };
        for (auto& [channel, ends] : channels_) {
            by_begin(ends.sends);
            by_begin(ends.receives);
            // Where a ring dropped the first ones, the last belong together.
            const bool from_end = trace_.processes[static_cast<std::size_t>(std::get<1>(channel))].dropped > 0 ||
                                  trace_.processes[static_cast<std::size_t>(std::get<2>(channel))].dropped > 0;
            if (from_end && ends.sends.size() != ends.receives.size()) {
                auto& longer = ends.sends.size() > ends.receives.size() ? ends.sends : ends.receives;
                const std::size_t kept = std::min(ends.sends.size(), ends.receives.size());
                out_.without_counterpart += longer.size() - kept;
                longer.erase(longer.begin(), longer.end() - static_cast<std::ptrdiff_t>(kept));
            }
            for (std::vector<End>* const side : {&ends.sends, &ends.receives})
                for (End& end : *side)
                    threads_[static_cast<std::size_t>(end.begin.at.thread)].begun.push_back(
                        {end.begin.measured_ns, &end, nullptr, 0});
        }
        for (Thread& thread : threads_)
            std::stable_sort(thread.begun.begin(), thread.begun.end(),
                             [](const Begun& a, const Begun& b) { return a.begin_ns < b.begin_ns; });
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

    /// To the next call. False: there is none.
    bool enter(Thread& thread, std::int32_t number) {
        for (;; ++thread.next) {
            if (thread.next == thread.size()) {
                end(thread, thread.started ? rest_s(thread) : 0);
                return false;
            }
            const Event event = thread.event(thread.next);
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
        thread.entry_s = kept
                             ? since(call.begin_ns)
                             : thread.now_s + std::max(0.0, static_cast<double>(call.begin_ns - thread.before_ns) * ns);
        thread.started = true;
        if (roles_.kind(call) == Kind::init && roles_.traits(call).ends) {
            thread.now_s = thread.entry_s;
            end(thread, 0);
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
            join(gatherings_[thread.keys[0]], roles_.rank_in(thread.process, call.communicator), call.peer, now);
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
        for (; thread.next_begun < thread.begun.size(); ++thread.next_begun) {
            const Begun& one = thread.begun[thread.next_begun];
            if (one.begin_ns >= thread.call.end_ns && one.begin_ns > thread.call.begin_ns) break;
            Moment begin = now;
            begin.measured_ns = one.begin_ns;
            if (one.gathering) {
                join(*one.gathering, one.rank, -1, begin);
                continue;
            }
            one.end->begin = begin;
            wake(one.end->waiter);
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
        Gathering& one = gatherings_[key];
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

    Dependency on_message(const Event& part, const Thread& thread, std::int32_t number) {
        const bool completes = roles_.completes(part);
        if (const Channel* const channel = roles_.channel_of(part, thread.process, Kind::receive, completes))
            return on_other_end(&Ends::receives, &Ends::sends, *channel, part, number, true);
        if (!roles_.may_wait_for_receive(part)) return {};
        if (const Channel* const channel = roles_.channel_of(part, thread.process, Kind::send, completes))
            return on_other_end(&Ends::sends, &Ends::receives, *channel, part, number, false);
        return {};
    }

    Dependency on_other_end(std::vector<End> Ends::* own, std::vector<End> Ends::* others, const Channel& channel,
                            const Event& part, std::int32_t number, bool receives) {
        const auto found = channels_.find(channel);
        if (found == channels_.end()) return {};
        std::vector<End>& mine = found->second.*own;
        auto at = std::lower_bound(mine.begin(), mine.end(), part.begin_ns,
                                   [](const End& end, std::int64_t value) { return end.begin.measured_ns < value; });
        // Of several that began at the same moment each is asked for once.
        while (at != mine.end() && at->begin.measured_ns == part.begin_ns && at->completed) ++at;
        if (at == mine.end() || at->begin.measured_ns != part.begin_ns) return {};
        const auto index = static_cast<std::size_t>(at - mine.begin());
        if (index >= (found->second.*others).size()) {
            ++out_.without_counterpart;
            return {};
        }
        End& other = (found->second.*others)[index];
        // A send waited for its receive only where it ended after that had begun.
        const bool waits = receives || part.end_ns > other.begin.measured_ns;
        if (waits && !other.begin.is_known()) {
            other.waiter = number;
            return on({});
        }
        at->completed = true;
        return waits ? on(other.begin) : Dependency{};
    }

    void leave(Thread& thread) {
        const Event& call = thread.call;
        const bool waited = thread.dependency.measured_ns != none;
        const std::int64_t ready_ns =
            waited ? std::clamp(thread.dependency.measured_ns, call.begin_ns, call.end_ns) : call.begin_ns;
        double ready_s = thread.entry_s;
        if (waited && thread.dependency.replayed_s > ready_s) {
            ready_s = thread.dependency.replayed_s;
            if (costs_ == Costs::measured) thread.jumps.push_back({thread.call_index, thread.dependency.at});
        }
        const bool kept = call.begin_ns < window_ns_ || roles_.kind(call) == Kind::init;
        const double own_s = static_cast<double>(call.end_ns - ready_ns) * ns;
        thread.now_s = kept ? std::max(ready_s, since(call.end_ns)) : ready_s + cost_s(thread, own_s);
        if (!kept && !is_modelled(call)) {
            Unmodelled& one = unmodelled_[call.function];
            ++one.calls;
            one.seconds += own_s;
        }
        thread.before_ns = call.end_ns;
        thread.requests.clear();
        thread.entered = false;
    }

    bool is_modelled(const Event& call) const {
        const Kind kind = roles_.kind(call);
        return (kind != Kind::other && kind != Kind::neighbours) || is_file_[call.function] != 0;
    }

    double cost_s(const Thread& thread, double own_s) {
        if (costs_ == Costs::measured || is_file_[thread.call.function] != 0) return own_s;
        double bound_s = 0;
        if (costs_ == Costs::bound)
            for (std::size_t i = 0; i < thread.keys.size(); ++i) {
                const Event& part = i == 0 ? thread.call : thread.requests[i - 1];
                if (roles_.is_collective_event(part) && moves_to(part, thread.process))
                    bound_s = std::max(bound_s, gatherings_[thread.keys[i]].bound_s);
            }
        return bound_s;
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
    /// After the last call of a process that hasn't recorded its end.
    double rest_s(const Thread& thread) const {
        const std::int64_t end_ns = trace_.processes[static_cast<std::size_t>(thread.process)].end_ns;
        return std::max(0.0, static_cast<double>(end_ns - thread.before_ns) * ns);
    }
    void end(Thread& thread, double more_s) {
        thread.now_s += more_s;
        thread.ended = true;
    }

    void finish() {
        std::int64_t from_ns = std::numeric_limits<std::int64_t>::max(), until_ns = none;
        out_.ends_s.assign(trace_.processes.size(), 0);
        for (std::size_t t = 0; t < threads_.size(); ++t) {
            const Thread& thread = threads_[t];
            if (!thread.started) continue;
            double& end_s = out_.ends_s[static_cast<std::size_t>(thread.process)];
            if (last_thread_ == nobody || thread.now_s > threads_[static_cast<std::size_t>(last_thread_)].now_s)
                last_thread_ = static_cast<std::int32_t>(t);
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
        std::sort(out_.unmodelled.begin(), out_.unmodelled.end(),
                  [](const Unmodelled& a, const Unmodelled& b) { return a.seconds > b.seconds; });
    }

    /// From the end of MPI_Init to the begin of MPI_Finalize.
    std::pair<std::int64_t, std::int64_t> program_of(std::size_t number) const {
        const TracedProcess& process = trace_.processes[number];
        std::pair<std::int64_t, std::int64_t> out{process.begin_ns, process.end_ns};
        for (const Thread& thread : threads_) {
            if (thread.process != static_cast<std::int32_t>(number) || thread.size() == 0) continue;
            const auto look = [&](const Event& event) {
                if (event.is_request || roles_.kind(event) != Kind::init) return;
                if (roles_.traits(event).ends)
                    out.second = event.begin_ns;
                else
                    out.first = event.end_ns;
            };
            look(thread.event(0));
            look(thread.event(thread.size() - 1));
        }
        out.first = std::max(out.first, window_ns_);
        return out;
    }

    /// From the end of the job to its beginning, always on the rank that was waited for.
    void walk_back() {
        if (last_thread_ == nobody) return;
        std::int32_t number = last_thread_;
        std::size_t event = threads_[static_cast<std::size_t>(number)].size();
        std::int64_t until_ns =
            begin_ns_ + static_cast<std::int64_t>(std::llround(threads_[static_cast<std::size_t>(number)].now_s / ns));
        while (number != nobody) {
            const Thread& thread = threads_[static_cast<std::size_t>(number)];
            const auto behind =
                std::lower_bound(thread.jumps.begin(), thread.jumps.end(), event,
                                 [](const Jump& jump, std::size_t value) { return jump.event < value; });
            const Jump* const jump = behind == thread.jumps.begin() ? nullptr : &*(behind - 1);
            const std::int64_t end_ns = until_ns;
            std::int32_t next = nobody;
            for (std::size_t i = event; i-- > 0;) {
                const Event call = thread.event(i);
                if (call.is_request) continue;
                if (roles_.kind(call) == Kind::init) {
                    if (roles_.traits(call).ends) continue;
                    last_call(thread, until_ns, call.end_ns);
                    until_ns = call.end_ns;
                    break;
                }
                if (call.end_ns <= from_ns_) break;
                last_call(thread, until_ns, call.end_ns);
                until_ns = std::min(until_ns, call.end_ns);
                pending_ = &row_of(call, thread.process);
                ++pending_->calls;
                if (jump && i == jump->event) {
                    const Event other = threads_[static_cast<std::size_t>(jump->to.thread)].event(jump->to.event);
                    const std::int64_t come_ns = std::clamp(other.begin_ns, call.begin_ns, call.end_ns);
                    pending_->in_call_s += static_cast<double>(until_ns - come_ns) * ns;
                    // What the other one did before is its own.
                    pending_ = &row_of(other, threads_[static_cast<std::size_t>(jump->to.thread)].process);
                    until_ns = come_ns;
                    next = jump->to.thread;
                    event = jump->to.event;
                    break;
                }
                const std::int64_t begin_ns = std::max(call.begin_ns, from_ns_);
                pending_->in_call_s += static_cast<double>(until_ns - begin_ns) * ns;
                until_ns = begin_ns;
            }
            if (next == nobody && until_ns > from_ns_ && pending_) last_call(thread, until_ns, from_ns_);
            out_.stretches.push_back(
                {thread.process, next == nobody ? std::min(until_ns, from_ns_) : until_ns, end_ns});
            number = next;
        }
        std::reverse(out_.stretches.begin(), out_.stretches.end());
        for (auto& [key, row] : on_path_) out_.on_path.push_back(row);
    }

    /// Computation before the call that was walked over last.
    void last_call(const Thread& thread, std::int64_t until_ns, std::int64_t from_ns) {
        const double seconds =
            static_cast<double>(std::max<std::int64_t>(0, until_ns - std::max(from_ns, from_ns_))) * ns;
        if (!pending_) {
            pending_ = &on_path_[{0, 0, thread.process}];
            pending_->process = thread.process;
        }
        pending_->before_s += seconds;
    }

    OnPath& row_of(const Event& call, std::int32_t process) {
        OnPath& row = on_path_[{call.function, call.path, process}];
        row.function = call.function;
        row.path = call.path;
        row.process = process;
        return row;
    }

    const Trace& trace_;
    Roles roles_;
    const Costs costs_;
    const BoundOf& bound_of_;
    std::vector<char> is_file_;
    std::vector<Thread> threads_;
    std::map<Channel, Ends> channels_;
    std::unordered_map<InstanceKey, Gathering, HashOfInstance> gatherings_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t>, double> bounds_;
    std::map<std::uint32_t, Unmodelled> unmodelled_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, OnPath> on_path_;
    OnPath* pending_ = nullptr;
    std::deque<std::int32_t> queue_;
    std::int64_t begin_ns_ = 0, from_ns_ = 0, window_ns_ = none;
    std::int32_t last_thread_ = nobody;
    Replay out_;
};

}  // namespace

Replay replay(const Trace& trace, Costs costs, const BoundOf& bound_of) {
    return Replayer(trace, costs, bound_of).run();
}

}  // namespace palmette::trace
