#include "palmette/runtime/ways/neighbours.hpp"

#include <cstring>

#include "palmette/runtime/state/work.hpp"

namespace palmette::runtime {

int ToNeighbours::bind(Work& call) {
    call.use(plans_.bound_to(call.plan->key.function, call.send, call.recv));
    return MPI_SUCCESS;
}

int PaddedToNeighbours::run(Work& call, MpiExecutor& executor) {
    const select::Function function = call.plan->key.function;
    const execute::BoundProgram& program = call.plan->bound;
    const int sent = plans_.sent_blocks(function), sources = plans_.sources();
    char* const slots = call.scratch(static_cast<std::size_t>((sent + sources + 1) * slot_));
    char* const arrived = slots + sent * slot_;
    execute::Environment padded = call.environment(executor);
    const execute::Bases own = padded.bases;
    bool any_longer = false;
    for (int i = 0; i < sent; ++i) {
        const std::int64_t bytes = plans_.has_target(function, i) ? call.send.bytes(i) : 0;
        if (bytes > slot_)
            any_longer = true;
        else if (bytes > 0)
            std::memcpy(slots + i * slot_, own.send + call.send.offset(i), static_cast<std::size_t>(bytes));
    }
    named_.assign(named_buffers, arrived);
    padded.bases = {slots, arrived, named_.data()};
    executor.prepare(program);
    if (const int error = executor.run(program, padded)) return error;
    for (int j = 0; j < sources; ++j) {
        const std::int64_t bytes = plans_.has_source(j) ? call.recv.bytes(j) : 0;
        if (bytes > slot_)
            any_longer = true;
        else if (bytes > 0)
            std::memcpy(own.recv + call.recv.offset(j), arrived + j * slot_, static_cast<std::size_t>(bytes));
    }
    if (!any_longer) return MPI_SUCCESS;
    call.use(plans_.bound_to(function, call.send, call.recv, slot_));
    return call.run_once(executor, call.bound());
}

}  // namespace palmette::runtime
