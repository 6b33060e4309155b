// How often calls are compared, bounded by an overhead budget.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/select/verdict.hpp"

namespace palmette::select {

/// When the next pair of calls of a kind is due.
///
/// Until a verdict, all pairs together may take as long, beyond the MPI alone, as `credit` calls of the MPI and a share
/// of the time of all calls so far. After it, a tenth of the share is spent on verifying it, beyond the choice alone.
/// Overheads are estimated by medians, so that one disturbed pair doesn't postpone the others.
class Pace {
  public:
    /// The credit of a choice that serves between its pairs: a difference of 2 is seen by then (judge), also where
    /// synchronising takes as long as a call.
    static constexpr double most_credit = 8;
    /// The credit of a choice that must win before it serves: pairs that it wins pay for themselves, and losing costs
    /// no more later.
    static constexpr double credit_on_trial = 4;

    /// `share`: above 0. With a credit of 0 pairs wait until the share has paid for them.
    Pace(double share, double credit) : share_(share), credit_(credit) {}

    /// A pair that took these times, above 0, and what was needed to synchronise it; the verdict after it. All the same
    /// on all ranks.
    void add(double ours_s, double mpi_s, double synchronising_s, Verdict verdict);

    /// Calls to the next pair, at least 1, when `calls` have been made. A pair must have been added.
    std::int64_t calls_to_next_pair(std::int64_t calls) const;

  private:
    double share_, credit_;
    Verdict verdict_ = Verdict::open;
    double pairs_ = 0;
    std::vector<double> ours_, mpi_, synchronising_;  ///< times of the last pairs
};

}  // namespace palmette::select
