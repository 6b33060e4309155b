// All collectives within one node through shared memory: every rank exposes what others need and reads what it needs in
// place.
//
// No trees and no rounds: data is copied into shared memory once and read once by each receiver. Contributions are
// combined in rank order, so noncommutative operations are served as well.
#include <algorithm>

#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::ProgramBuilder;
using plan::StepId;

/// Tags of exposes.
constexpr std::int32_t below = 0;   ///< blocks of ranks before this one, or all blocks
constexpr std::int32_t above = 1;   ///< blocks of ranks after it
constexpr std::int32_t result = 2;  ///< a combined chunk

/// One tag per rank.
constexpr std::int32_t most_for_unknown_sizes = 32;

/// Number of ranks above which polling all flags of a flat barrier costs more than dissemination rounds.
constexpr std::int32_t most_for_flat_barrier = 8;

class Node {
  public:
    Node(const Job& job, Rank rank, const Request& request, std::int64_t cut, bool copies)
        : ranks_(job.size()),
          me_(rank.value),
          copies_(copies),
          request_(request),
          builder_(rank, plan::BlockOrder::rank, cut) {}

    Program gather() {
        const std::int32_t root = request_.root.value;
        if (me_ != root) {
            expose(below, Buffer::send, {me_, 1}, 1);
            return builder_.finish();
        }
        copy_own(Buffer::send, Buffer::recv, {me_, 1}, {});
        for (const std::int32_t other : others())
            builder_.pull(Rank{other}, below, {other, 1}, Buffer::recv, Blocks(other, 1), {});
        return builder_.finish();
    }

    Program scatter() {
        const std::int32_t root = request_.root.value;
        if (me_ != root) {
            if (!sizes_known())
                builder_.pull(Rank{root}, me_, {me_, 1}, Buffer::recv, Blocks(me_, 1), {});
            else
                take(root, me_, row_part(root, 0), Buffer::recv, {});
            return builder_.finish();
        }
        expose_to_others(0);
        copy_own(Buffer::send, Buffer::recv, {me_, 1}, {});
        return builder_.finish();
    }

    Program allgather() {
        expose(below, Buffer::send, {me_, 1}, ranks_ - 1);
        copy_own(Buffer::send, Buffer::recv, {me_, 1}, {});
        for (const std::int32_t other : others())
            builder_.pull(Rank{other}, below, {other, 1}, Buffer::recv, Blocks(other, 1), {});
        return builder_.finish();
    }

    Program alltoall() {
        const std::int64_t row = std::int64_t{me_} * ranks_;
        expose_to_others(row);
        copy_own(Buffer::send, Buffer::recv, {row + me_, 1}, {});
        for (const std::int32_t other : others()) {
            const std::int64_t block = std::int64_t{other} * ranks_ + me_;
            if (!sizes_known())
                builder_.pull(Rank{other}, me_, {block, 1}, Buffer::recv, Blocks(block, 1), {});
            else
                take(other, block, row_part(other, std::int64_t{other} * ranks_), Buffer::recv, {});
        }
        return builder_.finish();
    }

    Program bcast() {
        if (Rank{me_} == request_.root)
            expose(below, Buffer::send, {0, 1}, ranks_ - 1);
        else
            builder_.pull(request_.root, below, {0, 1}, Buffer::recv, Blocks(0, 1), {});
        return builder_.finish();
    }

    Program barrier() {
        if (ranks_ <= most_for_flat_barrier) {
            expose(below, Buffer::send, {0, 0}, ranks_ - 1);
            for (const std::int32_t other : others())
                builder_.pull(Rank{other}, below, {0, 0}, Buffer::recv, Blocks(), {});
            return builder_.finish();
        }
        std::vector<StepId> arrived;
        std::int32_t round = 0;
        for (std::int32_t distance = 1; distance < ranks_; distance *= 2, ++round) {
            builder_.expose(round, Buffer::send, {0, 0}, 1, arrived);
            const Rank from{(me_ - distance + ranks_) % ranks_};
            arrived.push_back(builder_.pull(from, round, {0, 0}, Buffer::recv, Blocks(), {}));
        }
        return builder_.finish();
    }

    /// Every rank combines the whole vector.
    Program allreduce_by_all() {
        const StepId exposed = expose(below, Buffer::send, {0, 1}, ranks_ - 1);
        fold(Blocks(0, 1), {0, 1}, below, {exposed});
        return builder_.finish();
    }

    /// Rank i combines chunk i.
    Program allreduce_by_chunks() {
        const std::vector<StepId> exposed = expose_all_but(me_, 0);
        const StepId combined = fold_own_chunk();
        expose(result, Buffer::recv, {me_, 1}, ranks_ - 1, {combined});
        // With MPI_IN_PLACE an arriving chunk overwrites this rank's contribution to it.
        for (const std::int32_t other : others())
            builder_.pull(Rank{other}, result, {other, 1}, Buffer::recv, Blocks(other, 1), exposed);
        return builder_.finish();
    }

    Program reduce_by_root() {
        if (Rank{me_} != request_.root)
            expose(below, Buffer::send, {0, 1}, 1);
        else
            fold(Blocks(0, 1), {0, 1}, below, {});
        return builder_.finish();
    }

    Program reduce_by_chunks() {
        const std::vector<StepId> exposed = expose_all_but(me_, 0);
        const bool root = Rank{me_} == request_.root;
        if (!root) builder_.reserve_scratch(Blocks(me_, 1));
        const StepId combined = fold_own_chunk(root ? Buffer::recv : Buffer::scratch);
        if (!root) {
            expose(result, Buffer::scratch, {me_, 1}, 1, {combined});
            return builder_.finish();
        }
        for (const std::int32_t other : others())
            builder_.pull(Rank{other}, result, {other, 1}, Buffer::recv, Blocks(other, 1), exposed);
        return builder_.finish();
    }

    Program reduce_scatter() {
        expose_all_but(me_, 0);
        fold_own_chunk();
        return builder_.finish();
    }

    Program scan() {
        const std::int32_t later = ranks_ - 1 - me_;
        std::vector<StepId> exposed;
        if (later > 0) exposed = {expose(below, Buffer::send, {0, 1}, later)};
        if (me_ == 0) {
            copy_own(Buffer::send, Buffer::recv, {0, 1}, exposed);
            return builder_.finish();
        }
        fold_ranks(me_ + 1, Blocks(0, 1), {0, 1}, below, exposed, Buffer::recv);
        return builder_.finish();
    }

    Program exscan() {
        const std::int32_t later = ranks_ - 1 - me_;
        std::vector<StepId> before;
        if (later > 0) before = {expose(below, Buffer::send, {0, 1}, later)};
        for (std::int32_t other = 0; other < me_; ++other)
            before = {other == 0 ? builder_.pull(Rank{0}, below, {0, 1}, Buffer::recv, Blocks(0, 1), before)
                                 : builder_.pull_reduce(Rank{other}, below, {0, 1}, false, Buffer::recv, Buffer::recv,
                                                        Blocks(0, 1), before)};
        return builder_.finish();
    }

  private:
    /// A part of a row of p blocks that a rank exposes.
    struct Part {
        std::int32_t tag;
        Interval blocks;
    };

    std::vector<std::int32_t> others() const {
        std::vector<std::int32_t> out;
        for (std::int32_t i = 1; i < ranks_; ++i) out.push_back((me_ + i) % ranks_);
        return out;
    }

    StepId expose(std::int32_t tag, Buffer buffer, Interval blocks, std::int32_t readers,
                  const std::vector<StepId>& waits = {}) {
        builder_.stage("expose");
        const StepId step = copies_
                                ? builder_.expose_copy(tag, buffer, blocks, static_cast<std::size_t>(readers), waits)
                                : builder_.expose(tag, buffer, blocks, static_cast<std::size_t>(readers), waits);
        builder_.stage("take");
        return step;
    }

    void copy_own(Buffer from, Buffer to, Interval blocks, const std::vector<StepId>& waits) {
        builder_.copy(from, to, Blocks(blocks.first, blocks.count), waits);
    }

    /// Exposes a row of p blocks without block `left_out`, which is rank-local; one reader each.
    std::vector<StepId> expose_all_but(std::int32_t left_out, std::int64_t row) {
        std::vector<StepId> steps;
        if (left_out > 0) steps.push_back(expose(below, Buffer::send, {row, left_out}, left_out));
        const std::int32_t after = ranks_ - 1 - left_out;
        if (after > 0) steps.push_back(expose(above, Buffer::send, {row + left_out + 1, after}, after));
        return steps;
    }

    bool sizes_known() const { return request_.block_bytes >= 0; }

    /// Exposes the blocks of a row for others: one by one where lengths are unknown, as a reader knows its own block
    /// only.
    void expose_to_others(std::int64_t row) {
        if (sizes_known()) {
            expose_all_but(me_, row);
            return;
        }
        for (const std::int32_t other : others()) expose(other, Buffer::send, {row + other, 1}, 1);
    }

    /// The part of its row that rank `owner` exposes for this one.
    Part row_part(std::int32_t owner, std::int64_t row) const {
        if (me_ < owner) return {below, {row, owner}};
        return {above, {row + owner + 1, ranks_ - 1 - owner}};
    }

    StepId take(std::int32_t owner, std::int64_t block, Part part, Buffer to, const std::vector<StepId>& waits) {
        return builder_.pull(Rank{owner}, part.tag, part.blocks, to, Blocks(block, 1), waits);
    }

    /// No other rank reads the own chunk, so it may be overwritten.
    StepId fold_own_chunk(Buffer target = Buffer::recv) {
        return fold_ranks(ranks_, Blocks(me_, 1), {0, 0}, below, {}, target);
    }
    StepId fold(const Blocks& blocks, Interval exposed, std::int32_t tag, const std::vector<StepId>& waits) {
        return fold_ranks(ranks_, blocks, exposed, tag, waits, Buffer::recv);
    }

    /// target = contribution 0 op 1 op ... op count-1 to `blocks`. `exposed`: what every rank exposes under `tag`;
    /// empty: its row but for its own block. `free`: steps after which the target may be written. The own contribution
    /// is read before that, since with MPI_IN_PLACE they are the same memory.
    StepId fold_ranks(std::int32_t count, const Blocks& blocks, Interval exposed, std::int32_t tag,
                      const std::vector<StepId>& free, Buffer target) {
        const auto source = [&](std::int32_t other) {
            return exposed.count > 0 ? Part{tag, exposed} : row_part(other, 0);
        };
        const Buffer partial = plan::scratch_layer(1);
        std::vector<StepId> before;
        const auto until = [&](Buffer to) {
            std::vector<StepId> waits = before;
            if (to == target) waits.insert(waits.end(), free.begin(), free.end());
            return waits;
        };
        Buffer so_far = Buffer::send;
        std::int32_t next = 1;
        if (me_ == 1) {
            const Part part = source(0);
            before = {builder_.pull_reduce(Rank{0}, part.tag, part.blocks, true, Buffer::send, target, blocks,
                                           until(target))};
            so_far = target;
            next = 2;
        } else if (me_ > 1) {
            builder_.reserve_scratch(blocks, partial);
            const Part part = source(0);
            before = {builder_.pull(Rank{0}, part.tag, part.blocks, partial, blocks, {})};
            so_far = partial;
        }
        for (; next < count; ++next) {
            const Buffer to = next < me_ ? partial : target;
            if (next == me_) {
                before = {builder_.reduce(so_far, Buffer::send, to, blocks, until(to))};
            } else {
                const Part part = source(next);
                before = {
                    builder_.pull_reduce(Rank{next}, part.tag, part.blocks, false, so_far, to, blocks, until(to))};
            }
            so_far = to;
        }
        if (so_far == Buffer::send) before = {builder_.copy(Buffer::send, target, blocks, until(target))};
        return before.front();
    }

    std::int32_t ranks_, me_;
    bool copies_;
    const Request& request_;
    ProgramBuilder builder_;
};

/// With two ranks both combine the whole vector: as many bytes as with chunks, and one synchronisation less.
bool by_all(const Job& job, const Request& request, const Spec& spec) {
    return job.size() == 2 || (request.block_bytes >= 0 && request.block_bytes <= spec.size("all", 2048));
}

std::optional<std::string> refuse(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"batch", "all", "single"});
    spec.size("batch", 0);
    spec.size("all", 0);
    spec.size("single", 0);
    if (!request.shared_memory) return "ranks may not share memory here";
    if (job.nodes().groups.count() != 1) return "the ranks are not all on one node";
    if (request.block_bytes < 0 && job.size() > most_for_unknown_sizes)
        return "blocks of unknown length are exposed one by one, for up to 32 ranks";
    return std::nullopt;
}

Program make(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    if (job.size() == 1) {
        ProgramBuilder alone(rank, plan::BlockOrder::rank);
        const bool moves = request.collective != Collective::bcast && request.collective != Collective::exscan &&
                           request.collective != Collective::barrier;
        if (moves) alone.copy(Buffer::send, Buffer::recv, Blocks(0, 1), {});
        return alone.finish();
    }
    const std::int64_t single = spec.size("single", 0);
    const bool copies = request.block_bytes >= 0 && (single == 0 || request.block_bytes < single);
    const bool whole = copies && by_all(job, request, spec);
    const bool cuts =
        (request.collective == Collective::allreduce || request.collective == Collective::reduce) && !whole;
    Node node(job, rank, request, cuts ? job.size() : 1, copies);
    switch (request.collective) {
        case Collective::gather:
            return node.gather();
        case Collective::scatter:
            return node.scatter();
        case Collective::allgather:
            return node.allgather();
        case Collective::bcast:
            return node.bcast();
        case Collective::reduce:
            return whole ? node.reduce_by_root() : node.reduce_by_chunks();
        case Collective::allreduce:
            return whole ? node.allreduce_by_all() : node.allreduce_by_chunks();
        case Collective::reduce_scatter:
            return node.reduce_scatter();
        case Collective::alltoall:
            return node.alltoall();
        case Collective::barrier:
            return node.barrier();
        case Collective::scan:
            return node.scan();
        case Collective::exscan:
            return node.exscan();
        case Collective::composed:
            break;
    }
    return {};
}

std::optional<double> formula(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    if (tiers.nodes() > 1) return std::nullopt;
    const double n = input.bytes, p = tiers.ranks(), signal = tiers.intra_node().latency_s;
    switch (input.request.collective) {
        case Collective::bcast:
            return signal + tiers.copy_s(n) + std::max(tiers.copy_s(n), tiers.memory_s((p - 1) * n));
        case Collective::gather:
        case Collective::scatter:
            return signal + tiers.copy_s(n) + tiers.copy_s(n * p);
        case Collective::allgather:
        case Collective::alltoall:
            return signal + tiers.copy_s(n) + std::max(tiers.copy_s(n * p), tiers.memory_s(n * p * p));
        case Collective::barrier:
            return 2 * signal;
        default:
            // Each rank combines its share of all vectors, and all read the shares.
            return 2 * signal + tiers.copy_s(n) +
                   std::max(tiers.pull_reduce_s(n * (p - 1) / p), tiers.memory_s(n * p)) +
                   std::max(tiers.copy_s(n), tiers.memory_s(n * p));
    }
}

}  // namespace

std::vector<Algorithm> shared_rows() {
    std::vector<Algorithm> rows;
    for (std::size_t c = 0; c < plan::collective_count; ++c)
        rows.push_back({
            .collective = static_cast<Collective>(c),
            .name = "shared",
            .sentence = "Inside one node: every rank exposes what others need and reads what it needs where it is.",
            .source = "Graham, Shipman, EuroPVM/MPI 2008 (collectives on shared memory); docs/decisions/0009",
            .keys = "batch=SIZE (128K) in shared memory at once, all=SIZE (2K): up to there each rank combines whole "
                    "vectors, single=SIZE (measured): blocks or vectors from there on are read by single copy",
            .preconditions = "one node whose ranks can share memory; up to 32 where not all ranks know all sizes",
            .refuse = refuse,
            .make = make,
            .node_memory = NodeMemory::always,
            .formula = formula,
            .candidates = "shared",
            .samples = "shared",
        });
    return rows;
}

}  // namespace palmette::collectives
