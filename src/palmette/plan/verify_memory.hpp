// The verifier's model of memory: which blocks a rank may access, and their symbolic contents.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palmette/base/never_destroyed.hpp"
#include "palmette/base/text.hpp"
#include "palmette/plan/contributions.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::plan::verifying {

using base::cat;
using Complaint = std::optional<std::string>;

inline constexpr Contents undefined = undefined_contents;
inline std::string at(const Program& program, StepId step) {
    return cat(who(program), ", step ", step, " (", name_of(program.steps[step].kind), ", ",
               program.stages.empty() ? "" : program.stages[program.steps[step].stage], ")");
}

/// The blocks of each buffer that a rank may access.
class Rights {
  public:
    Rights(const Plan& plan, const Job& job, const Program& program) : program_(program) {
        if (plan.contract && program.service < 0) {
            for (std::size_t b = 0; b < plan.contract->buffers(); ++b)
                callers_.push_back(plan.contract->holds(program.rank, caller_buffer(b)));
        } else if (program.service < 0) {
            callers_ = {blocks_before(plan.request, job, program), blocks_after(plan.request, job, program)};
        }
    }

    const Blocks& of(Buffer buffer) const {
        static const base::NeverDestroyed none{Blocks()};
        if (!is_scratch(buffer)) return caller_index(buffer) < callers_.size() ? callers_[caller_index(buffer)] : *none;
        return layer_of(buffer) < program_.scratch.size() ? program_.scratch[layer_of(buffer)] : *none;
    }
    std::size_t callers() const { return callers_.size(); }
    /// Number of all buffers, the caller's first.
    std::size_t buffers() const { return callers_.size() + program_.scratch.size(); }
    Buffer buffer(std::size_t index) const {
        return index < callers_.size() ? caller_buffer(index) : scratch_layer(index - callers_.size());
    }
    std::size_t index(Buffer buffer) const {
        return is_scratch(buffer) ? callers_.size() + layer_of(buffer) : caller_index(buffer);
    }

    bool covers(const Region& region) const {
        const auto& intervals = of(region.buffer).intervals();
        const auto after =
            std::upper_bound(intervals.begin(), intervals.end(), region.blocks.first,
                             [](std::int64_t block, const Interval& interval) { return block < interval.first; });
        return after != intervals.begin() && region.blocks.end() <= (after - 1)->end();
    }

  private:
    const Program& program_;
    std::vector<Blocks> callers_;
};

/// Symbolic memory of one rank: the contents of every part of every block that it has. `aliased`: input and output are
/// the same memory (MPI_IN_PLACE).
class Memory {
  public:
    Memory(const Rights& rights, std::int64_t parts, bool aliased)
        : rights_(&rights), parts_(parts), aliased_(aliased) {
        areas_.resize(rights.buffers());
        for (std::size_t b = 0; b < areas_.size(); ++b)
            for (const Interval& interval : rights.of(rights.buffer(b)).intervals())
                areas_[b].push_back(
                    {interval, std::vector<Contents>(static_cast<std::size_t>(interval.count * parts), undefined)});
    }
    /// Canonical buffer: input and output map to one where they are aliased.
    Buffer place(Buffer buffer) const { return aliased_ && buffer == Buffer::recv ? Buffer::send : buffer; }

    Contents& cell(Buffer buffer, std::int64_t block, std::int64_t part) {
        auto& areas = areas_[rights_->index(place(buffer))];
        auto area = std::upper_bound(areas.begin(), areas.end(), block,
                                     [](std::int64_t b, const Area& candidate) { return b < candidate.blocks.first; });
        if (area == areas.begin()) return nowhere_;
        --area;
        return area->cells[static_cast<std::size_t>((block - area->blocks.first) * parts_ + part)];
    }

  private:
    struct Area {
        Interval blocks;
        std::vector<Contents> cells;
    };
    const Rights* rights_;
    std::vector<std::vector<Area>> areas_;
    std::int64_t parts_;
    bool aliased_;
    Contents nowhere_ = undefined;
};

/// The blocks of a list of regions, in the order in which a message carries them.
using Place = std::pair<Buffer, std::int64_t>;
using Sequence = std::vector<Place>;
inline Sequence sequence(Span<Region> regions) {
    Sequence out;
    for (const Region& region : regions)
        for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) out.emplace_back(region.buffer, b);
    return out;
}

/// What a step writes.
inline Span<Region> written_by(const Program& program, const Step& step) {
    if (!traits(step.kind).writes) return {nullptr, 0};
    return traits(step.kind).reads ? program.targets_of(step) : program.regions_of(step);
}

/// Race check: finds two steps of a program that touch the same part of a block, at least one writing, of which neither
/// waits for the other.
Complaint check_races(const Program& program, const Memory& memory, std::int64_t parts);
/// Checks that programs without messages can be executed sequentially, with exposes that don't wait for their readers.
Complaint check_order(const Plan& plan);

}  // namespace palmette::plan::verifying
