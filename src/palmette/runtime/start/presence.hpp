// Presence detection: which ranks of a job run with this library. Must be known before palmette sends its first
// message: a rank without it would never answer, or match the message with a receive of the program's.
#pragma once

#include <string>

namespace palmette::runtime {

/// This process's marker on its node, from before MPI_Init on. MPI_Init returns on no rank before all have entered it,
/// so afterwards each rank of a node sees the same markers (docs/decisions/0015).
///
/// The marker is an abstract Unix socket, named after the user, the job and the rank's number on the node. Its lifetime
/// is that of the process, however that ends, and two processes can't have the same.
class Presence {
  public:
    /// Creates the marker. Takes some microseconds; never fails: a rank without a marker counts as missing.
    Presence();
    ~Presence();
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

    enum class Verdict {
        everyone,  ///< on all nodes
        missing,   ///< some rank of this node is missing; all ranks of the node know
        unknown    ///< no rank of this node is missing, as far as known
    };
    /// After MPI_Init. Local; takes about a microsecond for each rank of the node.
    Verdict verdict(int world_size) const;
    /// Counts of this node's ranks, where one is missing.
    int missing() const { return missing_; }
    int here() const { return here_; }
    /// Whether all ranks of the job are on this node, as the launcher says and their markers show.
    bool one_node() const { return here_ > 0 && here_ == size_; }
    /// Whether this rank reports for its node.
    bool reports() const { return reports_; }

  private:
    bool sees(int local_rank) const;

    int socket_ = -1;
    std::string job_;  ///< prefix of the markers' names; empty: the launcher doesn't provide it
    int local_rank_ = -1;
    int local_size_ = 0;
    int size_ = 0;  ///< of the job, as the launcher has it
    mutable int missing_ = 0, here_ = 0;
    mutable bool reports_ = false;
};

/// Collective over MPI_COMM_WORLD: returns when all ranks have entered it. Ranks synchronise in pairs inside of the
/// MPI, where no receive of the program's can interfere, and after 5 s report whom they wait for.
void wait_for_everyone();

/// Watchdog: prints a line on standard error, once, when it lives longer than 5 s.
class LateWarning {
  public:
    explicit LateWarning(std::string line);
    ~LateWarning();
    LateWarning(const LateWarning&) = delete;
    LateWarning& operator=(const LateWarning&) = delete;

  private:
    struct Clock;
    Clock* clock_;
};

}  // namespace palmette::runtime
