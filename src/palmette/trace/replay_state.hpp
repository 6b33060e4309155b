// What a replay knows while it runs: how far each thread is, and what has been begun.
#pragma once

#include <algorithm>
#include <array>
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

/// One end of a message. Jobs have millions of them.
struct End {
    End(std::int64_t begin, std::int32_t of_thread)
        : begin_ns(begin), thread(static_cast<std::uint32_t>(of_thread) & 0x7FFFFFFFU) {}

    std::int64_t begin_ns;
    double replayed_s = std::numeric_limits<double>::quiet_NaN();
    std::uint32_t thread : 31;
    std::uint32_t completed : 1 = 0;  ///< here

    bool is_begun() const { return !std::isnan(replayed_s); }
    /// Begins a call of the thread at `time_s`.
    void begin(double time_s, std::uint32_t call) {
        replayed_s = time_s;
        waiter_or_call_ = call;
    }
    Moment moment() const { return {begin_ns, replayed_s, {static_cast<std::int32_t>(thread), waiter_or_call_}}; }
    /// The thread that waits for its begin; before that.
    std::int32_t waiter() const { return static_cast<std::int32_t>(waiter_or_call_); }
    void wait(std::int32_t waiter) { waiter_or_call_ = static_cast<std::uint32_t>(waiter); }

  private:
    std::uint32_t waiter_or_call_ = static_cast<std::uint32_t>(nobody);
};
static_assert(sizeof(End) == 24);

/// One side of a channel. Mostly asked for in order.
struct Side : std::vector<End> {
    std::size_t next = 0;  ///< behind the one that was found last
};
struct Ends {
    Side sends, receives;

    /// Where a ring dropped the first ones, the last belong together: the others go. Returns how many did.
    std::size_t keep_last() {
        Side& longer = sends.size() > receives.size() ? sends : receives;
        const std::size_t more = longer.size() - std::min(sends.size(), receives.size());
        longer.erase(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(more));
        return more;
    }
};

struct PartOfScan {
    std::int32_t rank = 0;
    Moment begin;
};

struct Gathering {
    std::int32_t came = 0, begun = 0;
    Moment last, root;
    Price price;
    std::vector<PartOfScan> parts;  ///< parts of a scan, by rank
    std::size_t joined = 0;         ///< number of leading parts that are known, each joined with those before it
    std::int32_t first_waiter = nobody;
};

/// A collective that a thread begins by a request, in the call that `begin_ns` lies in.
struct CollectiveStart {
    std::int64_t begin_ns;
    Gathering* gathering;
    std::int32_t rank, root;  ///< in its communicator
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
    std::vector<CollectiveStart> begun;  ///< by begin_ns
    std::vector<End*> ends;              ///< ends of messages, by begin_ns
    std::size_t ends_in_all = 0;
    std::size_t next_begun = 0, next_end = 0;
    /// Channels that it has sent or received on lately: threads take turns, and each one's are a few.
    struct CachedChannel {
        Channel channel;
        Ends* ends = nullptr;
    };
    std::array<CachedChannel, 4> known{};
    std::size_t next = 0;
    double now_s = 0;
    std::int64_t before_ns = 0;  ///< end of the call before
    bool started = false, entered = false, ended = false, blocked = false, forced = false;
    double entry_s = 0;
    Event call;
    std::uint32_t call_index = 0;
    std::vector<Event> requests;
    std::vector<InstanceKey> keys;  ///< instances of the parts that are collectives: call first, then requests
    std::size_t part = 0;
    Moment dependency;
    std::int32_t next_waiter = nobody;
    std::vector<Wait> waits;
    /// Adds one to `waits`. There is room for as many as there will be if the calls to come wait as often: twice as
    /// much, of all threads together, would be what most of the memory is taken by.
    void add_wait(const Wait& wait) {
        if (waits.size() == waits.capacity()) {
            const double more = static_cast<double>(size) / static_cast<double>(std::max<std::size_t>(1, next));
            const auto expected = static_cast<std::size_t>(1.02 * more * static_cast<double>(waits.size()));
            waits.reserve(std::clamp(expected, waits.size() + waits.size() / 8 + 16, 2 * waits.size() + 16));
        }
        waits.push_back(wait);
    }
    std::unordered_map<std::uint64_t, InCalls> in_calls;  ///< by function and path
    std::array<InCalls*, 4> last_in_calls{};              ///< the entries that time was added to last
    void end(double more_s) {
        now_s += more_s;
        ended = true;
    }
    void note_in_call() {
        InCalls*& last = last_in_calls[call.function % last_in_calls.size()];
        if (!last || last->function != call.function || last->path != call.path)
            last = &in_calls
                        .try_emplace(std::uint64_t{call.function} << 32U | call.path,
                                     InCalls{call.function, call.path, process, 0, 0})
                        .first->second;
        last->measured_s += static_cast<double>(call.end_ns - call.begin_ns) * 1e-9;
        last->replayed_s += now_s - entry_s;
    }
};

}  // namespace palmette::trace
