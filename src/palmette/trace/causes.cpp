#include "palmette/trace/causes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "palmette/trace/roles.hpp"

namespace palmette::trace {
namespace {

constexpr std::int32_t no_thread = -1;
using OfThread = WaitGraph::OfThread;

const OfThread& thread_of(const WaitGraph& awaited, std::int32_t number) {
    return awaited.threads[static_cast<std::size_t>(number)];
}
double seconds(std::int64_t from_ns, std::int64_t until_ns) {
    return static_cast<double>(std::max<std::int64_t>(0, until_ns - from_ns)) * ns;
}

/// Follows the critical path from call to call.
class Walk {
  public:
    Walk(const Trace& trace, const WaitGraph& awaited) : roles_(trace), awaited_(awaited) {}

    CriticalPath run() {
        std::int32_t number = no_thread;
        for (std::size_t t = 0; t < awaited_.threads.size(); ++t)
            if (number == no_thread || awaited_.threads[t].end_s > thread_of(awaited_, number).end_s)
                number = static_cast<std::int32_t>(t);
        if (number == no_thread) return {};
        until_ns_ = awaited_.begin_ns + static_cast<std::int64_t>(std::llround(thread_of(awaited_, number).end_s / ns));
        std::size_t event = thread_of(awaited_, number).thread->size();
        row_ = &row({}, thread_of(awaited_, number).process);
        while (number != no_thread) {
            const std::int32_t process = thread_of(awaited_, number).process;
            const std::int64_t end_ns = until_ns_;
            const At next = back(thread_of(awaited_, number), event);
            out_.stretches.push_back({process, until_ns_, end_ns});
            number = next.thread;
            event = next.event;
        }
        std::reverse(out_.stretches.begin(), out_.stretches.end());
        for (const auto& [key, one] : rows_)
            if (one.calls > 0 || one.before_s > 0) out_.rows.push_back(one);
        return std::move(out_);
    }

  private:
    /// Goes back to the call that waited last before `event`, or to the beginning.
    At back(const OfThread& thread, std::size_t event) {
        const auto behind = std::lower_bound(thread.waits.begin(), thread.waits.end(), event,
                                             [](const Wait& wait, std::size_t value) { return wait.event < value; });
        const Wait* const wait = behind == thread.waits.begin() ? nullptr : &*(behind - 1);
        for (std::size_t i = event; i-- > 0;) {
            const Event call = thread.thread->at(i);
            if (call.is_request || roles_.traits(call).ends) continue;
            if (roles_.kind(call) == Kind::init || call.end_ns <= awaited_.begin_ns) break;
            compute_until(call.end_ns);
            row_ = &row(call, thread.process);
            ++row_->calls;
            if (wait && i == wait->event) {
                const OfThread& other = thread_of(awaited_, wait->begun_by.thread);
                const Event begun_by = other.thread->at(wait->begun_by.event);
                in_call_until(std::clamp(begun_by.begin_ns, call.begin_ns, call.end_ns));
                // What the other one did before is its own.
                row_ = &row(begun_by, other.process);
                return wait->begun_by;
            }
            in_call_until(std::max(call.begin_ns, awaited_.begin_ns));
        }
        compute_until(awaited_.begin_ns);
        return {};
    }

    void compute_until(std::int64_t time_ns) { row_->before_s += to(time_ns); }
    void in_call_until(std::int64_t time_ns) { row_->in_call_s += to(time_ns); }
    double to(std::int64_t time_ns) {
        const double out = seconds(time_ns, until_ns_);
        until_ns_ = std::min(until_ns_, time_ns);
        return out;
    }

    OnPath& row(const Event& call, std::int32_t process) {
        OnPath& one = rows_[{call.function, call.path, process}];
        one.function = call.function;
        one.path = call.path;
        one.process = process;
        return one;
    }

    const Roles roles_;
    const WaitGraph& awaited_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, OnPath> rows_;
    OnPath* row_ = nullptr;
    std::int64_t until_ns_ = 0;
    CriticalPath out_;
};

/// A call, or the computation before it.
struct Where {
    std::uint32_t function = 0, path = 0;
    bool in_call = false;
    bool operator==(const Where&) const = default;
    auto operator<=>(const Where&) const = default;
};

/// What a thread did between two synchronisations.
struct TimeAccount {
    std::vector<std::pair<Where, double>> rows;  ///< without waiting
    double waiting_s = 0;
    std::size_t first_wait = 0, behind_waits = 0;  ///< range of the thread's waits
    std::vector<Gap> gaps;                         ///< outside of MPI, where there are samples

    void add(const Where& where, double time_s) {
        if (time_s <= 0) return;
        for (auto& [at, sum] : rows)
            if (at == where) {
                sum += time_s;
                return;
            }
        rows.emplace_back(where, time_s);
    }
    double at(const Where& where) const {
        for (const auto& [one, sum] : rows)
            if (one == where) return sum;
        return 0;
    }
};

/// What the waits of a thread inherit, which are asked for from the last one on. Waits inherit from later ones shortly
/// before they are asked for: memory is held for those alone.
class InheritedCosts {
  public:
    explicit InheritedCosts(std::size_t waits) : chunks_((waits + size - 1) / size) {}
    void add(std::size_t wait, double cost_s) {
        auto& chunk = chunks_[wait / size];
        if (!chunk) chunk = std::make_unique<Chunk>();
        (*chunk)[wait % size] += cost_s;
    }
    double take(std::size_t wait) {
        auto& chunk = chunks_[wait / size];
        if (!chunk) return 0;
        const double cost_s = (*chunk)[wait % size];
        if (wait % size == 0) chunk.reset();
        return cost_s;
    }

  private:
    static constexpr std::size_t size = 256;
    using Chunk = std::array<double, size>;
    std::vector<std::unique_ptr<Chunk>> chunks_;
};

class DelayCosts {
  public:
    DelayCosts(const Trace& trace, const WaitGraph& awaited)
        : trace_(trace), roles_(trace), awaited_(awaited), has_samples_(trace.has_samples()) {
        for (const OfThread& thread : awaited.threads) {
            inherited_.emplace_back(thread.waits.size());
            behind_.push_back(thread.waits.size());
            sampled_.push_back(thread.thread->samples.size());
            accounted_.push_back(thread.thread->off.size());
        }
    }

    Delays run() {
        // What a wait inherits comes from later ones; a thread's are in order.
        std::vector<WaitEnd> last;
        for (std::size_t t = 0; t < awaited_.threads.size(); ++t)
            if (const std::size_t waits = awaited_.threads[t].waits.size())
                last.push_back(ended(static_cast<std::int32_t>(t), static_cast<std::uint32_t>(waits - 1)));
        std::make_heap(last.begin(), last.end());
        while (!last.empty()) {
            std::pop_heap(last.begin(), last.end());
            const WaitEnd one = last.back();
            last.pop_back();
            explain(one.thread, one.wait);
            if (one.wait == 0) continue;
            last.push_back(ended(one.thread, one.wait - 1));
            prefetch(one.thread, one.wait);
            std::push_heap(last.begin(), last.end());
        }
        for (const auto& [key, delay] : delays_) out_.rows.push_back(delay);
        std::sort(out_.rows.begin(), out_.rows.end(), [](const Delay& a, const Delay& b) {
            return a.short_term_s + a.long_term_s > b.short_term_s + b.long_term_s;
        });
        out_.works = works_.take();
        return std::move(out_);
    }

  private:
    struct WaitEnd {
        std::int64_t end_ns;
        std::int32_t thread;
        std::uint32_t wait;
        bool operator<(const WaitEnd& other) const {
            return std::tie(end_ns, thread) < std::tie(other.end_ns, other.thread);
        }
    };
    WaitEnd ended(std::int32_t number, std::uint32_t index) const {
        const OfThread& thread = thread_of(awaited_, number);
        const Wait& wait = thread.waits[index];
        const std::int64_t begin_ns = thread.thread->at(wait.event).begin_ns;
        return {begin_ns + static_cast<std::int64_t>(static_cast<double>(wait.seconds) / ns), number, index};
    }

    /// What the thread's next turns will need, which come after those of all others.
    void prefetch(std::int32_t number, std::uint32_t wait) const {
        constexpr std::uint32_t ahead = 2, far_ahead = 8;
        const OfThread& thread = thread_of(awaited_, number);
        if (wait >= far_ahead) __builtin_prefetch(&thread.waits[wait - far_ahead]);
        if (wait >= ahead) thread.thread->prefetch(thread.waits[wait - ahead].event);
        const std::size_t sampled = sampled_[static_cast<std::size_t>(number)];
        if (sampled > 0 && sampled <= thread.thread->samples.size())
            __builtin_prefetch(&thread.thread->samples[sampled - 1]);
    }

    void explain(std::int32_t number, std::uint32_t index) {
        const OfThread& waiter = thread_of(awaited_, number);
        const Wait& wait = waiter.waits[index];
        const double waited_s = wait.seconds;
        const double cost_s = inherited_[static_cast<std::size_t>(number)].take(index);
        out_.waiting_s += waited_s;
        const OfThread& late = thread_of(awaited_, wait.begun_by.thread);
        spend(own_, number, wait.event, late);
        const TimeAccount& own = own_;
        const TimeAccount& others = spent_by_late(late, wait.begun_by, waiter);
        if (has_samples_)
            works_.add(waiter.thread->at(wait.event), waited_s, wait.begun_by, side(late, wait.begun_by.thread, others),
                       side(waiter, number, own));
        double delayed_s = 0;
        for (const auto& [where, time_s] : others.rows) delayed_s += std::max(0.0, time_s - own.at(where));
        const double sum_s = delayed_s + others.waiting_s;
        if (sum_s <= 0) {
            out_.unexplained_s += waited_s + cost_s;
            return;
        }
        const double rate = waited_s / sum_s, long_rate = cost_s / sum_s;
        for (std::size_t i = 0; i < others.rows.size(); ++i) {
            const auto& [where, time_s] = others.rows[i];
            const double delay_s = std::max(0.0, time_s - own.at(where));
            if (delay_s <= 0) continue;
            Delay& row = row_of(i, where, late.process);
            row.delayed_s += delay_s;
            row.short_term_s += rate * delay_s;
            row.long_term_s += long_rate * delay_s;
            // Of all that waited for the same call, which come one after the other, the longest counts.
            const double share_s = rate * delay_s;
            double& counted_s = cached_rows_[i].second;
            if (share_s > counted_s) row.removable_s += share_s - std::exchange(counted_s, share_s);
        }
        out_.short_term_s += rate * delayed_s;
        InheritedCosts& inherits = inherited_[static_cast<std::size_t>(wait.begun_by.thread)];
        for (std::size_t w = others.first_wait; w < others.behind_waits; ++w)
            inherits.add(w, (rate + long_rate) * static_cast<double>(late.waits[w].seconds));
    }

    LateWorks::Side side(const OfThread& thread, std::int32_t number, const TimeAccount& spent) {
        const auto process = static_cast<std::size_t>(thread.process);
        const auto index = static_cast<std::size_t>(number);
        return {thread.thread, &trace_.processes[process], thread.process,
                &spent.gaps,   &sampled_[index],           &accounted_[index]};
    }

    /// All that wait for one call have mostly the same interval of it.
    const TimeAccount& spent_by_late(const OfThread& late, const At& at, const OfThread& waiter) {
        // With messages the interval depends on the waiter.
        const bool is_group = roles_.is_collective_event(late.thread->at(at.event));
        if (is_group && at.thread == cached_at_.thread && at.event == cached_at_.event) return cached_;
        spend(cached_, at.thread, at.event, waiter);
        cached_rows_.assign(cached_.rows.size(), {nullptr, 0.0});
        cached_at_ = is_group ? at : At{};
        return cached_;
    }

    /// The delay of a row of `cached_`.
    Delay& row_of(std::size_t index, const Where& where, std::int32_t process) {
        Delay*& row = cached_rows_[index].first;
        if (row) return *row;
        row = &delays_[{where, process}];
        row->function = where.function;
        row->path = where.path;
        row->in_call = where.in_call;
        row->process = process;
        return *row;
    }

    /// The first wait of a thread in `event` or behind it; mostly not far before the one that was asked for last.
    std::size_t first_wait(const OfThread& thread, std::int32_t number, std::uint32_t event) {
        constexpr int most_steps = 8;
        const std::vector<Wait>& waits = thread.waits;
        std::size_t& at = behind_[static_cast<std::size_t>(number)];
        const auto is_before = [&] { return at > 0 && waits[at - 1].event >= event; };
        for (int i = 0; i < most_steps && is_before(); ++i) --at;
        if (is_before() || (at < waits.size() && waits[at].event < event))
            at = static_cast<std::size_t>(
                std::lower_bound(waits.begin(), waits.end(), event,
                                 [](const Wait& one, std::uint32_t value) { return one.event < value; }) -
                waits.begin());
        return at;
    }

    /// Adds the time from the last synchronisation with `other` to the begin of `event`.
    void spend(TimeAccount& out, std::int32_t number, std::uint32_t event, const OfThread& other) {
        const OfThread& thread = thread_of(awaited_, number);
        out.rows.clear();
        out.gaps.clear();
        out.waiting_s = 0;
        out.behind_waits = first_wait(thread, number, event);
        auto wait = thread.waits.begin() + static_cast<std::ptrdiff_t>(out.behind_waits);
        Event behind = thread.thread->at(event);
        std::size_t looked_at = 0;
        for (std::size_t i = event; i-- > 0 && looked_at < most_events; ++looked_at) {
            const Event call = thread.thread->at(i);
            if (call.is_request || roles_.queries(call)) continue;
            const bool is_first = roles_.kind(call) == Kind::init || call.end_ns <= awaited_.begin_ns;
            const std::int64_t from_ns = std::max(call.end_ns, awaited_.begin_ns);
            out.add({behind.function, behind.path, false}, seconds(from_ns, behind.begin_ns));
            if (has_samples_ && behind.begin_ns > from_ns)
                out.gaps.push_back({from_ns, behind.begin_ns, call.function, call.path, behind.function, behind.path});
            if (is_first) break;
            double waited_s = 0;
            if (wait != thread.waits.begin() && (wait - 1)->event == i) {
                --wait;
                waited_s = wait->seconds;
            }
            const Meeting met = meet_in(call, thread, i, other);
            out.add({call.function, call.path, true}, seconds(call.begin_ns, call.end_ns) - waited_s);
            // Of the first synchronisation only what came after it: both may have met at its begin, by a message,
            // before it waited for somebody else.
            const bool waited_first =
                met == Meeting::all ||
                thread_of(awaited_, waited_s > 0 ? wait->begun_by.thread : 0).process == other.process;
            if (met != Meeting::no && waited_s > 0 && waited_first) {
                ++wait;
                break;
            }
            out.waiting_s += waited_s;
            if (met != Meeting::no) break;
            behind = call;
        }
        out.first_wait = static_cast<std::size_t>(wait - thread.waits.begin());
    }

    enum class Meeting : std::uint8_t { no, both, all };
    /// Whether both meet in a call, or in a request that it completes: by a message, or with others.
    Meeting meet_in(const Event& call, const OfThread& thread, std::size_t index, const OfThread& other) {
        const auto met = [&](const Event& event) {
            return !meets(event, other)                ? Meeting::no
                   : is_collective(roles_.kind(event)) ? Meeting::all
                                                       : Meeting::both;
        };
        Meeting found = met(call);
        for (std::size_t i = index; i-- > 0 && found == Meeting::no;) {
            const Event request = thread.thread->at(i);
            if (!request.is_request) break;
            found = met(request);
        }
        return found;
    }

    bool meets(const Event& event, const OfThread& other) {
        if (event.communicator == 0) return false;
        const Kind kind = roles_.kind(event);
        if (kind == Kind::barrier || kind == Kind::all_to_all)
            return roles_.is_collective_event(event) && roles_.rank_in(other.process, event.communicator) >= 0;
        if (kind == Kind::send || kind == Kind::receive)
            return roles_.process_of(event.communicator, event.peer) == other.process;
        return false;
    }

    /// Longer intervals are cut: two that never met are no reason to look through all their calls for each wait.
    static constexpr std::size_t most_events = 10'000;
    const Trace& trace_;
    Roles roles_;
    const WaitGraph& awaited_;
    const bool has_samples_;
    LateWorks works_;
    std::vector<InheritedCosts> inherited_;  ///< by thread
    std::map<std::pair<Where, std::int32_t>, Delay> delays_;
    std::vector<std::size_t> behind_;  ///< by thread: where first_wait() found the last one
    std::vector<std::size_t> sampled_,
        accounted_;  ///< by thread: where its samples and its account were looked at last
    TimeAccount own_, cached_;
    std::vector<std::pair<Delay*, double>> cached_rows_;  ///< with what each was counted as removable
    At cached_at_;
    Delays out_;
};

}  // namespace

CriticalPath critical_path(const Trace& trace, const WaitGraph& awaited) { return Walk(trace, awaited).run(); }

Delays delay_costs(const Trace& trace, const WaitGraph& awaited) { return DelayCosts(trace, awaited).run(); }

double time_without(const Trace& trace, const Delay& delay) {
    const Roles roles(trace);
    double whole_s = 0;
    for (const TracedThread& thread : trace.processes[static_cast<std::size_t>(delay.process)].threads) {
        std::int64_t before_ns = -1;
        thread.for_each([&](const Event& call) {
            if (call.is_request) return;
            const bool is_it = call.function == delay.function && call.path == delay.path;
            if (is_it && delay.in_call) whole_s += seconds(call.begin_ns, call.end_ns);
            if (is_it && !delay.in_call && before_ns >= 0) whole_s += seconds(before_ns, call.begin_ns);
            before_ns = call.end_ns;
        });
    }
    Changes changes;
    changes.shorter = {delay.process, delay.function, delay.path, delay.in_call,
                       whole_s > 0 ? std::max(0.0, 1 - delay.removable_s / whole_s) : 1};
    return replay(trace, changes).time_s;
}

}  // namespace palmette::trace
