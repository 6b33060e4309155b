#include "palmette/model/play/predict_path.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

using plan::StepKind;

class Chain {
  public:
    Chain(const topology::Job& job, const Costs& costs, const PlayedSteps& plan, const Player& player)
        : costs_(costs), plan_(plan), player_(player), times_(player.times()) {
        for (std::size_t l = 0; l < costs.levels.size(); ++l) {
            const bool inside = l == job.levels().size();
            const LevelTraffic& traffic = player.traffic()[l];
            LevelPart part;
            part.level = inside ? "ranks side by side" : job.levels()[l].name;
            part.contention = traffic.alone_s > 0 ? traffic.taken_s / traffic.alone_s : 1;
            part.messages = traffic.messages;
            part.bytes = static_cast<std::int64_t>(traffic.bytes);
            out_.levels.push_back(std::move(part));
        }
        for (const std::string& name : plan.stages) out_.stages.emplace_back(name, 0.0);
    }

    Prediction walk() {
        std::uint32_t at = no_step;
        for (std::uint32_t s = 0; s < plan_.steps.size(); ++s)
            if (at == no_step || times_.done[s] > times_.done[at]) at = s;
        if (at == no_step) return std::move(out_);
        now_ = out_.seconds = times_.done[at];
        // Each step is passed at most twice: by its rank's work and by its bytes.
        for (std::size_t left = 2 * plan_.steps.size() + 2; at != no_step && left > 0; --left) at = pass(at);
        return std::move(out_);
    }

  private:
    /// Gives the time since `begin` to `part`, of step `step`.
    void take(double begin, double& part, std::uint32_t step) {
        if (begin >= now_) return;
        part += now_ - begin;
        out_.stages[plan_.steps[step].stage].second += now_ - begin;
        now_ = begin;
    }

    LevelPart& level_of(std::uint32_t step) { return out_.levels[plan_.steps[step].level]; }

    /// The work of a rank on a message: overhead at first and, in a node, the bytes; packing counts as copying.
    void take_work(std::uint32_t step) {
        const PlayedStep& played = plan_.steps[step];
        const double packing = played.staged ? played.bytes / costs_.copy_bytes_per_s.value : 0;
        const double overhead = costs_.levels[played.level].overhead_s.value;
        const double begun = times_.begun[step];
        if (played.kind == StepKind::recv) {
            take(std::max(begun, now_ - packing), out_.copy_s, step);
            take(std::max(begun, now_ - overhead), level_of(step).overhead_s, step);
            take(begun, level_of(step).transfer_s, step);
            return;
        }
        take(begun + overhead, out_.copy_s, step);
        take(begun, level_of(step).overhead_s, step);
    }

    std::uint32_t pass_send(std::uint32_t send) {
        const PlayedStep& played = plan_.steps[send];
        if (now_ > times_.mark[send]) {
            take(times_.mark[send], level_of(send).transfer_s, send);
            if (!player_.in_node(played) && played.bytes > static_cast<double>(costs_.eager_bytes))
                take(times_.mark[send] - 2 * costs_.levels[played.level].latency_s.value, level_of(send).latency_s,
                     send);
        }
        take_work(send);
        return times_.cause[send];
    }

    std::uint32_t pass(std::uint32_t step) {
        const PlayedStep& played = plan_.steps[step];
        const std::uint32_t cause = times_.cause[step];
        switch (played.kind) {
            case StepKind::send:
                return pass_send(step);
            case StepKind::recv:
                take_work(step);
                if (cause == no_step || cause != played.partner) return cause;
                take(player_.in_node(played) ? times_.mark[cause] : times_.through[cause], level_of(step).latency_s,
                     step);
                return pass_send(cause);
            case StepKind::copy:
                take(times_.begun[step], out_.copy_s, step);
                return cause;
            case StepKind::reduce:
                take(times_.begun[step], out_.reduce_s, step);
                return cause;
            case StepKind::pull:
            case StepKind::pull_reduce:
                take(times_.begun[step], played.kind == StepKind::pull ? out_.copy_s : out_.reduce_s, step);
                if (cause == played.partner) take(times_.mark[cause], level_of(step).latency_s, step);
                return cause;
            case StepKind::expose:
                if (!played.copied && now_ > times_.mark[step]) return played.partner;
                take(times_.begun[step], out_.copy_s, step);
                return cause;
        }
        return no_step;
    }

    const Costs& costs_;
    const PlayedSteps& plan_;
    const Player& player_;
    const Timeline& times_;
    Prediction out_;
    double now_ = 0;
};

}  // namespace

Prediction longest_chain(const topology::Job& job, const Costs& costs, const PlayedSteps& plan, const Player& player) {
    return Chain(job, costs, plan, player).walk();
}

}  // namespace palmette::model
