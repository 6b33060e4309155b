// What a report says first: how long served collectives took, and how much less that is than by the MPI alone.
#pragma once

#include <cstdint>
#include <string>

#include "palmette/base/json.hpp"

namespace palmette::runtime {

/// Times are those of a rank, the mean over all. A kind of calls is a row of the report: a function, a class of sizes
/// and an algorithm.
struct Gain {
    /// Kinds with fewer calls on a communicator aren't compared: Comparison::first.
    static constexpr std::int64_t seldom = 64;

    double served_s = 0;     ///< in served calls, with the time that ranks wait there for later ones
    double saved_s = 0;      ///< of kinds that are settled: their calls times the difference of the medians, less the
                             ///< cost of comparing
    std::int64_t pairs = 0;  ///< of calls that were compared
    std::int64_t kinds = 0;  ///< that were served
    std::int64_t most_operations = 0;  ///< of a kind: those that come seldom aren't compared
    std::int64_t settled = 0;          ///< of these, those whose pairs tell faster, same or slower
    std::int64_t open = 0;             ///< those whose pairs don't tell yet; the others were not compared

    /// Calls of one kind: counts and times over all ranks; the difference of the medians; what comparing has cost each
    /// communicator, together.
    struct Kind {
        std::int64_t operations = 0, rank_calls = 0;
        double rank_seconds = 0;
        std::int64_t pairs = 0;
        bool open = false;
        double saved_s_a_call = 0, cost_s = 0;
    };
    /// Adds a kind, of so many ranks.
    void add(const Kind& kind, int ranks);
    /// One sentence, of a job of so many seconds.
    std::string sentence(double seconds) const;
    base::Json to_json(double seconds) const;
};

}  // namespace palmette::runtime
