// Argument preparation for neighbourhood collectives.
#include "palmette/runtime/call/prepare.hpp"
#include "palmette/runtime/neighbours/neighbours.hpp"

namespace palmette::runtime {
namespace {

/// One side of a call whose blocks have lengths of their own. False: the MPI must check the arguments.
bool set_side(CallerBuffer& buffer, const Side& side, int neighbours) {
    if (neighbours > 0) return side.form == Side::Form::alike ? buffer.one(side) : buffer.blocks(side, neighbours);
    buffer.clear();
    return true;
}

/// Both sides, with a placeholder where one is erroneous. The length of a block, or nothing where this rank can't tell.
std::optional<std::int64_t> set_sides(Work& work, const NeighbourPlans& neighbours, const CallArguments& arguments) {
    const bool gathers = arguments.function == select::Function::neighbor_allgather;
    const int targets = neighbours.targets();
    const int sources = neighbours.sources();
    const bool sends =
        gathers || targets == 0 ? work.send.one(arguments.send) : work.send.blocks(arguments.send, targets);
    const bool receives = sources == 0 ? work.recv.one(arguments.recv) : work.recv.blocks(arguments.recv, sources);
    // A side without neighbours may have any length: it is the other's that counts.
    if (!(sends && (receives || targets > 0)) && !(receives && sources > 0)) return std::nullopt;
    // Without any neighbours the plan is empty, whatever the length: the report counts the call with the others'.
    const std::int64_t bytes = sends && (targets > 0 || sources == 0) ? work.send.bytes() : work.recv.bytes();
    if (!sends) work.fault = fault_of(arguments.send, 0);
    if (!receives) work.fault = fault_of(arguments.recv, 0);
    const bool differ = receives && sources > 0 && work.recv.bytes() != bytes;
    if (differ) work.fault = MPI_ERR_TRUNCATE;
    if (targets == 0)
        work.send.clear();
    else if (!sends)
        work.send.use_placeholder(bytes, gathers ? 0 : targets);
    if (sources == 0)
        work.recv.clear();
    else if (!receives || differ)
        work.recv.use_placeholder(bytes, sources);
    return bytes;
}

}  // namespace

bool prepare_neighbours(Call& call, Work& work, const CallArguments& arguments) {
    Communicator& state = call.state();
    // Made collectively, for which a nonblocking call can't wait.
    if (!call.blocking() && !state.kept().find<NeighbourPlans>()) return call.refuse(Refusal::no_state_yet);
    NeighbourPlans& neighbours = neighbours_of(state, call.comm());
    if (neighbours.refusal()) return call.refuse_always(*neighbours.refusal(), neighbours.detail());
    if (const auto why = neighbours.why_left(arguments.function)) return call.refuse_always(Refusal::chosen, *why);
    work.reset(state, call.comm());
    if (arguments.recv.form != Side::Form::alike) {
        const bool valid = set_side(work.send, arguments.send, neighbours.targets()) &&
                           set_side(work.recv, arguments.recv, neighbours.sources());
        const std::int64_t slot =
            call.blocking() ? neighbours.slot_for(arguments.function, valid ? &work.send : nullptr) : -1;
        if (!valid && slot <= 0) return call.refuse(Refusal::erroneous_arguments);
        if (!valid) {
            // Others wait for padded blocks, those that it relays, too.
            work.fault = MPI_ERR_ARG;
            work.send.use_placeholder_lists(neighbours.targets());
            work.recv.use_placeholder_lists(neighbours.sources());
        }
        return call.take(work, neighbours.plan_for(arguments.function, slot, call.blocking()), -1);
    }
    const auto bytes = set_sides(work, neighbours, arguments);
    if (!bytes) return call.refuse(Refusal::erroneous_arguments);
    return call.take(work, neighbours.plan_for(arguments.function, *bytes, call.blocking()), *bytes);
}

}  // namespace palmette::runtime
