#include "palmette/model/play/predict_path.hpp"

#include <algorithm>

namespace palmette::model {
namespace {

using plan::StepKind;

class CriticalPath {
  public:
    CriticalPath(const topology::Job& job, const Costs& costs, const StepGraph& plan, const Simulator& simulator)
        : costs_(costs), plan_(plan), simulator_(simulator), times_(simulator.times()) {
        for (std::size_t l = 0; l < costs.levels.size(); ++l) {
            const bool inside = l == job.levels().size();
            const LevelTraffic& traffic = simulator.traffic()[l];
            LevelPart part;
            part.level = inside ? "ranks side by side" : job.levels()[l].name;
            part.contention = traffic.uncontended_s > 0 ? traffic.taken_s / traffic.uncontended_s : 1;
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
        // The path visits each step at most twice: for its rank's CPU time and for its transfer.
        for (std::size_t left = 2 * plan_.steps.size() + 2; at != no_step && left > 0; --left) at = pass(at);
        return std::move(out_);
    }

  private:
    /// Attributes the time since `begin` to `part`, for step `step`.
    void attribute(double begin, double& part, std::uint32_t step) {
        if (begin >= now_) return;
        part += now_ - begin;
        out_.stages[plan_.steps[step].stage].second += now_ - begin;
        now_ = begin;
    }

    LevelPart& level_of(std::uint32_t step) { return out_.levels[plan_.steps[step].level]; }

    /// Attributes the CPU time of a rank for a message: overhead and, intra-node, the transfer; packing counts as
    /// copying.
    void attribute_work(std::uint32_t step) {
        const GraphStep& simulated = plan_.steps[step];
        const double packing = simulated.staged ? simulated.bytes / costs_.copy_bytes_per_s.value : 0;
        const MessageCosts& costs = costs_.levels[simulated.level];
        const double overhead =
            simulated.kind == StepKind::recv ? costs.overhead_of_receiver_s() : costs.overhead_of_sender_s();
        const double begun = times_.begun[step];
        if (simulated.kind == StepKind::recv) {
            attribute(std::max(begun, now_ - packing), out_.copy_s, step);
            attribute(std::max(begun, now_ - overhead), level_of(step).overhead_s, step);
            attribute(begun, level_of(step).transfer_s, step);
            return;
        }
        attribute(begun + overhead, out_.copy_s, step);
        attribute(begun, level_of(step).overhead_s, step);
    }

    std::uint32_t pass_send(std::uint32_t send) {
        const GraphStep& simulated = plan_.steps[send];
        if (now_ > times_.mark[send]) {
            attribute(times_.mark[send], level_of(send).transfer_s, send);
            if (!simulated.in_node && simulated.bytes > static_cast<double>(costs_.eager_bytes))
                attribute(times_.mark[send] - 2 * costs_.levels[simulated.level].latency_s.value,
                          level_of(send).latency_s, send);
        }
        attribute_work(send);
        return times_.cause[send];
    }

    std::uint32_t pass(std::uint32_t step) {
        const GraphStep& simulated = plan_.steps[step];
        const std::uint32_t cause = times_.cause[step];
        switch (simulated.kind) {
            case StepKind::send:
                return pass_send(step);
            case StepKind::recv:
                attribute_work(step);
                if (cause == no_step || cause != simulated.partner) return cause;
                attribute(simulated.in_node && !simulator_.is_buffered(simulated) ? times_.mark[cause]
                                                                                  : times_.through[cause],
                          level_of(step).latency_s, step);
                return pass_send(cause);
            case StepKind::copy:
                attribute(times_.begun[step], out_.copy_s, step);
                return cause;
            case StepKind::reduce:
                attribute(times_.begun[step], out_.reduce_s, step);
                return cause;
            case StepKind::pull:
            case StepKind::pull_reduce:
                attribute(times_.begun[step], simulated.kind == StepKind::pull ? out_.copy_s : out_.reduce_s, step);
                if (cause == simulated.partner) attribute(times_.mark[cause], level_of(step).latency_s, step);
                return cause;
            case StepKind::expose:
                if (!simulated.copied && now_ > times_.mark[step]) return simulated.partner;
                attribute(times_.begun[step], out_.copy_s, step);
                return cause;
        }
        return no_step;
    }

    const Costs& costs_;
    const StepGraph& plan_;
    const Simulator& simulator_;
    const Timeline& times_;
    Prediction out_;
    double now_ = 0;
};

}  // namespace

Prediction critical_path(const topology::Job& job, const Costs& costs, const StepGraph& plan,
                         const Simulator& simulator) {
    return CriticalPath(job, costs, plan, simulator).walk();
}

}  // namespace palmette::model
