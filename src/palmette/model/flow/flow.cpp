#include "palmette/model/flow/flow.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/model/flow/flow_background.hpp"
#include "palmette/model/flow/flow_network.hpp"
#include "palmette/model/flow/flow_work.hpp"
#include "palmette/model/graph/step_graph.hpp"

namespace palmette::model {
namespace {

using plan::StepKind;
using Id = std::uint32_t;

/// Limit on background messages: a plan that outlasts them is larger than anyone intends to simulate.
constexpr std::int64_t most_background = 5'000'000;
constexpr std::uint64_t first_background = std::uint64_t{1} << 32;
constexpr std::int64_t progress_every = 1 << 15;
class FlowSimulation {
  public:
    FlowSimulation(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                   const FlowOptions& options)
        : job_(job),
          options_(options),
          graph_(graph_of(plan, job, block_bytes)),
          steps_(graph_.steps),
          network_(job, options, graph_.messages,
                   std::max(1e-9, bound(job, plan.request, block_bytes).seconds /
                                      static_cast<double>(std::max<std::size_t>(options.most_bins, 1)))),
          background_(job, options.traffic, network_.routes()),
          work_(plan.programs.size()),
          tail_(graph_.pairs, no_step),
          next_(steps_.size(), no_step),
          started_(steps_.size(), 0),
          left_(steps_.size()) {}

    FlowResult run() {
        for (std::size_t source = 0; source < background_.size(); ++source) send_background(source);
        for (Id id = 0; id < steps_.size(); ++id)
            if (steps_[id].missing == 0) ready_.push_back(id);
        start_ready();
        std::vector<FlowBundles::EndedFlow> completed;
        while (left_ > 0) {
            if (events_.empty() && in_flight_ == 0) fail_deadlocked();
            const double next = std::min(network_.next(), events_.empty() ? FairSharing::unlimited : events_.top().at);
            if (next > network_.settle_by() * (1 + flow_same_time)) {
                now_ = network_.settle(now_);
                continue;
            }
            now_ = next;
            completed.clear();
            network_.finish(now_, completed);
            for (const auto& [flow, bundle] : completed) {
                if (flow >= first_background) {
                    if (++background_messages_ > most_background)
                        base::fail(
                            "background traffic sends more than ", most_background,
                            " messages while the plan is simulated; give it longer ones (alltoall:half:16M) or the "
                            "collective a smaller size");
                    network_.follow_end(bundle, background_.bytes(), now_);
                    send_background(static_cast<std::size_t>(flow - first_background));
                } else {
                    --in_flight_;
                    network_.follow_end(bundle, steps_[flow].bytes, now_);
                    flowed(static_cast<Id>(flow));
                }
            }
            while (!events_.empty() && events_.top().at <= now_ * (1 + flow_same_time)) {
                const Event event = events_.top();
                events_.pop();
                handle(event.id, event.what);
            }
            start_ready();
        }
        return result();
    }

  private:
    enum class What : std::uint8_t { flowed, arrived, through, copied, work_done, pull_ready };
    struct Event {
        double at;
        std::uint64_t order;
        Id id;
        What what;
        bool operator>(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
    };

    static StepGraph graph_of(const plan::Plan& plan, const topology::Job& job,
                              const std::vector<std::int64_t>& block_bytes) {
        StepGraph graph(job, plan.request, block_bytes);
        for (const plan::Program& program : plan.programs) graph.add(program);
        graph.match();
        return graph;
    }

    std::int32_t position(Id id) const { return job_.position_of({static_cast<std::int32_t>(steps_[id].rank)}).value; }
    const topology::LevelCosts& costs(const GraphStep& step) const { return network_.routes().costs(step.level); }
    double wire_s(const GraphStep& step) const { return costs(step).latency_s - 2 * costs(step).overhead_s; }
    void after(double seconds, Id id, What what) {
        if (seconds > 0)
            events_.push({now_ + seconds, order_++, id, what});
        else
            handle(id, what);
    }

    void handle(Id id, What what) {
        switch (what) {
            case What::flowed:
                return flowed(id);
            case What::arrived:
                return arrived(id);
            case What::through:
                return copied(id, through_flag);
            case What::copied:
                return copied(id, copied_flag);
            case What::pull_ready:
                return work(id);
            case What::work_done:
                work_.end(rank_of(id));
                worked(id);
                return next_work(rank_of(id));
        }
    }

    void start_ready() {
        for (std::size_t i = 0; i < ready_.size(); ++i) start(ready_[i]);
        ready_.clear();
    }

    void start(Id id) {
        const GraphStep& step = steps_[id];
        switch (step.kind) {
            case StepKind::send:
                if (!step.in_node || is_eager(step) || started_[step.partner] != 0) return work(id);
                started_[id] = begun;
                return;
            case StepKind::copy:
            case StepKind::reduce:
                return work(id);
            case StepKind::recv:
                started_[id] |= begun;
                if (is_eager(step)) {
                    if ((started_[id] & arrived_flag) != 0) work(id);
                } else if (started_[step.partner] != 0) {
                    step.in_node ? work(step.partner) : launch(step.partner);
                }
                return;
            case StepKind::expose:
                return step.copied ? work(id) : expose(id);
            case StepKind::pull:
            case StepKind::pull_reduce:
                started_[id] = begun;
                if (started_[step.partner] != 0) return pull(id);
                next_[id] = std::exchange(next_[step.partner], id);
                return;
        }
    }

    // Work of a rank: overheads, copies, reductions.

    std::uint32_t rank_of(Id id) const { return steps_[id].rank; }

    void work(Id id) {
        work_.add(rank_of(id), now_, id);
        next_work(rank_of(id));
    }

    void next_work(std::uint32_t rank) {
        while (const auto id = work_.take(rank)) {
            const GraphStep& step = steps_[*id];
            if (step.kind != StepKind::recv || !step.in_node) {
                occupy(*id);
                continue;
            }
            const double rate = costs(step).stream_bytes_per_s;
            work_.begin_copy(rank, now_);
            after(rate > 0 ? step.bytes / rate : 0, *id, What::copied);
        }
    }

    void occupy(Id id) {
        const bool is_service = static_cast<std::int64_t>(rank_of(id)) >= job_.size();
        const double seconds = is_service ? 0 : busy_seconds(steps_[id], job_.memory(), costs(steps_[id]));
        if (seconds <= 0) return worked(id);
        work_.begin(rank_of(id), seconds);
        after(seconds, id, What::work_done);
    }

    void worked(Id id) {
        const GraphStep& step = steps_[id];
        switch (step.kind) {
            case StepKind::send:
                started_[id] |= begun;
                if (step.in_node) return copy(id);
                if (is_eager(step) || started_[step.partner] != 0) launch(id);
                return;
            case StepKind::expose:
                return expose(id);
            case StepKind::pull:
            case StepKind::pull_reduce: {
                GraphStep& exposed = steps_[step.partner];
                complete(id);
                if (--exposed.pair == 0 && !exposed.copied) complete(step.partner);
                return;
            }
            default:
                return complete(id);
        }
    }

    // Messages.

    bool is_eager(const GraphStep& step) const { return step.bytes <= static_cast<double>(options_.eager_bytes); }

    /// Messages between two ranks are ordered: one is in transfer, the others are queued.
    void launch(Id send) {
        const GraphStep& step = steps_[send];
        if (step.bytes <= 0) return flowed(send);
        const Id before = std::exchange(tail_[step.pair], send);
        if (before == no_step)
            flow(send);
        else
            next_[before] = send;
    }

    /// Within a node the sender copies a message into memory and the receiver, along with it or later, out of it.
    void copy(Id send) {
        work_.begin_copy(rank_of(send), now_);
        after(wire_s(steps_[send]), steps_[send].partner, What::arrived);
        steps_[send].bytes > 0 ? flow(send) : flowed(send);
    }

    void flow(Id send) {
        const GraphStep& step = steps_[send];
        const Route route = network_.routes().between(position(send), position(step.partner));
        if (!route.shares) return after(step.bytes / route.cap, send, What::flowed);
        ++in_flight_;
        network_.count_own(route.bundle, static_cast<std::int64_t>(step.bytes));
        network_.start(route.bundle, send, step.bytes, now_);
    }

    void flowed(Id send) {
        const GraphStep& step = steps_[send];
        if (!step.in_node && step.bytes > 0) {
            if (tail_[step.pair] == send)
                tail_[step.pair] = no_step;
            else
                flow(next_[send]);
        }
        complete(send);
        after(wire_s(step), step.partner, step.in_node ? What::through : What::arrived);
        if (++messages_ % progress_every == 0 && options_.progress) options_.progress(messages_, graph_.messages);
        if (!step.in_node) return;
        work_.end_copy(rank_of(send), now_);
        next_work(rank_of(send));
    }

    /// A receiver within a node has done its share of the copying, or the sender has.
    void copied(Id recv, std::uint8_t which) {
        started_[recv] |= which;
        if ((started_[recv] & through_flag) == 0 || (started_[recv] & copied_flag) == 0) return;
        work_.end_copy(rank_of(recv), now_);
        occupy(recv);
        next_work(rank_of(recv));
    }

    void arrived(Id recv) {
        started_[recv] |= arrived_flag;
        if ((started_[recv] & begun) != 0) work(recv);
    }

    void expose(Id id) {
        started_[id] = begun;
        if (steps_[id].copied) complete(id);
        for (Id reader = next_[id]; reader != no_step; reader = next_[reader]) pull(reader);
    }

    void pull(Id id) { after(costs(steps_[id]).latency_s, id, What::pull_ready); }

    void send_background(std::size_t source) {
        if (const std::optional<BundleId> bundle = background_.next(source))
            network_.start(*bundle, first_background + source, background_.bytes(), now_);
    }

    void complete(Id id) {
        --left_;
        for (const Id waiter : graph_.waiters(id))
            if (--steps_[waiter].missing == 0) ready_.push_back(waiter);
    }

    [[noreturn]] void fail_deadlocked() const {
        for (Id id = 0, first = 0; id < steps_.size(); ++id) {
            const GraphStep& step = steps_[id];
            if (step.rank != steps_[first].rank) first = id;
            if (started_[id] == 0 || step.partner == no_step || started_[step.partner] != 0) continue;
            base::fail("the plan can't end: rank ", step.rank, ", step ", id - first, " (", plan::name_of(step.kind),
                       ") waits for rank ", steps_[step.partner].rank);
        }
        base::fail("the plan can't end: ", left_, " steps wait for each other");
    }

    FlowResult result() {
        FlowResult out;
        out.seconds = now_;
        out.messages = graph_.messages;
        out.bytes = graph_.bytes;
        out.background_messages = background_messages_;
        std::tie(out.busiest_rank, out.busiest_rank_s) = work_.busiest();
        network_.conclude(now_, out);
        return out;
    }

    const topology::Job& job_;
    const FlowOptions& options_;
    StepGraph graph_;
    std::vector<GraphStep>& steps_;
    FlowNetwork network_;
    FlowBackground background_;
    FlowWork work_;
    std::vector<Id> tail_;  ///< by pair: the last message in transfer or queued
    std::vector<Id> next_;  ///< send: next one of the pair; expose, pull: next pull that waits for the same expose
    static constexpr std::uint8_t begun = 1;  ///< recv posted, send ready to transfer, expose readable, pull requested
    /// Recv: its message has arrived, within a node the message's beginning.
    static constexpr std::uint8_t arrived_flag = 2;
    /// Recv within a node: all is there; all is copied.
    static constexpr std::uint8_t through_flag = 4, copied_flag = 8;
    std::vector<std::uint8_t> started_;
    std::vector<Id> ready_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::size_t left_;
    double now_ = 0;
    std::uint64_t order_ = 0;
    std::int64_t in_flight_ = 0, messages_ = 0, background_messages_ = 0;
};

}  // namespace

FlowResult flow(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                const FlowOptions& options) {
    if (options.tolerance >= 0.5) base::fail("a tolerance of ", options.tolerance, " is not below 0.5");
    const auto ranks = static_cast<std::size_t>(job.size());
    if (plan.programs.size() < ranks || plan.programs.size() > ranks + job.aggregators().size())
        base::fail("a plan of ", plan.programs.size(), " ranks doesn't fit a job of ", job.size());
    return FlowSimulation(plan, job, block_bytes, options).run();
}

}  // namespace palmette::model
