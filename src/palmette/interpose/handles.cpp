// Deferred freeing of handles that a collective in the background still uses. MPI allows the program to free them; the
// operation must complete all the same, so the MPI frees them later.
#include <mutex>
#include <vector>

#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/network/kept_members.hpp"
#include "palmette/runtime/network/switch_groups.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/serve/persistent.hpp"
#include "palmette/runtime/serve/postponed.hpp"
#include "palmette/runtime/state/process.hpp"

namespace palmette::interpose {
namespace {

using runtime::Background;
using runtime::Task;

/// Handles of one kind, freed after their last user.
template <class Handle, class InUse>
class DeferredFrees {
  public:
    DeferredFrees(int (*free)(Handle*), InUse in_use) : free_(free), in_use_(in_use) {}

    /// True when the handle is still used: then freeing is deferred.
    bool defer(Handle handle) {
        const std::lock_guard guard(mutex_);
        std::erase_if(handles_, [&](Handle old) { return !in_use_(old) && free_(&old) == MPI_SUCCESS; });
        if (!in_use_(handle)) return false;
        handles_.push_back(handle);
        return true;
    }

  private:
    int (*free_)(Handle*);
    InUse in_use_;
    std::mutex mutex_;
    std::vector<Handle> handles_;
};

bool type_is_used(MPI_Datatype type) {
    return Background::instance().any_alive([&](const Task& task) { return task.handles.has_type(type); });
}
bool op_is_used(MPI_Op op) {
    return Background::instance().any_alive([&](const Task& task) { return task.handles.has_op(op); });
}

// Never destroyed: handles that remain at the end are left to the MPI.
auto& deferred_types() {
    static auto* deferred = new DeferredFrees<MPI_Datatype, bool (*)(MPI_Datatype)>(&PMPI_Type_free, type_is_used);
    return *deferred;
}
auto& deferred_ops() {
    static auto* deferred = new DeferredFrees<MPI_Op, bool (*)(MPI_Op)>(&PMPI_Op_free, op_is_used);
    return *deferred;
}

/// Freeing one of these is an error that the MPI must report.
bool is_not_user_defined(MPI_Datatype type) { return !runtime::combiner_of(type) || runtime::is_predefined(type); }
bool is_predefined_op(MPI_Op op) {
    for (const MPI_Op one : {MPI_OP_NULL, MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR,
                             MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP})
        if (op == one) return true;
    return false;
}

bool any_background() { return runtime::has_outstanding() || runtime::any_persistent(); }

}  // namespace

int on_MPI_Type_free(MPI_Datatype* datatype) {
    if (any_background())
        if (const Guard guard;
            guard.entered() && !is_not_user_defined(*datatype) && deferred_types().defer(*datatype)) {
            *datatype = MPI_DATATYPE_NULL;
            return MPI_SUCCESS;
        }
    return next::MPI_Type_free(datatype);
}

int on_MPI_Op_free(MPI_Op* op) {
    if (any_background())
        if (const Guard guard; guard.entered() && !is_predefined_op(*op) && deferred_ops().defer(*op)) {
            *op = MPI_OP_NULL;
            return MPI_SUCCESS;
        }
    return next::MPI_Op_free(op);
}

// A communicator may be freed at once: operations on it use a shadow communicator, which lives until they complete
// (Process::release_user). This waits for no other rank, but for leaders of groups of switches, which end together,
// and for those that keep short results for each other.

int on_MPI_Comm_free(MPI_Comm* comm) {
    if (runtime::has_postponed())
        if (const Guard guard; guard.entered()) runtime::settle_postponed(nullptr);
    if (runtime::SwitchGroups::any() || runtime::KeptMembers::any())
        if (const Guard guard; guard.entered()) runtime::Process::instance().leave_ways(*comm);
    return next::MPI_Comm_free(comm);
}

/// Waits for all that is pending on the communicator, as MPI says.
int on_MPI_Comm_disconnect(MPI_Comm* comm) {
    if (any_background())
        if (const Guard guard; guard.entered()) runtime::before_blocking(*comm);
    if (runtime::SwitchGroups::any() || runtime::KeptMembers::any())
        if (const Guard guard; guard.entered()) runtime::Process::instance().leave_ways(*comm);
    return next::MPI_Comm_disconnect(comm);
}

}  // namespace palmette::interpose
