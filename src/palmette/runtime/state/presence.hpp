// Which ranks of a job run with this library. To be known before palmette sends its first message: a rank without it
// would never answer, or take the message for one of the program's.
#pragma once

#include <string>

namespace palmette::runtime {

/// This process's mark on its node, from before MPI_Init on. MPI_Init lets no rank go on before all have come to it, so
/// afterwards each rank of a node sees the same marks (docs/decisions/0015).
///
/// The mark is an abstract Unix socket, named after the user, the job and the rank's number on the node. It goes with
/// the process, however that ends, and two processes can't have the same.
class Presence {
  public:
    /// Leaves the mark. Costs some microseconds; never fails: who can't leave one counts as not there.
    Presence();
    ~Presence();
    Presence(const Presence&) = delete;
    Presence& operator=(const Presence&) = delete;

    enum class Verdict {
        everyone,  ///< on all nodes
        missing,   ///< some rank of this node isn't there; all of the node know
        unknown    ///< nobody is missing on this node, if anything is known of it
    };
    /// After MPI_Init. Local; takes about a microsecond for each rank of the node.
    Verdict look(int world_size) const;
    /// Of this node, where someone is missing.
    int missing() const { return missing_; }
    int here() const { return here_; }
    /// Whether all ranks of the job are on this node, as the launcher says and their marks show.
    bool one_node() const { return here_ > 0 && here_ == size_; }
    /// Whether this rank is the one of its node to tell.
    bool tells() const { return tells_; }

  private:
    bool sees(int local_rank) const;

    int socket_ = -1;
    std::string job_;  ///< beginning of the marks' names; empty: the launcher doesn't tell
    int local_rank_ = -1;
    int local_size_ = 0;
    int size_ = 0;  ///< of the job, as the launcher has it
    mutable int missing_ = 0, here_ = 0;
    mutable bool tells_ = false;
};

/// Collective over MPI_COMM_WORLD: returns when all ranks have come. Ranks wait for each other in pairs inside of the
/// MPI, where no receive of the program's can get in between, and after 5 s say whom they wait for.
void wait_for_everyone();

/// Says a line on standard error, once, when it lives longer than 5 s.
class SaysWhenLate {
  public:
    explicit SaysWhenLate(std::string line);
    ~SaysWhenLate();
    SaysWhenLate(const SaysWhenLate&) = delete;
    SaysWhenLate& operator=(const SaysWhenLate&) = delete;

  private:
    struct Clock;
    Clock* clock_;
};

}  // namespace palmette::runtime
