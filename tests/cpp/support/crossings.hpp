// How often messages that wait for each other cross from one group of a level to another.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "palmette/plan/matching.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::test {

/// The most crossings in any chain of messages and pulls: what a slow spine costs in latency.
inline int crossings_in_a_row(const plan::Plan& plan, const topology::Job& job, std::string_view level) {
    const auto found = job.find_level(level);
    if (!found) return 0;
    const topology::Partition& groups = job.levels()[*found].groups;
    const auto group = [&](std::size_t rank) {
        return groups.group_of(job.position_of({static_cast<std::int32_t>(rank)}).value);
    };
    std::vector<std::vector<int>> after(plan.programs.size());
    for (std::size_t r = 0; r < after.size(); ++r) after[r].assign(plan.programs[r].steps.size(), 0);
    const auto before = [&](plan::StepRef ref) {
        int most = 0;
        for (const plan::StepId wait : plan.programs[ref.rank].waits_of(plan.programs[ref.rank].steps[ref.step]))
            most = std::max(most, after[ref.rank][wait]);
        return most;
    };
    int most = 0;
    const auto complaint = plan::for_each_in_order(plan, [&](plan::StepRef ref, const plan::StepRef* partner) {
        int& here = after[ref.rank][ref.step];
        here = std::max(here, before(ref));
        if (partner) {
            // A message that was sent has left: only its receiver waits for the far end.
            const int there = std::max(here, before(*partner)) + (group(ref.rank) != group(partner->rank) ? 1 : 0);
            after[partner->rank][partner->step] = there;
            most = std::max(most, there);
        }
    });
    if (complaint) throw std::runtime_error(*complaint);
    return most;
}

}  // namespace palmette::test
