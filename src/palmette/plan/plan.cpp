#include "palmette/plan/plan.hpp"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "palmette/plan/matching.hpp"
#include "palmette/plan/space.hpp"

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
    if (program.service >= 0) out.set("service", program.service);
    Json stages = Json::array();
    for (const std::string& stage : program.stages) stages.push(stage);
    out.set("stages", std::move(stages));
    Json scratch = Json::array();
    for (const Blocks& layer : program.scratch) {
        Json list = Json::array();
        for (const Interval& interval : layer.intervals()) {
            Json item = Json::array();
            item.push(interval.first).push(interval.count);
            list.push(std::move(item));
        }
        scratch.push(std::move(list));
    }
    out.set("scratch", std::move(scratch));
    Json steps = Json::array();
    for (const Step& step : program.steps) {
        Json item = Json::object();
        item.set("kind", name_of(step.kind)).set("stage", static_cast<int>(step.stage));
        if (has_peer(step.kind)) item.set("peer", step.peer.value);
        if (has_peer(step.kind) || step.kind == StepKind::expose) item.set("tag", step.tag);
        if (step.kind == StepKind::expose)
            item.set("readers", static_cast<int>(step.readers)).set("copied", step.copied);
        if (pulls(step.kind)) {
            Json exposed = Json::array();
            exposed.push(step.exposed.first).push(step.exposed.count);
            item.set("exposed", std::move(exposed));
        }
        if (step.kind == StepKind::pull_reduce) item.set("exposed_first", step.exposed_first);
        if (step.operation > 0) item.set("operation", static_cast<int>(step.operation));
        if (step.target_count > 0)
            item.set("from", regions_json(program.sources_of(step))).set("to", regions_json(program.targets_of(step)));
        else
            item.set("regions", regions_json(program.regions_of(step)));
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
    out.set("format", "palmette-plan").set("version", 2);
    out.set("collective", name_of(plan.request.collective)).set("algorithm", plan.algorithm);
    if (is_rooted(plan.request.collective)) out.set("root", plan.request.root.value);
    out.set("block_bytes", plan.request.block_bytes);
    const BlockOrder order = plan.programs.empty() ? BlockOrder::topology : plan.programs.front().order;
    if (space_of(plan.request.collective) == BlockSpace::cut)
        out.set("cut", plan.programs.empty() ? std::int64_t{1} : plan.programs.front().cut);
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
        if (has_peer(step.kind))
            out << (step.kind == StepKind::send ? "to " : "from ") << step.peer << " tag " << step.tag << ": ";
        if (step.kind == StepKind::expose)
            out << (step.copied ? "a copy to " : "to ") << step.readers << " readers, tag " << step.tag << ": ";
        if (step.kind == StepKind::pull_reduce && step.exposed_first) out << "(left of) ";
        if (step.target_count > 0) {
            write_regions(out, program.sources_of(step));
            out << " to ";
            write_regions(out, program.targets_of(step));
        } else {
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
            // An expose completes with its last reader; one that copies, at once.
            done[ref.rank][ref.step] = start(ref);
            return;
        }
        // ref is the send or the expose, partner the recv or the pull.
        const Program& sender = plan.programs[ref.rank];
        const Program& receiver = plan.programs[partner->rank];
        const Step& taken = receiver.steps[partner->step];
        const std::int32_t time = std::max(start(ref), start(*partner));
        std::int32_t& sent = done[ref.rank][ref.step];
        sent = std::max(sent, time + 1);
        done[partner->rank][partner->step] = time + 1;
        const Step& given = sender.steps[ref.step];
        Message message{sender.rank, receiver.rank, taken.tag, time, sender.stages[given.stage],
                        {},          taken.slice,   false};
        message.pulled = given.kind == StepKind::expose;
        const auto regions =
            taken.kind == StepKind::pull_reduce ? receiver.targets_of(taken) : receiver.regions_of(taken);
        for (const Region& region : regions) message.blocks.insert(region.blocks);
        out.push_back(std::move(message));
    });
    std::stable_sort(out.begin(), out.end(), [](const Message& a, const Message& b) {
        return std::tuple(a.time, a.from, a.to, a.tag) < std::tuple(b.time, b.from, b.to, b.tag);
    });
    return out;
}

}  // namespace palmette::plan
