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
            const double capacity = l < job.levels().size()
                                        ? job.levels()[l].up_bytes_per_s[static_cast<std::int32_t>(g)]
                                        : job.aggregators()[g].up_bytes_per_s;
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
    const std::size_t services =
        plan.programs.size() - static_cast<std::size_t>(std::min<std::int64_t>(job.size(), std::ssize(plan.programs)));
    if (services > 0) out.levels.push_back({"aggregator", 0, 0, std::vector<LinkCount>(services)});
    const auto pass = [](LevelCount& level, std::int32_t source, std::int32_t target, std::int64_t bytes) {
        ++level.messages;
        level.bytes += bytes;
        if (source >= 0) {
            LinkCount& leaving = level.links[static_cast<std::size_t>(source)];
            ++leaving.messages_out, leaving.bytes_out += bytes;
        }
        if (target >= 0) {
            LinkCount& entering = level.links[static_cast<std::size_t>(target)];
            ++entering.messages_in, entering.bytes_in += bytes;
        }
    };
    for (const Program& program : plan.programs) {
        const topology::Position from = job.position_of(program.rank);
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
            const topology::Position to = job.position_of(step.peer);
            ++out.messages;
            out.bytes += bytes;
            for (std::size_t l = 0; l < job.levels().size(); ++l) {
                const std::int32_t source = job.group_at(l, from), target = job.group_at(l, to);
                if (source != target) pass(out.levels[l], source, target, bytes);
            }
            const std::int32_t source = from.value - job.size(), target = to.value - job.size();
            if (source >= 0 || target >= 0) pass(out.levels.back(), source, target, bytes);
        }
    }
    find_busiest(out, job);
    for (const Message& message : messages_of(plan))
        out.longest_chain = std::max<std::int64_t>(out.longest_chain, message.time + 1);
    return out;
}

}  // namespace palmette::plan
