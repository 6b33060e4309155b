#include "palmette/model/bound.hpp"

#include <algorithm>

#include "palmette/base/error.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using plan::Request;
using topology::Job;
using topology::JobLevel;

struct Traffic {
    std::int64_t out = 0;
    std::int64_t in = 0;
};

/// What must cross the edge of a group that holds `inside` of `total` bytes.
Traffic must_cross(Collective collective, bool root_inside, std::int64_t inside, std::int64_t total) {
    switch (collective) {
        case Collective::gather:
            return root_inside ? Traffic{0, total - inside} : Traffic{inside, 0};
        case Collective::scatter:
            return root_inside ? Traffic{total - inside, 0} : Traffic{0, inside};
        case Collective::allgather:
            return {inside, total - inside};
        default:
            return {};  // not known yet
    }
}

/// Sums of block lengths over ranges of positions.
class Lengths {
  public:
    Lengths(const Job& job, const std::vector<std::int64_t>& block_bytes)
        : uniform_(block_bytes.size() == 1 ? block_bytes[0] : 0) {
        if (block_bytes.size() == 1) return;
        until_.reserve(block_bytes.size() + 1);
        until_.push_back(0);
        for (std::int32_t p = 0; p < job.size(); ++p)
            until_.push_back(until_.back() + block_bytes[static_cast<std::size_t>(job.rank_at({p}).value)]);
    }
    std::int64_t sum(std::int32_t begin, std::int32_t end) const {
        if (until_.empty()) return uniform_ * (end - begin);
        return until_[static_cast<std::size_t>(end)] - until_[static_cast<std::size_t>(begin)];
    }

  private:
    std::int64_t uniform_;
    std::vector<std::int64_t> until_;
};

void take_larger(Bound& best, Bound candidate) {
    if (candidate.seconds > best.seconds) best = std::move(candidate);
}

void bound_by_links(Bound& best, const Job& job, const JobLevel& level, const Request& request,
                    const Lengths& lengths) {
    const std::int32_t root = job.position_of(request.root).value;
    const std::int64_t total = lengths.sum(0, job.size());
    std::int64_t entering = 0;
    double capacities = 0;
    bool all_known = true;
    for (std::int32_t g = 0; g < level.groups.count(); ++g) {
        const bool root_inside = level.groups.first(g) <= root && root < level.groups.end(g);
        const Traffic traffic =
            must_cross(request.collective, root_inside, lengths.sum(level.groups.first(g), level.groups.end(g)), total);
        const double capacity = level.up_bytes_per_s[g];
        entering += traffic.in;
        capacities += capacity;
        all_known = all_known && capacity > 0;
        if (capacity <= 0) continue;
        const bool outwards = traffic.out > traffic.in;
        const std::int64_t bytes = std::max(traffic.out, traffic.in);
        const std::string name = level.names.empty() ? std::string() : level.names[static_cast<std::size_t>(g)];
        take_larger(best,
                    {static_cast<double>(bytes) / capacity, "link", level.name, g, name, outwards, bytes, capacity});
    }
    if (all_known && request.collective == Collective::allgather)
        take_larger(
            best,
            {static_cast<double>(entering) / capacities, "links", level.name, -1, {}, true, entering, capacities});
}

/// The pair that is farthest apart. Also where one end is the root: with two groups or more, somebody sits outside of its group.
void bound_by_latency(Bound& best, const Job& job) {
    for (const JobLevel& level : job.levels())
        if (level.groups.count() > 1 && level.latency_s > 0) {
            Bound candidate;
            candidate.seconds = level.latency_s;
            candidate.kind = "latency";
            candidate.level = level.name;
            take_larger(best, std::move(candidate));
        }
}

}  // namespace

Bound bound(const Job& job, const Request& request, const std::vector<std::int64_t>& block_bytes) {
    if (block_bytes.size() != 1 && block_bytes.size() != static_cast<std::size_t>(job.size()))
        base::fail("sizes: expected one, or one for each of ", job.size(), " ranks, found ", block_bytes.size());
    const bool rooted = request.collective != Collective::allgather;
    if (rooted && (request.root.value < 0 || request.root.value >= job.size()))
        base::fail("root ", request.root, " is outside of a job of ", job.size(), " ranks");
    const Lengths lengths(job, block_bytes);
    Request valid = request;
    if (!rooted) valid.root = topology::Rank{0};
    Bound best;
    for (const JobLevel& level : job.levels()) bound_by_links(best, job, level, valid, lengths);
    bound_by_latency(best, job);
    return best;
}

}  // namespace palmette::model
