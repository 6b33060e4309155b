// Observers of calls and their steps: the report, verbose output, and future recorders.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "palmette/execute/executor.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

class Work;
class Communicator;
struct CachedPlan;

/// A call that palmette serves, as its observers see it. What it refers to is good until they return.
struct CallEvent {
    const Work& work;  ///< arguments and buffers
    Communicator* state = nullptr;
    CachedPlan* plan = nullptr;
    select::Function function = select::Function::gather;
    double begin_s = 0;  ///< PMPI_Wtime
    double end_s = 0;    ///< the same; 0 as long as it runs
    int code = MPI_SUCCESS;
};

/// Called locally, in the thread that makes or progresses the call; must neither communicate nor block.
class Observer : public execute::StepObserver {
  public:
    /// A plan is served for the first time; not timed.
    virtual void plan_made(Communicator&, CachedPlan&) {}
    virtual void call_begins(const CallEvent&) {}
    virtual void call_ended(const CallEvent&) {}
    /// Instead of `call_ended`: the MPI makes the call that has begun.
    virtual void call_left(const CallEvent&) {}
    /// A pair of calls that compares with the MPI's own is complete (CachedPlan::comparison).
    virtual void compared(const Communicator&, const CachedPlan&) {}
    /// Whether it subscribes to steps, which are many.
    virtual bool wants_steps() const { return false; }
    void step_started(const execute::BoundProgram&, std::uint32_t) override {}
    void step_completed(const execute::BoundProgram&, std::uint32_t) override {}
};

/// All observers of a process, notified one after the other. Without any, `of_calls` is null, which is all that a call
/// checks.
class Observers : public Observer {
  public:
    /// Before the first call.
    void add(std::unique_ptr<Observer> observer);
    void clear() { all_.clear(), of_calls_ = nullptr, of_steps_ = nullptr; }

    /// Whom to notify of calls; null: none.
    Observer* of_calls() const { return of_calls_; }
    execute::StepObserver* of_steps() const { return of_steps_; }

    void plan_made(Communicator& state, CachedPlan& plan) override;
    void call_begins(const CallEvent& call) override;
    void call_ended(const CallEvent& call) override;
    void call_left(const CallEvent& call) override;
    void compared(const Communicator& state, const CachedPlan& plan) override;
    void step_started(const execute::BoundProgram& program, std::uint32_t step) override;
    void step_completed(const execute::BoundProgram& program, std::uint32_t step) override;

  private:
    std::vector<std::unique_ptr<Observer>> all_;
    Observer* of_calls_ = nullptr;  ///< the only one, or this
    execute::StepObserver* of_steps_ = nullptr;
};

}  // namespace palmette::runtime
