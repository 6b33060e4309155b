// Counts of alltoallv and alltoallw that repeat from call to call, as those of an FFT do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "palmette/runtime/state/relayed_counts.hpp"

namespace palmette::runtime {

class Work;

/// Whether all ranks of a communicator repeat their counts, so that all know how long blocks are about, and the call is
/// chosen by size like the regular one. Ranks agree at the 4th, 16th, 64th, ... call; between, what was agreed last
/// counts, whatever a rank's counts are by then: a choice is as good as the counts are alike, and right in any case.
class RepeatedCounts {
  public:
    /// Once for each blocking call of one function, in the order of the calls. Collective where ranks agree. The bytes
    /// of the longest block, or -1: lengths don't repeat, or differ too much for a choice by size.
    std::int64_t agreed_block(const Work& work);

  private:
    std::vector<std::int64_t> last_;
    std::int64_t calls_ = 0, unchanged_ = 0, next_agreement_ = 4;
    std::int64_t agreed_block_ = -1;
};

/// For a plan that forwards blocks: the lengths of all blocks that pass through this rank, as long as nobody changes
/// counts. Where a rank has changed its own, its messages are empty, and so are those of each rank that has received an
/// empty one: since every block of every rank arrives everywhere by messages, all know at the end of the plan, and
/// repeat it with lengths exchanged in front. All messages of the plan must be longer than zero for this.
class RememberedLengths {
  public:
    /// Whether the next call may go without exchanging lengths. The same on all ranks.
    bool armed() const { return armed_; }
    bool are_those_of(const Work& work) const;
    const RelayedCounts& relayed() const { return relayed_; }
    const std::vector<std::int64_t>& of_send() const { return send_; }
    const std::vector<std::int64_t>& of_recv() const { return recv_; }

    /// Lengths of this call have been exchanged. Collective, but for the calls that it pauses.
    void exchanged(const Work& work, const RelayedCounts& relayed, const BoundProgram& bound);
    /// Some rank's counts have changed: lengths are exchanged at the next 1, 2, 4, ... 1024 calls.
    void changed();

  private:
    std::vector<std::int64_t> send_, recv_;
    RelayedCounts relayed_;
    bool armed_ = false;
    std::int64_t pause_ = 0, next_pause_ = 1;
};

}  // namespace palmette::runtime
