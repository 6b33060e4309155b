// Groups of switches that reduce (SHARP), through libsharp_coll: the leaders of a level's groups are the members.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "palmette/aggregate/sharp/group.hpp"
#include "palmette/runtime/network/groups.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

/// A job of the library's for each communicator: its leaders are others than those of the world.
class SwitchGroups final : public Groups {
  public:
    /// `level`: of the job, whose groups have a leader each. `library`: the setting PALMETTE_SHARP.
    SwitchGroups(MPI_Comm comm, const topology::Job& job, int rank, std::size_t level, std::string library);
    /// Waits for nobody: what is still joined ends with the MPI (end_all).
    ~SwitchGroups() override;

    std::size_t stages() const override { return 5; }
    aggregate::Problem pass(std::size_t stage, const execute::BoundProgram& program) override;
    void leave() override;
    bool combine(kernels::Operator op, kernels::Element element) const override;

    /// Whether this process is a member of some.
    static bool any();
    /// Collective: leaves all groups that any communicator has joined, in the order in which they were made.
    static void end_all();

  private:
    struct Joined;

    aggregate::Problem find(const execute::BoundProgram& program);
    aggregate::Problem share_capabilities();

    MPI_Comm comm_;
    const topology::Job& job_;
    int rank_;
    std::size_t level_;
    std::string library_;
    int leader_ = -1;  ///< number of the group that this rank leads
    std::int32_t peer_ = 0;
    std::shared_ptr<Joined> joined_;
    aggregate::sharp::Combines combines_;
};

}  // namespace palmette::runtime
