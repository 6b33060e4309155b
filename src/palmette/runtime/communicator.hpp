// What palmette keeps per communicator.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <vector>

#include "palmette/runtime/binding.hpp"
#include "palmette/runtime/executor.hpp"
#include "palmette/runtime/report.hpp"
#include "palmette/runtime/settings.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::runtime {

/// A choice and, where palmette serves, the program made for it. Uniform calls keep it bound.
struct CachedPlan {
    select::Function function = select::Function::gather;
    std::int32_t root = 0;
    std::int64_t block_bytes = 0;

    std::optional<Refusal> refusal;
    std::string reason;                  ///< why this was chosen, or the detail of the refusal
    std::string algorithm;               ///< its specification as text
    Report::Served* served = nullptr;    ///< its row in the report
    Report::Refused* refused = nullptr;  ///< the same, where palmette doesn't serve
    bool relays = false;
    plan::Program program;
    BoundProgram bound;  ///< for uniform block_bytes
};

/// Hangs on the communicator as an attribute: made in the first collective that may be served, freed with it.
class Communicator {
  public:
    Communicator(MPI_Comm hidden, topology::Job job, int rank, int tag_limit, Waiting waiting)
        : job_(std::move(job)), hidden_(hidden), rank_(rank), tag_limit_(tag_limit), executor_(waiting) {}

    MPI_Comm hidden() const { return hidden_; }
    const topology::Job& job() const { return job_; }
    int rank() const { return rank_; }
    int size() const { return job_.size(); }
    Executor& executor() { return executor_; }

    /// Set when this communicator can't be served (any more).
    std::optional<Refusal> unusable;

    /// The plan for a call, made on first use. Depends only on what all ranks know, so all get the same. `block_bytes` -1: unknown.
    CachedPlan& plan_for(select::Function function, std::int32_t root, std::int64_t block_bytes,
                         const Settings& settings);

    /// Where calls go through whose types have holes.
    std::vector<char> packed_send, packed_recv;

  private:
    void fill(CachedPlan& plan, const Settings& settings) const;

    static constexpr std::size_t most_plans = 64;

    topology::Job job_;
    MPI_Comm hidden_;
    int rank_;
    int tag_limit_;
    Executor executor_;
    std::vector<std::unique_ptr<CachedPlan>> plans_;
    std::size_t next_victim_ = 0;
};

}  // namespace palmette::runtime
