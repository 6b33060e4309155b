#include "palmette/collectives/exchanges/ring_levels.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace palmette::collectives {
namespace {

using topology::Job;
using topology::JobLevel;

/// A subset of the levels must be better than all levels by this factor.
constexpr double clearly = 0.95;
/// Search limit for levels outside of nodes; all close where a job has more.
constexpr std::size_t most_levels = 6;

/// Load of a nested ring on the edges of nodes and of the groups around them.
class RingLoad {
  public:
    explicit RingLoad(const Job& job) : levels_(job.levels()), node_level_(*job.find_level("node")), n_(job.size()) {}

    std::size_t outside() const { return node_level_; }

    /// Blocks / capacity of the bottleneck edge; 0 where no capacity is known. Bit l of `closed`: level l closes.
    double slowest(std::uint32_t closed) const {
        double worst = 0;
        const topology::Partition& nodes = levels_[node_level_].groups;
        for (std::int32_t node = 0; node < nodes.count(); ++node) worst = std::max(worst, leaving(node, closed));
        return worst;
    }

  private:
    bool closes(std::size_t level, std::uint32_t closed) const {
        return level == node_level_ || (closed >> level & 1U);
    }

    /// Load / capacity of the slowest edge between the end of a node and the next one.
    double leaving(std::int32_t node, std::uint32_t closed) const {
        const std::int32_t end = levels_[node_level_].groups.end(node), next = end == n_ ? 0 : end;
        // Blocks that groups ending here send back to their first members load the edges inside of them.
        double blocks = n_ - largest_from(next, closed), worst = 0;
        for (std::size_t level = 0; level <= node_level_; ++level) {
            const JobLevel& at = levels_[level];
            const std::int32_t group = at.groups.group_of(end - 1);
            if (at.groups.end(group) != end) continue;
            const double capacity = at.free_bytes_per_s(group);
            if (capacity > 0) worst = std::max(worst, blocks / capacity);
            if (level < node_level_ && closes(level, closed))
                blocks += at.groups.size_of(group) - largest_from(at.groups.first(group), closed, level + 1);
        }
        return worst;
    }

    /// Size of the largest group that closes and begins at a position, of level `from` or further in.
    std::int32_t largest_from(std::int32_t position, std::uint32_t closed, std::size_t from = 0) const {
        for (std::size_t level = from; level <= node_level_; ++level) {
            const topology::Partition& groups = levels_[level].groups;
            const std::int32_t group = groups.group_of(position);
            if (closes(level, closed) && groups.first(group) == position) return groups.size_of(group);
        }
        return 1;
    }

    const std::vector<JobLevel>& levels_;
    std::size_t node_level_;
    std::int32_t n_;
};

std::uint32_t best_levels(const Job& job) {
    const RingLoad load(job);
    const std::uint32_t all = (1U << std::min(load.outside(), most_levels)) - 1;
    if (load.outside() == 0 || load.outside() > most_levels) return ~0U;
    std::uint32_t best = all;
    double least = load.slowest(all) * clearly;
    for (std::uint32_t closed = 0; closed < all; ++closed)
        if (const double slowest = load.slowest(closed); slowest < least) {
            least = slowest;
            best = closed;
        }
    return best;
}

bool is_in(std::uint32_t levels, std::size_t level) { return level >= most_levels || (levels >> level & 1U); }

/// The groups of a level as a partition of those of a level inside of it.
topology::Partition of_groups(const topology::Partition& outer, const topology::Partition& inner) {
    if (inner.even_size() > 0 && outer.even_size() > 0 && outer.even_size() % inner.even_size() == 0)
        return topology::Partition::even(inner.count(), outer.even_size() / inner.even_size());
    std::vector<std::int32_t> firsts;
    for (std::int32_t group = 0; group < outer.count(); ++group) firsts.push_back(inner.group_of(outer.first(group)));
    return topology::Partition::from_firsts(inner.count(), std::move(firsts));
}

}  // namespace

std::vector<topology::Partition> ring_levels(const Job& job, const Spec& spec) {
    std::vector<topology::Partition> out;
    const std::string nested(spec.word("nested", {"auto", "yes", "no"}));
    if (nested == "no" || spec.word("order", {"topology", "rank"}) == "rank") return out;
    const std::uint32_t closed = nested == "yes" ? ~0U : best_levels(job);
    const std::size_t node_level = *job.find_level("node");
    for (std::size_t level = 0; level < job.levels().size(); ++level)
        if (level >= node_level || is_in(closed, level)) out.push_back(job.levels()[level].groups);
    return out;
}

std::vector<topology::Partition> ring_levels_round(const Job& job, std::size_t level) {
    std::vector<topology::Partition> out;
    const std::uint32_t closed = best_levels(job);
    for (std::size_t outer = 0; outer < level; ++outer)
        if (outer >= *job.find_level("node") || is_in(closed, outer))
            out.push_back(of_groups(job.levels()[outer].groups, job.levels()[level].groups));
    return out;
}

}  // namespace palmette::collectives
