// Plays the steps of all ranks in time, and keeps what the longest chain is found from.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/play/predict_links.hpp"
#include "palmette/model/play/predict_steps.hpp"

namespace palmette::model {

/// When every step did what, by index of the step; seconds.
struct Timeline {
    std::vector<double> begun;         ///< its rank began to work for it
    std::vector<double> done;          ///< it was complete
    std::vector<double> mark;          ///< send: its bytes set off; recv: it was posted; expose: readers could begin
    std::vector<double> through;       ///< send: its last byte had left the slowest edge; recv: the message was there
    std::vector<std::uint32_t> cause;  ///< the step that made it wait last before `begun`, or no_step

    explicit Timeline(std::size_t steps)
        : begun(steps, 0), done(steps, -1), mark(steps, -1), through(steps, -1), cause(steps, no_step) {}
};

/// Of the messages of one level: seconds that transfers took, and would have taken alone.
struct LevelTraffic {
    double taken_s = 0, alone_s = 0;
    std::int64_t messages = 0;
    double bytes = 0;
};

/// One play. Runs once.
class Player {
  public:
    Player(const topology::Job& job, const Costs& costs, Sharing sharing, PlayedSteps& steps);
    /// Throws base::Error where some step never starts.
    void run();

    const Timeline& times() const { return times_; }
    const std::vector<LevelTraffic>& traffic() const { return traffic_; }
    bool in_node(const PlayedStep& step) const { return step.level > node_level_; }

  private:
    enum class What : std::uint8_t { ready, set_off, link, through, copying, arrive };
    struct Event {
        double at;
        std::uint64_t
            order;  ///< 8 * number + what: events at the same time come in the order in which they were foreseen
        std::uint32_t index;
        std::uint32_t version;
        bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
    };
    struct Flow {
        std::uint32_t send;
        std::uint32_t open;  ///< links that it isn't through yet
    };

    void push(double at, What what, std::uint32_t index, std::uint32_t version = 0);
    void ready(std::uint32_t step, double now);
    void start_send(std::uint32_t send, double now, std::uint32_t cause);
    /// Inside of a node: bytes begin to be copied.
    void copying(std::uint32_t send, double now);
    void receive(std::uint32_t recv, double now);
    void available(std::uint32_t expose, double at);
    void pull(std::uint32_t step, double now);
    void set_off(std::uint32_t send, double now);
    void transfer(std::uint32_t send, double now);
    void let_through(std::uint32_t link, std::uint32_t version, double now);
    void arrived_at_edge_end(std::uint32_t send, double now);
    /// The rank works for a step from when it is free; returns when it has finished.
    double work(std::uint32_t step, double now, double seconds);
    void complete(std::uint32_t step, double at);
    double alone_s(const PlayedStep& send) const;

    const MessageCosts& costs_of(const PlayedStep& step) const { return costs_.levels[step.level]; }
    bool is_long(const PlayedStep& step) const { return step.bytes > static_cast<double>(costs_.eager_bytes); }

    const topology::Job& job_;
    const Costs& costs_;
    Sharing sharing_;
    std::size_t node_level_;
    PlayedSteps& plan_;
    std::vector<PlayedStep>& steps_;
    Links links_;
    Timeline times_;
    std::vector<LevelTraffic> traffic_;
    std::vector<std::int32_t> position_of_;
    std::vector<double> busy_;         ///< by rank: until then
    std::vector<std::uint32_t> last_;  ///< by rank: the step that it works for until then
    std::vector<std::uint32_t>
        next_;  ///< send: that follows between the same ranks; pull: that waits for the same expose
    std::vector<std::uint32_t> first_waiting_;  ///< expose: pulls that came too early
    std::vector<std::uint32_t> tail_;           ///< by pair: the last message under way or waiting
    std::vector<double> memory_busy_;           ///< by node: until then with messages inside of it
    std::vector<Flow> flows_;
    std::vector<std::uint32_t> free_flows_;
    std::vector<Event> events_;
    std::uint64_t number_ = 0;
    std::vector<std::uint32_t> way_, through_now_;
};

}  // namespace palmette::model
