// How long a plan of messages takes where all messages under way share the links of the job fairly, as TCP connections
// about do.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "palmette/plan/plan.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::test {

/// Runs a plan of one block size: a message flows from when both sides have started until it is through; at any moment
/// rates are max-min fair over the edges of the job's tree, each direction apart. Messages of one rank to another flow
/// one after the other. Edges without a capacity, and everything else, take no time.
class FairLinks {
  public:
    FairLinks(const plan::Plan& plan, const topology::Job& job) : plan_(plan), job_(job) {
        for (const topology::JobLevel& level : job.levels()) {
            first_edge_.push_back(capacity_.size());
            for (std::int32_t g = 0; g < level.groups.count(); ++g)
                capacity_.insert(capacity_.end(), 2, level.up_bytes_per_s[g]);
        }
        for (std::size_t r = 0; r < plan.programs.size(); ++r)
            for (const plan::Step& step : plan.programs[r].steps) missing_[r].push_back(step.wait_count);
    }

    /// Seconds until all is done.
    double run() {
        for (auto& [r, missing] : missing_)
            for (plan::StepId s = 0; s < missing.size(); ++s)
                if (missing[s] == 0) ready_.push_back({r, s});
        double now = 0;
        for (start_all(); !flows_.empty(); start_all()) {
            share();
            double next = std::numeric_limits<double>::max();
            for (const Flow& flow : flows_) next = std::min(next, flow.left / flow.rate);
            now += next;
            std::vector<Flow> still;
            for (Flow& flow : flows_) {
                flow.left -= flow.rate * next;
                if (flow.left > 1e-6) {
                    still.push_back(flow);
                } else {
                    complete(flow.send);
                    complete(flow.recv);
                    if (flow.line) start_next(*flow.line, still);
                }
            }
            flows_ = std::move(still);
        }
        return now;
    }

  private:
    using Ref = std::pair<std::size_t, plan::StepId>;
    struct Flow {
        Ref send, recv;
        double left, rate;
        std::vector<std::size_t> edges;
        std::deque<Flow>* line;  ///< itself and what comes after it
    };

    const plan::Step& step(Ref ref) const { return plan_.programs[ref.first].steps[ref.second]; }

    void complete(Ref ref) {
        const plan::Program& program = plan_.programs[ref.first];
        for (plan::StepId s = ref.second + 1; s < program.steps.size(); ++s)
            for (const plan::StepId wait : program.waits_of(program.steps[s]))
                if (wait == ref.second && --missing_[ref.first][s] == 0) ready_.push_back({ref.first, s});
    }
    void start_all() {
        for (std::size_t i = 0; i < ready_.size(); ++i) {
            const Ref ref = ready_[i];
            const plan::StepKind kind = step(ref).kind;
            if (kind == plan::StepKind::copy) {
                complete(ref);
                continue;
            }
            if (kind != plan::StepKind::send && kind != plan::StepKind::recv)
                throw std::runtime_error("only messages share links");
            const bool sends = kind == plan::StepKind::send;
            const auto self = static_cast<std::int32_t>(ref.first);
            const std::int32_t from = sends ? self : step(ref).peer.value;
            const std::int32_t to = sends ? step(ref).peer.value : self;
            const auto [other, first] = waiting_.try_emplace({from, to, step(ref).tag}, ref);
            if (first) continue;
            sends ? launch(ref, other->second) : launch(other->second, ref);
            waiting_.erase(other);
        }
        ready_.clear();
    }
    void launch(Ref send, Ref recv) {
        const std::vector<std::int64_t> bytes{plan_.request.block_bytes};
        const plan::Program& program = plan_.programs[send.first];
        const std::int64_t length = plan::BlockLengths(plan_.request, job_, program.cut, bytes)
                                        .of(program.regions_of(step(send)), step(send).slice);
        Flow flow{send, recv, static_cast<double>(length), 0, {}, nullptr};
        const std::int32_t a = job_.position_of(program.rank).value;
        const std::int32_t b = job_.position_of(step(send).peer).value;
        for (std::size_t l = 0; l < job_.levels().size(); ++l) {
            const topology::Partition& groups = job_.levels()[l].groups;
            if (groups.group_of(a) == groups.group_of(b)) continue;
            for (const std::size_t edge : {first_edge_[l] + 2 * static_cast<std::size_t>(groups.group_of(a)),
                                           first_edge_[l] + 2 * static_cast<std::size_t>(groups.group_of(b)) + 1})
                if (capacity_[edge] > 0) flow.edges.push_back(edge);
        }
        if (length > 0) {
            flow.line = &lines_[{program.rank.value, step(send).peer.value}];
            flow.line->push_back(flow);
            if (flow.line->size() > 1) return;
        }
        flows_.push_back(std::move(flow));
    }
    static void start_next(std::deque<Flow>& line, std::vector<Flow>& under_way) {
        line.pop_front();
        if (!line.empty()) under_way.push_back(line.front());
    }
    /// Max-min: the edge with the least for each of its messages settles their rates, then the next one.
    void share() {
        std::vector<double> left = capacity_;
        std::vector<int> users(capacity_.size(), 0);
        std::vector<Flow*> open;
        for (Flow& flow : flows_) {
            flow.rate = 1e12;
            for (const std::size_t edge : flow.edges) ++users[edge];
            if (!flow.edges.empty()) open.push_back(&flow);
        }
        while (!open.empty()) {
            std::size_t tightest = capacity_.size();
            const auto share_of = [&](std::size_t edge) { return left[edge] / users[edge]; };
            for (std::size_t e = 0; e < capacity_.size(); ++e)
                if (users[e] > 0 && (tightest == capacity_.size() || share_of(e) < share_of(tightest))) tightest = e;
            const double rate = share_of(tightest);
            std::erase_if(open, [&](Flow* flow) {
                if (std::find(flow->edges.begin(), flow->edges.end(), tightest) == flow->edges.end()) return false;
                flow->rate = rate;
                for (const std::size_t edge : flow->edges) left[edge] -= rate, --users[edge];
                return true;
            });
        }
    }

    const plan::Plan& plan_;
    const topology::Job& job_;
    std::vector<std::size_t> first_edge_;  ///< by level; two for each group, out and in
    std::vector<double> capacity_;
    std::map<std::size_t, std::vector<std::uint32_t>> missing_;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Ref> waiting_;
    std::vector<Ref> ready_;
    std::vector<Flow> flows_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::deque<Flow>> lines_;
};

}  // namespace palmette::test
