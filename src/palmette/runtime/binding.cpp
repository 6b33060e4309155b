#include "palmette/runtime/binding.hpp"

#include <algorithm>

namespace palmette::runtime {
namespace {

using plan::Buffer;
using plan::Program;
using plan::Region;
using plan::Slice;
using plan::Step;
using plan::StepKind;

class Binder {
  public:
    Binder(const Program& program, const topology::Job& job, const Layout& layout)
        : program_(program), job_(job), layout_(layout) {
        for (const plan::Interval& interval : program.scratch.intervals()) {
            scratch_at_.push_back(out_.scratch_bytes);
            out_.scratch_bytes += length_of(interval);
        }
    }

    BoundProgram bind() {
        for (const Step& step : program_.steps) bind_step(step);
        link_waiters();
        return std::move(out_);
    }

  private:
    std::int32_t owner(std::int64_t block) const { return plan::owner_of(job_, program_.order, block).value; }

    bool uniform() const { return !layout_.lengths && !layout_.some_lengths; }

    std::int64_t length(std::int64_t block) const {
        return uniform() ? layout_.uniform_bytes : layout_.length(owner(block));
    }

    std::int64_t length_of(const plan::Interval& interval) const {
        if (uniform()) return interval.count * layout_.uniform_bytes;
        std::int64_t total = 0;
        for (std::int64_t b = interval.first; b < interval.end(); ++b) total += length(b);
        return total;
    }

    std::int64_t scratch_offset(std::int64_t block) const {
        const auto& intervals = program_.scratch.intervals();
        const auto after = std::upper_bound(intervals.begin(), intervals.end(), block,
                                            [](std::int64_t b, const plan::Interval& i) { return b < i.first; });
        const auto index = static_cast<std::size_t>(after - intervals.begin()) - 1;
        return scratch_at_[index] + length_of({intervals[index].first, block - intervals[index].first});
    }

    std::int64_t offset(Buffer buffer, std::int64_t block) const {
        if (buffer == Buffer::scratch) return scratch_offset(block);
        if (buffer != layout_.all_ranks) return 0;
        const std::int32_t rank = owner(block);
        return layout_.offsets ? layout_.offsets[rank] : rank * layout_.uniform_bytes;
    }

    /// Adds the pieces of a region, joining those that touch. Returns their bytes.
    std::int64_t add_region(const Region& region, Slice slice, std::size_t first_piece) {
        std::int64_t total = 0;
        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) {
            const std::int64_t whole = length(b);
            const std::int64_t bytes = plan::slice_length(slice, whole);
            if (bytes == 0) continue;
            const std::int64_t at = offset(region.buffer, b) + plan::slice_begin(slice, whole);
            total += bytes;
            if (out_.pieces.size() > first_piece) {
                Piece& last = out_.pieces.back();
                if (last.buffer == region.buffer && last.offset + last.bytes == at) {
                    last.bytes += bytes;
                    continue;
                }
            }
            out_.pieces.push_back({region.buffer, at, bytes});
        }
        return total;
    }

    void bind_step(const Step& step) {
        BoundStep bound{};
        bound.kind = step.kind;
        bound.peer = step.peer.value;
        bound.tag = step.tag;
        bound.waits = step.wait_count;
        bound.staging = -1;
        bound.first_piece = static_cast<std::uint32_t>(out_.pieces.size());
        if (step.kind == StepKind::copy) {
            for (const Region& region : program_.sources_of(step))
                bound.bytes += add_region(region, step.slice, bound.first_piece);
            bound.source_count = static_cast<std::uint32_t>(out_.pieces.size()) - bound.first_piece;
            const std::size_t targets = out_.pieces.size();
            for (const Region& region : program_.targets_of(step)) add_region(region, step.slice, targets);
        } else {
            for (const Region& region : program_.regions_of(step))
                bound.bytes += add_region(region, step.slice, bound.first_piece);
            ++out_.most_requests;
            out_.most_requests += bound.bytes / most_message_bytes;
        }
        bound.piece_count = static_cast<std::uint32_t>(out_.pieces.size()) - bound.first_piece;
        if (step.kind != StepKind::copy && bound.piece_count > 1) {
            bound.staging = out_.staging_bytes;
            out_.staging_bytes += (bound.bytes + 63) / 64 * 64;
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

    const Program& program_;
    const topology::Job& job_;
    const Layout& layout_;
    BoundProgram out_;
    std::vector<std::int64_t> scratch_at_;
};

}  // namespace

std::int64_t Layout::length(std::int32_t rank) const {
    if (lengths) return lengths[rank];
    if (!some_lengths) return uniform_bytes;
    const auto at = std::lower_bound(some_lengths->begin(), some_lengths->end(), rank,
                                     [](const auto& entry, std::int32_t r) { return entry.first < r; });
    return at != some_lengths->end() && at->first == rank ? at->second : 0;
}

BoundProgram bind(const Program& program, const topology::Job& job, const Layout& layout) {
    return Binder(program, job, layout).bind();
}

}  // namespace palmette::runtime
