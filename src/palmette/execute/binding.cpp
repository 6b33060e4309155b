#include "palmette/execute/binding.hpp"

#include <algorithm>

#include "palmette/execute/transport.hpp"

namespace palmette::execute {
namespace {

using plan::BlockSpace;
using plan::Buffer;
using plan::Interval;
using plan::Program;
using plan::Region;
using plan::Slice;
using plan::Span;
using plan::Step;
using plan::StepKind;

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

class Binder {
  public:
    Binder(plan::Collective collective, const Program& program, const topology::Job& job, const Layout& layout)
        : space_(plan::space_of(collective)),
          holds_all_(collective == plan::Collective::scatter || collective == plan::Collective::reduce_scatter
                         ? Buffer::send
                         : Buffer::recv),
          program_(program),
          job_(job),
          layout_(layout),
          stride_(layout.stride > 0 ? layout.stride : layout.uniform_bytes) {
        for (const plan::Blocks& layer : program.scratch) {
            out_.layer_at.push_back(out_.scratch_bytes);
            auto& at = scratch_at_.emplace_back();
            for (const Interval& interval : layer.intervals()) {
                at.push_back(out_.scratch_bytes);
                out_.scratch_bytes += length_of(interval);
            }
            out_.scratch_bytes = rounded_up(out_.scratch_bytes);
        }
    }

    BoundProgram bind() {
        for (const Step& step : program_.steps) bind_step(step);
        link_waiters();
        out_.channels = program_.channels;
        // A rank agrees with its parent and at most one child for each bit of the number of ranks.
        if (out_.channels > 0) out_.most_requests += 34;
        return std::move(out_);
    }

  private:
    /// Members of a node are counted in the order of their positions.
    std::int32_t member(plan::Rank rank) const {
        const std::int32_t position = job_.position_of(rank).value;
        const topology::Partition& nodes = job_.nodes().groups;
        return position - nodes.first(nodes.group_of(position));
    }

    std::int32_t owner(std::int64_t block) const { return plan::owner_of(job_, program_.order, block).value; }

    std::int64_t known(std::int64_t key) const {
        const auto& some = *layout_.relayed_counts;
        const auto at =
            std::lower_bound(some.begin(), some.end(), key, [](const auto& e, std::int64_t k) { return e.first < k; });
        return at != some.end() && at->first == key ? at->second : 0;
    }

    std::int64_t length(std::int64_t block) const {
        switch (space_) {
            case BlockSpace::none:
                return 0;
            case BlockSpace::listed:
                return layout_.places->length(block);
            case BlockSpace::cut:
                return plan::cut_length(layout_.uniform_bytes, program_.cut, layout_.element_bytes, block);
            case BlockSpace::per_rank: {
                const Layout::Ranks& all = holds_all_ == Buffer::send ? layout_.send : layout_.recv;
                if (all.lengths) return all.lengths[owner(block)];
                return layout_.relayed_counts ? known(owner(block)) : layout_.uniform_bytes;
            }
            case BlockSpace::pairs: {
                const std::int32_t source = owner(block / job_.size());
                const std::int32_t target = owner(block % job_.size());
                if (layout_.send.lengths && source == program_.rank.value) return layout_.send.lengths[target];
                if (layout_.recv.lengths && target == program_.rank.value) return layout_.recv.lengths[source];
                return layout_.relayed_counts ? known(std::int64_t{source} * job_.size() + target)
                                              : layout_.uniform_bytes;
            }
        }
        return 0;
    }

    bool uniform() const {
        return space_ != BlockSpace::cut && space_ != BlockSpace::listed && !layout_.send.lengths &&
               !layout_.recv.lengths && !layout_.relayed_counts;
    }

    std::int64_t length_of(const Interval& interval) const {
        if (uniform()) return space_ == BlockSpace::none ? 0 : interval.count * layout_.uniform_bytes;
        std::int64_t total = 0;
        for (std::int64_t b = interval.first; b < interval.end(); ++b) total += length(b);
        return total;
    }

    std::int64_t scratch_offset(std::size_t layer, std::int64_t block) const {
        const auto& intervals = program_.scratch[layer].intervals();
        const auto after = std::upper_bound(intervals.begin(), intervals.end(), block,
                                            [](std::int64_t b, const Interval& i) { return b < i.first; });
        const auto index = static_cast<std::size_t>(after - intervals.begin()) - 1;
        return scratch_at_[layer][index] + length_of({intervals[index].first, block - intervals[index].first});
    }

    std::int64_t rank_offset(const Layout::Ranks& ranks, std::int32_t rank) const {
        return ranks.offsets ? ranks.offsets[rank] : rank * stride_;
    }

    std::int64_t offset(Buffer buffer, std::int64_t block) const {
        if (plan::is_scratch(buffer)) return scratch_offset(plan::layer_of(buffer), block);
        const Layout::Ranks& ranks = buffer == Buffer::send ? layout_.send : layout_.recv;
        switch (space_) {
            case BlockSpace::none:
                return 0;
            case BlockSpace::listed:
                return layout_.places->offset(buffer, block);
            case BlockSpace::cut:
                return plan::cut_begin(layout_.uniform_bytes, program_.cut, layout_.element_bytes, block);
            case BlockSpace::per_rank:
                return buffer == holds_all_ ? rank_offset(ranks, owner(block)) : 0;
            case BlockSpace::pairs:
                return rank_offset(ranks, owner(buffer == Buffer::send ? block % job_.size() : block / job_.size()));
        }
        return 0;
    }

    void add_piece(std::size_t first_piece, Buffer buffer, std::int64_t at, std::int64_t bytes) {
        if (bytes == 0) return;
        if (out_.pieces.size() > first_piece) {
            Piece& last = out_.pieces.back();
            if (last.buffer == buffer && last.offset + last.bytes == at) {
                last.bytes += bytes;
                return;
            }
        }
        out_.pieces.push_back({buffer, at, bytes});
    }

    /// Adds the pieces of blocks first_block.. of a list of regions, merging adjacent ones. Returns their bytes.
    std::int64_t add(Span<Region> regions, Slice slice, std::int64_t skip, std::int64_t take, std::uint32_t& first,
                     std::uint32_t& count) {
        const std::size_t begin = out_.pieces.size();
        std::int64_t total = 0;
        std::int64_t index = 0;
        for (const Region& region : regions)
            for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b, ++index) {
                if (index < skip || index >= skip + take) continue;
                const std::int64_t whole = length(b);
                const std::int64_t bytes = plan::slice_length(slice, whole, layout_.element_bytes);
                total += bytes;
                add_piece(begin, region.buffer,
                          offset(region.buffer, b) + plan::slice_begin(slice, whole, layout_.element_bytes), bytes);
            }
        first = static_cast<std::uint32_t>(begin);
        count = static_cast<std::uint32_t>(out_.pieces.size() - begin);
        return total;
    }

    static std::int64_t blocks_in(Span<Region> regions) {
        std::int64_t count = 0;
        for (const Region& region : regions) count += region.blocks.count;
        return count;
    }

    /// Where the blocks of `regions` lie in what the peer exposes.
    void add_exposed(Span<Region> regions, const Step& step, std::uint32_t& first, std::uint32_t& count) {
        const std::size_t begin = out_.pieces.size();
        for (const Region& region : regions) {
            std::int64_t at = 0;
            for (std::int64_t b = step.exposed.first; b < region.blocks.first; ++b)
                at += plan::slice_length(step.slice, length(b), layout_.element_bytes);
            for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) {
                const std::int64_t bytes = plan::slice_length(step.slice, length(b), layout_.element_bytes);
                add_piece(begin, exposed_buffer, at, bytes);
                at += bytes;
            }
        }
        first = static_cast<std::uint32_t>(begin);
        count = static_cast<std::uint32_t>(out_.pieces.size() - begin);
    }

    /// Blocks have individual lengths that sender and receiver both know: an empty message is elided, as no rank may
    /// wait for one that contributes nothing.
    bool both_ends_know() const {
        if (space_ == BlockSpace::listed) return layout_.ends_know_lengths;
        return !uniform() && (space_ == BlockSpace::per_rank || space_ == BlockSpace::pairs);
    }

    void bind_step(const Step& step) {
        BoundStep bound{};
        bound.kind = step.kind;
        bound.peer = plan::pulls(step.kind) ? member(step.peer) : step.peer.value;
        bound.tag = step.tag;
        bound.copied = step.copied;
        bound.operation = step.operation;
        bound.readers = step.readers;
        bound.waits = step.wait_count;
        bound.staging = -1;
        const Span<Region> sources = program_.sources_of(step);
        const Span<Region> targets =
            step.kind == StepKind::pull ? program_.regions_of(step) : program_.targets_of(step);
        constexpr std::int64_t all = INT64_MAX / 2;
        switch (step.kind) {
            case StepKind::send:
            case StepKind::recv:
                bound.bytes = add(sources, step.slice, 0, all, bound.first_piece, bound.piece_count);
                if (bound.bytes == 0 && both_ends_know()) {
                    bound.kind = StepKind::copy;
                    break;
                }
                ++out_.most_requests;
                out_.most_requests += bound.bytes / most_message_bytes;
                if (bound.piece_count > 1) {
                    bound.staging = out_.staging_bytes;
                    out_.staging_bytes += rounded_up(bound.bytes);
                }
                break;
            case StepKind::expose:
                bound.bytes = add(sources, step.slice, 0, all, bound.first_piece, bound.piece_count);
                if (step.copied || bound.piece_count > 1 || bound.bytes < layout_.by_address_from)
                    out_.exposed_bytes += rounded_up(bound.bytes);
                break;
            case StepKind::copy:
                bound.bytes = add(sources, step.slice, 0, all, bound.first_piece, bound.piece_count);
                add(targets, step.slice, 0, all, bound.first_target, bound.target_count);
                break;
            case StepKind::reduce: {
                const std::int64_t half = blocks_in(targets);
                bound.bytes = add(sources, step.slice, 0, half, bound.first_piece, bound.piece_count);
                add(sources, step.slice, half, half, bound.first_right, bound.right_count);
                add(targets, step.slice, 0, all, bound.first_target, bound.target_count);
                break;
            }
            case StepKind::pull:
                add_exposed(targets, step, bound.first_piece, bound.piece_count);
                bound.bytes = add(targets, step.slice, 0, all, bound.first_target, bound.target_count);
                break;
            case StepKind::pull_reduce:
                if (step.exposed_first) {
                    add_exposed(targets, step, bound.first_piece, bound.piece_count);
                    add(sources, step.slice, 0, all, bound.first_right, bound.right_count);
                } else {
                    add(sources, step.slice, 0, all, bound.first_piece, bound.piece_count);
                    add_exposed(targets, step, bound.first_right, bound.right_count);
                }
                bound.bytes = add(targets, step.slice, 0, all, bound.first_target, bound.target_count);
                break;
        }
        out_.steps.push_back(bound);
    }

    void link_waiters() {
        std::vector<std::uint32_t> count(program_.steps.size() + 1, 0);
        for (const plan::StepId wait : program_.waits) ++count[wait];
        std::uint32_t first = 0;
        for (std::size_t s = 0; s < program_.steps.size(); ++s) {
            out_.steps[s].first_waiter = first;
            first += count[s];
            if (out_.steps[s].waits == 0) out_.first_ready.push_back(static_cast<std::uint32_t>(s));
        }
        out_.waiters.resize(first);
        for (std::size_t s = 0; s < program_.steps.size(); ++s)
            for (const plan::StepId wait : program_.waits_of(program_.steps[s])) {
                BoundStep& step = out_.steps[wait];
                out_.waiters[step.first_waiter + step.waiter_count++] = static_cast<std::uint32_t>(s);
            }
    }

    BlockSpace space_;
    Buffer holds_all_;
    const Program& program_;
    const topology::Job& job_;
    const Layout& layout_;
    std::int64_t stride_;
    BoundProgram out_;
    std::vector<std::vector<std::int64_t>> scratch_at_;  ///< by layer and interval
};

}  // namespace

BoundProgram bind(plan::Collective collective, const Program& program, const topology::Job& job, const Layout& layout) {
    BoundProgram out = Binder(collective, program, job, layout).bind();
    if (layout.transports) choose_transports(out, *layout.transports, job, program.rank);
    return out;
}

void pack_messages(BoundProgram& program, const std::function<bool(plan::Buffer)>& unreachable,
                   std::uint32_t that_stage, std::uint32_t that_reach) {
    for (BoundStep& step : program.steps) {
        if (plan::is_message(step.kind) && (that_reach >> step.transport & 1) != 0) {
            step.stages_itself = step.staging >= 0;
            continue;
        }
        if (!plan::is_message(step.kind) || step.piece_count != 1 || step.staging >= 0) continue;
        if (!unreachable(program.pieces[step.first_piece].buffer)) continue;
        step.staging = program.staging_bytes;
        step.stages_itself = (that_stage >> step.transport & 1) != 0;
        program.staging_bytes += rounded_up(step.bytes);
    }
}

bool BoundLengths::holds(const Layout& layout, std::int64_t ranks) {
    asked_.clear();
    for (const Layout::Ranks& side : {layout.send, layout.recv})
        for (const std::int64_t* list : {side.lengths, side.offsets}) {
            asked_.push_back(list ? ranks : 0);
            if (list) asked_.insert(asked_.end(), list, list + ranks);
        }
    asked_.insert(asked_.end(), {layout.uniform_bytes, layout.stride, layout.element_bytes, layout.by_address_from});
    if (layout.relayed_counts)
        for (const auto& [block, bytes] : *layout.relayed_counts) asked_.insert(asked_.end(), {block, bytes});
    if (asked_ == key_) return true;
    key_.clear();
    return false;
}

}  // namespace palmette::execute
