// What a replay knows while it runs: how far each thread is, and what has been begun.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "palmette/trace/events.hpp"
#include "palmette/trace/matching.hpp"
#include "palmette/trace/replay.hpp"

namespace palmette::trace {

inline constexpr std::int32_t nobody = -1;

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

/// One side of a channel. Mostly asked for in order.
struct Side : std::vector<End> {
    std::size_t next = 0;  ///< behind the one that was found last
};
struct Ends {
    Side sends, receives;
};

struct PartOfScan {
    std::int32_t rank = 0;
    Moment begin;
};

struct Gathering {
    std::int32_t came = 0, begun = 0;
    Moment last, root;
    Price price;
    std::vector<PartOfScan> parts;  ///< of scans, by rank
    std::size_t joined = 0;         ///< the first so many are known, each joined with those before it
    std::int32_t first_waiter = nobody;
};

/// What a thread begins in the call that `begin_ns` lies in.
struct Begun {
    std::int64_t begin_ns;
    End* end;
    Gathering* gathering;
    std::int32_t rank, root;  ///< of a collective: in its communicator
};

/// Whom a part of a call depends on.
struct Dependency {
    enum class State : std::uint8_t { independent, known, unknown } state = State::independent;
    Moment moment;
};

/// A thread on its way through its calls.
struct Thread {
    Thread(const TracedThread& of, std::int32_t number) : process(number), traced(&of), size(of.size()) {}

    std::int32_t process;
    const TracedThread* traced;
    std::size_t size;
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
    std::vector<Wait> waits;
    std::unordered_map<std::uint64_t, InCalls> in_calls;  ///< by function and path
};

}  // namespace palmette::trace
