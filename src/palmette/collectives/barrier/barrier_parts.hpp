// Building blocks of barriers: empty messages, or flags in shared memory.
#pragma once

#include "palmette/collectives/registry.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// Adds the steps of one rank's part of a barrier. `ready`: the steps that they wait for.
class BarrierParts {
  public:
    using Steps = std::vector<plan::StepId>;

    BarrierParts(const Job& job, Rank rank) : job_(job), builder_(rank) {}

    /// Gather: receives from the children and notifies the parent. Returns the steps after which the whole subtree has
    /// entered.
    Steps gather(const TreeNeighbours& near);
    /// Release: receives from the parent, where there is one, and notifies the children.
    void release(const TreeNeighbours& near, const Steps& ready);

    /// Dissemination among n members of which this rank is `me`: in round i a member notifies those k^i, 2 k^i, ...,
    /// (k-1) k^i above it, modulo n. ceil(log_k n) rounds. Returns the steps after which all have entered.
    template <class RankOf>
    Steps disseminate(std::int32_t n, std::int32_t me, std::int32_t radix, const RankOf& rank_of, Steps ready) {
        std::int32_t tag = first_exchange_tag;
        for (std::int64_t distance = 1; distance < n; distance *= radix, ++tag) {
            builder_.stage("round " + std::to_string(tag - first_exchange_tag + 1));
            Steps entered;
            for (std::int64_t d = distance; d < n && d < distance * radix; d += distance)
                entered.push_back(receive(rank_of(static_cast<std::int32_t>((me + n - d) % n)), tag));
            for (std::int64_t d = distance; d < n && d < distance * radix; d += distance)
                notify(rank_of(static_cast<std::int32_t>((me + d) % n)), tag, ready);
            ready.insert(ready.end(), entered.begin(), entered.end());
        }
        return ready;
    }
    /// Every member notifies every other one.
    template <class RankOf>
    Steps notify_all(std::int32_t n, std::int32_t me, const RankOf& rank_of, Steps ready) {
        builder_.stage("all to all");
        Steps entered;
        for (std::int32_t d = 1; d < n; ++d) entered.push_back(receive(rank_of((me + n - d) % n), first_exchange_tag));
        for (std::int32_t d = 1; d < n; ++d) notify(rank_of((me + d) % n), first_exchange_tag, ready);
        ready.insert(ready.end(), entered.begin(), entered.end());
        return ready;
    }

    Program finish() { return builder_.finish(); }

  private:
    static constexpr std::int32_t gather_tag = 0, release_tag = 1, first_exchange_tag = 2;

    plan::StepId receive(Rank from, std::int32_t tag);
    void notify(Rank to, std::int32_t tag, const Steps& ready);

    const Job& job_;
    plan::ProgramBuilder builder_;
};

}  // namespace palmette::collectives
