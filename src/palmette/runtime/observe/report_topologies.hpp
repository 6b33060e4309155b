// Report of MPI's topology constructors: ranks reordered, or why not.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "palmette/base/json.hpp"

namespace palmette::runtime {

/// The functions that may reorder ranks.
enum class Constructor : std::uint8_t {
    cart_create,
    graph_create,
    dist_graph_create,
    dist_graph_create_adjacent,
    count
};
const char* name_of(Constructor constructor);

/// Counted at rank 0 of each communicator. Safe to use from several threads.
class TopologyReport {
  public:
    /// The busiest link's time before and after, in any unit.
    void reordered(Constructor constructor, double before, double after);
    /// `reason`: why the ranks stayed in their order.
    void kept_order(Constructor constructor, const std::string& reason);

    base::Json pack() const;
    /// What another rank's `pack` gave.
    void absorb(const base::Json& other);

    /// Rows for the report; with `links_before_over_after` where ranks were reordered.
    base::Json to_json() const;
    /// Lines of at most 80 columns; empty when there was no call.
    std::string page() const;

  private:
    struct Row {
        std::int64_t calls = 0;
        double before = 0, after = 0;
    };
    using Key = std::pair<std::uint8_t, std::string>;  ///< constructor, reason; an empty reason: reordered

    mutable std::mutex mutex_;
    std::map<Key, Row> rows_;
};

}  // namespace palmette::runtime
