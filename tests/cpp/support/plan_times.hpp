// How long a plan takes on the links of its job: simple enough to check by hand.
#pragma once

#include <algorithm>
#include <map>
#include <queue>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "palmette/plan/matching.hpp"
#include "palmette/plan/plan.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::test {

/// Seconds until all messages are there, where every edge of the job's tree serves one message at a time in each
/// direction, first come first served, a message passes all edges on its way at once as the slowest allows, and nothing
/// else takes time.
inline double time_on_links(const plan::Plan& plan, const topology::Job& job) {
    using plan::StepKind;
    struct Event {
        double at;
        std::uint64_t order;
        plan::StepRef ref;
        bool operator>(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
    };
    const std::vector<std::int64_t> bytes{plan.request.block_bytes};
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::uint64_t order = 0;
    std::vector<std::vector<std::uint32_t>> missing(plan.programs.size());
    std::vector<std::vector<double>> ready(plan.programs.size());
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>, std::pair<double, plan::StepRef>> waiting;
    std::map<std::tuple<std::size_t, std::int32_t, bool>, double> busy;
    double last = 0;
    const auto complete = [&](plan::StepRef ref, double at) {
        last = std::max(last, at);
        const plan::Program& program = plan.programs[ref.rank];
        for (plan::StepId s = ref.step + 1; s < program.steps.size(); ++s)
            for (const plan::StepId wait : program.waits_of(program.steps[s]))
                if (wait == ref.step) {
                    ready[ref.rank][s] = std::max(ready[ref.rank][s], at);
                    if (--missing[ref.rank][s] == 0) events.push({ready[ref.rank][s], order++, {ref.rank, s}});
                }
    };
    const auto transfer = [&](plan::StepRef from, plan::StepRef to, double at) {
        const plan::Program& program = plan.programs[from.rank];
        const plan::Step& step = program.steps[from.step];
        const auto length = static_cast<double>(
            plan::BlockLengths(plan.request, job, program.cut, bytes).of(program.regions_of(step), step.slice));
        const std::int32_t a = job.position_of(program.rank).value;
        const std::int32_t b = job.position_of(plan.programs[to.rank].rank).value;
        std::vector<std::pair<double*, double>> edges;
        for (std::size_t l = 0; l < job.levels().size(); ++l) {
            const topology::JobLevel& level = job.levels()[l];
            if (level.groups.group_of(a) == level.groups.group_of(b)) continue;
            for (const bool out : {true, false}) {
                const std::int32_t group = level.groups.group_of(out ? a : b);
                if (const double capacity = level.up_bytes_per_s[group]; capacity > 0)
                    edges.emplace_back(&busy[{l, group, out}], length / capacity);
            }
        }
        double start = at;
        double longest = 0;
        for (const auto& [until, seconds] : edges)
            start = std::max(start, *until), longest = std::max(longest, seconds);
        for (const auto& [until, seconds] : edges) *until = start + seconds;
        complete(from, start + longest);
        complete(to, start + longest);
    };
    for (std::uint32_t r = 0; r < plan.programs.size(); ++r) {
        ready[r].assign(plan.programs[r].steps.size(), 0);
        for (plan::StepId s = 0; s < plan.programs[r].steps.size(); ++s) {
            missing[r].push_back(plan.programs[r].steps[s].wait_count);
            if (missing[r].back() == 0) events.push({0, order++, {r, s}});
        }
    }
    while (!events.empty()) {
        const Event event = events.top();
        events.pop();
        const plan::Program& program = plan.programs[event.ref.rank];
        const plan::Step& step = program.steps[event.ref.step];
        if (step.kind == StepKind::copy || step.kind == StepKind::reduce) {
            complete(event.ref, event.at);
            continue;
        }
        if (step.kind != StepKind::send && step.kind != StepKind::recv)
            throw std::runtime_error("only messages take time on links");
        const bool sends = step.kind == StepKind::send;
        const std::int32_t from = sends ? program.rank.value : step.peer.value;
        const std::int32_t to = sends ? step.peer.value : program.rank.value;
        const auto other = waiting.find({from, to, step.tag, !sends});
        if (other == waiting.end()) {
            waiting[{from, to, step.tag, sends}] = {event.at, event.ref};
            continue;
        }
        const plan::StepRef partner = other->second.second;
        waiting.erase(other);
        sends ? transfer(event.ref, partner, event.at) : transfer(partner, event.ref, event.at);
    }
    return last;
}

}  // namespace palmette::test
