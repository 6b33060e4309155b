// Link loads of a mapping, updated incrementally while nodes of a graph are exchanged.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/topology/job.hpp"

namespace palmette::topology {

/// Loads of the edges of all groups, both directions summed.
class LinkLoads {
  public:
    explicit LinkLoads(const Job& job);

    /// Negative bytes are subtracted.
    void add(std::int32_t position, std::int32_t other, double bytes);
    /// The time of the busiest link: the largest load by its capacity. Levels inside of hosts have no links.
    double busiest() const;
    /// Smooth objective for the descent, to which the second busiest link contributes, too: the sum of the fourth
    /// powers of times (an L4 norm).
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
