// How the sums of calls and regions grow: each second, as far as calls or regions end meanwhile, what has been added to
// which of them. So the recording of a profile shows change over time, in a space that doesn't grow with it.
#pragma once

#include <cstdint>
#include <vector>

#include "palmette/record/clock.hpp"
#include "palmette/trace/format.hpp"

namespace palmette::record {

/// `border`: the program has said that something else begins; `end`: nothing is recorded any more.
enum class Moment : std::uint8_t { any, border, end };

/// One thread at a time.
class Snapshots {
  public:
    /// Makes the tables' capacities.
    static void size(trace::SnapshotsHeader& header);
    void attach(trace::SectionHeader& section);
    /// Takes one where it is time for it, or not just any moment. Cost: some ns where it isn't, else O(sums), 10 us for
    /// most.
    void take(const BothClocks& at, Moment moment);
    /// What was counted so far isn't the program's.
    void forget();

  private:
    struct Sum {
        std::uint64_t calls = 0, ticks = 0, bytes = 0;
    };
    bool add(std::uint32_t sum, const Sum& now, Sum& before, std::uint32_t& count);
    std::uint32_t fill(std::uint32_t first);
    void halve();

    /// Number of region nodes that snapshots cover: the first ones.
    static constexpr std::uint32_t most_regions = 4096;
    trace::SectionHeader* section_ = nullptr;
    trace::Snapshot* moments_ = nullptr;
    trace::SnapshotPart* parts_ = nullptr;
    std::vector<Sum> aggregates_, regions_;  ///< sums at the last snapshot
    std::int64_t last_ns_ = 0;
};

}  // namespace palmette::record
