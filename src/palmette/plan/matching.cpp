#include "palmette/plan/matching.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>

#include "palmette/base/text.hpp"

namespace palmette::plan {
namespace {

/// One side of a message.
struct End {
    std::int32_t from, to, tag;
    StepKind kind;
    StepRef ref;
    auto key() const { return std::tuple(from, to, tag); }
};

std::string describe(const Plan& plan, StepRef ref) {
    const Program& program = plan.programs[ref.rank];
    const Step& step = program.steps[ref.step];
    std::string text = base::cat(who(program), ", step ", ref.step, " (", name_of(step.kind));
    if (has_peer(step.kind)) text += base::cat(step.kind == StepKind::send ? " to " : " from ", step.peer);
    if (has_peer(step.kind) || step.kind == StepKind::expose) text += base::cat(", tag ", step.tag);
    return text + ")";
}

using Complaint = std::optional<std::string>;

/// Matches sends with recvs and pulls with exposes.
class Partners {
  public:
    explicit Partners(const Plan& plan) : plan_(plan), partner_(plan.programs.size()) {
        for (std::size_t r = 0; r < plan.programs.size(); ++r) partner_[r].resize(plan.programs[r].steps.size());
    }

    Complaint find() {
        const auto ranks = static_cast<std::uint32_t>(plan_.programs.size());
        for (std::uint32_t r = 0; r < ranks; ++r)
            for (StepId s = 0; s < plan_.programs[r].steps.size(); ++s)
                if (Complaint complaint = sort_in({r, s}); complaint) return complaint;
        if (Complaint complaint = pair_messages()) return complaint;
        return pair_pulls();
    }

    /// The matching side of a message, or the expose of a pull.
    StepRef of(StepRef ref) const { return partner_[ref.rank][ref.step]; }
    /// The pulls of an expose.
    const std::vector<StepRef>& readers(StepRef expose) const {
        const Step& step = plan_.programs[expose.rank].steps[expose.step];
        return exposes_.at({static_cast<std::int32_t>(expose.rank), step.tag}).readers;
    }

  private:
    struct Expose {
        StepRef ref;
        std::vector<StepRef> readers;
    };

    Complaint sort_in(StepRef ref) {
        const Step& step = plan_.programs[ref.rank].steps[ref.step];
        const auto self = static_cast<std::int32_t>(ref.rank);
        if (step.kind == StepKind::expose) {
            if (!exposes_.try_emplace({self, step.tag}, Expose{ref, {}}).second)
                return base::cat(describe(plan_, ref), ": a second expose with the same tag");
            return std::nullopt;
        }
        if (!has_peer(step.kind)) return std::nullopt;
        if (step.peer.value < 0 || step.peer.value >= static_cast<std::int32_t>(plan_.programs.size()) ||
            step.peer.value == self)
            return base::cat(describe(plan_, ref), ": its peer is not another rank of the job");
        if (step.kind == StepKind::send)
            ends_.push_back({self, step.peer.value, step.tag, step.kind, ref});
        else if (step.kind == StepKind::recv)
            ends_.push_back({step.peer.value, self, step.tag, step.kind, ref});
        else
            pulls_.push_back(ref);
        return std::nullopt;
    }

    Complaint pair_messages() {
        std::sort(ends_.begin(), ends_.end(), [](const End& a, const End& b) {
            return std::tuple(a.key(), a.kind, a.ref.step) < std::tuple(b.key(), b.kind, b.ref.step);
        });
        for (std::size_t i = 0; i < ends_.size(); i += 2) {
            const auto same_key = [&](std::size_t other) {
                return other < ends_.size() && ends_[other].key() == ends_[i].key();
            };
            // Sorted by kind within a key: a matched send and recv are adjacent and differ in kind.
            const bool pair = same_key(i + 1) && ends_[i].kind != ends_[i + 1].kind;
            const std::size_t second = pair ? i + 2 : i + 1;
            if (same_key(second))
                return base::cat(describe(plan_, ends_[second].ref),
                                 ": a second message with the same tag between the same two ranks");
            if (!pair) return base::cat(describe(plan_, ends_[i].ref), ": no other rank has the matching step");
            partner_[ends_[i].ref.rank][ends_[i].ref.step] = ends_[i + 1].ref;
            partner_[ends_[i + 1].ref.rank][ends_[i + 1].ref.step] = ends_[i].ref;
        }
        return std::nullopt;
    }

    Complaint pair_pulls() {
        for (const StepRef ref : pulls_) {
            const Step& step = plan_.programs[ref.rank].steps[ref.step];
            const auto expose = exposes_.find({step.peer.value, step.tag});
            if (expose == exposes_.end())
                return base::cat(describe(plan_, ref), ": its peer exposes nothing under this tag");
            partner_[ref.rank][ref.step] = expose->second.ref;
            expose->second.readers.push_back(ref);
        }
        for (const auto& [key, expose] : exposes_) {
            const Step& step = plan_.programs[expose.ref.rank].steps[expose.ref.step];
            if (expose.readers.size() != step.readers || expose.readers.empty())
                return base::cat(describe(plan_, expose.ref), ": waits for ", step.readers, " readers and has ",
                                 expose.readers.size());
        }
        return std::nullopt;
    }

    const Plan& plan_;
    std::vector<std::vector<StepRef>> partner_;
    std::vector<End> ends_;
    std::vector<StepRef> pulls_;
    std::map<std::pair<std::int32_t, std::int32_t>, Expose> exposes_;
};

/// Reverse dependencies of a program: by step, the steps that wait for it, ascending.
class Waiters {
  public:
    explicit Waiters(const Program& program) : begin_(program.steps.size() + 1, 0) {
        for (const Step& step : program.steps)
            for (const StepId wait : program.waits_of(step)) ++begin_[wait + 1];
        std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
        waiters_.resize(begin_.back());
        std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
        for (StepId s = 0; s < program.steps.size(); ++s)
            for (const StepId wait : program.waits_of(program.steps[s])) waiters_[next[wait]++] = s;
    }
    Span<StepId> of(StepId step) const { return {waiters_.data() + begin_[step], begin_[step + 1] - begin_[step]}; }

  private:
    std::vector<std::uint32_t> begin_;
    std::vector<StepId> waiters_;
};

class Walk {
  public:
    using Visit = std::function<void(StepRef, const StepRef*)>;
    Walk(const Plan& plan, const Partners& partners, const Visit& visit)
        : plan_(plan), partners_(partners), visit_(visit) {}

    Complaint run() {
        if (Complaint complaint = prepare()) return complaint;
        while (!ready_.empty()) {
            const StepRef ref = ready_.front();
            ready_.pop_front();
            start(ref);
        }
        return left_ == 0 ? std::nullopt : deadlock();
    }

  private:
    const Step& step(StepRef ref) const { return plan_.programs[ref.rank].steps[ref.step]; }
    bool started(StepRef ref) const { return started_[ref.rank][ref.step] != 0; }

    Complaint prepare() {
        const auto ranks = static_cast<std::uint32_t>(plan_.programs.size());
        missing_.resize(ranks), waiters_.reserve(ranks), started_.resize(ranks), unread_.resize(ranks);
        for (std::uint32_t r = 0; r < ranks; ++r) {
            const Program& program = plan_.programs[r];
            missing_[r].resize(program.steps.size());
            started_[r].assign(program.steps.size(), 0);
            unread_[r].assign(program.steps.size(), 0);
            for (StepId s = 0; s < program.steps.size(); ++s) {
                missing_[r][s] = program.steps[s].wait_count;
                unread_[r][s] = program.steps[s].readers;
                for (const StepId wait : program.waits_of(program.steps[s])) {
                    if (wait >= s)
                        return base::cat(describe(plan_, {r, s}), ": waits for step ", wait,
                                         ", which is not an earlier one");
                }
                if (missing_[r][s] == 0) ready_.push_back({r, s});
                ++left_;
            }
            waiters_.emplace_back(program);
        }
        return std::nullopt;
    }

    void complete(StepRef ref) {
        --left_;
        for (const StepId waiter : waiters_[ref.rank].of(ref.step))
            if (--missing_[ref.rank][waiter] == 0) ready_.push_back({ref.rank, waiter});
    }

    void start(StepRef ref) {
        started_[ref.rank][ref.step] = 1;
        switch (step(ref).kind) {
            case StepKind::copy:
            case StepKind::reduce:
                visit_(ref, nullptr);
                complete(ref);
                return;
            case StepKind::send:
            case StepKind::recv: {
                const StepRef other = partners_.of(ref);
                if (!started(other)) return;
                const bool sends = step(ref).kind == StepKind::send;
                const StepRef sender = sends ? ref : other;
                const StepRef receiver = sends ? other : ref;
                visit_(sender, &receiver);
                complete(sender);
                complete(receiver);
                return;
            }
            case StepKind::expose:
                visit_(ref, nullptr);
                if (step(ref).copied) complete(ref);
                for (const StepRef reader : partners_.readers(ref))
                    if (started(reader)) read(ref, reader);
                return;
            case StepKind::pull:
            case StepKind::pull_reduce:
                if (started(partners_.of(ref))) read(partners_.of(ref), ref);
                return;
        }
    }

    void read(StepRef expose, StepRef pull) {
        visit_(expose, &pull);
        complete(pull);
        if (--unread_[expose.rank][expose.step] == 0 && !step(expose).copied) complete(expose);
    }

    Complaint deadlock() const {
        for (std::uint32_t r = 0; r < plan_.programs.size(); ++r)
            for (StepId s = 0; s < plan_.programs[r].steps.size(); ++s) {
                const StepRef ref{r, s};
                if (!started(ref) || !has_peer(step(ref).kind)) continue;
                const StepRef other = partners_.of(ref);
                if (!started(other))
                    return base::cat("deadlock: ", describe(plan_, ref), " waits for ", describe(plan_, other),
                                     ", which can never start");
            }
        for (std::uint32_t r = 0; r < plan_.programs.size(); ++r)
            for (StepId s = 0; s < plan_.programs[r].steps.size(); ++s) {
                const StepRef ref{r, s};
                if (step(ref).kind != StepKind::expose || !started(ref)) continue;
                for (const StepRef reader : partners_.readers(ref))
                    if (!started(reader))
                        return base::cat("deadlock: ", describe(plan_, ref), " waits for ", describe(plan_, reader),
                                         ", which can never start");
            }
        return std::string("deadlock: no step can start");
    }

    const Plan& plan_;
    const Partners& partners_;
    const Visit& visit_;
    std::vector<std::vector<std::uint32_t>> missing_, unread_;
    std::vector<Waiters> waiters_;
    std::vector<std::vector<char>> started_;
    std::deque<StepRef> ready_;
    std::size_t left_ = 0;
};

}  // namespace

std::optional<std::string> for_each_in_order(const Plan& plan,
                                             const std::function<void(StepRef, const StepRef*)>& visit) {
    Partners partners(plan);
    if (Complaint complaint = partners.find()) return complaint;
    return Walk(plan, partners, visit).run();
}

}  // namespace palmette::plan
