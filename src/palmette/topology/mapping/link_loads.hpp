// Bytes over the edges of a job's groups while nodes of a graph change places.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::topology {

/// Loads of the edges of all groups, both ways together.
class LinkLoads {
  public:
    explicit LinkLoads(const Job& job);

    /// Negative bytes take away.
    void add(std::int32_t position, std::int32_t other, double bytes);
    /// The time of the busiest link: the largest load by its capacity. What is inside of hosts has no link.
    double busiest() const;
    /// Smooth, so that a descent sees the second busiest, too: the sum of the fourth powers of times.
    double potential() const { return potential_; }
    double hop_bytes() const { return hop_bytes_; }

  private:
    struct Level {
        const Partition* groups;
        std::vector<double> load;
        std::vector<double> seconds_per_byte;  ///< empty inside of hosts
    };
    void change(Level& level, std::int32_t group, double bytes);

    std::vector<Level> levels_;
    double potential_ = 0;
    double hop_bytes_ = 0;
};

}  // namespace palmette::topology
