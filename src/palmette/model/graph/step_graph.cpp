#include "palmette/model/graph/step_graph.hpp"

#include <algorithm>
#include <tuple>

#include "palmette/base/error.hpp"

namespace palmette::model {

using plan::Program;
using plan::Step;
using plan::StepKind;

StepGraph::StepGraph(const topology::Job& job, const plan::Request& request,
                     const std::vector<std::int64_t>& block_bytes)
    : job_(job), request_(request), block_bytes_(block_bytes), node_level_(*job.find_level("node")) {}

std::uint16_t StepGraph::stage_named(const std::string& name) {
    const auto at = std::find(stages.begin(), stages.end(), name);
    if (at == stages.end()) stages.push_back(name);
    return static_cast<std::uint16_t>(std::find(stages.begin(), stages.end(), name) - stages.begin());
}

bool StepGraph::is_staged(const Program& program, const Step& step) const {
    if (step.region_count != 1 || step.slice.of > 1) return step.region_count > 1;
    const plan::Region& region = program.regions_of(step)[0];
    if (region.blocks.count == 1 || plan::is_scratch(region.buffer)) return false;
    const plan::BlockSpace space = plan::space_of(request_.collective);
    if (space == plan::BlockSpace::cut || program.order == plan::BlockOrder::rank) return false;
    // Blocks in topology order are contiguous in the caller's memory where ranks are consecutive in the same order.
    const std::int64_t p = job_.size();
    const std::int64_t first = region.blocks.first % p;
    const std::int64_t last = (region.blocks.end() - 1) % p;
    return plan::owner_of(job_, program.order, last).value - plan::owner_of(job_, program.order, first).value !=
           last - first;
}

void StepGraph::add(const Program& program) {
    const plan::BlockLengths lengths(request_, job_, program.cut, block_bytes_);
    const auto first = static_cast<std::uint32_t>(steps.size());
    const auto self = program.rank.value;
    const auto positions = job_.size() + static_cast<std::int32_t>(job_.aggregators().size());
    if (steps.size() + program.steps.size() >= no_step) base::fail("a plan of 2^32 steps is too large to simulate");
    std::vector<std::uint16_t> stage_of;
    for (const std::string& name : program.stages) stage_of.push_back(stage_named(name));
    for (const Step& step : program.steps) {
        const auto index = static_cast<std::uint32_t>(steps.size());
        GraphStep simulated;
        const bool writes = plan::combines(step.kind);
        const auto regions = step.kind == StepKind::copy ? program.sources_of(step)
                             : writes                    ? program.targets_of(step)
                                                         : program.regions_of(step);
        simulated.bytes = static_cast<double>(lengths.of(regions, step.slice));
        simulated.rank = static_cast<std::uint32_t>(self);
        simulated.missing = step.wait_count;
        simulated.stage = stage_of.empty() ? stage_named("") : stage_of[step.stage];
        simulated.kind = step.kind;
        simulated.copied = step.copied;
        if (plan::has_peer(step.kind)) {
            if (step.peer.value < 0 || step.peer.value >= positions)
                base::fail("rank ", self, ", step ", index - first, ": peer ", step.peer, " is not a rank of the job");
            simulated.level = static_cast<std::uint8_t>(
                job_.parting_level(job_.position_of(program.rank), job_.position_of(step.peer)));
            simulated.in_node = simulated.level > node_level_;
        }
        if (step.kind == StepKind::send) {
            ++messages, bytes += static_cast<std::int64_t>(simulated.bytes);
            simulated.staged = is_staged(program, step);
            sends_.push_back({self, step.peer.value, step.tag, index});
        } else if (step.kind == StepKind::recv) {
            simulated.staged = is_staged(program, step);
            recvs_.push_back({step.peer.value, self, step.tag, index});
        } else if (step.kind == StepKind::expose) {
            simulated.pair = step.readers;
            exposes_.push_back({self, 0, step.tag, index});
        } else if (plan::has_peer(step.kind)) {
            pulls_.push_back({step.peer.value, 0, step.tag, index});
        }
        steps.push_back(simulated);
    }
    link_waiters(program, first);
}

void StepGraph::link_waiters(const Program& program, std::uint32_t first) {
    const std::size_t count = program.steps.size();
    std::vector<std::uint32_t> end(count + 1, 0);
    for (const Step& step : program.steps)
        for (const plan::StepId wait : program.waits_of(step)) ++end[wait + 1];
    for (std::size_t s = 0; s < count; ++s) end[s + 1] += end[s];
    const auto base = static_cast<std::uint32_t>(waiters_.size());
    waiters_.resize(waiters_.size() + end[count]);
    if (first_waiter_.empty()) first_waiter_.push_back(0);
    for (std::size_t s = 1; s <= count; ++s) first_waiter_.push_back(base + end[s]);
    for (std::size_t s = 0; s < count; ++s)
        for (const plan::StepId wait : program.waits_of(program.steps[s]))
            waiters_[base + end[wait]++] = first + static_cast<std::uint32_t>(s);
}

void StepGraph::match() {
    const auto key = [](const End& end) { return std::tuple(end.from, end.to, end.tag); };
    const auto before = [&](const End& a, const End& b) {
        return std::tuple(key(a), a.step) < std::tuple(key(b), b.step);
    };
    for (auto* ends : {&sends_, &recvs_, &exposes_, &pulls_}) std::sort(ends->begin(), ends->end(), before);
    const auto alone = [&](const End& end) {
        base::fail("rank ", steps[end.step].rank, ": a ", plan::name_of(steps[end.step].kind), ", tag ", end.tag,
                   ", is unmatched; `palmette plan --verify` shows which");
    };
    for (std::size_t i = 0; i < std::max(sends_.size(), recvs_.size()); ++i) {
        if (i >= recvs_.size()) alone(sends_[i]);
        if (i >= sends_.size()) alone(recvs_[i]);
        if (key(sends_[i]) != key(recvs_[i])) alone(key(sends_[i]) < key(recvs_[i]) ? sends_[i] : recvs_[i]);
        if (i == 0 || sends_[i].from != sends_[i - 1].from || sends_[i].to != sends_[i - 1].to) ++pairs;
        steps[sends_[i].step].pair = pairs - 1;
        steps[sends_[i].step].partner = recvs_[i].step;
        steps[recvs_[i].step].partner = sends_[i].step;
    }
    auto pull = pulls_.cbegin();
    for (const End& expose : exposes_) {
        const auto first = pull;
        for (; pull != pulls_.cend() && key(*pull) == key(expose); ++pull) steps[pull->step].partner = expose.step;
        if (pull - first != steps[expose.step].pair) alone(expose);
    }
    if (pull != pulls_.cend()) alone(*pull);
    for (auto* ends : {&sends_, &recvs_, &exposes_, &pulls_}) std::vector<End>().swap(*ends);
}

}  // namespace palmette::model
