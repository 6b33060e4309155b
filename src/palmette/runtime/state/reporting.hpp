// The observers that palmette brings: what goes into the report, and what is said while the program runs.
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

/// PALMETTE_VERBOSE: a line for choices that are given up (1), for every call (2).
class Saying : public Observer {
  public:
    explicit Saying(int verbose) : verbose_(verbose) {}
    void call_ended(const CallEvent& call) override;
    void compared(const Communicator& state, const CachedPlan& plan) override;

  private:
    int verbose_;
};

/// Of a comparison that was lost: "ring took 3 us, the MPI's 2 us (medians of 9 pairs)".
std::string why_lost(const CachedPlan& plan);

}  // namespace palmette::runtime
