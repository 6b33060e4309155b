#include "palmette/collectives/exchanges/leader_groups.hpp"

#include <algorithm>

#include "palmette/collectives/exchanges/ring_levels.hpp"

namespace palmette::collectives {
namespace {

std::size_t level_of(const Job& job, const Spec& spec) {
    // Fallback where the job has no such level: groups are nodes.
    const auto wanted = job.find_level(spec.find("level").value_or("node"));
    return wanted ? *wanted : *job.find_level("node");
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

LeaderGroups::LeaderGroups(const Job& job, const Spec& spec, Spread spread)
    : job_(job),
      level_(level_of(job, spec)),
      chunks_(spec.find("leaders") == "all" ? groups().smallest() : spec.integer("leaders", 1)),
      spread_(spread),
      shared_(spec.find("inside") == "shared"),
      inside_(TreeShape::parse(shared_ ? "linear" : spec.find("inside").value_or("linear"))) {}

ChunkTree LeaderGroups::tree(std::int32_t g, std::int32_t chunk, bool shared, std::optional<Position> preferred) const {
    std::vector<std::size_t> inner;
    for (std::size_t i = level_ + 1; i < job_.levels().size(); ++i)
        if (!shared || i <= *job_.find_level("node")) inner.push_back(i);
    return {job_, group(g), std::move(inner), inside_, chunk, chunks_, spread_, preferred};
}

std::vector<topology::Partition> LeaderGroups::outer_levels() const { return ring_levels_round(job_, level_); }

plan::Interval LeaderGroups::cell(Position position) const {
    const topology::Partition& nodes = job_.nodes().groups;
    const std::int32_t node = nodes.group_of(position.value);
    const plan::Interval around = group(group_of(position));
    const std::int64_t first = std::max<std::int64_t>(nodes.first(node), around.first);
    return {first, std::min<std::int64_t>(nodes.end(node), around.end()) - first};
}

plan::Interval LeaderGroups::chunks_led(std::int64_t i, std::int64_t size) const {
    const std::int64_t first = divide_up(i * chunks_, size);
    return {first, divide_up((i + 1) * chunks_, size) - first};
}

}  // namespace palmette::collectives
