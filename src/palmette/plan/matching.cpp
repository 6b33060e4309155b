#include "palmette/plan/matching.hpp"

#include <algorithm>
#include <deque>
#include <tuple>

#include "palmette/base/text.hpp"

namespace palmette::plan {
namespace {

struct End {
    std::int32_t from, to, tag;
    StepKind kind;
    StepRef ref;
    auto key() const { return std::tuple(from, to, tag); }
};

std::string describe(const Plan& plan, StepRef ref) {
    const Program& program = plan.programs[ref.rank];
    const Step& step = program.steps[ref.step];
    std::string text = base::cat("rank ", program.rank, ", step ", ref.step, " (", name_of(step.kind));
    if (step.kind != StepKind::copy)
        text += base::cat(step.kind == StepKind::send ? " to " : " from ", step.peer, ", tag ", step.tag);
    return text + ")";
}

}  // namespace

std::optional<std::string> for_each_in_order(const Plan& plan,
                                             const std::function<void(StepRef, const StepRef*)>& visit) {
    const auto ranks = static_cast<std::uint32_t>(plan.programs.size());
    std::vector<End> ends;
    for (std::uint32_t r = 0; r < ranks; ++r) {
        const Program& program = plan.programs[r];
        for (StepId s = 0; s < program.steps.size(); ++s) {
            const Step& step = program.steps[s];
            if (step.kind == StepKind::copy) continue;
            const StepRef ref{r, s};
            const auto self = static_cast<std::int32_t>(r);
            if (step.peer.value < 0 || step.peer.value >= static_cast<std::int32_t>(ranks) || step.peer.value == self)
                return base::cat(describe(plan, ref), ": its peer is not another rank of the job");
            if (step.kind == StepKind::send)
                ends.push_back({self, step.peer.value, step.tag, step.kind, ref});
            else
                ends.push_back({step.peer.value, self, step.tag, step.kind, ref});
        }
    }
    std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
        return std::tuple(a.key(), a.kind, a.ref.step) < std::tuple(b.key(), b.kind, b.ref.step);
    });
    std::vector<std::vector<StepRef>> partner(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) partner[r].resize(plan.programs[r].steps.size());
    for (std::size_t i = 0; i < ends.size(); i += 2) {
        const auto same_key = [&](std::size_t other) {
            return other < ends.size() && ends[other].key() == ends[i].key();
        };
        // Sorted by kind within a key: one send and one recv stand next to each other, anything else doesn't.
        const bool pair = same_key(i + 1) && ends[i].kind != ends[i + 1].kind;
        const std::size_t second = pair ? i + 2 : i + 1;
        if (same_key(second))
            return base::cat(describe(plan, ends[second].ref),
                             ": a second message with the same tag between the same two ranks");
        if (!pair) return base::cat(describe(plan, ends[i].ref), ": no other rank has the matching step");
        partner[ends[i].ref.rank][ends[i].ref.step] = ends[i + 1].ref;
        partner[ends[i + 1].ref.rank][ends[i + 1].ref.step] = ends[i].ref;
    }

    std::vector<std::vector<std::uint32_t>> missing(ranks);
    std::vector<std::vector<std::vector<StepId>>> waiters(ranks);
    std::deque<StepRef> ready;
    std::size_t left = 0;
    for (std::uint32_t r = 0; r < ranks; ++r) {
        const Program& program = plan.programs[r];
        missing[r].resize(program.steps.size());
        waiters[r].resize(program.steps.size());
        for (StepId s = 0; s < program.steps.size(); ++s) {
            missing[r][s] = program.steps[s].wait_count;
            for (const StepId wait : program.waits_of(program.steps[s])) {
                if (wait >= s)
                    return base::cat(describe(plan, {r, s}), ": waits for step ", wait,
                                     ", which is not an earlier one");
                waiters[r][wait].push_back(s);
            }
            if (missing[r][s] == 0) ready.push_back({r, s});
            ++left;
        }
    }
    std::vector<std::vector<char>> started(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) started[r].assign(plan.programs[r].steps.size(), 0);
    const auto complete = [&](StepRef ref) {
        --left;
        for (const StepId waiter : waiters[ref.rank][ref.step])
            if (--missing[ref.rank][waiter] == 0) ready.push_back({ref.rank, waiter});
    };
    while (!ready.empty()) {
        const StepRef ref = ready.front();
        ready.pop_front();
        started[ref.rank][ref.step] = 1;
        const Step& step = plan.programs[ref.rank].steps[ref.step];
        if (step.kind == StepKind::copy) {
            visit(ref, nullptr);
            complete(ref);
            continue;
        }
        const StepRef other = partner[ref.rank][ref.step];
        if (!started[other.rank][other.step]) continue;
        const StepRef sender = step.kind == StepKind::send ? ref : other;
        const StepRef receiver = step.kind == StepKind::send ? other : ref;
        visit(sender, &receiver);
        complete(sender);
        complete(receiver);
    }
    if (left == 0) return std::nullopt;
    for (std::uint32_t r = 0; r < ranks; ++r)
        for (StepId s = 0; s < plan.programs[r].steps.size(); ++s)
            if (started[r][s] && plan.programs[r].steps[s].kind != StepKind::copy) {
                const StepRef other = partner[r][s];
                if (!started[other.rank][other.step])
                    return base::cat("deadlock: ", describe(plan, {r, s}), " waits for ", describe(plan, other),
                                     ", which can never start");
            }
    return std::string("deadlock: no step can start");
}

}  // namespace palmette::plan
