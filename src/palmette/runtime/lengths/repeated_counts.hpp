// Counts of alltoallv and alltoallw that repeat from call to call, as those of an FFT do.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/runtime/lengths/relayed_counts.hpp"
#include "palmette/runtime/observe/report.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

class Communicator;
class Work;

/// For a plan that forwards blocks: the lengths of all blocks that pass through this rank, as long as no rank changes
/// its counts. A rank that has changed them sends empty messages, and so does each rank that has received an empty one:
/// since every rank's blocks arrive everywhere by messages, all ranks know at the end of the plan, and the MPI makes
/// the call. For this all messages of the plan must be longer than zero.
class RememberedLengths {
  public:
    bool armed() const { return armed_; }
    void forget() { armed_ = false; }
    /// Collective: after the ranks have exchanged lengths. False: they can't be remembered, as all ranks know.
    /// `expected`: this rank receives the lengths that it has told.
    bool arm(Work& work, execute::Layout layout, RelayedCounts relayed, bool expected);
    bool are_those_of(const Work& work) const;
    /// The plan bound to a call's own lengths, which are those remembered, and its offsets.
    const execute::BoundProgram& bound_for(const Work& work, execute::Layout layout);
    /// The plan bound to the remembered lengths, for a rank whose own differ: blocks lie in `discarded_bytes` bytes,
    /// sent and received ones in the same.
    execute::BoundProgram bound_to_discard(const Work& work, execute::Layout layout) const;
    std::int64_t discarded_bytes() const { return discarded_bytes_; }

  private:
    struct Blocks {
        std::vector<std::int64_t> lengths, offsets;
    };
    Blocks send_, recv_;
    std::int64_t discarded_bytes_ = 0;
    RelayedCounts relayed_;
    execute::BoundLengths bound_;
    bool armed_ = false;
};

/// Whether all ranks of a communicator repeat their counts, so that all know how long blocks are about, and a call is
/// chosen as MPI_Alltoall with blocks of that length. The ranks agree at the 4th, 16th, 64th, ... and at last at each
/// 1,024th call. Between, what was agreed last counts; a plan that forwards blocks ends at the first changed count.
class RepeatedCounts {
  public:
    /// Whether a call that the MPI makes anyway needn't be looked at, since nothing will be agreed soon. Counts it.
    bool count_if_skipped() {
        if (served_ || calls_ + 1 + least_unchanged >= next_agreement_) return false;
        ++calls_;
        return true;
    }
    /// Once for each blocking call of one function that isn't skipped, in the order of the calls. Collective where
    /// ranks agree. The bytes of the longest block, or -1: lengths don't repeat, or differ too much for a choice by
    /// size.
    std::int64_t agreed_block(const Work& work);
    /// `agreed_block` for a call whose erroneous arguments this rank leaves to the MPI.
    void count_erroneous(Communicator& state);
    /// Whether the plan for what was agreed serves the call.
    void set_served(bool served) { served_ = served; }
    /// All ranks know that a count has changed: the MPI makes this call and those up to a later agreement.
    void set_changed();

    RememberedLengths& remembered() { return remembered_; }

  private:
    /// Before an agreement the counts must have been the same for so many calls.
    static constexpr std::int64_t least_unchanged = 2;

    std::int64_t count(Communicator& state, bool same, std::int64_t shortest, std::int64_t longest);

    std::vector<std::int64_t> last_;
    std::int64_t calls_ = 0, unchanged_ = 0, next_agreement_ = 4, pause_ = 16;
    std::int64_t agreed_block_ = -1;
    bool served_ = false;
    RememberedLengths remembered_;
};

/// What is known of a communicator's counts in alltoallv or alltoallw, where a choice by size may serve what ranks that
/// don't know sizes leave to the MPI; else null. For blocking calls.
RepeatedCounts* repeated_counts(Communicator& state, select::Function function);
/// The report's row of a blocking call that is left to the MPI, as nothing is agreed of its counts; null: it has to be
/// looked at. Counts a call that has not to.
Report::RefusedRow* refused_until_agreed(Communicator& state, select::Function function);

}  // namespace palmette::runtime
