// Runs a recorded job again with other costs of communication: what depends on what stays, and so does all computation
// between calls.
//
// With costs of zero this is the ideal network of the POP metrics (Serialisation and Transfer Efficiency,
// https://co-design.pop-coe.eu/metrics); with the physical limits of the collectives it tells what the hardware leaves
// to be won; with other costs what another algorithm or placement would give; with the measured costs it gives the
// measured time again, which shows that no dependency is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "palmette/trace/events.hpp"
#include "palmette/trace/waits.hpp"

namespace palmette::trace {

/// What a call takes once all that it waits for is there.
enum class Costs : std::uint8_t {
    measured,
    ideal,    ///< nothing, but for files
    bound,    ///< collectives cost their physical limit where it is known and less than measured; all else nothing
    planned,  ///< as `bound`, but collectives that palmette served cost what the model predicts for their plan
    served,   ///< as `bound`, but collectives that palmette served cost what was measured
    changed   ///< what Changes says
};

/// Calls of a collective that take as long: by function, communicator, plan (0: the MPI's own), root in it (-1: none)
/// and bytes as the root's call, or rank 0's, has them.
struct CollectiveKind {
    std::uint32_t function = 0, communicator = 0, plan = 0;
    std::int32_t root = -1;
    std::uint64_t bytes = 0;
    auto operator<=>(const CollectiveKind&) const = default;
};

/// What something would take, and what the same model says of it as it was.
struct Price {
    double seconds = -1;    ///< negative: as it was
    double was_s = 0;       ///< 0: not known; then `seconds` is taken as it is, else what both differ by
    bool by_ratio = false;  ///< the measured time is multiplied by seconds / was_s, however long it was
};

/// Changed prices, for Costs::changed.
struct Changes {
    std::function<Price(const CollectiveKind&)> collective;
    /// Price of one message between two processes, by pair().
    std::unordered_map<std::uint64_t, Price> messages;
    static std::uint64_t pair(std::int32_t from, std::int32_t to) {
        return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32U) | static_cast<std::uint32_t>(to);
    }
    double scale = 1;  ///< factor on predicted differences: models err
    /// Calls of one function from one place by one process, or computation before them, that take less by a factor.
    struct ShorterCalls {
        std::int32_t process = -1;
        std::uint32_t function = 0, path = 0;
        bool in_call = false;
        double factor = 1;
    } shorter;
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
struct WaitGraph {
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
struct UnmodelledFunction {
    std::uint32_t function = 0;
    std::uint64_t calls = 0;
    double seconds = 0;
};

/// Time in calls of one function from one place by one process, as recorded and in the replay.
struct InCalls {
    std::uint32_t function = 0, path = 0;
    std::int32_t process = 0;
    double measured_s = 0, replayed_s = 0;
};

struct Replay {
    double time_s = 0;                      ///< from the first end of MPI_Init to the last begin of MPI_Finalize
    double measured_s = 0;                  ///< seconds between the same two points of the recorded run
    std::vector<double> ends_s;             ///< by process: from the same beginning
    std::uint64_t without_counterpart = 0;  ///< messages and collectives of which another rank's call isn't recorded
    std::uint64_t forced = 0;  ///< calls that would have waited for ever, as clocks that disagree may have it
    std::vector<UnmodelledFunction> unmodelled;
    std::vector<InCalls> in_calls;  ///< but for Costs::measured
};

/// What the model says that a collective takes which palmette served; 0: not known.
using PredictedOf = std::function<double(const CollectiveKind&)>;

/// `bound_of`: for Costs::bound, planned and served; `predicted_of` for planned. Calls that began before all rings have
/// them are kept as they were. Cost: O(calls + messages log messages) time; memory O(messages + instances of
/// collectives), with `awaited` also O(waits).
Replay replay(const Trace& trace, Costs costs, const BoundOf& bound_of = {}, WaitGraph* awaited = nullptr,
              const PredictedOf& predicted_of = {});
/// Replays with Costs::changed.
Replay replay(const Trace& trace, const Changes& changes);

}  // namespace palmette::trace
