#include "palmette/runtime/call/shadow_reduction.hpp"
#include "palmette/base/never_destroyed.hpp"

#include <algorithm>
#include <new>

namespace palmette::runtime {
namespace {

using select::Function;

/// Reused between calls, as the caller reuses its own: so neither pays for page faults.
struct Buffers {
    std::vector<char> input, result;
};
Buffers& buffers() { return base::per_thread<Buffers, ShadowReduction>(); }

bool is_in_blocks(Function function) {
    return function == Function::reduce_scatter || function == Function::reduce_scatter_block;
}

}  // namespace

bool ShadowReduction::can_do(Function function, const Operation& operation, std::int64_t block_bytes, int ranks) {
    const std::int64_t blocks = is_in_blocks(function) ? ranks : 1;
    return operation.kernel() != nullptr && operation.layout().dense() && block_bytes <= most_bytes / blocks;
}

ShadowReduction::ShadowReduction(const Work& work)
    : work_(work),
      layout_from_(work.in_place == Work::InPlace::all_of_recv ? work.recv : work.send),
      input_(layout_from_.buffer()) {
    if (OnDevice* device = OnDevice::current()) device->read_all();
    try {
        if (work.in_place != Work::InPlace::no) {
            const char* from = static_cast<const char*>(input_);
            buffers().input.assign(from, from + layout_from_.total());
            input_ = buffers().input.data();
        }
        // Some MPIs require an address even where there is no result.
        const auto result_bytes = static_cast<std::size_t>(std::max<std::int64_t>(work.recv.total(), 1));
        if (buffers().result.size() < result_bytes) buffers().result.resize(result_bytes);
        result_ = buffers().result.data();
        if (work.plan->key.function == Function::reduce_scatter)
            for (int r = 0; r < work.state->size(); ++r) counts_.push_back(static_cast<int>(layout_from_.count(r)));
    } catch (const std::bad_alloc&) {
        allocated_ = false;
    }
}

bool ShadowReduction::is_allocated_on_all_ranks() const {
    int all = allocated_ ? 1 : 0;
    return PMPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, work_.state->shadow_comm()) == MPI_SUCCESS &&
           all == 1;
}

int ShadowReduction::run() {
    const int count = static_cast<int>(layout_from_.count());
    MPI_Datatype type = layout_from_.type();
    MPI_Op op = work_.operation->handle();
    MPI_Comm comm = work_.state->shadow_comm();
    switch (work_.plan->key.function) {
        case Function::reduce:
            return PMPI_Reduce(input_, result_, count, type, op, work_.plan->key.root, comm);
        case Function::allreduce:
            return PMPI_Allreduce(input_, result_, count, type, op, comm);
        case Function::reduce_scatter:
            return PMPI_Reduce_scatter(input_, result_, counts_.data(), type, op, comm);
        case Function::reduce_scatter_block:
            return PMPI_Reduce_scatter_block(input_, result_, count, type, op, comm);
        case Function::scan:
            return PMPI_Scan(input_, result_, count, type, op, comm);
        case Function::exscan:
            return PMPI_Exscan(input_, result_, count, type, op, comm);
        default:
            return MPI_ERR_INTERN;
    }
}

}  // namespace palmette::runtime
