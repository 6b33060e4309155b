// Allreduce and reduce-scatter patterns among n abstract participants: recursive multiplying, halving, circulant
// graphs, ring, direct.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/registry.hpp"
#include "palmette/collectives/trees/scratch_buffer.hpp"
#include "palmette/plan/program.hpp"
#include "palmette/topology/partition.hpp"

namespace palmette::collectives {

/// Adds `more` to the steps that are waited for.
inline void add_steps(std::vector<plan::StepId>& list, const std::vector<plan::StepId>& more) {
    list.insert(list.end(), more.begin(), more.end());
}

/// One participant's operands in a pattern, and the builder of its steps. Every pattern reads `input`, which it doesn't
/// modify unless it is `work`, and stays correct where `input` aliases `work` or `result`.
struct ReduceContext {
    plan::ProgramBuilder& builder;
    ScratchBuffer& scratch;
    std::int32_t n = 1, me = 0;
    std::function<Rank(std::int32_t)> rank_of;
    /// Blocks of the parts first..first+count-1. An allreduce has ReducePattern::parts(n) parts, a reduce-scatter one a
    /// participant.
    std::function<plan::Blocks(std::int32_t first, std::int32_t count)> blocks_of;
    plan::Buffer input;               ///< the own contribution
    plan::Buffer work;                ///< partial results
    plan::Buffer result;              ///< allreduce: the same as `work`
    std::size_t first_layer = 0;      ///< layers of scratch from here on are free
    std::vector<plan::StepId> ready;  ///< after these steps `input` is complete
    std::int32_t first_tag = 0;
    plan::Slice slice;
    bool ordered = false;  ///< contributions are combined in the order of participants
    /// Set where `result` is overwritten afterwards: recursive multiplying adds the steps that still read it.
    std::vector<plan::StepId>* readers = nullptr;

    plan::Buffer layer(std::size_t index) const { return plan::scratch_layer(first_layer + index); }
    plan::StepId send(std::int32_t to, std::int32_t tag, plan::Buffer from, const plan::Blocks& blocks,
                      const std::vector<plan::StepId>& waits) const {
        return builder.send(rank_of(to), first_tag + tag, from, blocks, waits, slice);
    }
    plan::StepId recv(std::int32_t from, std::int32_t tag, plan::Buffer into, const plan::Blocks& blocks,
                      const std::vector<plan::StepId>& waits) const {
        if (plan::is_scratch(into)) scratch.need(into, blocks);
        return builder.recv(rank_of(from), first_tag + tag, into, blocks, waits, slice);
    }
    plan::StepId reduce(plan::Buffer left, plan::Buffer right, plan::Buffer target, const plan::Blocks& blocks,
                        const std::vector<plan::StepId>& waits) const {
        if (plan::is_scratch(target)) scratch.need(target, blocks);
        return builder.reduce(left, right, target, blocks, waits, slice);
    }
};

/// Blocks held at some point: their buffer, and the steps after which they are complete.
struct HeldBlocks {
    plan::Buffer buffer;
    std::vector<plan::StepId> ready;
};

/// n participants, of which the first 2 (n - core) work in pairs: the second of a pair sends its vector to the first
/// and receives the result at the end. So `core` take part, and the order of neighbours is preserved.
///     n = 7, core = 4:   0←1  2←3  4←5  6      take part as 0, 1, 2, 3
struct Fold {
    std::int32_t n = 1, core = 1;
    std::int32_t extra() const { return n - core; }
    bool gives(std::int32_t i) const { return i < 2 * extra() && i % 2 == 1; }
    bool takes(std::int32_t i) const { return i < 2 * extra() && i % 2 == 0; }
    std::int32_t core_index(std::int32_t i) const { return i < 2 * extra() ? i / 2 : i - extra(); }
    std::int32_t participant(std::int32_t core_index) const {
        return core_index < extra() ? 2 * core_index : core_index + extra();
    }
};
/// The largest power of two not above n.
std::int32_t power_of_two_in(std::int32_t n);

/// n as a product of factors up to `radix`, largest first; empty where a prime factor is larger.
std::vector<std::int32_t> divide(std::int32_t n, std::int32_t radix);

/// Recursive multiplying: in each round groups of f exchange all to all and combine. Ruefenacht, Bull, Booth, Parallel
/// Computing 69, 2017. `factors` multiply to the participants that take part; the others fold.
struct Factors {
    Fold fold;
    std::vector<std::int32_t> factors;
};
/// Factors of at most `radix` for n participants, with the shortest critical path: n itself where it has such factors,
/// else the largest f * radix^j below it, at the cost of two more dependent messages (folding).
Factors factors_of(std::int32_t n, std::int32_t radix);
std::vector<plan::StepId> recursive_multiplying(const ReduceContext& context, std::int32_t radix);
/// Upper bound of layers of scratch, from ReduceContext::first_layer on, among n participants or fewer.
std::size_t recursive_multiplying_layers(std::int32_t n, std::int32_t radix);

/// Recursive halving and, for allreduce, doubling back (Rabenseifner, ICCS 2004). Neighbours exchange first, and the
/// largest part, so that distant links carry least and neighbouring contributions are combined first: order is kept.
///     p = 8:   0─1 2─3 4─5 6─7 with n/2    0─2 1─3 ... with n/4    0─4 1─5 ... with n/8    and back
class Halving {
  public:
    explicit Halving(const ReduceContext& context);
    /// Reduce-scatter: each participant of the core ends with one complete part, owner(part) with `part`; others hold
    /// none. Part: as in ReducePattern::parts.
    HeldBlocks reduce_parts();
    /// Allgather, where each owner has its part in `result` after the steps `ready`, with or without reduce_parts
    /// before; ranges of parts without blocks are not sent. Returns the steps after which all parts are complete.
    std::vector<plan::StepId> collect_parts(std::vector<plan::StepId> ready);
    /// Both: allreduce. Returns the steps after which the result is complete.
    std::vector<plan::StepId> allreduce() { return collect_parts(reduce_parts().ready); }
    /// Among n participants: the holder of a part after reduce_parts.
    static std::int32_t owner(std::int32_t part, std::int32_t n);
    /// After reduce_parts: the steps that sent what others own.
    const std::vector<plan::StepId>& given() const { return given_; }
    /// Part i comes to participant i, in `result`.
    void reduce_scatter();

  private:
    /// Slots that a participant of the core keeps after `stage` stages: first..first+count-1.
    plan::Interval kept(int stage) const;
    plan::Blocks blocks_of_slots(plan::Interval slots) const;
    HeldBlocks fold_in();
    HeldBlocks halve(HeldBlocks held);

    const ReduceContext& context_;
    Fold fold_;
    std::int32_t self_;
    int stages_ = 0;
    bool scatter_ = false;
    std::vector<plan::StepId> given_;  ///< by stage: the send of the other half
};

/// Multiway halving, with groups of up to `radix` instead of pairs: the members of a group exchange their shares of
/// what they still hold, so that n participants have as many stages as n has factors. Fewer messages than direct
/// exchange, a shorter critical path than halving by pairs. Participant i ends with part i. Contributions are not
/// combined in order.
class MultiwayHalving {
  public:
    /// divide(context.n, radix) must not be empty.
    MultiwayHalving(const ReduceContext& context, std::int32_t radix);
    /// Upper bound of layers of scratch.
    static constexpr std::size_t layers(std::int32_t radix) { return 2 * (static_cast<std::size_t>(radix) - 1); }
    /// Tags are 0 to 2 * (number of factors) - 1.
    HeldBlocks reduce_parts();
    /// Allgather, where all have their part in `result` after the steps `ready`, with or without reduce_parts before.
    /// Returns the steps after which all parts are complete.
    std::vector<plan::StepId> collect_parts(std::vector<plan::StepId> ready);
    /// After reduce_parts: the steps that sent what others own.
    std::vector<plan::StepId> given() const;

  private:
    /// This participant in one stage: the group with its members' shares of the parts first..first+members*share-1.
    struct Stage {
        std::int32_t first = 0, members = 1, share = 1, me = 0;
    };
    std::int32_t participant(const Stage& stage, std::int32_t member) const {
        return context_.me + (member - stage.me) * stage.share;
    }
    plan::Blocks share_of(const Stage& stage, std::int32_t member) const {
        return context_.blocks_of(stage.first + member * stage.share, stage.share);
    }

    const ReduceContext& context_;
    std::vector<Stage> stages_;
    std::vector<std::vector<std::optional<plan::StepId>>> given_;  ///< by stage and member
};

/// Reduce-scatter by the steps of an allgather on a circulant graph or by PAT, reversed in time, and for allreduce the
/// allgather: ceil(lg n) steps and n - 1 parts for any n, where halving folds a power of two's rest in, with the whole
/// vector. Träff, arXiv 2410.14234 (2024). Participant i ends with part i. Contributions aren't combined in order.
class SkipExchange {
  public:
    /// `steps`: circulant_steps or pat_steps of context.n >= 2. For a reduce-scatter alone `work` is none of `input`
    /// and `result`.
    SkipExchange(const ReduceContext& context, std::vector<SkipStep> steps)
        : context_(context), steps_(std::move(steps)) {}
    /// Layers of scratch.
    static constexpr std::size_t layers = 2;
    /// Tags are 0 to 2 * (number of steps) - 1. The own part is in `result` after the steps `ready`.
    HeldBlocks reduce_parts();
    /// Allgather, after reduce_parts. Returns the steps after which all parts are complete.
    std::vector<plan::StepId> collect_parts(std::vector<plan::StepId> ready);

  private:
    /// Parts at a distance from the own one.
    Range at(std::int32_t distance, std::int32_t count, std::int32_t stride) const {
        return {static_cast<std::int32_t>((std::int64_t{context_.me} + distance) % context_.n), count, stride};
    }
    plan::Blocks blocks_of(Range parts) const;
    std::int32_t peer(std::int32_t distance) const {
        return static_cast<std::int32_t>((std::int64_t{context_.me} + context_.n + distance) % context_.n);
    }

    const ReduceContext& context_;
    std::vector<SkipStep> steps_;
    std::vector<std::optional<plan::StepId>> given_;  ///< by step: the send of partial results
};

/// Reduce-scatter around the nested ring of allgather reversed in time, and for allreduce the allgather. An edge into
/// or out of a group of s participants carries n - s parts each time.
class ReduceRing {
  public:
    ReduceRing(const ReduceContext& context, const std::vector<topology::Partition>& nested);
    /// Part i comes to participant i, in `result`; partial results in `work`.
    void reduce_scatter();
    /// After reduce_scatter. Returns the steps after which the result is complete. `own`: steps after which the own
    /// part is, where it doesn't come from reduce_scatter.
    std::vector<plan::StepId> allgather(const std::vector<plan::StepId>& own = {});
    /// After reduce_scatter: the step that completed the own part.
    plan::StepId completed() const { return done_.front(); }

  private:
    struct Hop {
        std::int32_t peer = 0, tag = 0;
    };
    /// One part's route through this participant in the allgather.
    struct PartRoute {
        std::int32_t part = 0;
        Hop from;             ///< not for the own part
        std::vector<Hop> to;  ///< may be empty
    };

    const ReduceContext& context_;
    std::vector<PartRoute> routes_;  ///< own part first, then by distance
    std::vector<plan::StepId>
        done_;  ///< by route: the step that sent the partial result; for the own part the one that completed it
};

/// Direct exchange: every participant sends part i to participant i, which combines all of them: a critical path of one
/// message, and for allreduce one more for the allgather. Parts without blocks are not sent.
class DirectExchange {
  public:
    /// `at_once`: outstanding messages of a participant; 0: all.
    DirectExchange(const ReduceContext& context, std::size_t at_once = 0) : context_(context), at_once_(at_once) {}
    /// Returns the steps after which the own part is in `result`.
    std::vector<plan::StepId> reduce_scatter();
    /// After reduce_scatter, with the own part in `result` after the steps `ready`. Returns the steps after which all
    /// parts are complete.
    std::vector<plan::StepId> allgather(const std::vector<plan::StepId>& ready);
    /// The step that sent participant `to` its part, where it has one.
    std::optional<plan::StepId> sent_to(std::int32_t to) const {
        return to == context_.me ? std::nullopt
                                 : sent_[static_cast<std::size_t>((to - context_.me + context_.n) % context_.n - 1)];
    }

  private:
    const ReduceContext& context_;
    std::size_t at_once_;
    std::vector<std::optional<plan::StepId>> sent_;  ///< by distance to the receiver - 1
};

/// One of the patterns, with its parameters.
struct ReducePattern {
    enum class Kind { recursive_multiplying, rabenseifner, circulant, pat, ring, direct };
    Kind kind = Kind::recursive_multiplying;
    std::int32_t radix = 2;

    /// recursive_doubling, recursive_multiplying[.K], all, rabenseifner, circulant, pat, ring or direct. Throws
    /// base::Error.
    static ReducePattern parse(std::string_view text);
    /// Why it can't run among n participants, or nothing.
    std::optional<std::string> refuse(std::int32_t n, bool ordered) const;
    /// Parts that the vector is cut in.
    std::int32_t parts(std::int32_t n) const;
    /// Tags are 0 to tags(n) - 1.
    std::int32_t tags(std::int32_t n) const;
    /// Returns the steps after which `result` is complete. `nested`: partitions of the participants, for the ring.
    std::vector<plan::StepId> allreduce(const ReduceContext& context,
                                        const std::vector<topology::Partition>& nested) const;
};

/// Whether positions equal ranks: then combining neighbouring positions is correct for a noncommutative operation.
bool positions_are_ranks(const Job& job);
/// The refusal where they differ and the request is ordered, or nothing.
std::optional<std::string> refuse_scattered(const Job& job, const Request& request);

}  // namespace palmette::collectives
