#include "palmette/plan/count.hpp"

#include <algorithm>

#include "palmette/plan/space.hpp"

namespace palmette::plan {
namespace {

void find_busiest(PlanCount& out, const Job& job) {
    std::int64_t most = 0;
    for (std::size_t l = 0; l < out.levels.size(); ++l)
        for (std::size_t g = 0; g < out.levels[l].links.size(); ++g) {
            const std::int64_t bytes = out.levels[l].links[g].busiest_bytes();
            const double capacity = job.levels()[l].up_bytes_per_s[static_cast<std::int32_t>(g)];
            const double time = capacity > 0 ? static_cast<double>(bytes) / capacity : 0;
            const bool slower = time > out.busiest_s || (out.busiest_s == 0 && time == 0 && bytes > most);
            if (!slower) continue;
            out.busiest_level = static_cast<std::int32_t>(l);
            out.busiest_group = static_cast<std::int32_t>(g);
            out.busiest_s = time;
            most = bytes;
        }
}

}  // namespace

PlanCount count(const Plan& plan, const Job& job, const std::vector<std::int64_t>& block_bytes) {
    const BlockLengths lengths(plan.request, job, plan.programs.empty() ? 1 : plan.programs.front().cut, block_bytes);
    PlanCount out;
    for (const topology::JobLevel& level : job.levels())
        out.levels.push_back(
            {level.name, 0, 0, std::vector<LinkCount>(static_cast<std::size_t>(level.groups.count()))});
    for (const Program& program : plan.programs) {
        const std::int32_t from = job.position_of(program.rank).value;
        for (const Step& step : program.steps) {
            if (step.kind == StepKind::copy) out.copied_bytes += lengths.of(program.sources_of(step), step.slice);
            if (step.kind == StepKind::pull) out.pulled_bytes += lengths.of(program.regions_of(step), step.slice);
            if (combines(step.kind)) {
                const std::int64_t bytes = lengths.of(program.targets_of(step), step.slice);
                out.reduced_bytes += bytes;
                if (step.kind == StepKind::pull_reduce) out.pulled_bytes += bytes;
            }
            if (step.kind != StepKind::send) continue;
            const std::int64_t bytes = lengths.of(program.regions_of(step), step.slice);
            const std::int32_t to = job.position_of(step.peer).value;
            ++out.messages;
            out.bytes += bytes;
            for (std::size_t l = 0; l < out.levels.size(); ++l) {
                const topology::Partition& groups = job.levels()[l].groups;
                const std::int32_t source = groups.group_of(from);
                const std::int32_t target = groups.group_of(to);
                if (source == target) continue;
                LevelCount& level = out.levels[l];
                ++level.messages;
                level.bytes += bytes;
                LinkCount& leaving = level.links[static_cast<std::size_t>(source)];
                LinkCount& entering = level.links[static_cast<std::size_t>(target)];
                ++leaving.messages_out, leaving.bytes_out += bytes;
                ++entering.messages_in, entering.bytes_in += bytes;
            }
        }
    }
    find_busiest(out, job);
    for (const Message& message : messages_of(plan))
        out.longest_chain = std::max<std::int64_t>(out.longest_chain, message.time + 1);
    return out;
}

}  // namespace palmette::plan
