// Order checks of the verifier: data races between steps of a program, and sequential execution of message-free plans.
#include <algorithm>
#include <set>
#include <tuple>

#include "palmette/plan/verify_memory.hpp"

namespace palmette::plan::verifying {
namespace {

/// One access of a step to a part of a block.
struct Access {
    Buffer place;
    std::int64_t block, part;
    std::uint32_t order;  ///< index among all accesses of the program
    StepId step;
    bool writes;
    Buffer named;  ///< as named in the step, before aliasing

    bool same_place(const Access& other) const {
        return place == other.place && block == other.block && part == other.part;
    }
    bool operator<(const Access& other) const {
        return std::tie(place, block, part, order) < std::tie(other.place, other.block, other.part, other.order);
    }
};

std::vector<Access> accesses_of(const Program& program, const Memory& memory, std::int64_t parts) {
    std::vector<Access> out;
    for (StepId s = 0; s < program.steps.size(); ++s) {
        const Step& step = program.steps[s];
        const std::int64_t begin = parts / step.slice.of * step.slice.index;
        const std::int64_t end = begin + parts / step.slice.of;
        const auto reads = static_cast<std::uint32_t>(step.region_count - written_by(program, step).size());
        std::uint32_t i = 0;
        for (const Region& region : program.regions_of(step)) {
            const bool writes = i++ >= reads;
            for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b)
                for (std::int64_t part = begin; part < end; ++part)
                    out.push_back({memory.place(region.buffer), b, part, static_cast<std::uint32_t>(out.size()), s,
                                   writes, region.buffer});
        }
    }
    return out;
}

}  // namespace

Complaint check_races(const Program& program, const Memory& memory, std::int64_t parts) {
    const std::size_t n = program.steps.size();
    const std::size_t words = (n + 63) / 64;
    // before[s]: bit set of the steps that happen before s (transitive closure).
    std::vector<std::uint64_t> before(n * words, 0);
    for (StepId s = 0; s < n; ++s)
        for (const StepId wait : program.waits_of(program.steps[s])) {
            for (std::size_t w = 0; w < words; ++w) before[s * words + w] |= before[wait * words + w];
            before[s * words + wait / 64] |= std::uint64_t{1} << wait % 64;
        }
    const auto ordered = [&](StepId earlier, StepId later) {
        return earlier == later || (before[later * words + earlier / 64] >> earlier % 64 & 1) != 0;
    };
    std::vector<Access> accesses = accesses_of(program, memory, parts);
    std::sort(accesses.begin(), accesses.end());
    // Report the first step that races, with the first step that it races with.
    const Access* earlier = nullptr;
    const Access* later = nullptr;
    for (auto first = accesses.begin(), access = first; access != accesses.end(); ++access) {
        if (!access->same_place(*first)) first = access;
        if (later != nullptr && later->order < access->order) continue;
        const auto other = std::find_if(first, access, [&](const Access& before_it) {
            return (access->writes || before_it.writes) && !ordered(before_it.step, access->step);
        });
        if (other != access) earlier = &*other, later = &*access;
    }
    if (later != nullptr)
        return cat(at(program, later->step), " and step ", earlier->step, " touch ", name_of(later->named), " block ",
                   later->block, " and neither waits for the other");
    return std::nullopt;
}

Complaint check_order(const Plan& plan) {
    std::set<std::pair<std::int32_t, std::int32_t>> exposed;
    for (const Program& program : plan.programs)
        for (const Step& step : program.steps)
            if (is_message(step.kind)) return std::nullopt;
    std::vector<StepId> next(plan.programs.size(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t r = 0; r < next.size(); ++r)
            for (const auto& steps = plan.programs[r].steps; next[r] < steps.size(); ++next[r], moved = true) {
                const Step& step = steps[next[r]];
                if (has_peer(step.kind) && !exposed.contains({step.peer.value, step.tag})) break;
                if (step.kind == StepKind::expose) exposed.insert({static_cast<std::int32_t>(r), step.tag});
            }
    }
    for (std::size_t r = 0; r < next.size(); ++r)
        if (next[r] < plan.programs[r].steps.size())
            return cat(at(plan.programs[r], next[r]), ": can't start where ranks execute their steps sequentially");
    return std::nullopt;
}

}  // namespace palmette::plan::verifying
