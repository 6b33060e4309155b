#include "palmette/model/flow.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>

#include "palmette/base/error.hpp"
#include "palmette/model/bound.hpp"
#include "palmette/model/flow_background.hpp"
#include "palmette/model/flow_bins.hpp"
#include "palmette/model/flow_bundles.hpp"
#include "palmette/model/flow_routes.hpp"
#include "palmette/model/flow_steps.hpp"

namespace palmette::model {
namespace {

using plan::StepKind;
using Id = FlowSteps::Id;

/// Times that rounding alone tells apart are one.
constexpr double same_time = 1e-12;
constexpr std::uint64_t first_background = std::uint64_t{1} << 32;
constexpr std::int64_t progress_every = 1 << 15;
constexpr std::int64_t most_exact = 200'000;
/// What is tolerated in larger plans doubles, from the first to the last, whenever so many bundles a message got new rates.
constexpr double least_tolerance = 0.01, most_tolerance = 0.08;
constexpr std::uint64_t work_a_step = 3;
/// Bins of all links together: 8 bytes each while playing.
constexpr std::size_t most_cells = std::size_t{1} << 23;

std::size_t bins_for(std::size_t links, std::size_t most) {
    std::size_t bins = std::clamp<std::size_t>(most, 2, 4096);
    while (bins > 16 && bins * links > most_cells) bins /= 2;
    return bins;
}

class Player {
  public:
    Player(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
           const FlowOptions& options)
        : job_(job),
          options_(options),
          steps_(plan, job, block_bytes),
          tolerance_(options.tolerance >= 0         ? options.tolerance
                     : steps_.messages > most_exact ? least_tolerance
                                                    : 0),
          sharing_(std::max(tolerance_, FairSharing::exact)),
          routes_(job, sharing_),
          background_(job, options.traffic, routes_),
          flows_(sharing_),
          bins_(sharing_.link_count(), bins_for(sharing_.link_count(), options.most_bins),
                std::max(1e-9, bound(job, plan.request, block_bytes).seconds /
                                   static_cast<double>(std::max<std::size_t>(options.most_bins, 1)))),
          own_bytes_(sharing_.link_count(), 0),
          cpus_(plan.programs.size()),
          connections_(steps_.connections),
          next_in_line_(steps_.connections > 0 ? steps_.steps.size() : 0, FlowSteps::none),
          started_(steps_.steps.size(), 0),
          left_(steps_.steps.size()),
          loosen_at_(work_a_step * static_cast<std::uint64_t>(steps_.messages)) {
        for (std::int32_t r = 0; r < job.size(); ++r) position_.push_back(job.position_of({r}).value);
    }

    FlowResult run() {
        for (std::size_t source = 0; source < background_.size(); ++source) send_background(source);
        for (Id id = 0; id < steps_.steps.size(); ++id)
            if (steps_.steps[id].missing == 0) ready_.push_back(id);
        start_ready();
        std::vector<FlowBundles::Ended> through;
        while (left_ > 0) {
            if (events_.empty() && under_way_ == 0) fail_stuck();
            const double next = std::min(flows_.next(), events_.empty() ? FairSharing::unlimited : events_.top().at);
            if (next > settle_by_ * (1 + same_time)) {
                settle();
                continue;
            }
            now_ = next;
            through.clear();
            flows_.finish(now_, through);
            for (const auto& [flow, bundle] : through) {
                if (flow >= first_background) {
                    ++background_messages_;
                    follow_end(bundle, background_.bytes());
                    send_background(static_cast<std::size_t>(flow - first_background));
                } else {
                    --under_way_;
                    follow_end(bundle, static_cast<double>(steps_.steps[flow].bytes));
                    flowed(static_cast<Id>(flow));
                }
            }
            while (!events_.empty() && events_.top().at <= now_ * (1 + same_time)) {
                const Event event = events_.top();
                events_.pop();
                handle(event);
            }
            start_ready();
        }
        bins_.finish(now_);
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
    struct Cpu {
        bool busy = false;
        double busy_s = 0;
        std::vector<std::pair<double, Id>> waiting;  ///< a heap: ready first first, then in the order of the program
    };
    /// Messages of one rank to another: the first one flows, and each knows who comes next.
    struct Connection {
        Id first = FlowSteps::none, last = FlowSteps::none;
    };
    using Step = FlowSteps::Step;

    std::int32_t position(const Step& step) const { return position_[static_cast<std::size_t>(step.rank)]; }
    const Step& partner(const Step& step) const { return steps_.steps[step.partner]; }
    const topology::LevelCosts& costs(const Step& step) const {
        return routes_.costs(position(step), position(partner(step)));
    }
    void after(double seconds, Id id, What what) { events_.push({now_ + seconds, order_++, id, what}); }

    // Rates.

    void start_flow(BundleId bundle, FlowBundles::Flow flow, double bytes) {
        flows_.start(bundle, flow, bytes, now_);
        settle_by_ = now_;
    }

    /// What a message leaves free others get when the next one starts, or after as much of the time that it took as is tolerated.
    void follow_end(BundleId bundle, double bytes) {
        const double at = tolerance_ > 0 ? now_ + tolerance_ * bytes / sharing_.even_share(bundle) : now_;
        settle_by_ = std::min(settle_by_, at);
        if (tolerance_ <= 0) return;
        for (const LinkId link : routes_.links_of(bundle)) bins_.add_rate(link, now_, -sharing_.rate(bundle));
        ended_.push_back(bundle);
    }

    void settle() {
        now_ = std::max(now_, settle_by_);
        settle_by_ = FairSharing::unlimited;
        loosen();
        flows_.settle(now_);
        for (const LinkId link : sharing_.touched()) bins_.set(link, now_, sharing_.load(link));
        for (const BundleId bundle : ended_)
            for (const LinkId link : routes_.links_of(bundle)) bins_.set(link, now_, sharing_.load(link));
        ended_.clear();
        if (!sharing_.touched().empty()) ++settled_;
    }

    /// Tolerates more where changes keep reaching many others, so that a large plan ends in a bounded time.
    void loosen() {
        if (options_.tolerance >= 0 || tolerance_ <= 0 || tolerance_ >= most_tolerance || sharing_.work() < loosen_at_)
            return;
        tolerance_ *= 2;
        sharing_.set_tolerance(tolerance_);
        loosen_at_ += work_a_step * static_cast<std::uint64_t>(steps_.messages);
    }

    void handle(const Event& event) {
        switch (event.what) {
            case What::flowed:
                return flowed(event.id);
            case What::arrived:
                return arrived(event.id);
            case What::pull_ready:
                return work(event.id);
            case What::work_done:
                cpu_of(event.id).busy = false;
                worked(event.id);
                return next_work(cpu_of(event.id));
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
                    if ((started_[id] & here) != 0) work(id);
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

    // What a rank is busy with.

    double seconds_of(const Step& step) const {
        const topology::MemoryCosts& memory = job_.memory();
        const auto bytes = static_cast<double>(step.bytes);
        const auto at = [&](double rate) { return rate > 0 ? bytes / rate : 0; };
        switch (step.kind) {
            case StepKind::send:
            case StepKind::recv:
                return costs(step).overhead_s;
            case StepKind::copy:
            case StepKind::expose:
                return at(memory.copy_bytes_per_s);
            case StepKind::reduce:
                return at(memory.reduce_bytes_per_s);
            case StepKind::pull:
                return at(memory.copy_bytes_per_s > 0 ? memory.copy_bytes_per_s : costs(step).stream_bytes_per_s);
            case StepKind::pull_reduce:
                return at(memory.reduce_bytes_per_s > 0 ? memory.reduce_bytes_per_s : costs(step).stream_bytes_per_s);
        }
        return 0;
    }
    Cpu& cpu_of(Id id) { return cpus_[static_cast<std::size_t>(steps_.steps[id].rank)]; }

    void work(Id id) {
        Cpu& cpu = cpu_of(id);
        cpu.waiting.emplace_back(now_, id);
        std::push_heap(cpu.waiting.begin(), cpu.waiting.end(), std::greater<>());
        next_work(cpu);
    }

    void next_work(Cpu& cpu) {
        while (!cpu.busy && !cpu.waiting.empty()) {
            std::pop_heap(cpu.waiting.begin(), cpu.waiting.end(), std::greater<>());
            const Id id = cpu.waiting.back().second;
            cpu.waiting.pop_back();
            const double seconds = seconds_of(steps_.steps[id]);
            if (seconds > 0) {
                cpu.busy = true;
                cpu.busy_s += seconds;
                after(seconds, id, What::work_done);
            } else {
                worked(id);
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
        if (step.connection != FlowSteps::none) {
            Connection& connection = connections_[step.connection];
            const bool idle = connection.first == FlowSteps::none;
            (idle ? connection.first : next_in_line_[connection.last]) = send;
            connection.last = send;
            if (!idle) return;
        }
        flow(send);
    }

    void flow(Id send) {
        const Step& step = steps_.steps[send];
        const Route route = routes_.between(position(step), position(partner(step)));
        if (route.shares) {
            ++under_way_;
            for (const LinkId link : routes_.links_of(route.bundle)) own_bytes_[link] += step.bytes;
            start_flow(route.bundle, send, static_cast<double>(step.bytes));
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
        if (step.connection != FlowSteps::none && step.bytes > 0) {
            Id& first = connections_[step.connection].first;
            first = first == connections_[step.connection].last ? FlowSteps::none : next_in_line_[first];
            if (first != FlowSteps::none) flow(first);
        }
        complete(send);
        if (wire > 0)
            after(wire, step.partner, What::arrived);
        else
            arrived(step.partner);
        if (++messages_ % progress_every == 0 && options_.progress) options_.progress(messages_, steps_.messages);
    }

    void arrived(Id recv) {
        started_[recv] |= here;
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
            start_flow(*bundle, first_background + source, background_.bytes());
    }

    void complete(Id id) {
        --left_;
        for (std::uint32_t i = steps_.followers_of[id]; i < steps_.followers_of[id + 1]; ++i) {
            const Id follower = steps_.followers[i];
            if (--steps_.steps[follower].missing == 0) ready_.push_back(follower);
        }
    }

    [[noreturn]] void fail_stuck() const {
        for (Id id = 0; id < steps_.steps.size(); ++id) {
            const Step& step = steps_.steps[id];
            if (started_[id] == 0 || step.partner == FlowSteps::none || started_[step.partner] != 0) continue;
            base::fail("the plan can't end: rank ", step.rank, ", step ",
                       id - steps_.first_of[static_cast<std::size_t>(step.rank)], " (", plan::name_of(step.kind),
                       ") waits for rank ", partner(step).rank);
        }
        base::fail("the plan can't end: ", left_, " steps wait for each other");
    }

    FlowResult result() const {
        FlowResult out;
        out.seconds = now_;
        out.messages = steps_.messages;
        out.bytes = steps_.bytes;
        out.background_messages = background_messages_;
        for (std::size_t r = 0; r < cpus_.size(); ++r)
            if (cpus_[r].busy_s > out.busiest_rank_s) {
                out.busiest_rank_s = cpus_[r].busy_s;
                out.busiest_rank = static_cast<std::int32_t>(r);
            }
        out.tolerance = tolerance_;
        out.bin_s = bins_.length();
        out.bins = std::min(bins_.bins(), static_cast<std::size_t>(now_ / bins_.length() * (1 - same_time)) + 1);
        for (LinkId link = 0; link < sharing_.link_count(); ++link) {
            const LinkPlace& place = routes_.places()[link];
            const double carried = bins_.total(link), could = sharing_.capacity(link) * now_;
            out.links.push_back({place.level, place.group, place.outwards, sharing_.capacity(link), own_bytes_[link],
                                 carried, could > 0 ? carried / could : 0});
            for (std::size_t b = 0; b < out.bins; ++b) out.carried.push_back(static_cast<float>(bins_.of(link, b)));
        }
        out.settled = settled_;
        out.work = sharing_.work();
        return out;
    }

    const topology::Job& job_;
    const FlowOptions& options_;
    FlowSteps steps_;
    double tolerance_;
    FairSharing sharing_;
    FlowRoutes routes_;
    FlowBackground background_;
    FlowBundles flows_;
    FlowBins bins_;
    std::vector<std::int64_t> own_bytes_;
    std::vector<Cpu> cpus_;
    std::vector<Connection> connections_;
    std::vector<Id> next_in_line_;            ///< by send
    static constexpr std::uint8_t begun = 1;  ///< recv posted, send ready to flow, expose readable, pull asked for
    static constexpr std::uint8_t here = 2;   ///< of a recv: its message has come
    std::vector<std::uint8_t> started_;
    std::vector<std::int32_t> position_;
    std::vector<Id> ready_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::size_t left_;
    std::uint64_t loosen_at_;
    std::vector<BundleId> ended_;  ///< since rates were shared out
    double now_ = 0;
    double settle_by_ = FairSharing::unlimited;  ///< when rates of links have to be shared out anew
    std::uint64_t order_ = 0, settled_ = 0;
    std::int64_t under_way_ = 0, messages_ = 0, background_messages_ = 0;
};

}  // namespace

FlowResult flow(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                const FlowOptions& options) {
    if (options.tolerance >= 0.5) base::fail("a tolerance of ", options.tolerance, " is no figure below 0.5");
    if (plan.programs.size() != static_cast<std::size_t>(job.size()))
        base::fail("a plan of ", plan.programs.size(), " ranks doesn't fit a job of ", job.size());
    return Player(plan, job, block_bytes, options).run();
}

}  // namespace palmette::model
