#include "palmette/trace/patterns.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "palmette/trace/roles.hpp"

namespace palmette::trace {
namespace {

class ChainSearch {
  public:
    ChainSearch(const Trace& trace, const WaitGraph& awaited) : trace_(trace), awaited_(awaited) {
        for (const WaitGraph::OfThread& thread : awaited.threads) states_.emplace_back(thread.waits.size());
    }

    std::vector<Chain> run() {
        for_each([&](const Number& at) { deepen(at); });
        for_each([&](const Number& at) {
            const State& state = state_of(at);
            if (state.by_message && !state.is_passed_on && state.depth >= 2) add(at);
        });
        for_each([&](const Number& at) {
            if (state_of(at).by_message) return;
            if (const Number before = waited_before(at); before.thread >= 0 && state_of(before).by_message)
                if (const auto known = behind_.find({before.thread, before.wait}); known != behind_.end())
                    known->second->waiting_s += wait_of(at).seconds;
        });
        std::vector<Chain> out;
        for (auto& [key, one] : sums_) out.push_back(std::move(one));
        std::stable_sort(out.begin(), out.end(),
                         [](const Chain& a, const Chain& b) { return a.waiting_s > b.waiting_s; });
        return out;
    }

  private:
    struct Number {
        std::int32_t thread = -1;
        std::uint32_t wait = 0;
    };
    /// State of a wait. `depth`: number of messages that were waited for one behind the other; 0: not known yet.
    struct State {
        std::uint16_t depth : 14 = 0, by_message : 1 = 0, is_passed_on : 1 = 0;
    };

    template <class Use>
    void for_each(Use use) const {
        for (std::size_t t = 0; t < awaited_.threads.size(); ++t)
            for (std::size_t w = 0; w < awaited_.threads[t].waits.size(); ++w)
                use(Number{static_cast<std::int32_t>(t), static_cast<std::uint32_t>(w)});
    }
    const WaitGraph::OfThread& thread_of(std::int32_t number) const {
        return awaited_.threads[static_cast<std::size_t>(number)];
    }
    const Wait& wait_of(const Number& at) const { return thread_of(at.thread).waits[at.wait]; }
    State& state_of(const Number& at) { return states_[static_cast<std::size_t>(at.thread)][at.wait]; }
    Event call_of(const Number& at) const { return thread_of(at.thread).thread->at(wait_of(at).event); }
    static std::int64_t end_of(const Event& call, const Wait& wait) {
        return call.begin_ns + static_cast<std::int64_t>(static_cast<double>(wait.seconds) / ns);
    }
    bool is_message(const At& begun_by) const {
        const Event event = thread_of(begun_by.thread).thread->at(begun_by.event);
        return !is_collective(trace_.kinds[event.function]);
    }

    /// The last wait of the one that was waited for, where that was still waiting when this one began to.
    Number waited_before(const Number& at) const {
        const At& begun_by = wait_of(at).begun_by;
        const std::vector<Wait>& waits = thread_of(begun_by.thread).waits;
        const auto behind = std::lower_bound(waits.begin(), waits.end(), begun_by.event,
                                             [](const Wait& one, std::uint32_t event) { return one.event < event; });
        if (behind == waits.begin()) return {};
        const Number before{begun_by.thread, static_cast<std::uint32_t>(behind - waits.begin() - 1)};
        return end_of(call_of(before), wait_of(before)) > call_of(at).begin_ns ? before : Number{};
    }

    /// Finds how many stand behind a wait, without recursion: chains may be as long as the job.
    void deepen(Number at) {
        std::vector<Number> open;
        while (true) {
            State& state = state_of(at);
            if (state.depth > 0) break;
            state.by_message = is_message(wait_of(at).begun_by) ? 1 : 0;
            state.depth = 1;  // also ends what goes round, as clocks that disagree may have it
            open.push_back(at);
            if (!state.by_message) break;
            const Number before = waited_before(at);
            if (before.thread < 0) break;
            at = before;
        }
        for (std::size_t i = open.size(); i-- > 0;) {
            State& state = state_of(open[i]);
            const Number before = i + 1 < open.size() ? open[i + 1] : at;
            const bool is_last = before.thread == open[i].thread && before.wait == open[i].wait;
            if (is_last || !state.by_message || !state_of(before).by_message) continue;
            state_of(before).is_passed_on = 1;
            state.depth = std::min(most_depth, state_of(before).depth + 1) & most_depth;
        }
    }

    void add(const Number& tip) {
        std::vector<std::int32_t> processes{thread_of(tip.thread).process};
        double waiting_s = 0, in_between_s = 0;
        std::uint64_t waits = 0;
        for (Number at = tip;;) {
            const Wait& wait = wait_of(at);
            const std::int32_t late = thread_of(wait.begun_by.thread).process;
            if (std::find(processes.begin(), processes.end(), late) != processes.end()) break;
            processes.push_back(late);
            waiting_s += wait.seconds;
            ++waits;
            const Number before = waited_before(at);
            if (before.thread < 0 || !state_of(before).by_message) break;
            const std::int64_t sent_ns = thread_of(wait.begun_by.thread).thread->at(wait.begun_by.event).begin_ns;
            in_between_s +=
                static_cast<double>(std::max<std::int64_t>(0, sent_ns - end_of(call_of(before), wait_of(before)))) * ns;
            at = before;
        }
        if (processes.size() < least_processes) return;
        std::reverse(processes.begin(), processes.end());
        const Event call = call_of(tip);
        Chain& sum = sums_[{call.function, call.path}];
        sum.function = call.function;
        sum.path = call.path;
        ++sum.instances;
        sum.waits += waits;
        sum.waiting_s += waiting_s;
        sum.in_between_s += in_between_s;
        if (processes.size() > sum.processes.size()) sum.processes = std::move(processes);
        behind_[{tip.thread, tip.wait}] = &sum;
    }

    static constexpr int most_depth = (1 << 14) - 1;
    static constexpr std::size_t least_processes = 3;
    const Trace& trace_;
    const WaitGraph& awaited_;
    std::vector<std::vector<State>> states_;  ///< by thread and wait
    std::map<std::pair<std::uint32_t, std::uint32_t>, Chain> sums_;
    std::map<std::pair<std::int32_t, std::uint32_t>, Chain*> behind_;  ///< by a chain's last wait
};

/// What a thread sends from one place to one process, as long as it comes in a row.
struct Row {
    std::uint64_t messages = 0, bytes = 0;
    double begin_s = 0, end_s = 0;  ///< thread's time in MPI
    double computed_s = 0;          ///< thread's time outside of MPI at the last message
};

class Runs {
  public:
    Runs(const Trace& trace, std::map<std::pair<std::uint32_t, std::uint32_t>, MessageRuns>& out)
        : roles_(trace), out_(out) {}

    void add(const TracedThread& thread, std::int32_t process) {
        process_ = process;
        double in_mpi_s = 0, computed_s = 0;
        std::int64_t before_ns = thread.first_ns();
        thread.for_each([&](const Event& event) {
            if (roles_.is_collective_event(event)) close();
            const double took_s = static_cast<double>(event.end_ns - event.begin_ns) * ns;
            if (!event.is_request) {
                computed_s += static_cast<double>(std::max<std::int64_t>(0, event.begin_ns - before_ns)) * ns;
                in_mpi_s += took_s;
                before_ns = std::max(before_ns, event.end_ns);
            }
            if (event.bytes > MessageRuns::most_bytes) return;
            const Channel* const channel = roles_.channel_of(event, process, Kind::send, roles_.begins_send(event));
            if (!channel) return;
            const Key key{event.function, event.path, std::get<2>(*channel)};
            Row& row = rows_[key];
            const double gap_s = computed_s - row.computed_s;
            if (row.messages > 0 && gap_s > short_s && gap_s > in_mpi_s - row.end_s) close(key, row);
            if (row.messages == 0) row.begin_s = in_mpi_s - (event.is_request ? 0 : took_s);
            ++row.messages;
            row.bytes += event.bytes;
            row.end_s = in_mpi_s;
            row.computed_s = computed_s;
        });
        close();
        told_until_.clear();
    }

  private:
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::int32_t>;

    void close() {
        for (auto& [key, row] : rows_) close(key, row);
        rows_.clear();
    }

    void close(const Key& key, Row& row) {
        if (row.messages >= MessageRuns::least) {
            const auto& [function, path, to] = key;
            MessageRuns& sum = out_[{function, path}];
            sum.function = function;
            sum.path = path;
            ++sum.runs;
            sum.messages += row.messages;
            sum.bytes += row.bytes;
            // Messages to several ranks by turns take the same time.
            double& until_s = told_until_[{function, path}];
            sum.seconds += std::max(0.0, row.end_s - std::max(until_s, row.begin_s));
            until_s = std::max(until_s, row.end_s);
            if (row.messages > sum.longest) {
                sum.longest = row.messages;
                sum.longest_bytes = row.bytes;
                sum.from = process_;
                sum.to = to;
            }
        }
        row = {};
    }

    static constexpr double short_s = 20e-6;  ///< computation that isn't worth sending a message for
    Roles roles_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, MessageRuns>& out_;
    std::int32_t process_ = 0;
    std::map<Key, Row> rows_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> told_until_;
};

}  // namespace

std::vector<Chain> chains(const Trace& trace, const WaitGraph& awaited) { return ChainSearch(trace, awaited).run(); }

std::vector<MessageRuns> message_runs(const Trace& trace) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, MessageRuns> sums;
    for (std::size_t p = 0; p < trace.processes.size(); ++p) {
        Runs runs(trace, sums);
        for (const TracedThread& thread : trace.processes[p].threads) runs.add(thread, static_cast<std::int32_t>(p));
    }
    std::vector<MessageRuns> out;
    for (const auto& [place, one] : sums) out.push_back(one);
    return out;
}

}  // namespace palmette::trace
