// Programs taken apart, changed and put together again: how tests break a plan on purpose.
#pragma once

#include <vector>

#include "palmette/plan/program.hpp"

namespace palmette::test {

/// One step with its own lists.
struct LooseStep {
    plan::Step step;
    std::vector<plan::Region> regions;
    std::vector<plan::StepId> waits;
};

inline std::vector<LooseStep> take_apart(const plan::Program& program) {
    std::vector<LooseStep> out;
    for (const plan::Step& step : program.steps) {
        const auto regions = program.regions_of(step);
        const auto waits = program.waits_of(step);
        out.push_back({step, {regions.begin(), regions.end()}, {waits.begin(), waits.end()}});
    }
    return out;
}

/// Replaces the steps of `program`; everything else stays.
inline void put_together(plan::Program& program, const std::vector<LooseStep>& steps) {
    program.steps.clear();
    program.regions.clear();
    program.waits.clear();
    for (const LooseStep& loose : steps) {
        plan::Step step = loose.step;
        step.first_region = static_cast<std::uint32_t>(program.regions.size());
        step.region_count = static_cast<std::uint32_t>(loose.regions.size());
        step.first_wait = static_cast<std::uint32_t>(program.waits.size());
        step.wait_count = static_cast<std::uint32_t>(loose.waits.size());
        program.regions.insert(program.regions.end(), loose.regions.begin(), loose.regions.end());
        program.waits.insert(program.waits.end(), loose.waits.begin(), loose.waits.end());
        program.steps.push_back(step);
    }
}

/// Takes one step out; what waited for it waits for what it waited for.
inline void drop_step(plan::Program& program, plan::StepId dropped) {
    std::vector<LooseStep> steps = take_apart(program);
    const std::vector<plan::StepId> inherited = steps[dropped].waits;
    steps.erase(steps.begin() + dropped);
    for (LooseStep& loose : steps) {
        std::vector<plan::StepId> waits;
        for (const plan::StepId wait : loose.waits) {
            if (wait == dropped)
                waits.insert(waits.end(), inherited.begin(), inherited.end());
            else
                waits.push_back(wait > dropped ? wait - 1 : wait);
        }
        loose.waits = waits;
    }
    put_together(program, steps);
}

}  // namespace palmette::test
