#include "palmette/plan/count.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::plan {
namespace {

std::int64_t bytes_of(Span<Region> regions, Slice slice, const std::vector<std::int64_t>& block_bytes) {
    std::int64_t total = 0;
    for (const Region& region : regions) {
        if (block_bytes.size() == 1) {
            total += region.blocks.count * slice_length(slice, block_bytes[0]);
            continue;
        }
        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b)
            total += slice_length(slice, block_bytes[static_cast<std::size_t>(b)]);
    }
    return total;
}

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
    if (block_bytes.size() != 1 && block_bytes.size() != static_cast<std::size_t>(job.size()))
        base::fail("sizes: expected one, or one for each of ", job.size(), " ranks, found ", block_bytes.size());
    PlanCount out;
    for (const topology::JobLevel& level : job.levels())
        out.levels.push_back(
            {level.name, 0, 0, std::vector<LinkCount>(static_cast<std::size_t>(level.groups.count()))});
    for (const Program& program : plan.programs) {
        const std::int32_t from = job.position_of(program.rank).value;
        for (const Step& step : program.steps) {
            if (step.kind == StepKind::copy)
                out.copied_bytes += bytes_of(program.sources_of(step), step.slice, block_bytes);
            if (step.kind != StepKind::send) continue;
            const std::int64_t bytes = bytes_of(program.regions_of(step), step.slice, block_bytes);
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
