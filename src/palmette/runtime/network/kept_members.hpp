// The members of a communicator's group of aggregators that keep short results for each other.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "palmette/execute/kept_exchange.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

class KeptMembers {
  public:
    /// Called on member 0's rank with so many operations more that the service should have served, and why it hasn't.
    using Count = void (*)(const std::string& why, std::int64_t operations);

    /// Collective: the members are the owners of a level's groups (in_network_owner). Null on all ranks where some
    /// don't reach each other within 5 s, or a system refuses; `why` says so on a rank that has found out.
    static std::unique_ptr<KeptMembers> meet(MPI_Comm comm, const topology::Job& job, int rank, std::size_t level,
                                             Count count, std::string& why);
    ~KeptMembers();
    KeptMembers(const KeptMembers&) = delete;
    KeptMembers& operator=(const KeptMembers&) = delete;

    /// Collective, when the communicator is freed or the groups are left: returns when all ranks have all results.
    void end();

    execute::KeptGroup group() const { return {peers_.get(), ranks_}; }
    /// What this rank has found out.
    aggregate::Reason reason() const;
    /// "reason: detail (rank 7)", as far as this rank knows.
    std::string why() const;
    /// Counts what has happened since the last time.
    void tally();

    /// Whether this process has some.
    static bool any();
    /// Collective: ends those of all communicators.
    static void end_all();

  private:
    KeptMembers(MPI_Comm comm, std::vector<std::int32_t> ranks, Count count)
        : comm_(comm), ranks_(std::move(ranks)), count_(count) {}
    bool gather(int rank, std::string& why);
    void close();

    MPI_Comm comm_;
    std::vector<std::int32_t> ranks_;
    std::shared_ptr<aggregate::kept::Peers> peers_;  ///< null: this rank is no member
    Count count_;
    std::uint64_t by_hosts_ = 0, from_others_ = 0;  ///< that have been counted
};

}  // namespace palmette::runtime
