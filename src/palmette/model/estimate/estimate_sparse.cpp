#include "palmette/model/estimate/estimate_sparse.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace palmette::model {
namespace {

double balanced_seconds(const compose::Composition& composition, const compose::Factory& factory,
                        std::int64_t index_bytes, const topology::Job& job, const topology::Costs& costs) {
    const std::size_t node = *job.find_level("node"), levels = job.levels().size();
    const double ranks = job.size();
    // Of a byte, by the outermost level that tells both ends apart.
    std::vector<double> byte_s(levels + 1);
    double slowest_s = 0;
    for (std::size_t l = node + 1; l-- > 0;) {
        double together = 0;
        bool limited = true;
        for (std::int32_t group = 0; group < job.levels()[l].groups.count(); ++group) {
            const double edge = costs.edge_bytes_per_s(job, l, group);
            together += edge;
            limited = limited && edge > 0;
        }
        if (limited) slowest_s = std::max(slowest_s, 1 / together);
        byte_s[l] = slowest_s;
    }
    // Both ends copy it, through shared memory or where several regions are packed, and one combines it.
    for (std::size_t l = 0; l <= levels; ++l) {
        const double copy_s = l > node                   ? 1 / costs.levels[l].stream_bytes_per_s.value
                              : composition.blocks() > 1 ? 1 / costs.copy_bytes_per_s.value
                                                         : 0;
        byte_s[l] += (2 * copy_s + 1 / costs.reduce_bytes_per_s.value) / ranks;
    }
    const double stripes = factory.factoring().stripes;
    double seconds = 0;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> last;  // block of the messages between two ranks
    composition.visit([&](std::int32_t phase, const compose::Primitive& primitive) {
        const double bytes = static_cast<double>(composition.lengths()[primitive.blocks.first] * index_bytes) / stripes;
        factory.messages_of(phase, primitive, [&](base::Rank from, base::Rank to) {
            const std::size_t level = job.parting_level(job.position_of(from), job.position_of(to));
            seconds += bytes * byte_s[level];
            const auto [at, fresh] = last.try_emplace({from.value, to.value});
            // Those that end at relays are shared with other owners.
            if (fresh && to == primitive.root) seconds += 2 * costs.levels[level].overhead_s.value / ranks;
            if (fresh || at->second + 1 != primitive.blocks.first) seconds += 2 * region_s / ranks;
            at->second = primitive.blocks.first;
        });
    });
    return seconds;
}

}  // namespace

std::vector<std::int64_t> coarsen_candidates(const compose::Words& bounds) {
    std::int64_t longest = 1;
    for (std::size_t r = 1; r < bounds.size(); ++r) longest = std::max(longest, bounds[r] - bounds[r - 1]);
    std::vector<std::int64_t> out;
    for (std::int64_t coarsen = 1; coarsen <= std::min<std::int64_t>(longest, 4096); coarsen *= 2)
        out.push_back(coarsen);
    return out;
}

std::vector<std::int64_t> coarsen_picoseconds(const OwnersPart& part, const std::vector<std::int64_t>& candidates,
                                              std::int64_t index_bytes, const compose::Operation& operation,
                                              const topology::Job& factored, const compose::Factoring& factoring,
                                              const topology::Job& job) {
    const compose::Tree tree = compose::Tree::of(factored);
    const topology::Costs costs = topology::Costs::of(job);
    std::vector<std::int64_t> out;
    for (const std::int64_t coarsen : candidates) {
        const auto blocks = compose::owners_composition(
            job.size(), compose::signatures(part.touched, part.owned, coarsen), part.owner, operation);
        const compose::Factory factory(blocks, factored, tree, factoring);
        out.push_back(std::llround(balanced_seconds(blocks, factory, index_bytes, job, costs) * 1e12));
    }
    return out;
}

}  // namespace palmette::model
