// Palmette's own observers: the report, and verbose output while the program runs.
#pragma once

#include "palmette/runtime/observe/observer.hpp"

namespace palmette::runtime {

/// Adds times, physical limits and what comparing has found to the report.
class Reporting : public Observer {
  public:
    void plan_made(Communicator& state, CachedPlan& plan) override;
    void call_ended(const CallEvent& call) override;
    void compared(const Communicator& state, const CachedPlan& plan) override;
};

/// PALMETTE_VERBOSE: a line for each fallback to the MPI after a lost comparison (1), for every call (2).
class VerboseLog : public Observer {
  public:
    explicit VerboseLog(int verbose) : verbose_(verbose) {}
    void call_ended(const CallEvent& call) override;
    void compared(const Communicator& state, const CachedPlan& plan) override;

  private:
    int verbose_;
};

/// The lower bound in seconds for blocks of these lengths (a single one: of all blocks); 0 where the machine is
/// unknown. Of a plan through aggregators the one with them.
double bound_of(const CachedPlan& plan, const topology::Job& job, const std::vector<std::int64_t>& lengths);

/// Sentence for a lost comparison: "ring took 3 us, the MPI's 2 us (medians of 9 pairs)".
std::string why_lost(const CachedPlan& plan);

}  // namespace palmette::runtime
