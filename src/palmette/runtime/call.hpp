// One call of a collective on its way through palmette.
#pragma once

#include <mpi.h>

#include <new>
#include <optional>

#include "palmette/runtime/datatype.hpp"
#include "palmette/runtime/process.hpp"

namespace palmette::runtime {

/// Finds the communicator's state and the plan, runs it, counts it, and turns errors into the program's.
class Call {
  public:
    Call(select::Function function, MPI_Comm comm) : process_(Process::instance()), function_(function), comm_(comm) {}

    /// False: the call is the MPI's, and counted as refused.
    bool open();
    Communicator& state() { return *state_; }
    MPI_Comm comm() const { return comm_; }
    int rank() const { return state_->rank(); }
    int size() const { return state_->size(); }

    /// Chooses the plan. `block_bytes` -1 where ranks don't know each other's sizes. Null: refused and counted.
    const CachedPlan* plan(int root, std::int64_t block_bytes);

    /// Counts a refusal; for `return refuse(...)`.
    std::nullopt_t refuse(Refusal refusal, const std::string& detail = {});

    /// Runs `body`, which returns an MPI code, counts the call, and raises an error on the program's communicator.
    template <class Body>
    int run(const CachedPlan& plan, Body body) {
        int code = MPI_SUCCESS;
        const double begin = timed() ? PMPI_Wtime() : 0;
        try {
            code = body();
        } catch (const std::bad_alloc&) {
            code = MPI_ERR_NO_MEM;
        }
        close(plan, code, begin);
        return code;
    }

  private:
    bool timed() const { return !process_.settings().report.empty(); }
    void close(const CachedPlan& plan, int code, double begin);

    Process& process_;
    select::Function function_;
    MPI_Comm comm_;
    Communicator* state_ = nullptr;
};

}  // namespace palmette::runtime
