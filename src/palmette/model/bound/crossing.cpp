#include "palmette/model/bound/crossing.hpp"

#include <algorithm>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {
namespace {

using plan::BlockSpace;
using plan::Collective;
using plan::Job;
using plan::Request;

std::int64_t entries_wanted(const Job& job, Collective collective) {
    switch (plan::space_of(collective)) {
        case BlockSpace::per_rank:
            return job.size();
        case BlockSpace::pairs:
            return std::int64_t{job.size()} * job.size();
        case BlockSpace::cut:
        case BlockSpace::listed:
        case BlockSpace::none:
            return 1;
    }
    return 1;
}

}  // namespace

Crossing::Crossing(const Job& job, const Request& request, std::vector<std::int64_t> block_bytes)
    : job_(job), collective_(request.collective), given_(std::move(block_bytes)) {
    const std::int64_t wanted = entries_wanted(job, collective_);
    const auto found = static_cast<std::int64_t>(given_.size());
    if (found != 1 && found != wanted) {
        if (wanted == 1) base::fail("sizes of ", plan::name_of(collective_), ": expected one, found ", found);
        const char* each = plan::space_of(collective_) == BlockSpace::pairs ? " pairs of ranks" : " ranks";
        base::fail("sizes: expected one, or one for each of ", wanted, each, ", found ", found);
    }
    if (plan::is_rooted(collective_)) {
        if (request.root.value < 0 || request.root.value >= job.size())
            base::fail("root ", request.root, " is outside of a job of ", job.size(), " ranks");
        root_ = job.position_of(request.root).value;
    }
    const bool per_rank = plan::space_of(collective_) == BlockSpace::per_rank;
    if (per_rank && found > 1) {
        until_.reserve(given_.size() + 1);
        until_.push_back(0);
        for (std::int32_t p = 0; p < job.size(); ++p)
            until_.push_back(until_.back() + given_[static_cast<std::size_t>(job.rank_at({p}).value)]);
    }
    total_ = per_rank ? sum(0, job.size()) : given_.front();
}

bool Crossing::all_move() const {
    return std::ranges::all_of(given_, [](std::int64_t bytes) { return bytes > 0; });
}

std::int64_t Crossing::sum(std::int32_t first, std::int32_t end) const {
    if (until_.empty()) return given_.front() * (end - first);
    return until_[static_cast<std::size_t>(end)] - until_[static_cast<std::size_t>(first)];
}

std::int64_t Crossing::block_of(plan::Rank rank) const {
    if (even()) return given_.front();
    const std::size_t r = static_cast<std::size_t>(rank.value);
    return given_[plan::space_of(collective_) == BlockSpace::pairs ? r * static_cast<std::size_t>(job_.size()) + r : r];
}

Traffic Crossing::of(std::int32_t first, std::int32_t end) const {
    if (first >= end || end - first == job_.size()) return {};
    const bool root_inside = first <= root_ && root_ < end;
    const std::int64_t vector = given_.front();
    switch (collective_) {
        case Collective::gather:
            return root_inside ? Traffic{0, total_ - sum(first, end)} : Traffic{sum(first, end), 0};
        case Collective::scatter:
            return root_inside ? Traffic{total_ - sum(first, end), 0} : Traffic{0, sum(first, end)};
        case Collective::bcast:
            return root_inside ? Traffic{vector, 0} : Traffic{0, vector};
        case Collective::reduce:
            return root_inside ? Traffic{0, vector} : Traffic{vector, 0};
        case Collective::allgather:
            return {sum(first, end), total_ - sum(first, end)};
        case Collective::reduce_scatter:
            return {total_ - sum(first, end), sum(first, end)};
        case Collective::allreduce:
            return {vector, vector};
        case Collective::alltoall:
            return pairs(first, end);
        case Collective::scan:
        case Collective::exscan:
            return prefixes(first, end);
        case Collective::barrier:
        case Collective::composed:
            return {};
    }
    return {};
}

std::vector<Traffic> Crossing::of_groups(const topology::Partition& groups) const {
    const std::int32_t count = groups.count();
    std::vector<Traffic> out(static_cast<std::size_t>(count));
    if (collective_ != Collective::scan && collective_ != Collective::exscan) {
        for (std::int32_t g = 0; g < count; ++g) out[static_cast<std::size_t>(g)] = of(groups.first(g), groups.end(g));
        return out;
    }
    // One pass over the ranks finds the runs of all groups: group by group it would take O(ranks x groups).
    const auto group_of = [&](std::int32_t rank) {
        return static_cast<std::size_t>(groups.group_of(job_.position_of({rank}).value));
    };
    std::size_t last = group_of(0);
    for (std::int32_t rank = 1; rank < job_.size(); ++rank) {
        const std::size_t next = group_of(rank);
        if (next == last) continue;
        out[last].out += given_.front();
        out[next].in += given_.front();
        last = next;
    }
    return out;
}

Traffic Crossing::pairs(std::int32_t first, std::int32_t end) const {
    const std::int64_t p = job_.size();
    if (given_.size() == 1) {
        const std::int64_t bytes = (end - first) * (p - (end - first)) * given_.front();
        return {bytes, bytes};
    }
    Traffic sums;
    for (std::int32_t inside = first; inside < end; ++inside)
        for (std::int32_t other = 0; other < p; ++other) {
            if (first <= other && other < end) continue;
            const std::int64_t a = job_.rank_at({inside}).value, b = job_.rank_at({other}).value;
            sums.out += given_[static_cast<std::size_t>(a * p + b)];
            sums.in += given_[static_cast<std::size_t>(b * p + a)];
        }
    return sums;
}

Traffic Crossing::prefixes(std::int32_t first, std::int32_t end) const {
    const auto is_inside = [&](std::int32_t rank) {
        const std::int32_t position = job_.position_of({rank}).value;
        return first <= position && position < end;
    };
    // A run ends where the side changes, and is then followed by a rank of the other side.
    Traffic runs;
    bool inside = is_inside(0);
    for (std::int32_t rank = 1; rank < job_.size(); ++rank) {
        const bool next = is_inside(rank);
        if (inside && !next) ++runs.out;
        if (!inside && next) ++runs.in;
        inside = next;
    }
    return {runs.out * given_.front(), runs.in * given_.front()};
}

}  // namespace palmette::model
