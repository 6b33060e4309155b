// Waiting for messages: in the MPI, or by polling with yields and backoff sleeps.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "palmette/node/yield_backoff.hpp"

namespace palmette::runtime {

/// The MPI underneath: mpich (and what is built on it), openmpi, impi, smpi (SimGrid's simulated one), or empty. From
/// MPI_Get_library_version.
std::string name_of_mpi();

/// Backs off on oversubscribed nodes, which it detects itself: a yield that takes long shows that others want the core.
///
/// Open MPI and Intel MPI wait as they were set up to (spin, yield or block) in MPI_Waitsome too. MPICH yields in
/// MPI_Wait only: with 16 ranks on 2 cores its MPI_Waitsome took 70 ms for a collective that takes 8 ms
/// (docs/decisions/0005), so there we poll and yield ourselves.
class Waiting {
  public:
    enum class Policy { automatic, mpi, poll };

    /// `automatic` depends on which MPI it is.
    explicit Waiting(Policy policy = Policy::automatic);

    /// As MPI_Waitsome: at least one of `count` open requests is complete on return. Returns an MPI code.
    int some(int count, MPI_Request* requests, int* finished_count, int* finished);
    /// Statuses of the requests that the last of these calls has completed.
    const std::vector<MPI_Status>& statuses() const { return statuses_; }
    /// As MPI_Testsome, but an error is that of the first request that has one.
    int test(int count, MPI_Request* requests, int* finished_count, int* finished);

  private:
    int error_of(int code, int finished_count) const;
    int poll(int count, MPI_Request* requests, int* finished_count, int* finished);

    bool polls_;
    std::vector<MPI_Status> statuses_;  ///< only they say which error it was
    node::YieldBackoff backoff_;
};

}  // namespace palmette::runtime
