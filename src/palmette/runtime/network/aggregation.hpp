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
#include "palmette/runtime/network/kept_members.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

/// All of it happens at the same calls on all ranks, and they come to the same conclusions. Where one rank lacks the
/// result of an operation, as AggregationTransport tells them all, they repeat it by hosts, with the same brackets
/// (in_network:combine=hosts). Of programs that keep results each operation ends with its result, and the ranks agree
/// at every 256th whether aggregators still serve.
class Aggregation {
  public:
    /// `level`: of the job, whose groups are the members. `only_short`: for programs that keep results.
    /// `count`: as for KeptMembers.
    Aggregation(MPI_Comm shadow_comm, const topology::Job& job, int rank, std::size_t level, bool only_short,
                std::unique_ptr<Groups> groups, KeptMembers::Count count)
        : comm_(shadow_comm),
          job_(job),
          rank_(rank),
          level_(level),
          only_short_(only_short),
          tree_(execute::agreement_tree(job, topology::Rank{rank})),
          groups_(std::move(groups)),
          count_(count) {}

    std::size_t level() const { return level_; }
    bool only_short() const { return only_short_; }

    /// Collective: makes and joins the groups that the program's messages with service positions belong to. Whether all
    /// ranks are members now; else why() says why not.
    bool join(const execute::BoundProgram& program);

    /// Collective, before each operation: whether aggregators serve it. After a failure the groups are made anew at the
    /// 256th call, at the 1024th after that, and so on: a daemon's host that is gone costs a second each time.
    bool serves(const Operation& operation, const execute::BoundProgram& program);

    /// Collective, after each operation: whether it has succeeded on all ranks. If not, they leave the groups.
    bool succeeded(const execute::AggregationTransport& transport);

    /// Collective: where the communicator is freed.
    void leave();

    /// Members that keep results; null: ranks agree after each operation. Null before `serves` of a program that keeps.
    KeptMembers* kept() const { return kept_.get(); }

    std::vector<execute::AggregationChannel>& channels() { return groups_->channels; }
    const execute::AgreementTree& tree() const { return tree_; }
    /// Why aggregators don't serve the last operation, with the rank that found out; the same on all ranks.
    const std::string& why() const { return why_; }

  private:
    bool conclude(std::int64_t code, std::string_view own_detail);
    /// Collective, before an operation of a program that keeps results.
    void look_after_kept();

    MPI_Comm comm_;
    const topology::Job& job_;
    int rank_;
    std::size_t level_;
    bool only_short_;
    execute::AgreementTree tree_;
    std::unique_ptr<Groups> groups_;
    bool in_service_ = false;
    std::string why_;
    std::uint64_t calls_without_ = 0;
    std::uint64_t retry_after_ = 256;
    KeptMembers::Count count_;
    std::unique_ptr<KeptMembers> kept_;
    bool has_met_ = false;  ///< or has tried to
    std::uint64_t kept_calls_ = 0;
};

}  // namespace palmette::runtime
