// The edges of a job's tree, and how the messages on them share their capacity.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/model/costs.hpp"
#include "palmette/model/play/predict.hpp"

namespace palmette::model {

/// One direction of one edge. Time only goes on: calls come in its order.
class Link {
  public:
    explicit Link(double bytes_per_s = 0) : bytes_per_s_(bytes_per_s) {}
    double bytes_per_s() const { return bytes_per_s_; }

    /// In order: when a message that comes at `now` is through.
    double queue(double now, double bytes);

    /// Evenly: a message comes; returns when the next one will be through, if nobody else comes before.
    double enter(double now, double bytes, std::uint32_t message);
    /// Takes those that are through at `now` and appends them to `through`. Returns as `enter`, or a negative number
    /// when the link is idle.
    double leave(double now, std::vector<std::uint32_t>& through);
    /// Changes whenever the time that `enter` and `leave` foretell does.
    std::uint32_t version() const { return version_; }

  private:
    /// Every message has got as many bytes since it came as this has grown; so the order of their ends never changes.
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
    std::vector<Waiting> waiting_;  ///< a heap, the first to end on top
};

/// All edges of a job, and the way between two positions.
class Links {
  public:
    Links(const topology::Job& job, const Costs& costs);

    /// Appends the links with a limit on the way from position `a` to `b`, which `level` is the outermost level to tell
    /// apart.
    void way(std::int32_t a, std::int32_t b, std::size_t level, std::vector<std::uint32_t>& out) const;
    Link& operator[](std::uint32_t index) { return links_[index]; }
    const Link& operator[](std::uint32_t index) const { return links_[index]; }

  private:
    const topology::Job& job_;
    std::vector<std::int64_t> first_;  ///< by level; negative where no edge has a limit
    std::vector<Link> links_;          ///< two a group: out and in
};

}  // namespace palmette::model
