#include "palmette/execute/transport.hpp"

#include "palmette/base/error.hpp"

namespace palmette::execute {

void choose_transports(BoundProgram& program, const Transports& transports, const topology::Job& job, plan::Rank me) {
    const topology::Partition& nodes = job.nodes().groups;
    const auto node_of = [&](std::int32_t rank) { return nodes.group_of(job.position_of(plan::Rank{rank}).value); };
    program.transports = 0;
    for (BoundStep& step : program.steps) {
        if (!plan::is_remote(step.kind)) continue;
        const bool service = plan::is_message(step.kind) && step.peer >= job.size();
        const bool same_node = !plan::is_message(step.kind) || (!service && node_of(step.peer) == node_of(me.value));
        const StepOffer offer{step.kind, step.bytes, same_node, step.single_copy, service, step.ipc, step.nccl};
        std::size_t t = 0;
        while (t < transports.size() && !transports[t]->can(offer)) ++t;
        if (t == transports.size())
            base::fail("no transport carries a ", plan::name_of(step.kind), " of ", step.bytes, " bytes");
        step.transport = static_cast<std::uint8_t>(t);
        program.transports |= 1U << t;
    }
    program.taking_part = 0;
    for (std::size_t t = 0; t < transports.size(); ++t)
        if (transports[t]->takes_part(program)) program.taking_part |= 1U << t;
}

}  // namespace palmette::execute
