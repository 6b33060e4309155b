#include "palmette/topology/mapping/link_loads.hpp"

#include <algorithm>

namespace palmette::topology {

LinkLoads::LinkLoads(const Job& job) {
    // Links of unknown capacity count as the fastest known ones. The share that other traffic takes isn't available.
    double fastest = 0;
    for (const JobLevel& level : job.levels())
        for (std::int32_t g = 0; g < level.groups.count(); ++g) fastest = std::max(fastest, level.free_bytes_per_s(g));
    if (fastest <= 0) fastest = 1;
    bool inside = false;
    for (const JobLevel& level : job.levels()) {
        const auto groups = static_cast<std::size_t>(level.groups.count());
        Level made{&level.groups, std::vector<double>(groups, 0), {}};
        if (!inside)
            for (std::int32_t g = 0; g < level.groups.count(); ++g) {
                const double known = level.free_bytes_per_s(g);
                made.seconds_per_byte.push_back(1 / (known > 0 ? known : fastest));
            }
        inside = inside || level.name == "node";
        levels_.push_back(std::move(made));
    }
}

void LinkLoads::change(Level& level, std::int32_t group, double bytes) {
    const auto g = static_cast<std::size_t>(group);
    hop_bytes_ += bytes;
    const auto fourth = [&] {
        const double seconds = level.load[g] * level.seconds_per_byte[g];
        return seconds * seconds * seconds * seconds;
    };
    if (level.seconds_per_byte.empty()) return;
    potential_ -= fourth();
    level.load[g] += bytes;
    potential_ += fourth();
}

void LinkLoads::add(std::int32_t position, std::int32_t other, double bytes) {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
        const std::int32_t a = level->groups->group_of(position);
        const std::int32_t b = level->groups->group_of(other);
        // Positions in one group share all enclosing groups.
        if (a == b) return;
        change(*level, a, bytes);
        change(*level, b, bytes);
    }
}

double LinkLoads::busiest() const {
    double most = 0;
    for (const Level& level : levels_)
        for (std::size_t g = 0; g < level.seconds_per_byte.size(); ++g)
            most = std::max(most, level.load[g] * level.seconds_per_byte[g]);
    return most;
}

}  // namespace palmette::topology
