// Objects that the program frees while a collective in the background still uses them. MPI lets it do so; the operation
// must come to its end all the same, so the MPI gets to know of it later.
#include <mutex>
#include <vector>

#include "palmette/interpose/guard.hpp"
#include "palmette/interpose/wrappers.hpp"
#include "palmette/runtime/data/datatype.hpp"
#include "palmette/runtime/serve/background.hpp"
#include "palmette/runtime/serve/persistent.hpp"

namespace palmette::interpose {
namespace {

using runtime::Background;
using runtime::Task;

/// Handles of one kind that wait for their last user.
template <class Handle, class InUse>
class Kept {
  public:
    Kept(int (*free)(Handle*), InUse in_use) : free_(free), in_use_(in_use) {}

    /// True when the handle is still used: then it is freed later.
    bool keep(Handle handle) {
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

// Never destroyed: what they keep at the end is the MPI's to forget.
auto& kept_types() {
    static auto* kept = new Kept<MPI_Datatype, bool (*)(MPI_Datatype)>(&PMPI_Type_free, type_is_used);
    return *kept;
}
auto& kept_ops() {
    static auto* kept = new Kept<MPI_Op, bool (*)(MPI_Op)>(&PMPI_Op_free, op_is_used);
    return *kept;
}

/// Freeing one of these is a mistake that the MPI must see.
bool is_no_own_type(MPI_Datatype type) { return !runtime::combiner_of(type) || runtime::is_predefined(type); }
bool is_predefined_op(MPI_Op op) {
    for (const MPI_Op one : {MPI_OP_NULL, MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR,
                             MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP})
        if (op == one) return true;
    return false;
}

bool any_alive() { return runtime::has_outstanding() || runtime::any_persistent(); }

}  // namespace

int on_MPI_Type_free(MPI_Datatype* datatype) {
    if (any_alive())
        if (const Guard guard; guard.entered() && !is_no_own_type(*datatype) && kept_types().keep(*datatype)) {
            *datatype = MPI_DATATYPE_NULL;
            return MPI_SUCCESS;
        }
    return next::MPI_Type_free(datatype);
}

int on_MPI_Op_free(MPI_Op* op) {
    if (any_alive())
        if (const Guard guard; guard.entered() && !is_predefined_op(*op) && kept_ops().keep(*op)) {
            *op = MPI_OP_NULL;
            return MPI_SUCCESS;
        }
    return next::MPI_Op_free(op);
}

// A communicator may be freed at once: what runs on it has a hidden one, which lives to its end (Process::let_go).
// Nobody waits for others here.

/// Waits for all that is pending on the communicator, as MPI says.
int on_MPI_Comm_disconnect(MPI_Comm* comm) {
    if (any_alive())
        if (const Guard guard; guard.entered()) runtime::before_blocking(*comm);
    return next::MPI_Comm_disconnect(comm);
}

}  // namespace palmette::interpose
