// The calls of all processes of a job, by a common clock: what analyses read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "palmette/trace/contexts.hpp"
#include "palmette/trace/functions.hpp"

namespace palmette::trace {

/// A call, or a request from its start to the call that completed it. Times in nanoseconds.
struct Event {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t instance = 0;  ///< a collective's number on its communicator, from 1
    std::uint64_t bytes = 0;
    std::uint32_t path = 0;          ///< index into Trace::paths
    std::uint32_t communicator = 0;  ///< index into Trace::communicators; 0: none
    std::uint32_t plan = 0;          ///< index into Trace::plans; 0: not served
    std::int32_t peer = -1, tag = 0;
    std::uint16_t function = 0;  ///< index into Trace::functions
    bool is_request = false;
};

struct TracedCommunicator {
    std::uint64_t id = 0;
    std::int32_t size = 0;
    std::vector<std::int32_t> process_of;  ///< by rank in it: index into Trace::processes; -1: not recorded
};

/// What one call by a plan sends to one rank, on average where sizes differ.
struct TracedSend {
    std::int32_t peer = 0;  ///< in the communicator
    double messages = 0, bytes = 0;
};

struct TracedPlan {
    std::string function, algorithm;
    double bound_s = -1;
    std::uint32_t communicator = 0;  ///< index into Trace::communicators
    std::vector<TracedSend> sends;   ///< what the recording process sends by the plan
};

/// Decodes events where they lie, so that a job's don't have to fit into memory.
class EventReader {
  public:
    EventReader() = default;
    EventReader(const EventReader&) = delete;
    EventReader& operator=(const EventReader&) = delete;
    virtual ~EventReader() = default;
    virtual std::size_t size() const = 0;
    virtual Event at(std::size_t index) const = 0;
    /// at() of that index will be called soon.
    virtual void prefetch(std::size_t /*index*/) const {}
};

/// A sample of a thread's stack.
struct StackSample {
    std::int64_t at_ns = 0;
    std::uint32_t context = 0;  ///< index into Trace::contexts.nodes
    float cpu_s = 0;            ///< processor time of the thread since its sample before
};

/// Seconds off the processor, by state.
struct OffProcessor {
    double put_aside_s = 0;  ///< runnable, but waiting for a processor
    double io_s = 0;         ///< blocked, in I/O or page faults
    double asleep_s = 0;     ///< blocked otherwise

    void add(const OffProcessor& other, double weight) {
        put_aside_s += weight * other.put_aside_s;
        io_s += weight * other.io_s;
        asleep_s += weight * other.asleep_s;
    }
};

/// Seconds off the processor in a long stretch between two calls.
struct OffBetween {
    std::int64_t at_ns = 0;  ///< end of the stretch
    OffProcessor off;
};

/// Events of one thread in the order in which their calls ended; requests stand before the call that completed them.
struct TracedThread {
    std::vector<Event> events;
    std::shared_ptr<const EventReader> reader;  ///< reads the events that lie in a file; they follow `events`

    std::uint64_t dropped = 0;         ///< calls of which only sums remain
    std::vector<Event> outstanding;    ///< requests that it has made and nobody has completed: they keep their place
    std::vector<StackSample> samples;  ///< by time
    std::vector<OffBetween> off;       ///< by time; only where samples were taken, too

    /// From when on all is there; the least number where there is no event.
    std::int64_t first_ns() const {
        if (events.empty() && !(reader && reader->size() > 0)) return std::numeric_limits<std::int64_t>::min();
        const Event first = events.empty() ? reader->at(0) : events.front();
        // A request began before calls that came before the one that completed it.
        return first.is_request ? first.end_ns : first.begin_ns;
    }
    std::size_t size() const { return events.size() + (reader ? reader->size() : 0); }
    Event at(std::size_t index) const {
        return index < events.size() ? events[index] : reader->at(index - events.size());
    }
    /// Walks over thousands of threads by turns find each one's next event in memory, not in a cache.
    void prefetch(std::size_t index) const {
        if (reader && index >= events.size() && index - events.size() < reader->size())
            reader->prefetch(index - events.size());
    }
    template <class Use>
    void for_each(Use use) const {
        for (const Event& event : events) use(event);
        const std::size_t count = reader ? reader->size() : 0;
        for (std::size_t i = 0; i < count; ++i) use(reader->at(i));
    }
};

struct TracedProcess {
    std::int32_t rank = -1;
    std::int64_t begin_ns = 0, end_ns = 0;  ///< in the recorder: from MPI_Init on
    std::uint64_t dropped = 0;              ///< calls of which only sums remain
    std::int64_t clock_error_ns = 0;
    std::map<std::uint32_t, std::int32_t> rank_in;  ///< by communicator: this process's rank
    std::vector<TracedThread> threads;
    std::vector<StackSample> beside;  ///< samples of threads that make no calls, by time
};

struct Trace {
    std::vector<std::string> functions;
    std::vector<Kind> kinds;         ///< by function
    std::vector<std::string> paths;  ///< frames from the innermost on: "module+offset" with `;` between; [0] is unknown
    std::vector<TracedCommunicator> communicators;
    std::vector<TracedPlan> plans;
    std::vector<TracedProcess> processes;
    JobContexts contexts;  ///< calling contexts that samples refer to

    bool has_samples() const { return contexts.nodes.size() > 1; }
};

/// A node's file, and what to add to its times for the common clock.
struct TraceFile {
    std::string path;
    std::int64_t first_real_ns = 0, first_offset_ns = 0;  ///< offsets are interpolated between both points
    /// The first point again where only one is known: the offset is constant.
    std::int64_t last_real_ns = 0, last_offset_ns = 0;
    std::int64_t error_ns = 0;
};

/// All calls of a job that its rings hold, and samples where they are wanted; the files stay mapped as long as the
/// trace lives. Throws base::Error as Recording::read does. Cost: O(processes), with samples O(samples log samples +
/// contexts).
Trace read_trace(const std::vector<TraceFile>& files, bool with_samples = false);

}  // namespace palmette::trace
