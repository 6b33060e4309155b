// Factoring: from a composition to programs, with messages routed over a tree, coalesced, striped and pipelined.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "palmette/compose/composition.hpp"
#include "palmette/compose/hierarchy.hpp"
#include "palmette/compose/route.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::compose {

using plan::Program;

/// How a composition is carried out. The same on all ranks.
struct Factoring {
    /// One for all levels of the tree, or one a level, the outermost first.
    std::vector<Method> methods{Method{}};
    /// Parts that every block is cut in, each routed through another rank of the node (multi-rail striping).
    std::int32_t stripes = 1;
    /// Pipeline depth: slices that follow each other on the same route.
    std::int32_t pipeline = 1;
    /// Receive buffers per block for partial results where a rank combines: more overlap, more scratch.
    std::int32_t landings = 4;

    /// "direct,ring/1 stripes=4 pipeline=32", as reports name it.
    std::string text() const;
};

inline constexpr std::int32_t most_stripes = 1024;
inline constexpr std::int32_t most_pipeline = 65535;

/// Block `block` of a composition is cut in `stripes` blocks of the plan, block * stripes + stripe.
constexpr std::int64_t block_of_stripe(std::int64_t block, std::int32_t stripes, std::int32_t stripe) {
    return block * stripes + stripe;
}
/// Bytes of a block of the plan.
std::int64_t bytes_of_stripe(const Composition& composition, std::int32_t stripes, std::int64_t block);

/// Generates the programs of any ranks. Its memory is independent of the job's size but for the tree.
class Factory {
  public:
    /// `tree` over the positions of `job`; all three must outlive this. Traverses all primitives once. Throws
    /// base::Error on invalid parameters.
    Factory(const Composition& composition, const Job& job, const Tree& tree, Factoring factoring);

    /// Time: one traversal of all primitives; memory: for the rank's own. Throws base::Error that names the conflict
    /// where two primitives of a phase access the same block, one of them writing.
    /// `balance`: over all ranks together their sum is zero if all agree on every message's blocks; only local
    /// compositions need that.
    Program program(Rank rank, std::uint64_t* balance = nullptr) const;
    /// Visits the messages of one block of a primitive of a phase, stripe by stripe: sender and receiver.
    void messages_of(std::int32_t phase, const Primitive& primitive,
                     const std::function<void(Rank from, Rank to)>& visit) const;
    /// All ranks that take part in a primitive of a phase: its own, and those that relay. Ascending.
    std::vector<std::int32_t> ranks_of(std::int32_t phase, const Primitive& primitive) const;
    /// The programs of all ranks, with the contract that the verifier proves them against.
    plan::Plan plan() const;

    const Factoring& factoring() const { return factoring_; }
    /// How the message with this tag should be carried where that is possible. The same on both sides.
    Method::Transport transport(std::int32_t tag) const {
        return router_.stages() > 0 ? router_.transport(tag / factoring_.pipeline % router_.stages())
                                    : Method::Transport::messages;
    }
    /// Tags are smaller than this.
    std::int64_t tag_limit() const;
    /// Size of a rank's scratch in bytes.
    std::int64_t scratch_bytes(const Program& program) const;

  private:
    friend class OwnProgram;
    Manner manner_of(std::int32_t phase, const Primitive& primitive) const;
    /// A primitive over positions instead of ranks.
    struct PlacedPrimitive {
        std::int32_t root = 0;
        RankSet others;
        bool reduces = false;
        Manner manner;
    };
    PlacedPrimitive placed(std::int32_t phase, const Primitive& primitive) const;
    /// Appends the messages of position `me` for one stripe.
    void edges(std::int32_t me, const PlacedPrimitive& placed, std::int32_t stripe, std::vector<Edge>& out) const;

    const Composition& composition_;
    const Job& job_;
    const Tree& tree_;
    Factoring factoring_;
    Router router_;
    bool in_rank_order_;
    /// Manners of multicasts and of reductions, by phase.
    std::vector<Manner> multicasts_, reductions_;
};

}  // namespace palmette::compose
