// Online comparison: sampled calls of a running program show whether palmette's choice is faster than the MPI's own
// collective.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "palmette/select/verdict.hpp"

namespace palmette::runtime {

/// Compares calls of one kind (a function, an algorithm, blocks of similar size) on one communicator.
///
/// All ranks count the calls, so all know which is sampled. At intervals one call is performed by the MPI and the next
/// one by palmette (or the other way round), each after a barrier; then the ranks agree on the longest time of each,
/// and on the bytes that the two have moved: a pair of unlike calls is inconclusive. So all ranks come to the same
/// verdict at the same call. The overhead of a pair: the time that the MPI's call takes longer than ours, or all of it
/// with a copy and one more agreement where it is a `shadow` of ours; two barriers; and an allreduce of a few numbers.
/// The next pair is due when this is at most `share` of the time of the calls in between (select::calls_to_next_pair).
/// Waiting for late ranks in the barriers isn't counted, since the call itself would wait for them, too.
class Comparison {
  public:
    /// `share`: of the time of these calls, above 0. `shadow_comm` outlives this. `pinned`: the choice stays even if it
    /// is slower.
    Comparison(MPI_Comm shadow_comm, double share, bool shadow, bool pinned)
        : shadow_comm_(shadow_comm), share_(share), shadow_(shadow), pinned_(pinned) {}

    /// Of this comparison alone in this process: its address may be another's after it.
    std::int64_t number() const { return number_; }

    /// Counts a call that moves `bytes` on this rank. True: it is sampled, see `turn`.
    bool due(std::int64_t bytes) {
        bytes_ = bytes;
        return ++calls_ >= next_;
    }
    /// Records this rank's local overhead of a pair, besides its calls.
    void prepared(double seconds) { preparing_s_ = seconds; }
    /// Postpones the pair: it can't be measured now.
    void postpone() { next_ = calls_ + 64 * first; }
    enum class Turn : std::uint8_t { ours, mpi };
    /// Who performs a call that is due.
    Turn turn() const { return (at_second_ ? !mpi_first_ : mpi_first_) ? Turn::mpi : Turn::ours; }

    /// Runs and times a call that is due, which `turn()` performs. True: the pair is complete; then `comparable()` says
    /// whether it was taken into account.
    template <class Run>
    bool time(Run run, int& code) {
        const Turn mine = turn();
        PMPI_Barrier(shadow_comm_);
        const double begin = PMPI_Wtime();
        code = run();
        return record(mine, PMPI_Wtime() - begin, code);
    }

    bool comparable() const { return comparable_; }
    bool pinned() const { return pinned_; }
    /// The choice is slower: the calls fall back to the MPI.
    bool lost() const { return verdict_ == select::Verdict::slower && !pinned_; }
    select::Verdict verdict() const { return verdict_; }
    /// Medians of the pairs so far, agreed between ranks; 0 without pairs.
    double ours_s() const;
    double mpi_s() const;
    std::int64_t pairs() const { return static_cast<std::int64_t>(ours_.size()); }
    /// Overhead of the last pair.
    double last_cost_s() const { return cost_s_; }
    select::Verdict verdict_before() const { return before_; }

    /// Calls before the first pair: what is called seldom isn't worth comparing.
    static constexpr std::int64_t first = 64;

  private:
    bool record(Turn turn, double seconds, int code);
    bool agree_on_pair();
    void add(double ours, double mpi);

    static inline std::atomic<std::int64_t> made_{0};

    std::int64_t number_ = ++made_;
    MPI_Comm shadow_comm_;
    double share_;
    bool shadow_, pinned_;
    bool comparable_ = false;
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
