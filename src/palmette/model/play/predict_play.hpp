// Discrete-event simulator of all ranks' steps; records the time line and causes for the critical path.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/graph/step_graph.hpp"
#include "palmette/model/play/predict_links.hpp"

namespace palmette::model {

/// Time line of every step, by its index; seconds.
struct Timeline {
    std::vector<double> begun;         ///< the rank started executing the step
    std::vector<double> done;          ///< the step was complete
    std::vector<double> mark;          ///< send: injected; recv: posted; expose: readable
    std::vector<double> through;       ///< send: its last byte left the slowest edge; recv: the message arrived
    std::vector<std::uint32_t> cause;  ///< predecessor on the critical path (determined `begun`), or no_step

    explicit Timeline(std::size_t steps)
        : begun(steps, 0), done(steps, -1), mark(steps, -1), through(steps, -1), cause(steps, no_step) {}
};

/// Messages of one level: transfer times with contention, and without.
struct LevelTraffic {
    double taken_s = 0, uncontended_s = 0;
    std::int64_t messages = 0;
    double bytes = 0;
};

/// One simulation. Runs once.
class Simulator {
  public:
    Simulator(const topology::Job& job, const Costs& costs, Sharing sharing, StepGraph& steps);
    /// Throws base::Error where some step never starts.
    void run();
    /// Runs until the simulated time or the number of events exceeds its limit; false where one did. Throws as run().
    bool run_within(double seconds, std::uint64_t events);

    const Timeline& times() const { return times_; }
    const std::vector<LevelTraffic>& traffic() const { return traffic_; }
    /// Intra-node: the receiver copies after the sender, out of a buffer, instead of concurrently.
    bool is_buffered(const GraphStep& step) const {
        return step.in_node && topology::eager_copy_s(step.bytes, costs_.eager_copy_bytes_per_s) > 0;
    }

  private:
    enum class What : std::uint8_t { ready, set_off, link, through, copying, arrive };
    struct Event {
        double at;
        std::uint64_t
            order;  ///< 8 * number + what: simultaneous events are handled in the order in which they were scheduled
        std::uint32_t index;
        std::uint32_t version;
        bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
    };
    struct Flow {
        std::uint32_t send;
        std::uint32_t open;  ///< links that haven't transferred it yet
    };

    void push(double at, What what, std::uint32_t index, std::uint32_t version = 0);
    void ready(std::uint32_t step, double now);
    void start_send(std::uint32_t send, double now, std::uint32_t cause);
    /// Intra-node: the copy starts.
    void copying(std::uint32_t send, double now);
    void receive(std::uint32_t recv, double now);
    void available(std::uint32_t expose, double at);
    void pull(std::uint32_t step, double now);
    void set_off(std::uint32_t send, double now);
    void transfer(std::uint32_t send, double now);
    std::uint32_t new_flow(Flow flow);
    void complete_link(std::uint32_t link, std::uint32_t version, double now);
    void left_last_edge(std::uint32_t send, double now);
    /// The rank executes a step once it is free; returns the completion time.
    double work(std::uint32_t step, double now, double seconds);
    void complete(std::uint32_t step, double at);
    double uncontended_s(const GraphStep& send) const;

    const MessageCosts& costs_of(const GraphStep& step) const { return costs_.levels[step.level]; }
    bool is_long(const GraphStep& step) const { return step.bytes > static_cast<double>(costs_.eager_bytes); }

    const topology::Job& job_;
    const Costs& costs_;
    Sharing sharing_;
    StepGraph& plan_;
    std::vector<GraphStep>& steps_;
    Links links_;
    Timeline times_;
    std::vector<LevelTraffic> traffic_;
    std::vector<std::int32_t> position_of_;
    std::vector<double> busy_;         ///< by rank: time until which it is busy
    std::vector<std::uint32_t> last_;  ///< by rank: the step that it executes until then
    std::vector<std::uint32_t>
        next_;  ///< send: next one queued between the same ranks; pull: next one waiting for the same expose
    std::vector<std::uint32_t> first_waiting_;  ///< expose: list of pulls that were ready first
    std::vector<std::uint32_t> tail_;           ///< by pair: the last message in flight or queued
    std::vector<Flow> flows_;
    std::vector<std::uint32_t> free_flows_;
    std::vector<Event> events_;
    std::uint64_t number_ = 0;
    std::vector<std::uint32_t> route_, completed_now_;
};

}  // namespace palmette::model
