// Runs a recorded job again with other costs of communication: what depends on what stays, and so does all computation
// between calls.
//
// With costs of zero this is the ideal network of the POP metrics (Serialisation and Transfer Efficiency,
// https://co-design.pop-coe.eu/metrics); with the physical limits of the collectives it tells what the hardware leaves
// to be won; with the measured costs it gives the measured time again, which shows that no dependency is missing.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "palmette/trace/events.hpp"
#include "palmette/trace/waits.hpp"

namespace palmette::trace {

/// What a call takes once all that it waits for is there.
enum class Costs : std::uint8_t {
    measured,
    ideal,  ///< nothing, but for files
    bound   ///< of collectives the physical limit, where it is known; else nothing
};

/// A call of a thread, as Awaited numbers them.
struct At {
    std::int32_t thread = -1;
    std::uint32_t event = 0;
};

/// A call that waited: for what another one began.
struct Wait {
    std::uint32_t event = 0;
    float seconds = 0;
    At begun_by;
};

/// Who waited for whom in the recorded run, of all threads of all processes.
struct Awaited {
    struct OfThread {
        const TracedThread* thread = nullptr;
        std::int32_t process = 0;
        std::vector<Wait> waits;  ///< in the order of its calls
        double end_s = 0;         ///< since `begin_ns`
    };
    std::vector<OfThread> threads;
    std::int64_t begin_ns = 0;  ///< the first end of MPI_Init
};

/// Calls whose dependencies are unknown: they never wait in a replay.
struct Unmodelled {
    std::uint32_t function = 0;
    std::uint64_t calls = 0;
    double seconds = 0;
};

struct Replay {
    double time_s = 0;                      ///< from the first end of MPI_Init to the last begin of MPI_Finalize
    double measured_s = 0;                  ///< the same of the recorded run
    std::vector<double> ends_s;             ///< by process: from the same beginning
    std::uint64_t without_counterpart = 0;  ///< messages and collectives of which another rank's call isn't recorded
    std::uint64_t forced = 0;  ///< calls that would have waited for ever, as clocks that disagree may have it
    std::vector<Unmodelled> unmodelled;
};

/// `bound_of`: for Costs::bound. Calls that began before all rings have them are kept as they were. Cost: O(calls +
/// messages log messages) time; memory O(messages + instances of collectives), with `awaited` also O(waits).
Replay replay(const Trace& trace, Costs costs, const BoundOf& bound_of = {}, Awaited* awaited = nullptr);

}  // namespace palmette::trace
