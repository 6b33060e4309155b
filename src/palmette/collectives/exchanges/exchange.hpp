// Allgather patterns among n abstract participants (ring, recursive doubling, Bruck, ...): peer arithmetic only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/plan/program.hpp"
#include "palmette/topology/partition.hpp"

namespace palmette::collectives {

/// The participants first, first+stride, ..., first+(count-1)*stride, modulo n.
struct Range {
    std::int32_t first = 0;
    std::int32_t count = 0;
    std::int32_t stride = 1;
};

/// One message of one participant. Within a pair of participants tags are unique.
struct Exchange {
    bool send = false;
    std::int32_t peer = 0;
    Range range;  ///< members whose contributions the message carries
    std::int32_t tag = 0;
};

/// In the order in which a participant should start them; a send may only carry what earlier entries received, or its
/// own contribution.
using Schedule = std::vector<Exchange>;

/// Ring: n-1 steps to the next participant. Chan, Heimlich, Purkayastha, van de Geijn, CCPE 19(13), 2007.
///     0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0
Schedule ring(std::int32_t n, std::int32_t me);

/// Nested ring, which doesn't leave a group twice. `nested`: partitions of the participants, outermost first. A
/// contribution travels around the ring up to the last member before its own group; inside the group, the group's last
/// member sends it to the first. So the edge into a group of s carries n-s contributions, which is its lower bound,
/// where the plain ring's carries n-1.
///     groups {0 1 2} {3 4 5} {6 7}:   0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0   and   2 → 0, 5 → 3, 7 → 6 for the own group
Schedule nested_ring(std::int32_t n, std::int32_t me, const std::vector<topology::Partition>& nested);

/// Recursive doubling, n a power of two: lg n steps with partners 1, 2, 4, ... away. Thakur et al., IJHPCA 19(1), 2005.
Schedule recursive_doubling(std::int32_t n, std::int32_t me);

/// Bruck's algorithm with radix k, any n: ceil(log_k n) steps. Bruck et al., IEEE TPDS 8(11), 1997.
Schedule bruck(std::int32_t n, std::int32_t me, std::int32_t radix);

/// Neighbour exchange, n even: n/2 steps that alternate between the two neighbours. Chen, Zhang, Zhang, Yuan, HPC Asia
/// 2005.
Schedule neighbor_exchange(std::int32_t n, std::int32_t me);

/// Every participant sends to every other one, beginning with the next: one step, n-1 messages each.
Schedule all_to_all(std::int32_t n, std::int32_t me);

/// Circulant graph, any n: ceil(lg n) steps with skips n/2, n/4, ... rounded up, taken from the shortest. As few steps
/// as Bruck's algorithm, with the distances as even as they can be. Träff, "Optimal, non-pipelined reduce-scatter and
/// allreduce algorithms", arXiv 2410.14234 (2024).
///     n = 6, skips 1 2 3:   from 1 right one contribution, from 2 right one, from 3 right three
Schedule circulant(std::int32_t n, std::int32_t me);

/// Parallel aggregated trees, any n: ceil(lg n) steps over distances ..., 4, 2, 1, of which the farthest carries one
/// contribution and the nearest every other one: large messages stay near, as many contributions in all as on a
/// circulant graph. Messages are the binomial trees of all n roots, cut off at n. Jeaugey, "PAT: a new algorithm for
/// all-gather and reduce-scatter operations at scale", arXiv 2506.20252 (2025), in its logarithmic form.
///     n = 6:   from 4 right of me one contribution, from 2 right one, from 1 right three
Schedule pat(std::int32_t n, std::int32_t me);

/// A step of `circulant` and `pat`, the same for all participants: the contributions of me, me+stride, ... (`count` of
/// them) go to me-skip.
struct SkipStep {
    std::int32_t skip = 1, count = 1, stride = 1;
};
std::vector<SkipStep> circulant_steps(std::int32_t n);
std::vector<SkipStep> pat_steps(std::int32_t n);

/// Bine butterfly, n a power of two: lg n steps with partners 1, -1, 3, -5, 11, ... away. De Sensi et al., SC 2025.
Schedule bine(std::int32_t n, std::int32_t me);

/// One of the patterns above, with its parameters.
struct Pattern {
    enum class Kind { ring, recursive_doubling, bruck, neighbor_exchange, all, circulant, pat, bine };
    Kind kind = Kind::ring;
    std::int32_t radix = 2;

    /// ring, recursive_doubling, bruck, bruck.K, neighbor_exchange, all, circulant, pat or bine. Throws base::Error.
    static Pattern parse(std::string_view text);
    /// Why it can't run among n participants, or nothing.
    std::optional<std::string> refuse(std::int32_t n) const;
    /// `nested`: levels of the ring; empty for the plain one.
    Schedule schedule(std::int32_t n, std::int32_t me, const std::vector<topology::Partition>& nested) const;
};

/// What the participants of a range contribute, by a function that knows ranges of stride 1 only.
template <class BlocksOf>
plan::Blocks blocks_of_range(Range range, std::int32_t n, const BlocksOf& blocks_of) {
    if (range.stride == 1) return blocks_of(range);
    plan::Blocks out;
    // Those beyond the last participant are the lowest ones: in ascending order blocks are appended.
    const std::int32_t straight = std::min(range.count, (n - range.first + range.stride - 1) / range.stride);
    for (std::int32_t turn = 0; turn < range.count; ++turn) {
        const std::int64_t i = (straight + turn) % range.count;
        out.unite(blocks_of(Range{static_cast<std::int32_t>((range.first + i * range.stride) % n), 1}));
    }
    return out;
}

/// Adds a schedule to a program and tracks which step received what.
class Exchanger {
  public:
    struct Arrival {
        plan::StepId step;  ///< receives the first slice; steps of the others follow
        plan::Blocks blocks;
    };
    /// `rank_of(i)`: the rank of participant i; `blocks_of(range)`: what these participants contribute, empty allowed,
    /// for ranges of stride 1; `own`: the step after which `me`'s own contribution is in place. Tags are shifted by
    /// `first_tag`; with `parts` above 1 every message is sent in so many slices, each with a tag of its own. All data
    /// lies in the result buffer.
    Exchanger(plan::ProgramBuilder& builder, std::function<plan::Rank(std::int32_t)> rank_of,
              std::function<plan::Blocks(Range)> blocks_of, std::int32_t n, std::int32_t me,
              std::vector<plan::StepId> own, std::int32_t first_tag, std::uint16_t parts = 1)
        : builder_(builder),
          rank_of_(std::move(rank_of)),
          blocks_of_(std::move(blocks_of)),
          n_(n),
          me_(me),
          own_(std::move(own)),
          first_tag_(first_tag),
          parts_(parts) {}

    void run(const Schedule& schedule);
    const std::vector<Arrival>& arrivals() const { return arrivals_; }

  private:
    std::vector<plan::StepId> steps_that_received(Range range, std::uint16_t part) const;

    plan::ProgramBuilder& builder_;
    std::function<plan::Rank(std::int32_t)> rank_of_;
    std::function<plan::Blocks(Range)> blocks_of_;
    std::int32_t n_, me_;
    std::vector<plan::StepId> own_;
    std::int32_t first_tag_;
    std::uint16_t parts_;
    std::vector<Arrival> arrivals_;
    std::vector<Range> received_;  ///< by entry of arrivals_
};

}  // namespace palmette::collectives
