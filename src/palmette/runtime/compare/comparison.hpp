// Online comparison: calls of the running program show whether palmette's choice is faster than the MPI's own
// collective.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "palmette/select/pace.hpp"
#include "palmette/select/verdict.hpp"

namespace palmette::runtime {

/// Compares calls of one kind (a function, an algorithm, blocks of similar size) on one communicator.
///
/// All ranks count the calls, so all know which is compared. From the first call on, one call is performed by the MPI
/// and the next one by palmette (or the other way round), each after a barrier; then the ranks agree on the longest
/// time of each, and on the bytes that the two have moved: a pair of unlike calls is inconclusive, and so is the first
/// one, in which both still set up connections. So all ranks come to the same verdict at the same call.
///
/// The overhead of a pair over the MPI alone: the time that ours takes longer, two barriers and an allreduce of a few
/// numbers. Pairs follow each other until their overhead exceeds that of a few calls, then as a share of the time of
/// the calls in between allows (select::Pace). A choice that is `on_trial` leaves these to the MPI until it has won.
class Comparison {
  public:
    struct Terms {
        double share = 0;       ///< of the time of these calls that comparing may take, above 0
        bool on_trial = false;  ///< until the verdict the MPI performs the calls in between
        bool once = false;      ///< the bits of results depend on who performs a call: after the verdict nobody changes
        bool late = false;      ///< pairs begin when the share allows, for a further candidate after one that lost
        bool won = false;       ///< another communicator of the same ranks has come to this verdict
    };
    /// `shadow_comm` outlives this.
    Comparison(MPI_Comm shadow_comm, const Terms& terms)
        : shadow_comm_(shadow_comm),
          terms_(terms),
          pace_(terms.share, terms.late || terms.won ? 0
                             : terms.on_trial        ? select::Pace::credit_on_trial
                                                     : select::Pace::most_credit),
          next_(terms.won && terms.once   ? never
                : terms.late || terms.won ? later
                                          : 1),
          verdict_(terms.won ? select::Verdict::faster : select::Verdict::open),
          mpi_meanwhile_(terms.on_trial && !terms.won) {}

    /// Number that no other comparison of this process gets; an address may be reused.
    std::int64_t number() const { return number_; }

    /// Counts a call that moves `bytes` on this rank. True: it is one of a pair, see `turn`.
    bool due(std::int64_t bytes) {
        bytes_ = bytes;
        return ++calls_ >= next_;
    }
    /// Calls that are not due before one is.
    std::int64_t calls_to_next() const { return next_ - calls_ - 1; }
    /// Where calls are counted that go past `due`.
    std::int64_t& calls() { return calls_; }
    /// Whether a call that isn't due is the MPI's: a choice on trial has not won yet, or another one seems to lose.
    bool mpi_meanwhile() const { return mpi_meanwhile_; }
    enum class Turn : std::uint8_t { ours, mpi };
    /// Who performs a call that is due.
    Turn turn() const { return (at_second_ ? !mpi_first_ : mpi_first_) ? Turn::mpi : Turn::ours; }

    /// Runs and times a call that is due, which `turn()` performs. True: the pair is complete; then `comparable()` says
    /// whether it was taken into account.
    template <class Run>
    bool time(Run run, int& code) {
        const Turn mine = turn();
        const double before = PMPI_Wtime();
        PMPI_Barrier(shadow_comm_);
        const double begin = PMPI_Wtime();
        barriers_s_ += begin - before;
        code = run();
        return record(mine, PMPI_Wtime() - begin, code);
    }

    /// A call that was due and timed by somebody else: as `time`.
    bool record(Turn turn, double seconds, int code);

    bool comparable() const { return comparable_; }
    /// The calls fall back to the MPI: the choice is slower, or is on trial and isn't faster after many pairs.
    bool lost() const {
        return verdict_ == select::Verdict::slower ||
               (verdict_ == select::Verdict::same && terms_.on_trial && ours_s() > mpi_s());
    }
    bool on_trial() const { return terms_.on_trial; }
    select::Verdict verdict() const { return verdict_; }
    /// Medians of the pairs so far, agreed between ranks; 0 without pairs.
    double ours_s() const;
    double mpi_s() const;
    std::int64_t pairs() const { return static_cast<std::int64_t>(ours_.size()); }
    /// Overhead of the last pair: over the MPI alone, or over the choice where that has won.
    double last_cost_s() const { return cost_s_; }
    select::Verdict verdict_before() const { return before_; }

  private:
    static constexpr std::int64_t later = 512;
    static constexpr std::int64_t never = INT64_MAX;

    bool agree_on_pair();
    void add(double ours, double mpi);
    bool leans_to_mpi() const;

    static inline std::atomic<std::int64_t> made_{0};

    std::int64_t number_ = ++made_;
    MPI_Comm shadow_comm_;
    Terms terms_;
    select::Pace pace_;
    bool warm_ = false;  ///< a pair has passed
    bool comparable_ = false;
    std::int64_t bytes_ = 0, ours_bytes_ = 0, mpi_bytes_ = 0;
    std::int64_t calls_ = 0, next_;
    bool at_second_ = false, mpi_first_ = true, failed_ = false;
    double ours_now_ = 0, mpi_now_ = 0;
    double barriers_s_ = 0;  ///< how long this pair's took here
    double cost_s_ = 0;
    std::vector<double> ours_, mpi_;
    select::Verdict verdict_, before_ = select::Verdict::open;
    bool mpi_meanwhile_;
};

}  // namespace palmette::runtime
