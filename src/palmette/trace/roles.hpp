// What part an event has in the dependencies between ranks: of a collective, of which message, at which end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "palmette/trace/events.hpp"
#include "palmette/trace/matching.hpp"

namespace palmette::trace {

/// Seconds; times in traces are whole ones.
inline constexpr double ns = 1e-9;

/// Roles of one trace's events, which must be asked for thread by thread, each thread's events in order.
class Roles {
  public:
    explicit Roles(const Trace& trace) : trace_(trace) {
        for (const std::string& name : trace.functions) {
            traits_.push_back(&function_of(name));
            queries_.push_back(only_tells(name));
        }
    }

    const Function& traits(const Event& event) const { return *traits_[event.function]; }
    bool queries(const Event& event) const { return queries_[event.function]; }
    /// Whether a call only tells that the requests in front of it won't be completed: it doesn't wait for them.
    bool lets_go(const Event& call) const { return traits(call).lets_go; }
    Kind kind(const Event& event) const { return trace_.kinds[event.function]; }

    /// Whether an event stands for a collective: the call, or the request of a nonblocking one.
    bool is_collective_event(const Event& event) const {
        return is_collective(kind(event)) && event.instance != 0 && event.communicator != 0 &&
               event.is_request == traits(event).by_request;
    }
    /// Starts of a persistent collective share its number; the n-th on one rank belongs to the n-th on the others.
    InstanceKey key_of(const Event& event, std::int32_t process) {
        if (!traits(event).persistent) return {event.communicator, event.instance};
        const std::uint64_t epoch = ++epochs_[{event.communicator, event.instance, process}];
        return {event.communicator, event.instance << 32U | epoch};
    }
    /// Starts over, so that all events can be asked for once more.
    void restart() { epochs_.clear(); }

    /// Whether an event is a message from its begin on: the call, but of persistent ones the request of each start. A
    /// send whose request is freed is never completed, and arrives.
    bool begins_send(const Event& event) const { return event.is_request == traits(event).persistent; }
    /// Whether an event ends with its message: the call, or the request of a nonblocking one; of a matched receive its
    /// request, which begins with the probe.
    bool completes(const Event& event) const { return event.is_request == traits(event).by_request; }

    /// The channel of a message that an event has sent or received; null: it is none, or the event stands for another
    /// moment of it (`is_moment`). Of MPI_Sendrecv the call sends and its request receives. Valid until the next call.
    const Channel* channel_of(const Event& event, std::int32_t process, Kind wanted, bool is_moment) {
        if (event.peer < 0 || event.communicator == 0) return nullptr;
        const bool both = traits(event).sends_and_receives;
        const Kind is = both ? (event.is_request ? Kind::receive : Kind::send) : kind(event);
        if (is != wanted || (!both && !is_moment)) return nullptr;
        const std::int32_t other = process_of(event.communicator, event.peer);
        if (other < 0) return nullptr;
        // Partitioned messages match among themselves.
        const std::int32_t tag = is_partitioned(event) ? ~event.tag : event.tag;
        channel_ = wanted == Kind::send ? Channel{event.communicator, process, other, tag}
                                        : Channel{event.communicator, other, process, tag};
        return &channel_;
    }

    /// -1: it isn't recorded.
    std::int32_t process_of(std::uint32_t communicator, std::int32_t rank) const {
        const auto& known = trace_.communicators[communicator].process_of;
        return rank >= 0 && static_cast<std::size_t>(rank) < known.size() ? known[static_cast<std::size_t>(rank)] : -1;
    }
    /// -1: it is none of its ranks.
    std::int32_t rank_in(std::int32_t process, std::uint32_t communicator) {
        // Most calls are on the communicator of the one before.
        if (process == last_member_.process && communicator == last_member_.communicator) return last_member_.rank;
        const auto& ranks = trace_.processes[static_cast<std::size_t>(process)].rank_in;
        const auto found = ranks.find(communicator);
        last_member_ = {process, communicator, found == ranks.end() ? -1 : found->second};
        return last_member_.rank;
    }

    /// Bytes: shorter messages go eagerly in every MPI.
    static constexpr std::uint64_t always_eager = 1024;
    /// Whether a send may wait for its receive, as those of the rendezvous protocol do.
    bool may_wait_for_receive(const Event& send) const {
        return send.bytes >= always_eager || traits(send).operation == "ssend";
    }

  private:
    bool is_partitioned(const Event& event) const {
        return traits(event).operation == "psend" || traits(event).operation == "precv";
    }

    const Trace& trace_;
    std::vector<const Function*> traits_;  ///< by function
    std::vector<bool> queries_;
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::int32_t>, std::uint64_t> epochs_;
    struct {
        std::int32_t process = -1;
        std::uint32_t communicator = 0;
        std::int32_t rank = -1;
    } last_member_;
    Channel channel_;
};

}  // namespace palmette::trace
