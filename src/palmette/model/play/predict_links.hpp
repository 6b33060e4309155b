// Link models for the prediction: the edges of a job's tree, shared fairly (processor sharing) or FIFO.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/play/predict.hpp"
#include "palmette/topology/job_costs.hpp"

namespace palmette::model {

/// One direction of one edge. Calls must be in order of time.
class Link {
  public:
    explicit Link(double bytes_per_s = 0) : bytes_per_s_(bytes_per_s) {}
    double bytes_per_s() const { return bytes_per_s_; }

    /// FIFO: completion time of a message that arrives at `now`.
    double queue(double now, double bytes);

    /// Fair: adds a message; returns the next completion time, provided no other message arrives before.
    double enter(double now, double bytes, std::uint32_t message);
    /// Removes the messages completed at `now` and appends them to `completed`. Returns as `enter`, or a negative
    /// number when the link is idle.
    double leave(double now, std::vector<std::uint32_t>& completed);
    /// Incremented whenever the time returned by `enter` and `leave` is invalidated.
    std::uint32_t version() const { return version_; }

  private:
    /// `served_` is the virtual time of processor sharing: bytes served per message. So the completion order never
    /// changes.
    void advance(double now);
    double next(double now) const;

    struct Waiting {
        double until;
        std::uint32_t message;
        bool operator>(const Waiting& other) const {
            return until != other.until ? until > other.until : message > other.message;
        }
    };

    double bytes_per_s_;
    double served_ = 0;
    double last_ = 0;
    std::uint32_t version_ = 0;
    std::vector<Waiting> waiting_;  ///< a heap, the next to complete on top
};

/// All edges of a job and the links of its aggregators, and the route between two positions.
class Links {
  public:
    Links(const topology::Job& job, const Costs& costs);

    /// Appends the links of limited capacity on the route from position `a` to `b`, whose outermost distinguishing
    /// level is `level`.
    void route(std::int32_t a, std::int32_t b, std::size_t level, std::vector<std::uint32_t>& out) const;
    /// Whether the aggregate bandwidth of intra-node messages is known; and the memory of a node, which they share.
    bool memory_is_limited() const { return first_of_memories_ < std::ssize(links_); }
    std::uint32_t memory_of(std::int32_t node) const {
        return static_cast<std::uint32_t>(first_of_memories_ + std::int64_t{node});
    }
    Link& operator[](std::uint32_t index) { return links_[index]; }
    const Link& operator[](std::uint32_t index) const { return links_[index]; }

  private:
    const topology::Job& job_;
    std::vector<std::int64_t> first_;  ///< by level; negative where no edge has a limit
    std::int64_t first_of_aggregators_ = 0;
    std::int64_t first_of_memories_ = 0;
    std::vector<Link> links_;  ///< two a group or aggregator: out and in; one a node's memory
};

}  // namespace palmette::model
