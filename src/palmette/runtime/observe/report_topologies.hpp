// Report of MPI's topology constructors: ranks reordered, or why not.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "palmette/base/json.hpp"
#include "palmette/topology/mapping/boxes.hpp"

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

/// How the ranks of a grid were ordered.
struct GridOrder {
    topology::GridPurpose purpose = topology::GridPurpose::halo;
    double other_gain = 0;  ///< the busiest link's load for the other purpose by that of the order made for it; 0:
                            ///< not known
};

/// Counted at rank 0 of each communicator. Safe to use from several threads.
class TopologyReport {
  public:
    /// The busiest link's time before and after, in any unit.
    void reordered(Constructor constructor, double before, double after, const std::optional<GridOrder>& grid = {});
    /// `reason`: why the ranks stayed in their order.
    void kept_order(Constructor constructor, const std::string& reason, const std::optional<GridOrder>& grid = {});

    base::Json pack() const;
    /// What another rank's `pack` gave.
    void absorb(const base::Json& other);

    /// Rows for the report; with `links_before_over_after` where ranks were reordered.
    base::Json to_json() const;
    /// Lines of at most 80 columns; empty when there was no call. `exchanges`: the job has called all-to-alls, so that
    /// grids may be for them.
    std::string page(bool exchanges) const;

  private:
    struct Row {
        std::int64_t calls = 0;
        double before = 0, after = 0;
        double most_other_gain = 0;
    };
    struct Key {
        std::uint8_t constructor = 0;
        std::string reason;        ///< empty: reordered
        std::int8_t purpose = -1;  ///< a topology::GridPurpose; -1: no grid
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    Row& row_of(Constructor constructor, const std::string& reason, const std::optional<GridOrder>& grid);

    mutable std::mutex mutex_;
    std::map<Key, Row> rows_;
};

}  // namespace palmette::runtime
