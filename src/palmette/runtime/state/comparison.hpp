// While the program runs, sampled calls show whether palmette's choice is faster than the MPI's own collective.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "palmette/select/verdict.hpp"

namespace palmette::runtime {

/// Of calls of one kind (a function, an algorithm, blocks of similar size) on one communicator.
///
/// All ranks count the calls, so all know which is sampled. Every so often one call is done by the MPI and the next one
/// by palmette (or the other way round), each after a barrier; then the ranks agree on the longest time of each, and on
/// how much the two have moved: a pair of unlike calls shows nothing. So all come to the same verdict at the same call.
/// A pair costs what the MPI's call takes longer than ours, or all of it with a copy and one more agreement where it is
/// done `beside` ours; two barriers; and an allreduce of a few numbers. The next pair waits until this is at most
/// `share` of the time of the calls in between (select::calls_to_next_pair). Ranks that come late keep others waiting
/// in the barriers as they would in the call itself: that isn't counted.
class Comparison {
  public:
    /// `share`: of the time of these calls, above 0. `hidden` outlives this.
    /// `keeps`: the choice stays even if it loses.
    Comparison(MPI_Comm hidden, double share, bool beside, bool keeps)
        : hidden_(hidden), share_(share), beside_(beside), keeps_(keeps) {}

    /// Counts a call that moves so many bytes on this rank. True: ask for its turn.
    bool due(std::int64_t bytes) {
        bytes_ = bytes;
        return ++calls_ >= next_;
    }
    /// What this rank has done for a pair beyond its calls, alone.
    void prepared(double seconds) { preparing_s_ = seconds; }
    /// Nothing can be learned now: later, perhaps.
    void postpone() { next_ = calls_ + 64 * first; }
    enum class Turn : std::uint8_t { ours, mpi };
    /// Whose turn a call is that is due.
    Turn turn() const { return (at_second_ ? !mpi_first_ : mpi_first_) ? Turn::mpi : Turn::ours; }

    /// Runs a call that is due, which is `turn()`'s. True: both calls of a pair are there; then `counts()` tells
    /// whether it shows anything.
    template <class Run>
    bool time(Run run, int& code) {
        const Turn mine = turn();
        PMPI_Barrier(hidden_);
        const double begin = PMPI_Wtime();
        code = run();
        return took(mine, PMPI_Wtime() - begin, code);
    }

    bool counts() const { return counts_; }
    bool keeps() const { return keeps_; }
    /// The choice is to be given up.
    bool lost() const { return verdict_ == select::Verdict::slower && !keeps_; }
    select::Verdict verdict() const { return verdict_; }
    /// Medians of the pairs so far, agreed between ranks; 0 without pairs.
    double ours_s() const;
    double mpi_s() const;
    std::int64_t pairs() const { return static_cast<std::int64_t>(ours_.size()); }
    /// What the last pair has cost.
    double last_cost_s() const { return cost_s_; }
    select::Verdict verdict_before() const { return before_; }

    /// Calls before the first pair: what is called seldom isn't worth a look.
    static constexpr std::int64_t first = 64;

  private:
    bool took(Turn turn, double seconds, int code);
    bool settle();
    void add(double ours, double mpi);

    MPI_Comm hidden_;
    double share_;
    bool beside_, keeps_;
    bool counts_ = false;
    std::int64_t bytes_ = 0, ours_bytes_ = 0, mpi_bytes_ = 0;
    std::int64_t calls_ = 0, next_ = first;
    bool at_second_ = false, mpi_first_ = true, failed_ = false;
    double ours_now_ = 0, mpi_now_ = 0;
    double agreeing_s_ = 0;  ///< how long the last agreement took here
    double preparing_s_ = 0;
    double cost_s_ = 0;
    std::vector<double> ours_, mpi_;
    select::Verdict verdict_ = select::Verdict::open, before_ = select::Verdict::open;
};

}  // namespace palmette::runtime
