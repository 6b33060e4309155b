// A communicator's use of aggregators: its ranks join groups, and agree after each operation whether all have the
// result.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "palmette/execute/aggregation_transport.hpp"
#include "palmette/runtime/data/operation.hpp"
#include "palmette/runtime/network/groups.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

/// All of it happens at the same calls on all ranks, and they come to the same conclusions. Where one rank lacks the
/// result of an operation, as AggregationTransport tells them all, they repeat it by hosts, with the same brackets
/// (in_network:combine=hosts).
class Aggregation {
  public:
    /// `level`: of the job, whose groups are the members.
    Aggregation(MPI_Comm shadow_comm, const topology::Job& job, int rank, std::size_t level,
                std::unique_ptr<Groups> groups)
        : comm_(shadow_comm),
          rank_(rank),
          level_(level),
          tree_(agreement_tree(job, topology::Rank{rank})),
          groups_(std::move(groups)) {}

    std::size_t level() const { return level_; }

    /// Collective: makes and joins the groups that the program's messages with service positions belong to. Whether all
    /// ranks are members now; else why() says why not.
    bool join(const BoundProgram& program);

    /// Collective, before each operation: whether aggregators serve it. After a failure the groups are made anew at the
    /// 256th call, at the 1024th after that, and so on: a daemon's host that is gone costs a second each time.
    bool serves(const Operation& operation, const BoundProgram& program);

    /// Collective, after each operation: whether it has succeeded on all ranks. If not, they leave the groups.
    bool succeeded(const AggregationTransport& transport);

    /// Collective: where the communicator is freed.
    void leave();

    std::vector<AggregationChannel>& channels() { return groups_->channels; }
    const AgreementTree& tree() const { return tree_; }
    /// Why aggregators don't serve the last operation, with the rank that found out; the same on all ranks.
    const std::string& why() const { return why_; }

  private:
    bool conclude(std::int64_t code, std::string_view own_detail);

    MPI_Comm comm_;
    int rank_;
    std::size_t level_;
    AgreementTree tree_;
    std::unique_ptr<Groups> groups_;
    bool in_service_ = false;
    std::string why_;
    std::uint64_t calls_without_ = 0;
    std::uint64_t retry_after_ = 256;
};

}  // namespace palmette::runtime
