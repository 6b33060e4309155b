// One call of a collective, from the program's arguments to its return code.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/lengths/repeated_counts.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/state/process.hpp"
#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

/// Looks up the communicator's state and the plan, counts the call, and raises errors on the program's communicator.
class Call {
  public:
    Call(select::Function function, MPI_Comm comm, bool blocking = true)
        : process_(Process::instance()), function_(function), comm_(comm), blocking_(blocking) {}

    /// False: the call is the MPI's, and counted as refused.
    bool open() { return find() && !is_left(); }
    /// The first half of it: finds the communicator's state.
    bool find() {
        state_ = process_.recent(comm_);
        if (!state_ || state_->unusable) [[unlikely]]
            return find_slowly();
        return true;
    }
    /// The second half: whether all such calls are left to the MPI; counts it.
    bool is_left() { return left_to_mpi(); }
    Communicator& state() { return *state_; }
    bool devices_are_the_mpis() const {
        return state_->devices().are_the_mpis(function_, state_->settings(process_.settings()));
    }
    MPI_Comm comm() const { return comm_; }
    bool blocking() const { return blocking_; }
    int rank() const { return state_->rank(); }
    int size() const { return state_->size(); }
    bool is_rank(int root) const { return root >= 0 && root < size(); }

    /// Whether calls with blocks of `count` elements of `type` are the MPI's; counts it. Must be called before any
    /// other argument is examined; the result is the same on all ranks.
    bool is_left_to_mpi(std::int64_t count, MPI_Datatype type) { return is_left_to_mpi(count, type, count); }
    /// `bypassed_count`: as Bypass::Arguments has it.
    bool is_left_to_mpi(std::int64_t count, MPI_Datatype type, std::int64_t bypassed_count) {
        TypeShape shape;
        if (count <= 0 || !size_of(type, shape) || shape.size <= 0 || count > INT64_MAX / shape.size) return false;
        // Only predefined types are known to be dense here.
        if (shape.dense) block_ = {bypassed_count, type, MPI_OP_NULL, 0};
        const Communicator::LeftToMpi* left = state_->left_to_mpi(function_, blocking_, count * shape.size);
        if (!left) return false;
        left->row->calls.add(state_->leads());
        if (blocking_) state_->devices().is_left(*state_, function_, process_.settings());
        if (blocking_ && shape.dense && may_bypass())
            bypass_of(function_).open(comm_info(), *left->row, type, (left->from + shape.size - 1) / shape.size,
                                      left->to / shape.size);
        return true;
    }

    /// Chooses the plan. `block_bytes` as in plan::Request. False: refused and counted.
    bool plan(Work& work, int root, std::int64_t block_bytes) { return plan(work, root, block_bytes, nullptr); }
    bool plan(Work& work, int root, std::int64_t block_bytes, const Operation* operation);

    /// After a call that the MPI makes until its plan is compared: the next ones needn't come here before a pair is
    /// due.
    void bypass_until_due(const Work& work, MPI_Op op) const;

    /// Uses a plan that is there already. `row_bytes`: of its row in the report. False: refused and counted.
    bool take(Work& work, CachedPlan& plan, std::int64_t row_bytes);

    /// Counts a refusal that holds for all calls of the function on this communicator, and returns false.
    bool refuse_always(Refusal refusal, const std::string& detail);
    /// Counts a refusal and returns false.
    bool refuse(Refusal refusal, const std::string& detail = {});

    /// Runs to completion, counts the call, and raises an error on the program's communicator. Returns the MPI code, or
    /// nothing where the MPI must make the call after all (Work::left_to_mpi).
    std::optional<int> run(Work& work);

    /// Counts an operation that was served, and raises its error or that of its arguments. Returns the program's code.
    int close(const Work& work, int code, double begin_s);
    /// Raises an error of the arguments on `comm`; returns the code that this MPI would return.
    int raise(MPI_Comm comm, int error_class) const;
    /// Notifies observers of what comparing the plan with the MPI's own collective has found. Where the choice is
    /// slower, all ranks fall back to the MPI at the same call.
    void compared(const CachedPlan& plan);
    /// Whether this MPI rejects aliased buffers: the input passed as output instead of MPI_IN_PLACE.
    bool finds_aliases() const {
        const std::string& mpi = process_.settings().mpi;
        return mpi == "mpich" || mpi == "impi";
    }
    /// Notifies observers that a call begins; returns the time, or 0 without observers.
    double begins(const Work& work) const;

  private:
    bool find_slowly();
    bool left_to_mpi() const {
        Report::RefusedRow* row = state_->always_refused(function_, blocking_);
        if (!row && blocking_) {
            if (!Communicator::AllLeftToMpi::irregular_index(function_)) return false;
            row = refused_until_agreed(*state_, function_);
            if (row) row->calls.add(state_->leads());
            return row != nullptr;
        }
        if (!row) return false;
        row->calls.add(state_->leads());
        if (blocking_ && !state_->unusable) state_->devices().is_left(*state_, function_, process_.settings());
        if (blocking_ && may_bypass()) bypass_of(function_).open(comm_info(), *row);
        return true;
    }
    bool may_bypass() const {
        return !process_.settings().check && !(state_->early_way() && state_->early_way()->looks_at(function_));
    }
    Bypass::CommInfo comm_info() const { return {comm_, state_->size(), state_->leads()}; }

    Process& process_;
    select::Function function_;
    MPI_Comm comm_;
    bool blocking_;
    Communicator* state_ = nullptr;
    Bypass::Arguments block_{0, MPI_DATATYPE_NULL, MPI_OP_NULL, 0};  ///< count 0: of another form
};

}  // namespace palmette::runtime
