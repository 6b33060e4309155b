#include "palmette/runtime/serve/postponed.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "palmette/runtime/call/prepare.hpp"
#include "palmette/runtime/data/on_device.hpp"
#include "palmette/runtime/serve/serve.hpp"
#include "palmette/runtime/state/bypass.hpp"
#include "palmette/runtime/transport/outstanding.hpp"

namespace palmette::runtime {
namespace {

/// Whether the MPI communicates nothing where it finds the error. Alltoallv and alltoallw may agree with other ranks
/// while they are prepared.
bool is_found_locally(select::Function function, int fault) {
    return fault != MPI_ERR_TRUNCATE && function != select::Function::alltoallv &&
           function != select::Function::alltoallw && !select::is_neighbourhood(function);
}

class Postponed {
  public:
    Postponed(const Call& call, const CallArguments& arguments)
        : call_(call), function_(arguments.function), root_(arguments.root), op_(arguments.op) {}

    /// With its input copied. False: it can't be postponed.
    bool hold(const CallArguments& arguments) {
        if (!prepare(call_, work_, arguments) || work_.fault == MPI_SUCCESS) return false;
        work_.fault = MPI_SUCCESS;
        if (work_.hold() != MPI_SUCCESS) return false;
        ++work_.plan->users;
        ++work_.state->users;
        return true;
    }
    void drop() {
        --work_.plan->users;
        Process::instance().release_user(*work_.state);
    }
    void make() {
        int code = MPI_SUCCESS;
        const auto made = run_prepared(call_, work_);
        if (CachedPlan* const plan = take_measured(); !made && plan)
            plan->tally.comparison->time([] { return MPI_ERR_OTHER; }, code);
        drop();
    }
    /// By what all ranks know of a call, which may be the length of a block, too: one of the sides has it.
    bool is_repeated_by(const CallArguments& next) const {
        if (next.function != function_ || next.comm != work_.comm || next.root != root_ || next.op != op_ ||
            work_.state->freed)
            return false;
        if (next.send.form != Side::Form::alike || next.recv.form != Side::Form::alike) return true;
        const auto is_as_long = [&](const Side& side) {
            TypeShape shape;
            return !side.in_place() && size_of(side.type, shape) &&
                   side.count * shape.size == work_.plan->key.block_bytes;
        };
        return is_as_long(next.send) || is_as_long(next.recv);
    }

  private:
    Call call_;
    select::Function function_;
    int root_;
    MPI_Op op_;
    Work work_;
};

/// The one; `guard` guards it.
constinit std::mutex guard;
std::unique_ptr<Postponed>& the_one() {
    static auto* one = new std::unique_ptr<Postponed>;
    return *one;
}

/// Waiting calls look only where something is outstanding, and others may pass by what is left to the MPI.
void set_pending(bool pending) {
    postponed_one.store(pending, std::memory_order_relaxed);
    outstanding_operations.fetch_add(pending ? 1 : -1, std::memory_order_relaxed);
    if (pending) close_bypasses();
}

}  // namespace

std::optional<int> postpone(Call& call, const CallArguments& arguments, int fault) {
    if (!is_found_locally(arguments.function, fault) || OnDevice::current()) return std::nullopt;
    {
        const std::lock_guard lock(guard);
        if (the_one()) return std::nullopt;
        auto one = std::make_unique<Postponed>(call, arguments);
        if (!one->hold(arguments)) return std::nullopt;
        the_one() = std::move(one);
        set_pending(true);
    }
    return call.raise(arguments.comm, fault);
}

void settle_postponed(const CallArguments* next) {
    std::unique_ptr<Postponed> one;
    {
        const std::lock_guard lock(guard);
        one.swap(the_one());
        if (!one) return;
        set_pending(false);
    }
    if (next && one->is_repeated_by(*next))
        one->drop();
    else
        one->make();
}

}  // namespace palmette::runtime
