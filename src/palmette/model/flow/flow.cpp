#include "palmette/model/flow/flow.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>

#include "palmette/base/error.hpp"
#include "palmette/model/bound/bound.hpp"
#include "palmette/model/flow/flow_background.hpp"
#include "palmette/model/flow/flow_network.hpp"
#include "palmette/model/flow/flow_queues.hpp"
#include "palmette/model/flow/flow_steps.hpp"
#include "palmette/model/flow/flow_work.hpp"

namespace palmette::model {
namespace {

using plan::StepKind;
using Id = FlowSteps::Id;

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
          steps_(plan, job, block_bytes),
          network_(job, options, steps_.messages,
                   std::max(1e-9, bound(job, plan.request, block_bytes).seconds /
                                      static_cast<double>(std::max<std::size_t>(options.most_bins, 1)))),
          background_(job, options.traffic, network_.routes()),
          work_(plan.programs.size()),
          queues_(steps_.connections, steps_.steps.size()),
          started_(steps_.steps.size(), 0),
          left_(steps_.steps.size()) {
        for (const plan::Program& program : plan.programs) position_.push_back(job.position_of(program.rank).value);
    }

    FlowResult run() {
        for (std::size_t source = 0; source < background_.size(); ++source) send_background(source);
        for (Id id = 0; id < steps_.steps.size(); ++id)
            if (steps_.steps[id].missing == 0) ready_.push_back(id);
        start_ready();
        std::vector<FlowBundles::Ended> completed;
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
                    network_.follow_end(bundle, static_cast<double>(steps_.steps[flow].bytes), now_);
                    flowed(static_cast<Id>(flow));
                }
            }
            while (!events_.empty() && events_.top().at <= now_ * (1 + flow_same_time)) {
                const Event event = events_.top();
                events_.pop();
                handle(event);
            }
            start_ready();
        }
        return result();
    }

  private:
    enum class What : std::uint8_t { flowed, arrived, work_done, pull_ready };
    struct Event {
        double at;
        std::uint64_t order;
        Id id;
        What what;
        bool operator>(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
    };
    using Step = FlowSteps::Step;

    std::int32_t position(const Step& step) const { return position_[static_cast<std::size_t>(step.rank)]; }
    const Step& partner(const Step& step) const { return steps_.steps[step.partner]; }
    const topology::LevelCosts& costs(const Step& step) const {
        return network_.routes().costs(position(step), position(partner(step)));
    }
    void after(double seconds, Id id, What what) { events_.push({now_ + seconds, order_++, id, what}); }

    void handle(const Event& event) {
        switch (event.what) {
            case What::flowed:
                return flowed(event.id);
            case What::arrived:
                return arrived(event.id);
            case What::pull_ready:
                return work(event.id);
            case What::work_done:
                work_.end(rank_of(event.id));
                worked(event.id);
                return next_work(rank_of(event.id));
        }
    }

    void start_ready() {
        for (std::size_t i = 0; i < ready_.size(); ++i) start(ready_[i]);
        ready_.clear();
    }

    void start(Id id) {
        const Step& step = steps_.steps[id];
        switch (step.kind) {
            case StepKind::send:
            case StepKind::copy:
            case StepKind::reduce:
                return work(id);
            case StepKind::recv:
                started_[id] |= begun;
                if (is_eager(step)) {
                    if ((started_[id] & arrived_flag) != 0) work(id);
                } else if (started_[step.partner] != 0) {
                    launch(step.partner);
                }
                return;
            case StepKind::expose:
                return step.copied ? work(id) : expose(id);
            case StepKind::pull:
            case StepKind::pull_reduce:
                started_[id] = begun;
                if (started_[step.partner] != 0) pull(id);
                return;
        }
    }

    // Work of a rank: overheads, copies, reductions.

    std::int32_t rank_of(Id id) const { return steps_.steps[id].rank; }

    void work(Id id) {
        work_.add(rank_of(id), now_, id);
        next_work(rank_of(id));
    }

    void next_work(std::int32_t rank) {
        while (const auto id = work_.take(rank)) {
            const Step& step = steps_.steps[*id];
            const auto* between = plan::has_peer(step.kind) ? &costs(step) : nullptr;
            const double seconds = rank < job_.size() ? busy_seconds(step, job_.memory(), between) : 0;
            if (seconds > 0) {
                work_.begin(rank, seconds);
                after(seconds, *id, What::work_done);
            } else {
                worked(*id);
            }
        }
    }

    void worked(Id id) {
        const Step& step = steps_.steps[id];
        switch (step.kind) {
            case StepKind::send:
                started_[id] |= begun;
                if (is_eager(step) || started_[step.partner] != 0) launch(id);
                return;
            case StepKind::expose:
                return expose(id);
            case StepKind::pull:
            case StepKind::pull_reduce: {
                Step& exposed = steps_.steps[step.partner];
                complete(id);
                if (--exposed.unread == 0 && !exposed.copied) complete(step.partner);
                return;
            }
            default:
                return complete(id);
        }
    }

    // Messages.

    bool is_eager(const Step& step) const { return step.bytes <= options_.eager_bytes; }

    void launch(Id send) {
        const Step& step = steps_.steps[send];
        if (step.bytes == 0) return flowed(send);
        if (step.connection != FlowSteps::none && !queues_.join(step.connection, send)) return;
        flow(send);
    }

    void flow(Id send) {
        const Step& step = steps_.steps[send];
        const Route route = network_.routes().between(position(step), position(partner(step)));
        if (route.shares) {
            ++in_flight_;
            network_.count_own(route.bundle, step.bytes);
            network_.start(route.bundle, send, static_cast<double>(step.bytes), now_);
        } else if (route.cap < FairSharing::unlimited) {
            after(static_cast<double>(step.bytes) / route.cap, send, What::flowed);
        } else {
            flowed(send);
        }
    }

    void flowed(Id send) {
        const Step& step = steps_.steps[send];
        const topology::LevelCosts& of = costs(step);
        const double wire = of.latency_s - 2 * of.overhead_s;
        if (step.connection != FlowSteps::none && step.bytes > 0)
            if (const Id next = queues_.leave(step.connection); next != FlowSteps::none) flow(next);
        complete(send);
        if (wire > 0)
            after(wire, step.partner, What::arrived);
        else
            arrived(step.partner);
        if (++messages_ % progress_every == 0 && options_.progress) options_.progress(messages_, steps_.messages);
    }

    void arrived(Id recv) {
        started_[recv] |= arrived_flag;
        if ((started_[recv] & begun) != 0) work(recv);
    }

    void expose(Id id) {
        started_[id] = begun;
        if (steps_.steps[id].copied) complete(id);
        for (std::uint32_t i = steps_.readers_of[id]; i < steps_.readers_of[id + 1]; ++i)
            if (started_[steps_.readers[i]] != 0) pull(steps_.readers[i]);
    }

    void pull(Id id) {
        const double latency = costs(steps_.steps[id]).latency_s;
        if (latency > 0)
            after(latency, id, What::pull_ready);
        else
            work(id);
    }

    void send_background(std::size_t source) {
        if (const std::optional<BundleId> bundle = background_.next(source))
            network_.start(*bundle, first_background + source, background_.bytes(), now_);
    }

    void complete(Id id) {
        --left_;
        for (std::uint32_t i = steps_.followers_of[id]; i < steps_.followers_of[id + 1]; ++i) {
            const Id follower = steps_.followers[i];
            if (--steps_.steps[follower].missing == 0) ready_.push_back(follower);
        }
    }

    [[noreturn]] void fail_deadlocked() const {
        for (Id id = 0; id < steps_.steps.size(); ++id) {
            const Step& step = steps_.steps[id];
            if (started_[id] == 0 || step.partner == FlowSteps::none || started_[step.partner] != 0) continue;
            base::fail("the plan can't end: rank ", step.rank, ", step ",
                       id - steps_.first_of[static_cast<std::size_t>(step.rank)], " (", plan::name_of(step.kind),
                       ") waits for rank ", partner(step).rank);
        }
        base::fail("the plan can't end: ", left_, " steps wait for each other");
    }

    FlowResult result() {
        FlowResult out;
        out.seconds = now_;
        out.messages = steps_.messages;
        out.bytes = steps_.bytes;
        out.background_messages = background_messages_;
        std::tie(out.busiest_rank, out.busiest_rank_s) = work_.busiest();
        network_.conclude(now_, out);
        return out;
    }

    const topology::Job& job_;
    const FlowOptions& options_;
    FlowSteps steps_;
    FlowNetwork network_;
    FlowBackground background_;
    FlowWork work_;
    FlowQueues queues_;
    static constexpr std::uint8_t begun = 1;  ///< recv posted, send ready to transfer, expose readable, pull requested
    static constexpr std::uint8_t arrived_flag = 2;  ///< of a recv: its message has arrived
    std::vector<std::uint8_t> started_;
    std::vector<std::int32_t> position_;
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
