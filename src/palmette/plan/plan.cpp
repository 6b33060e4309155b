#include "palmette/plan/plan.hpp"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "palmette/plan/matching.hpp"

namespace palmette::plan {
namespace {

using base::Json;

Json regions_json(Span<Region> regions) {
    Json out = Json::array();
    for (const Region& region : regions) {
        Json item = Json::array();
        item.push(name_of(region.buffer)).push(region.blocks.first).push(region.blocks.count);
        out.push(std::move(item));
    }
    return out;
}

void write_regions(std::ostream& out, Span<Region> regions) {
    const char* separator = "";
    for (const Region& region : regions) {
        out << separator << name_of(region.buffer) << '[' << region.blocks.first;
        if (region.blocks.count > 1) out << ".." << region.blocks.end() - 1;
        out << ']';
        separator = " ";
    }
}

}  // namespace

Json to_json(const Program& program) {
    Json out = Json::object();
    out.set("rank", program.rank.value);
    Json stages = Json::array();
    for (const std::string& stage : program.stages) stages.push(stage);
    out.set("stages", std::move(stages));
    Json scratch = Json::array();
    for (const Interval& interval : program.scratch.intervals()) {
        Json item = Json::array();
        item.push(interval.first).push(interval.count);
        scratch.push(std::move(item));
    }
    out.set("scratch", std::move(scratch));
    Json steps = Json::array();
    for (const Step& step : program.steps) {
        Json item = Json::object();
        item.set("kind", name_of(step.kind)).set("stage", static_cast<int>(step.stage));
        if (step.kind == StepKind::copy) {
            item.set("from", regions_json(program.sources_of(step))).set("to", regions_json(program.targets_of(step)));
        } else {
            item.set("peer", step.peer.value)
                .set("tag", step.tag)
                .set("regions", regions_json(program.regions_of(step)));
        }
        if (step.slice.of > 1) {
            Json slice = Json::array();
            slice.push(static_cast<int>(step.slice.index)).push(static_cast<int>(step.slice.of));
            item.set("slice", std::move(slice));
        }
        Json waits = Json::array();
        for (const StepId wait : program.waits_of(step)) waits.push(static_cast<std::int64_t>(wait));
        item.set("after", std::move(waits));
        steps.push(std::move(item));
    }
    out.set("steps", std::move(steps));
    return out;
}

Json to_json(const Plan& plan, const Job& job) {
    Json out = Json::object();
    out.set("format", "palmette-plan").set("version", 1);
    out.set("collective", name_of(plan.request.collective)).set("algorithm", plan.algorithm);
    if (plan.request.collective != Collective::allgather) out.set("root", plan.request.root.value);
    out.set("block_bytes", plan.request.block_bytes);
    const BlockOrder order = plan.programs.empty() ? BlockOrder::topology : plan.programs.front().order;
    Json owners = Json::array();
    for (std::int32_t b = 0; b < job.size(); ++b) owners.push(owner_of(job, order, b).value);
    out.set("rank_of_block", std::move(owners));
    Json programs = Json::array();
    for (const Program& program : plan.programs) programs.push(to_json(program));
    out.set("programs", std::move(programs));
    return out;
}

std::string to_text(const Program& program) {
    std::ostringstream out;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        out << i << ' ' << name_of(step.kind) << ' ';
        if (step.kind == StepKind::copy) {
            write_regions(out, program.sources_of(step));
            out << " to ";
            write_regions(out, program.targets_of(step));
        } else {
            out << (step.kind == StepKind::send ? "to " : "from ") << step.peer << " tag " << step.tag << ": ";
            write_regions(out, program.regions_of(step));
        }
        if (step.slice.of > 1) out << " part " << step.slice.index + 1 << '/' << step.slice.of;
        const char* separator = " after ";
        for (const StepId wait : program.waits_of(step)) {
            out << separator << wait;
            separator = ",";
        }
        out << '\n';
    }
    return out.str();
}

std::vector<Message> messages_of(const Plan& plan) {
    std::vector<Message> out;
    std::vector<std::vector<std::int32_t>> done(plan.programs.size());
    for (std::size_t r = 0; r < plan.programs.size(); ++r) done[r].assign(plan.programs[r].steps.size(), 0);
    const auto start = [&](StepRef ref) {
        const Program& program = plan.programs[ref.rank];
        std::int32_t latest = 0;
        for (const StepId wait : program.waits_of(program.steps[ref.step]))
            latest = std::max(latest, done[ref.rank][wait]);
        return latest;
    };
    for_each_in_order(plan, [&](StepRef ref, const StepRef* partner) {
        if (!partner) {
            done[ref.rank][ref.step] = start(ref);
            return;
        }
        const Program& program = plan.programs[ref.rank];
        const Step& step = program.steps[ref.step];
        const std::int32_t time = std::max(start(ref), start(*partner));
        done[ref.rank][ref.step] = done[partner->rank][partner->step] = time + 1;
        Message message{program.rank, step.peer, step.tag, time, program.stages[step.stage], {}, step.slice};
        for (const Region& region : program.regions_of(step)) message.blocks.insert(region.blocks);
        out.push_back(std::move(message));
    });
    std::stable_sort(out.begin(), out.end(), [](const Message& a, const Message& b) {
        return std::tuple(a.time, a.from, a.to, a.tag) < std::tuple(b.time, b.from, b.to, b.tag);
    });
    return out;
}

}  // namespace palmette::plan
