#include "palmette/trace/waits.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "palmette/trace/matching.hpp"
#include "palmette/trace/roles.hpp"

namespace palmette::trace {
namespace {

struct Wait {
    double seconds = 0;
    std::int32_t process = -1;  ///< process that the call waited for
    std::int64_t late_ns = 0;   ///< behind the one before it
    Instance* instance = nullptr;
};

class Analysis {
  public:
    Analysis(const Trace& trace, Observer* observer, const BoundOf& bound_of)
        : trace_(trace), roles_(trace), observer_(observer), bound_of_(bound_of), program_(trace.processes.size()) {
        for (std::size_t p = 0; p < trace.processes.size(); ++p) {
            const TracedProcess& process = trace.processes[p];
            program_[p] = {process.begin_ns, process.end_ns};
            if (process.dropped == 0) continue;
            any_dropped_ = true;
            for (const TracedThread& thread : process.threads)
                if (thread.dropped > 0) window_ns_ = std::max(window_ns_, thread.first_ns());
        }
    }

    Waits run() {
        for (std::size_t p = 0; p < trace_.processes.size(); ++p)
            for (const TracedThread& thread : trace_.processes[p].threads) {
                thread.for_each([&](const Event& event) { gather(event, static_cast<std::int32_t>(p)); });
                for (const Event& event : thread.outstanding) gather(event, static_cast<std::int32_t>(p));
                // Mostly all of this side of its channels.
                for (std::vector<Message>* const messages : grown_) messages->shrink_to_fit();
                grown_.clear();
            }
        roles_.restart();
        span();
        instances_.for_each([](std::uint32_t, Instance& instance) { instance.order_scan(); });
        for (auto& [channel, traffic] : channels_) {
            by_begin(traffic.sends);
            by_begin(traffic.receives);
        }
        instances_.for_each([&](std::uint32_t communicator, const Instance& instance) {
            if (instance.came < trace_.communicators[communicator].size) ++out_.incomplete_collectives;
        });
        for (std::size_t p = 0; p < trace_.processes.size(); ++p)
            for (const TracedThread& thread : trace_.processes[p].threads) judge(thread, static_cast<std::int32_t>(p));
        for (auto& [key, row] : rows_) out_.rows.push_back(row);
        for (auto& [key, cause] : causes_) out_.causes.push_back(cause);
        std::sort(out_.causes.begin(), out_.causes.end(),
                  [](const Cause& a, const Cause& b) { return a.waiting_s > b.waiting_s; });
        rate();
        return std::move(out_);
    }

  private:
    void span() {
        out_.begin_ns = std::numeric_limits<std::int64_t>::max();
        out_.end_ns = none;
        for (auto& [begin_ns, end_ns] : program_) {
            begin_ns = std::max(begin_ns, window_ns_);
            out_.begin_ns = std::min(out_.begin_ns, begin_ns);
            out_.end_ns = std::max(out_.end_ns, end_ns);
        }
        if (out_.end_ns < out_.begin_ns) out_.begin_ns = out_.end_ns = 0;
        if (observer_) observer_->spans(out_.begin_ns, out_.end_ns);
    }
    /// Tells the observer what an event sends.
    void tell(const Event& event, std::int32_t process) {
        if (event.begin_ns < window_ns_) return;
        if (roles_.is_collective_event(event))
            observer_->collective(event, process, roles_.rank_in(process, event.communicator));
        else if (const Channel* const channel =
                     roles_.channel_of(event, process, Kind::send, roles_.begins_send(event)))
            observer_->send(event, process, std::get<2>(*channel));
    }
    static void by_begin(std::vector<Message>& messages) {
        std::stable_sort(messages.begin(), messages.end(),
                         [](const Message& a, const Message& b) { return a.begin_ns < b.begin_ns; });
    }
    Traffic& traffic(const Channel& channel) {
        const auto& [communicator, from, to, tag] = channel;
        return recent_channels_.at(channel, static_cast<std::uint32_t>(from ^ to ^ tag),
                                   [&]() -> Traffic& { return channels_[channel]; });
    }
    void gather(const Event& event, std::int32_t process) {
        if (roles_.kind(event) == Kind::init) {
            auto& [begin_ns, end_ns] = program_[static_cast<std::size_t>(process)];
            if (roles_.traits(event).ends)
                end_ns = event.begin_ns;
            else
                begin_ns = event.end_ns;
        }
        if (roles_.is_collective_event(event)) {
            Instance& instance = instances_.at(roles_.key_of(event, process));
            ++instance.came;
            if (event.begin_ns > instance.last_begin) {
                instance.second_begin = instance.last_begin;
                instance.last_begin = event.begin_ns;
                instance.last = process;
            } else {
                instance.second_begin = std::max(instance.second_begin, event.begin_ns);
            }
            instance.first_end = std::min(instance.first_end, event.end_ns);
            const std::int32_t rank = roles_.rank_in(process, event.communicator);
            if (rank >= 0 && rank == event.peer) instance.root_begin = event.begin_ns;
            if (event.plan != 0) instance.bound_s = std::max(instance.bound_s, trace_.plans[event.plan].bound_s);
            if (event.plan == 0 && bound_of_) {
                const std::int32_t root = root_of(roles_.kind(event), event);
                if (rank == std::max(0, root)) instance.bound_s = asked(event, root);
            }
            if (roles_.kind(event) == Kind::scan) instance.begins.push_back({rank, event.begin_ns, process});
            return;
        }
        const auto add = [&](std::vector<Message>& messages) {
            if (messages.size() == messages.capacity()) grown_.push_back(&messages);
            messages.push_back({event.begin_ns, static_cast<float>(event.bytes)});
        };
        if (const Channel* const channel = roles_.channel_of(event, process, Kind::send, roles_.begins_send(event)))
            add(traffic(*channel).sends);
        if (const Channel* const channel = roles_.channel_of(event, process, Kind::receive, roles_.completes(event)))
            add(traffic(*channel).receives);
    }

    double asked(const Event& event, std::int32_t root) {
        const std::uint64_t bytes = bounds_.size() < most_sizes ? event.bytes : rounded_down(event.bytes);
        const auto [found, made] = bounds_.try_emplace({event.function, event.communicator, root, bytes}, 0.0);
        if (made) found->second = bound_of_(event.function, event.communicator, root, bytes);
        return found->second;
    }

    void judge(const TracedThread& thread, std::int32_t process) {
        std::vector<Event> requests;
        thread.for_each([&](const Event& event) {
            if (observer_) tell(event, process);
            if (event.is_request) {
                requests.push_back(event);
                return;
            }
            Wait worst;
            const auto take = [&](const Event& part) {
                const Wait wait = roles_.is_collective_event(part) ? of_collective(part, event, process)
                                                                   : of_message(part, event, process);
                if (wait.seconds > worst.seconds || (wait.instance && !worst.instance && worst.seconds <= 0))
                    worst = wait;
            };
            take(event);
            for (const Event& request : requests) take(request);
            // Testing doesn't wait.
            if (roles_.kind(event) == Kind::test || roles_.lets_go(event)) worst.seconds = 0;
            requests.clear();
            if (event.begin_ns >= window_ns_) add(event, process, worst);
        });
    }

    /// How long `call` waited for others to come to `collective`, which is that call or a request that it completed.
    Wait of_collective(const Event& collective, const Event& call, std::int32_t process) {
        if (any_dropped_ && roles_.traits(collective).persistent) return {};  // which start it was isn't known
        Instance* const found = instances_.find(roles_.key_of(collective, process));
        if (!found) return {};
        const Instance& instance = *found;
        Wait wait{0, instance.last, 0, found};
        if (instance.second_begin != none) wait.late_ns = instance.last_begin - instance.second_begin;
        std::int64_t until = none;
        const std::int32_t rank = roles_.rank_in(process, collective.communicator);
        switch (roles_.kind(collective)) {
            case Kind::barrier:
            case Kind::all_to_all:
                until = instance.last_begin;
                break;
            case Kind::one_to_all:
                if (rank != collective.peer && instance.root_begin != none) {
                    until = instance.root_begin;
                    wait.process = roles_.process_of(collective.communicator, collective.peer);
                    wait.late_ns = 0;
                }
                break;
            case Kind::all_to_one:
                if (rank == collective.peer) until = instance.last_begin;
                break;
            case Kind::scan:
                if (const ScanPart* const last = instance.last_until(rank)) {
                    until = last->begin_ns;
                    wait.process = last->process;
                }
                break;
            default:
                break;
        }
        if (until != none)
            wait.seconds =
                static_cast<double>(std::max<std::int64_t>(0, std::min(until, call.end_ns) - call.begin_ns)) * ns;
        return wait;
    }

    /// How long `call` waited for the other end of `message`, which is that call or a request that it completed.
    Wait of_message(const Event& message, const Event& call, std::int32_t process) {
        Wait wait;
        if (const Channel* const channel =
                roles_.channel_of(message, process, Kind::receive, roles_.completes(message))) {
            const Message* const send =
                counterpart(traffic(*channel), &Traffic::receives, message.begin_ns, from_end(*channel));
            const bool is_judged = call.begin_ns >= window_ns_ && !roles_.lets_go(call);
            if (!send) {
                if (is_judged) ++out_.unmatched_messages;
                return wait;
            }
            if (is_judged && message.end_ns < send->begin_ns) ++out_.clock_violations;
            wait.seconds =
                static_cast<double>(std::max<std::int64_t>(0, std::min(send->begin_ns, call.end_ns) - call.begin_ns)) *
                ns;
            wait.process = std::get<1>(*channel);
            if (observer_ && call.begin_ns >= window_ns_)
                observer_->message(wait.process, process, send->begin_ns, message.end_ns,
                                   static_cast<double>(send->bytes), wait.seconds);
        } else if (const Channel* const sent = roles_.channel_of(message, process, Kind::send, true);
                   sent && roles_.completes(message)) {
            const Message* const receive =
                counterpart(traffic(*sent), &Traffic::sends, message.begin_ns, from_end(*sent));
            // A send waits for its receive only where the message goes by rendezvous: then it ends after that began,
            // as it may by chance where others are waited for in the same call.
            if (!roles_.may_wait_for_receive(message)) return wait;
            if (!receive || call.end_ns <= receive->begin_ns) return wait;
            wait.seconds = static_cast<double>(std::max<std::int64_t>(0, receive->begin_ns - call.begin_ns)) * ns;
            wait.process = std::get<2>(*sent);
        }
        return wait;
    }

    /// Whether a ring of one of the two dropped the first messages.
    bool from_end(const Channel& channel) const {
        return trace_.processes[static_cast<std::size_t>(std::get<1>(channel))].dropped > 0 ||
               trace_.processes[static_cast<std::size_t>(std::get<2>(channel))].dropped > 0;
    }

    /// The message of the other end that belongs to that of `own` which began then. Both ends have them in the same
    /// order; where a ring dropped the first ones, the last belong together.
    const Message* counterpart(Traffic& channel, std::vector<Message> Traffic::* which, std::int64_t begin_ns,
                               bool from_end) {
        const std::vector<Message>& own = channel.*which;
        const std::vector<Message>& other = which == &Traffic::sends ? channel.receives : channel.sends;
        std::size_t& next = which == &Traffic::sends ? channel.next_send : channel.next_receive;
        // Mostly the one behind that which was asked for before.
        auto found = own.begin() + static_cast<std::ptrdiff_t>(std::min(next, own.size()));
        if (found == own.end() || found->begin_ns != begin_ns ||
            (found != own.begin() && (found - 1)->begin_ns == begin_ns))
            found = std::lower_bound(own.begin(), own.end(), begin_ns,
                                     [](const Message& a, std::int64_t value) { return a.begin_ns < value; });
        if (found == own.end() || found->begin_ns != begin_ns) return nullptr;
        auto at = static_cast<std::size_t>(found - own.begin());
        next = at + 1;
        // Several that began at the same moment are asked for one after the other.
        if (at + 1 < own.size() && own[at + 1].begin_ns == own[at].begin_ns && own[at].begin_ns == begin_ns)
            at = std::min(at + tied_[{&own, begin_ns}]++, own.size() - 1);
        if (!from_end) return at < other.size() ? &other[at] : nullptr;
        const std::size_t behind = own.size() - at;
        return behind <= other.size() ? &other[other.size() - behind] : nullptr;
    }

    void add(const Event& event, std::int32_t process, const Wait& wait) {
        Row& row = row_of(event, process);
        const double seconds = static_cast<double>(event.end_ns - event.begin_ns) * ns;
        const double rest = std::max(0.0, seconds - wait.seconds);
        ++row.split.calls;
        row.split.bytes += event.bytes;
        row.split.seconds += seconds;
        row.split.waiting_s += wait.seconds;
        double completion = 0;
        double bound = 0;
        if (wait.instance) {
            const std::int64_t from = std::max(wait.instance->first_end, event.begin_ns);
            completion = std::min(rest, static_cast<double>(std::max<std::int64_t>(0, event.end_ns - from)) * ns);
            bound = std::clamp(wait.instance->bound_s, 0.0, rest - completion);
        }
        row.split.completion_s += completion;
        row.split.bound_s += bound;
        row.split.excess_s += rest - completion - bound;
        row.longest_wait_s = std::max(row.longest_wait_s, wait.seconds);
        row.longest_s = std::max(row.longest_s, seconds);
        if (observer_) observer_->call(event, process, wait.seconds, wait.seconds > 0 ? wait.process : -1);
        if (wait.seconds <= 0 || wait.process < 0 || wait.process == process) return;
        Cause& cause = cause_of(event, wait.process);
        ++cause.waiters;
        cause.waiting_s += wait.seconds;
        const auto waited_ns = static_cast<std::int64_t>(wait.seconds / ns);
        if (waited_ns > cause.worst_end_ns - cause.worst_begin_ns) {
            cause.worst_begin_ns = event.begin_ns;
            cause.worst_end_ns = event.begin_ns + waited_ns;
        }
        // Once, whichever call paths the others have taken: sums over paths are numbers of instances.
        if (wait.instance && is_first(*wait.instance, wait.process)) {
            ++cause.instances;
            cause.late_s += static_cast<double>(wait.late_ns) * ns;
        } else if (!wait.instance) {
            ++cause.instances;
            cause.late_s += wait.seconds;
        }
    }

    /// Whether nobody has waited for that process in that instance yet. There are several only in scans.
    bool is_first(Instance& instance, std::int32_t process) {
        if (instance.counted == process) return false;
        if (instance.counted != -1) return counted_.insert({&instance, process}).second;
        instance.counted = process;
        return true;
    }

    Row& row_of(const Event& event, std::int32_t process) {
        const Place key{event.function, event.path, process};
        return recent_rows_.at(key, event.function + event.path, [&]() -> Row& {
            Row& row = rows_[key];
            row.function = event.function;
            row.path = event.path;
            row.process = process;
            return row;
        });
    }
    Cause& cause_of(const Event& event, std::int32_t late) {
        const Place key{event.function, event.path, late};
        return recent_causes_.at(key, event.function + event.path + static_cast<std::uint32_t>(late), [&]() -> Cause& {
            Cause& cause = causes_[key];
            cause.function = event.function;
            cause.path = event.path;
            cause.process = late;
            return cause;
        });
    }

    void rate() {
        Efficiencies& rates = out_.efficiencies;
        std::vector<double> in_mpi(trace_.processes.size());
        for (const Row& row : out_.rows)
            if (trace_.kinds[row.function] != Kind::init)
                in_mpi[static_cast<std::size_t>(row.process)] += row.split.seconds;
        double sum = 0;
        for (std::size_t p = 0; p < trace_.processes.size(); ++p) {
            const TracedProcess& process = trace_.processes[p];
            const auto [begin_ns, end_ns] = program_[p];
            const double useful = std::max(0.0, static_cast<double>(end_ns - begin_ns) * ns - in_mpi[p]);
            sum += useful;
            out_.useful_s.push_back(useful);
            rates.longest_useful_s = std::max(rates.longest_useful_s, useful);
            out_.clock_error_ns = std::max(out_.clock_error_ns, process.clock_error_ns);
        }
        if (trace_.processes.empty() || out_.end_ns <= out_.begin_ns) return;
        rates.time_s = static_cast<double>(out_.end_ns - out_.begin_ns) * ns;
        rates.useful_s = sum / static_cast<double>(trace_.processes.size());
        if (rates.longest_useful_s > 0) rates.load_balance = rates.useful_s / rates.longest_useful_s;
        rates.communication = rates.longest_useful_s / rates.time_s;
        rates.parallel = rates.load_balance * rates.communication;
    }

    const Trace& trace_;
    Roles roles_;
    Observer* observer_;
    const BoundOf& bound_of_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t>, double> bounds_;
    Waits out_;
    bool any_dropped_ = false;
    std::int64_t window_ns_ = none;  ///< from here on no ring has dropped calls: what began before isn't judged
    /// By process: from the end of MPI_Init to the begin of MPI_Finalize. Starting and ending a job is nobody's
    /// inefficiency.
    std::vector<std::pair<std::int64_t, std::int64_t>> program_;
    std::map<std::pair<const void*, std::int64_t>, std::size_t> tied_;
    Instances instances_;
    std::map<Channel, Traffic> channels_;
    RecentEntries<Channel, Traffic> recent_channels_;
    std::vector<std::vector<Message>*> grown_;  ///< channels that got more memory since the last thread was gathered
    using Place = std::tuple<std::uint32_t, std::uint32_t, std::int32_t>;  ///< function, path, process
    std::map<Place, Row> rows_;
    std::map<Place, Cause> causes_;
    RecentEntries<Place, Row> recent_rows_;
    RecentEntries<Place, Cause> recent_causes_;
    std::set<std::pair<const Instance*, std::int32_t>> counted_;
};

}  // namespace

void Split::add(const Split& other) {
    calls += other.calls;
    bytes += other.bytes;
    seconds += other.seconds;
    waiting_s += other.waiting_s;
    bound_s += other.bound_s;
    excess_s += other.excess_s;
    completion_s += other.completion_s;
}

std::int32_t root_of(Kind kind, const Event& collective) {
    return kind == Kind::one_to_all || kind == Kind::all_to_one ? collective.peer : -1;
}

Waits find_waits(const Trace& trace, Observer* observer, const BoundOf& bound_of) {
    return Analysis(trace, observer, bound_of).run();
}

}  // namespace palmette::trace
