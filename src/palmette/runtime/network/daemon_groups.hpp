// Groups of aggregation daemons: rank 0 reads the token, and all ranks with messages for a daemon become members.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "palmette/aggregate/client/client.hpp"
#include "palmette/runtime/network/groups.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

class DaemonGroups final : public Groups {
  public:
    /// `level`: of the job, whose groups are the members. `token_path`: read by rank 0.
    DaemonGroups(MPI_Comm comm, const topology::Job& job, int rank, std::size_t level, std::string token_path)
        : comm_(comm), job_(job), rank_(rank), level_(level), token_path_(std::move(token_path)) {}
    ~DaemonGroups() override { leave(); }

    /// Takes as long as an unreachable daemon needs to be given up, at most 10 s.
    std::size_t stages() const override { return 3; }
    aggregate::Problem pass(std::size_t stage, const execute::BoundProgram& program) override;
    void leave() override;
    bool combine(kernels::Operator op, kernels::Element element) const override;

  private:
    using Clock = std::chrono::steady_clock;

    aggregate::Problem open(const execute::BoundProgram& program);
    aggregate::Problem wait_until_joined();

    MPI_Comm comm_;
    const topology::Job& job_;
    int rank_;
    std::size_t level_;
    std::string token_path_;
    std::uint32_t epoch_ = 0;
    std::vector<std::uint64_t> groups_;        ///< their numbers, by aggregator and channel
    std::vector<aggregate::Client*> clients_;  ///< of the channels
    std::optional<Clock::time_point> joining_since_;
    bool only_sharp_ = false;  ///< of some daemon's profile
};

}  // namespace palmette::runtime
