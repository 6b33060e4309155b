#include "palmette/runtime/call/prepare.hpp"

namespace palmette::runtime {

using select::Function;

bool prepare(Call& call, Work& work, const CallArguments& arguments) {
    work.arguments = &arguments;
    switch (arguments.function) {
        case Function::gather:
        case Function::gatherv:
            return prepare_gather(call, work, arguments);
        case Function::scatter:
        case Function::scatterv:
            return prepare_scatter(call, work, arguments);
        case Function::allgather:
        case Function::allgatherv:
            return prepare_allgather(call, work, arguments);
        case Function::bcast:
            return prepare_bcast(call, work, arguments);
        case Function::alltoall:
        case Function::alltoallv:
        case Function::alltoallw:
            return prepare_alltoall(call, work, arguments);
        case Function::barrier:
            return prepare_barrier(call, work, arguments);
        case Function::reduce:
        case Function::allreduce:
        case Function::scan:
        case Function::exscan:
            return prepare_reduction(call, work, arguments);
        case Function::reduce_scatter:
        case Function::reduce_scatter_block:
            return prepare_reduce_scatter(call, work, arguments);
        case Function::neighbor_allgather:
        case Function::neighbor_allgatherv:
        case Function::neighbor_alltoall:
        case Function::neighbor_alltoallv:
        case Function::neighbor_alltoallw:
            return prepare_neighbours(call, work, arguments);
    }
    return call.refuse(Refusal::erroneous_arguments);
}

}  // namespace palmette::runtime
