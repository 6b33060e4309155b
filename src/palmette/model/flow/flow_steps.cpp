#include "palmette/model/flow/flow_steps.hpp"

#include <algorithm>
#include <tuple>

#include "palmette/base/error.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {
namespace {

using plan::Program;
using plan::StepKind;

/// One side of a message, or of an expose and its pulls, with its matching key.
struct End {
    std::int32_t from, tag;
    FlowSteps::Id id;
    auto key() const { return std::tuple(from, tag); }
};

std::int64_t bytes_of(const Program& program, const plan::Step& step, const plan::BlockLengths& lengths) {
    switch (step.kind) {
        case StepKind::copy:
            return lengths.of(program.sources_of(step), step.slice);
        case StepKind::reduce:
        case StepKind::pull_reduce:
            return lengths.of(program.targets_of(step), step.slice);
        default:
            return lengths.of(program.regions_of(step), step.slice);
    }
}

[[noreturn]] void unpaired(const plan::Plan& plan, const FlowSteps& steps, FlowSteps::Id id) {
    const FlowSteps::Step& step = steps.steps[id];
    const FlowSteps::Id index = id - steps.first_of[static_cast<std::size_t>(step.rank)];
    base::fail("the plan of ", plan.algorithm, " is wrong: rank ", step.rank, ", step ", index, " (",
               plan::name_of(step.kind), ") has no partner");
}

/// By receiver, sorted by sender and tag.
using Sides = std::vector<std::vector<End>>;
void sort(Sides& sides) {
    for (std::vector<End>& side : sides)
        std::sort(side.begin(), side.end(),
                  [](const End& a, const End& b) { return std::tuple(a.key(), a.id) < std::tuple(b.key(), b.id); });
}

}  // namespace

FlowSteps::FlowSteps(const plan::Plan& plan, const plan::Job& job, const std::vector<std::int64_t>& block_bytes) {
    const plan::BlockLengths lengths(plan.request, job, plan.programs.empty() ? 1 : plan.programs.front().cut,
                                     block_bytes);
    std::size_t total = 0;
    for (const Program& program : plan.programs) total += program.steps.size();
    if (total >= none) base::fail("a plan of ", total, " steps is too large to simulate");
    steps.reserve(total);
    for (const Program& program : plan.programs) {
        first_of.push_back(static_cast<Id>(steps.size()));
        for (const plan::Step& step : program.steps) {
            const std::int64_t size = bytes_of(program, step, lengths);
            steps.push_back(
                {step.kind, step.copied, step.readers, program.rank.value, none, step.wait_count, none, size});
            if (step.kind == StepKind::send) ++messages, bytes += size;
        }
    }
    first_of.push_back(static_cast<Id>(steps.size()));
    pair(plan);
    follow(plan);
}

void FlowSteps::pair(const plan::Plan& plan) {
    const std::size_t ranks = plan.programs.size();
    Sides sends(ranks), recvs(ranks), pulls(ranks), exposes(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
        const auto self = static_cast<std::int32_t>(r);
        for (std::size_t s = 0; s < plan.programs[r].steps.size(); ++s) {
            const plan::Step& step = plan.programs[r].steps[s];
            const Id id = first_of[r] + static_cast<Id>(s);
            if (plan::has_peer(step.kind) &&
                (step.peer.value < 0 || static_cast<std::size_t>(step.peer.value) >= ranks))
                unpaired(plan, *this, id);
            const auto peer = static_cast<std::size_t>(std::max(step.peer.value, 0));
            if (step.kind == StepKind::send) sends[peer].push_back({self, step.tag, id});
            if (step.kind == StepKind::recv) recvs[r].push_back({step.peer.value, step.tag, id});
            if (step.kind == StepKind::expose) exposes[r].push_back({self, step.tag, id});
            if (plan::pulls(step.kind)) pulls[peer].push_back({step.peer.value, step.tag, id});
        }
    }
    sort(sends), sort(recvs), sort(pulls), sort(exposes);
    for (std::size_t r = 0; r < ranks; ++r) {
        for (std::size_t i = 0; i < std::max(sends[r].size(), recvs[r].size()); ++i) {
            if (i >= recvs[r].size()) unpaired(plan, *this, sends[r][i].id);
            if (i >= sends[r].size() || sends[r][i].key() != recvs[r][i].key()) unpaired(plan, *this, recvs[r][i].id);
            steps[sends[r][i].id].partner = recvs[r][i].id;
            steps[recvs[r][i].id].partner = sends[r][i].id;
            if (i == 0 || sends[r][i - 1].from != sends[r][i].from) continue;
            Step& before = steps[sends[r][i - 1].id];
            if (before.connection == none) before.connection = connections++;
            steps[sends[r][i].id].connection = before.connection;
        }
        std::size_t e = 0;
        for (const End& pull : pulls[r]) {
            while (e < exposes[r].size() && exposes[r][e].key() < pull.key()) ++e;
            if (e == exposes[r].size() || exposes[r][e].key() != pull.key()) unpaired(plan, *this, pull.id);
            steps[pull.id].partner = exposes[r][e].id;
        }
    }
    readers_of.assign(steps.size() + 1, 0);
    for (const std::vector<End>& side : pulls)
        for (const End& pull : side) ++readers_of[steps[pull.id].partner + 1];
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kind == StepKind::expose && readers_of[i + 1] != steps[i].unread)
            unpaired(plan, *this, static_cast<Id>(i));
        readers_of[i + 1] += readers_of[i];
    }
    readers.resize(readers_of.back());
    std::vector<std::uint32_t> next(readers_of.begin(), readers_of.end() - 1);
    for (const std::vector<End>& side : pulls)
        for (const End& pull : side) readers[next[steps[pull.id].partner]++] = pull.id;
}

void FlowSteps::follow(const plan::Plan& plan) {
    followers_of.assign(steps.size() + 1, 0);
    const auto each_wait = [&](auto visit) {
        for (std::size_t r = 0; r < plan.programs.size(); ++r) {
            const Program& program = plan.programs[r];
            for (std::size_t s = 0; s < program.steps.size(); ++s)
                for (const plan::StepId wait : program.waits_of(program.steps[s]))
                    visit(first_of[r] + wait, first_of[r] + static_cast<Id>(s));
        }
    };
    each_wait([&](Id before, Id) { ++followers_of[before + 1]; });
    for (std::size_t i = 0; i < steps.size(); ++i) followers_of[i + 1] += followers_of[i];
    followers.resize(followers_of.back());
    std::vector<std::uint32_t> next(followers_of.begin(), followers_of.end() - 1);
    each_wait([&](Id before, Id after) { followers[next[before]++] = after; });
}

}  // namespace palmette::model
