// reduce, ring_gather: reduce-scatter around a ring, then each rank sends its part of the result directly to the root.
//
//   p = 8, block i ends at position i:
//
//       1 ← 2 ← 3 ← 4 ← 5 ← 6 ← 7 ← 0 ← 1     partial results of block 0: 7 → 6, ..., 1 → 0, combined on the way
//       1 → 0, 2 → 0, ..., 7 → 0              the gather
//
// The ring is the allgather's reversed in time, closed inside of every node and leaf: a group of s ranks sends p - s
// blocks of partial results and then s blocks of the result, one vector in all. The root's group receives less than two
// vectors: a chain is better where that link is the bottleneck, the ring where every rank has a link of its own.
#include <algorithm>

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

std::optional<std::string> refuse_ring_gather(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"segment"});
    spec.size("segment", 0);
    if (request.ordered && job.size() > 1) return "a ring doesn't combine in the order of ranks";
    return std::nullopt;
}

std::int64_t tags_ring_gather(const Job& job, const Request& request, const Spec& spec) {
    return slices_of(request, spec, job.size()) * (std::int64_t{job.size()} + 1);
}

/// One rank's part.
class RingGather {
  public:
    RingGather(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : job_(job),
          me_(job.position_of(rank).value),
          root_(job.position_of(request.root).value),
          parts_(slices_of(request, spec, job.size())),
          builder_(rank, plan::BlockOrder::topology, job.size()) {}

    Program make() {
        if (job_.size() == 1) {
            builder_.stage("copy own vector");
            builder_.copy(Buffer::send, Buffer::recv, {0, 1}, {});
            return builder_.finish();
        }
        std::vector<topology::Partition> nested;
        for (const topology::JobLevel& level : job_.levels()) nested.push_back(level.groups);
        blocks_.resize(static_cast<std::size_t>(job_.size()));
        builder_.stage("ring");
        // Reversed in time, sends and receives swap.
        const Schedule schedule = nested_ring(job_.size(), me_, nested);
        for (auto step = schedule.rbegin(); step != schedule.rend(); ++step)
            for (std::uint16_t part = 0; part < parts_; ++part) step->send ? take(*step, part) : give(*step, part);
        gather();
        return builder_.finish();
    }

  private:
    /// State of one block on this rank.
    struct Progress {
        std::size_t taken = 0;                    ///< partial results of others that earlier steps combine
        std::vector<std::vector<StepId>> latest;  ///< by part: the step after which the partial result is complete
        std::vector<std::vector<StepId>> read;    ///< by part: the step that reads the rank's own input
    };

    Rank at(std::int32_t position) const { return job_.rank_at({position}); }
    Progress& progress(std::int32_t block) {
        Progress& of = blocks_[static_cast<std::size_t>(block)];
        if (of.latest.empty()) of.latest.resize(parts_), of.read.resize(parts_);
        return of;
    }
    /// The root accumulates its own block in the result; everything else is accumulated in scratch.
    Buffer total(std::int32_t block) const { return me_ == root_ && block == me_ ? Buffer::recv : Buffer::scratch; }

    void take(const Exchange& exchange, std::uint16_t part) {
        const std::int32_t block = exchange.range.first;
        Progress& of = progress(block);
        if (part == 0) {
            // Each partial result has a landing of its own, so that none waits for another one.
            builder_.reserve_scratch({block, 1}, plan::scratch_layer(of.taken));
            ++of.taken;
        }
        const Buffer landing = plan::scratch_layer(of.taken - 1);
        const Buffer own = of.taken == 1 ? Buffer::send : total(block);
        const plan::Slice slice{part, parts_};
        std::vector<StepId> ready = of.latest[part];
        ready.push_back(builder_.recv(at(exchange.peer), exchange.tag * parts_ + part, landing, {block, 1}, {}, slice));
        of.latest[part] = {builder_.reduce(own, landing, total(block), {block, 1}, ready, slice)};
        if (of.taken == 1) of.read[part] = of.latest[part];
    }

    void give(const Exchange& exchange, std::uint16_t part) {
        const std::int32_t block = exchange.range.first;
        Progress& of = progress(block);
        const Buffer from = of.taken == 0 ? Buffer::send : total(block);
        const StepId sent = builder_.send(at(exchange.peer), exchange.tag * parts_ + part, from, {block, 1},
                                          of.latest[part], {part, parts_});
        if (of.taken == 0) of.read[part] = {sent};
    }

    void gather() {
        builder_.stage("gather");
        for (std::uint16_t part = 0; part < parts_; ++part) {
            const std::int32_t tag = job_.size() * parts_ + part;
            if (me_ != root_)
                builder_.send(at(root_), tag, total(me_), {me_, 1}, progress(me_).latest[part], {part, parts_});
            // With MPI_IN_PLACE a part of the result overwrites the root's own input.
            for (std::int32_t block = 0; me_ == root_ && block < job_.size(); ++block)
                if (block != me_)
                    builder_.recv(at(block), tag, Buffer::recv, {block, 1}, progress(block).read[part], {part, parts_});
        }
    }

    const Job& job_;
    std::int32_t me_, root_;
    std::uint16_t parts_;
    plan::ProgramBuilder builder_;
    std::vector<Progress> blocks_;
};

Program make_ring_gather(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return RingGather(job, rank, request, spec).make();
}

}  // namespace

const Algorithm reduce_ring_gather{
    .collective = Collective::reduce,
    .name = "ring_gather",
    .sentence =
        "A ring in topology order combines, and every rank sends its part to the root: a rank sends one vector in all.",
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, CCPE 19(13), 2007; the nesting is palmette's",
    .keys = "segment=SIZE",
    .preconditions = "an operation that commutes",
    .refuse = refuse_ring_gather,
    .make = make_ring_gather,
    .tags = tags_ring_gather,
    .samples = "ring_gather",
    .kin = "reduce_scatter_gather",
};

}  // namespace palmette::collectives
