// What barriers are put together from: messages, or notes in the node's memory, that carry no block.
#pragma once

#include "palmette/collectives/registry.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {

/// Adds the steps of one rank's part of a barrier. All of them wait for what must have happened before: `ready`.
class BarrierParts {
  public:
    using Steps = std::vector<plan::StepId>;

    BarrierParts(const Job& job, Rank rank) : job_(job), builder_(rank) {}

    /// Hears from the children and tells the parent. Returns the steps after which all below are known to have entered.
    Steps gather(const TreeNeighbours& near);
    /// Hears from the parent, where there is one, and tells the children.
    void release(const TreeNeighbours& near, const Steps& ready);

    /// Dissemination among n members of which this rank is `me`: in round i a member tells those k^i, 2 k^i, ..., (k-1)
    /// k^i above it, modulo n. ceil(log_k n) rounds. Returns the steps after which all have entered.
    template <class RankOf>
    Steps disseminate(std::int32_t n, std::int32_t me, std::int32_t radix, const RankOf& rank_of, Steps ready) {
        std::int32_t tag = first_exchange_tag;
        for (std::int64_t distance = 1; distance < n; distance *= radix, ++tag) {
            builder_.stage("round " + std::to_string(tag - first_exchange_tag + 1));
            Steps heard;
            for (std::int64_t d = distance; d < n && d < distance * radix; d += distance)
                heard.push_back(hear(rank_of(static_cast<std::int32_t>((me + n - d) % n)), tag));
            for (std::int64_t d = distance; d < n && d < distance * radix; d += distance)
                tell(rank_of(static_cast<std::int32_t>((me + d) % n)), tag, ready);
            ready.insert(ready.end(), heard.begin(), heard.end());
        }
        return ready;
    }
    /// Every member tells every other one.
    template <class RankOf>
    Steps tell_all(std::int32_t n, std::int32_t me, const RankOf& rank_of, Steps ready) {
        builder_.stage("all to all");
        Steps heard;
        for (std::int32_t d = 1; d < n; ++d) heard.push_back(hear(rank_of((me + n - d) % n), first_exchange_tag));
        for (std::int32_t d = 1; d < n; ++d) tell(rank_of((me + d) % n), first_exchange_tag, ready);
        ready.insert(ready.end(), heard.begin(), heard.end());
        return ready;
    }

    Program finish() { return builder_.finish(); }

  private:
    static constexpr std::int32_t gather_tag = 0, release_tag = 1, first_exchange_tag = 2;

    plan::StepId hear(Rank from, std::int32_t tag);
    void tell(Rank to, std::int32_t tag, const Steps& ready);

    const Job& job_;
    plan::ProgramBuilder builder_;
};

}  // namespace palmette::collectives
