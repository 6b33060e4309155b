#include "palmette/plan/space.hpp"

#include <numeric>

#include "palmette/base/error.hpp"

namespace palmette::plan {

BlockSpace space_of(Collective collective) {
    switch (collective) {
        case Collective::gather:
        case Collective::scatter:
        case Collective::allgather:
        case Collective::reduce_scatter:
            return BlockSpace::per_rank;
        case Collective::alltoall:
            return BlockSpace::pairs;
        case Collective::barrier:
            return BlockSpace::none;
        case Collective::bcast:
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan:
        case Collective::exscan:
            return BlockSpace::cut;
        case Collective::composed:
            return BlockSpace::listed;
    }
    return BlockSpace::none;
}

bool is_rooted(Collective collective) {
    return collective == Collective::gather || collective == Collective::scatter || collective == Collective::bcast ||
           collective == Collective::reduce;
}

bool is_reduction(Collective collective) {
    switch (collective) {
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::reduce_scatter:
        case Collective::scan:
        case Collective::exscan:
            return true;
        default:
            return false;
    }
}

Blocks blocks_before(const Request& request, const Job& job, const Program& program) {
    if (program.service >= 0) return {};
    const bool root = program.rank == request.root;
    const std::int64_t p = job.size();
    const std::int64_t own = block_of(job, program.order, program.rank);
    switch (request.collective) {
        case Collective::gather:
        case Collective::allgather:
            return {own, 1};
        case Collective::scatter:
            return root ? Blocks(0, p) : Blocks();
        case Collective::reduce_scatter:
            return {0, p};
        case Collective::alltoall:
            return {own * p, p};
        case Collective::bcast:
            return root ? Blocks(0, program.cut) : Blocks();
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan:
        case Collective::exscan:
            return {0, program.cut};
        case Collective::barrier:
        case Collective::composed:
            return {};
    }
    return {};
}

Blocks blocks_after(const Request& request, const Job& job, const Program& program) {
    if (program.service >= 0) return {};
    const bool root = program.rank == request.root;
    const std::int64_t p = job.size();
    const std::int64_t own = block_of(job, program.order, program.rank);
    switch (request.collective) {
        case Collective::gather:
            return root ? Blocks(0, p) : Blocks();
        case Collective::allgather:
            return {0, p};
        case Collective::scatter:
        case Collective::reduce_scatter:
            return {own, 1};
        case Collective::alltoall: {
            Blocks out;
            for (std::int64_t s = 0; s < p; ++s) out.insert({s * p + own, 1});
            return out;
        }
        case Collective::bcast:
            return root ? Blocks() : Blocks(0, program.cut);
        case Collective::reduce:
            return root ? Blocks(0, program.cut) : Blocks();
        case Collective::allreduce:
        case Collective::scan:
            return {0, program.cut};
        case Collective::exscan:
            return program.rank.value == 0 ? Blocks() : Blocks(0, program.cut);
        case Collective::barrier:
        case Collective::composed:
            return {};
    }
    return {};
}

std::int64_t block_count(const Request& request, const Job& job, std::int64_t cut) {
    switch (space_of(request.collective)) {
        case BlockSpace::per_rank:
            return job.size();
        case BlockSpace::pairs:
            return std::int64_t{job.size()} * job.size();
        case BlockSpace::cut:
        case BlockSpace::listed:
            return cut;
        case BlockSpace::none:
            return 0;
    }
    return 0;
}

BlockLengths::BlockLengths(const Request& request, const Job& job, std::int64_t cut,
                           const std::vector<std::int64_t>& block_bytes)
    : given_(block_bytes),
      blocks_(block_count(request, job, cut)),
      cut_(space_of(request.collective) == BlockSpace::cut ? cut : 1),
      element_(request.element_bytes) {
    if (given_.size() != 1 && static_cast<std::int64_t>(given_.size()) != blocks_)
        base::fail("sizes: expected one, or one for each of ", blocks_, " blocks, found ", given_.size());
}

std::int64_t BlockLengths::operator[](std::int64_t block) const {
    if (given_.size() != 1) return given_[static_cast<std::size_t>(block)];
    return cut_ == 1 ? given_[0] : cut_length(given_[0], cut_, element_, block);
}

std::int64_t BlockLengths::of(Span<Region> regions, Slice slice) const {
    std::int64_t total = 0;
    for (const Region& region : regions) {
        if (given_.size() == 1 && cut_ == 1) {
            total += region.blocks.count * slice_length(slice, given_[0], element_);
            continue;
        }
        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b)
            total += slice_length(slice, (*this)[b], element_);
    }
    return total;
}

std::int64_t BlockLengths::total() const {
    if (given_.size() != 1) return std::accumulate(given_.begin(), given_.end(), std::int64_t{0});
    return cut_ == 1 ? given_[0] * blocks_ : given_[0];
}

}  // namespace palmette::plan
