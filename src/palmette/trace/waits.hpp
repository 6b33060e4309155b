// Wait states: for how long calls waited for other ranks, and for whom.
//
// The definitions are Scalasca's (Geimer, Wolf, Wylie, Abraham, Becker, Mohr: The Scalasca performance toolset
// architecture, CCPE 22(6), 2010), with nonblocking and persistent calls judged by the call that completes them.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "palmette/trace/events.hpp"

namespace palmette::trace {

/// Where the time of calls went: the four add up to it.
struct Split {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;
    double waiting_s = 0;     ///< for a rank that came late
    double bound_s = 0;       ///< physical limit of the time without waiting, where it is known
    double excess_s = 0;      ///< time without waiting beyond bound_s, until the first rank had finished
    double completion_s = 0;  ///< after the first rank had finished

    void add(const Split& other);
};

/// Calls of one function from one place by one process.
struct Row {
    std::uint32_t function = 0, path = 0;
    std::int32_t process = 0;
    Split split;
    double longest_wait_s = 0, longest_s = 0;
};

/// Waiting of all ranks together at calls of one place, because of one late rank.
struct Cause {
    std::uint32_t function = 0, path = 0;  ///< call site that waited
    std::int32_t process = 0;              ///< process that came late
    std::uint64_t instances = 0;           ///< how often
    std::uint64_t waiters = 0;             ///< calls that waited for it, over all instances
    double waiting_s = 0;
    double late_s = 0;  ///< behind the others: sums over instances of the time behind the one that came before it
    std::int64_t worst_begin_ns = 0, worst_end_ns = 0;  ///< the longest single wait
};

struct Efficiencies {
    double time_s = 0;            ///< from the first end of MPI_Init to the last begin of MPI_Finalize
    double useful_s = 0;          ///< outside of MPI, mean over processes
    double longest_useful_s = 0;  ///< useful time of the process that has most
    double parallel = 0;          ///< load balance times communication
    double load_balance = 0;      ///< mean useful time / longest
    double communication = 0;     ///< longest useful time / time
};

/// Sizes that are told apart; beyond, powers of two are, which are no less right as lower bounds.
inline constexpr std::size_t most_sizes = 4096;
inline std::uint64_t rounded_down(std::uint64_t bytes) { return std::bit_floor(bytes); }

/// A collective's root in its communicator; -1: it has none.
std::int32_t root_of(Kind kind, const Event& collective);

/// What single calls and messages are, for those who draw or sum them: told while waits are looked for, process by
/// process.
class Observer {
  public:
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;
    virtual ~Observer() = default;
    /// Reports the first end of MPI_Init and the last begin of MPI_Finalize, before anything else.
    virtual void spans(std::int64_t begin_ns, std::int64_t end_ns) = 0;
    virtual void call(const Event& call, std::int32_t process, double waiting_s, std::int32_t waits_for) = 0;
    /// A rank's part of a collective: the call, or the request of a nonblocking one. `rank`: in the communicator.
    virtual void collective(const Event& part, std::int32_t process, std::int32_t rank) = 0;
    /// A message, where it is sent.
    virtual void send(const Event& send, std::int32_t from, std::int32_t to) = 0;
    /// A message whose both ends are recorded, and for how long its receiver waited.
    virtual void message(std::int32_t from, std::int32_t to, std::int64_t sent_ns, std::int64_t received_ns,
                         double bytes, double waiting_s) = 0;
};

struct Waits {
    std::vector<Row> rows;
    std::vector<Cause> causes;
    Efficiencies efficiencies;
    std::vector<double> useful_s;              ///< by process: outside of MPI
    std::int64_t begin_ns = 0, end_ns = 0;     ///< interval that the efficiencies cover
    std::uint64_t incomplete_collectives = 0;  ///< instances of which a rank's call isn't recorded
    std::uint64_t unmatched_messages = 0;      ///< receives whose send isn't recorded
    std::uint64_t clock_violations = 0;        ///< receives that ended before their send began
    std::int64_t clock_error_ns = 0;           ///< the largest of a process: shorter waits mean nothing
};

/// The physical limit, in seconds, of a collective that the MPI itself did: by function, communicator, root in it (-1:
/// none) and bytes as the root's call, or rank 0's, has them. 0: not known. Asked once for each.
using BoundOf =
    std::function<double(std::uint32_t function, std::uint32_t communicator, std::int32_t root, std::uint64_t bytes)>;

/// Cost: O(calls log calls) time; memory O(instances of collectives + messages).
Waits find_waits(const Trace& trace, Observer* observer = nullptr, const BoundOf& bound_of = {});

}  // namespace palmette::trace
