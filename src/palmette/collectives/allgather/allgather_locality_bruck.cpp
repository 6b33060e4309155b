// allgather, locality_bruck: Bruck's algorithm between nodes, whose messages are spread over the ranks of the node.
//
//   Four nodes of three ranks, radix 3:
//
//       inside      allgather in the node                                       every rank has 3 blocks
//       round 1     node n receives from n+1 and n+2, one message each,
//                   on two different ranks, which forward them inside           every rank has 9
//       round 2     node n receives the rest from n+3, on the third rank        every rank has 12
//
//   With N nodes and radix k a node receives at most (k-1) ceil(log_k N) messages, and each block once, where plain
//   Bruck needs g ceil(log_2 p) messages between nodes. With k = g, the ranks per node, that is one message per rank
//   and round.
#include <algorithm>

#include "palmette/collectives/formula.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

constexpr std::int32_t most_exposes = 64;  // tags of exposes that a rank may use

/// One message that a group receives.
struct Inflow {
    std::int32_t distance = 0;  ///< in groups, to the sender's group
    std::int32_t count = 0;     ///< the sender's group and how many after it
    std::int32_t round = 0;
};

class LocalityBruck {
  public:
    LocalityBruck(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : job_(job),
          groups_(groups_of(job, spec)),
          me_(job.position_of(rank).value),
          group_(groups_.group_of(me_)),
          builder_(rank, plan::BlockOrder::topology) {
        const std::int32_t n = groups_.count();
        const std::int32_t radix = spec.integer("radix", std::max(2, groups_.smallest()), 2);
        std::int32_t round = 0;
        for (std::int64_t have = 1; have < n; have *= radix, ++round)
            for (std::int64_t digit = 1; digit < radix && digit * have < n; ++digit)
                inflows_.push_back({static_cast<std::int32_t>(digit * have),
                                    static_cast<std::int32_t>(std::min(have, n - digit * have)), round});
        shared_ = request.shared_memory && spec.word("inside", {"linear", "shared"}) == "shared" && inside_a_node() &&
                  1 + 2 * static_cast<std::int32_t>(inflows_.size()) <= most_exposes;
    }

    static const topology::Partition& groups_of(const Job& job, const Spec& spec) {
        const auto wanted = job.find_level(spec.find("level").value_or("node"));
        return wanted ? job.levels()[*wanted].groups : job.nodes().groups;
    }

    Program make() {
        builder_.stage("copy own block");
        const StepId own = builder_.copy(Buffer::send, Buffer::recv, Blocks(me_, 1), {});
        share_own_block(own);
        for (std::size_t i = 0; i < inflows_.size(); ++i) {
            take(i);
            give(i);
        }
        return builder_.finish();
    }

  private:
    bool inside_a_node() const {
        const topology::Partition& nodes = job_.nodes().groups;
        return groups_.count() >= nodes.count();
    }

    Rank at(std::int64_t position) const { return job_.rank_at({static_cast<std::int32_t>(position)}); }
    std::int32_t wrap(std::int32_t group) const { return (group + groups_.count()) % groups_.count(); }
    /// The member that receives message i for a group: round-robin.
    std::int32_t member_for(std::int32_t group, std::size_t i) const {
        return groups_.first(group) + static_cast<std::int32_t>(i % static_cast<std::size_t>(groups_.size_of(group)));
    }
    Blocks blocks_of(std::int32_t first, std::int32_t count) const {
        Blocks blocks;
        const std::int32_t straight = std::min(count, groups_.count() - first);
        const auto run = [&](std::int32_t group, std::int32_t of) {
            blocks.insert({groups_.first(group), groups_.first(group + of) - groups_.first(group)});
        };
        run(first, straight);
        run(0, count - straight);
        return blocks;
    }
    template <class Visit>
    void for_each_other(const Visit& visit) const {
        for (std::int32_t i = 1; i < groups_.size_of(group_); ++i)
            visit(groups_.first(group_) + (me_ - groups_.first(group_) + i) % groups_.size_of(group_));
    }

    void share_own_block(StepId own) {
        builder_.stage("inside the group");
        have_.push_back(own);
        const auto others = static_cast<std::size_t>(groups_.size_of(group_) - 1);
        if (shared_ && others > 0) builder_.expose(0, Buffer::send, {me_, 1}, others, {});
        for_each_other([&](std::int32_t other) {
            if (!shared_) builder_.send(at(other), 0, Buffer::send, Blocks(me_, 1), {});
            have_.push_back(shared_ ? builder_.pull(at(other), 0, {other, 1}, Buffer::recv, Blocks(other, 1), {})
                                    : builder_.recv(at(other), 0, Buffer::recv, Blocks(other, 1), {}));
        });
    }

    /// Tags: 0 is for the own block, then one for message i and two for forwarding it (its blocks may wrap around).
    std::int32_t tag(std::size_t i) const { return 1 + static_cast<std::int32_t>(i); }
    std::int32_t expose_tag(std::size_t i, std::size_t piece) const {
        return static_cast<std::int32_t>(1 + 2 * i + piece);
    }

    void take(std::size_t i) {
        const Inflow& inflow = inflows_[i];
        const std::int32_t from = wrap(group_ + inflow.distance);
        const Blocks blocks = blocks_of(from, inflow.count);
        const std::int32_t receiver = member_for(group_, i);
        builder_.stage("between groups");
        if (receiver != me_) {
            builder_.stage("forward");
            if (!shared_) {
                arrived_.push_back({builder_.recv(at(receiver), tag(i), Buffer::recv, blocks, {})});
                return;
            }
            auto& steps = arrived_.emplace_back();
            for (std::size_t piece = 0; piece < blocks.intervals().size(); ++piece) {
                const Interval& interval = blocks.intervals()[piece];
                steps.push_back(builder_.pull(at(receiver), expose_tag(i, piece), interval, Buffer::recv,
                                              Blocks(interval.first, interval.count), {}));
            }
            return;
        }
        const StepId step = builder_.recv(at(member_for(from, i)), tag(i), Buffer::recv, blocks, {});
        arrived_.push_back({step});
        builder_.stage("forward");
        const auto others = static_cast<std::size_t>(groups_.size_of(group_) - 1);
        if (shared_ && others > 0) {
            for (std::size_t piece = 0; piece < blocks.intervals().size(); ++piece)
                builder_.expose(expose_tag(i, piece), Buffer::recv, blocks.intervals()[piece], others, {step});
            return;
        }
        for_each_other([&](std::int32_t other) { builder_.send(at(other), tag(i), Buffer::recv, blocks, {step}); });
    }

    void give(std::size_t i) {
        if (member_for(group_, i) != me_) return;
        const Inflow& inflow = inflows_[i];
        const std::int32_t to = wrap(group_ - inflow.distance);
        std::vector<StepId> waits = have_;
        // Depends on arrivals of earlier rounds from the groups that this message covers.
        for (std::size_t earlier = 0; earlier < i && inflows_[earlier].round < inflow.round; ++earlier)
            if (inflows_[earlier].distance < inflow.count)
                waits.insert(waits.end(), arrived_[earlier].begin(), arrived_[earlier].end());
        builder_.stage("between groups");
        builder_.send(at(member_for(to, i)), tag(i), Buffer::recv, blocks_of(group_, inflow.count), waits);
    }

    const Job& job_;
    const topology::Partition& groups_;
    std::int32_t me_, group_;
    plan::ProgramBuilder builder_;
    std::vector<Inflow> inflows_;
    bool shared_ = false;
    std::vector<StepId> have_;                  ///< the steps that complete the group's blocks on this rank
    std::vector<std::vector<StepId>> arrived_;  ///< by message
};

std::optional<std::string> refuse_locality_bruck(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"radix", "level", "inside", "single"});
    check_single_copy(spec);
    spec.integer("radix", 2, 2);
    spec.word("inside", {"linear", "shared"});
    return std::nullopt;
}

Program make_locality_bruck(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return LocalityBruck(job, rank, request, spec).make();
}

std::optional<double> formula_locality_bruck(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double group = tiers.node().ranks, nodes = tiers.nodes();
    // With nodes of different sizes the algorithm uses the radix of the smallest one.
    if (input.has_any({"level", "radix"}) || nodes <= 1 || tiers.node().most > 2 * tiers.node().least)
        return std::nullopt;
    const bool shared = input.spec.find("inside") == "shared" && input.shares;
    // Every rank of a node has `bytes`, which all of them get.
    const auto shared_out = [&](double bytes) {
        if (group <= 1) return 0.0;
        if (!shared) return tiers.within_node(group - 1, bytes);
        return tiers.intra_node().latency_s + tiers.copy_s(bytes) +
               std::max((group - 1) * assumed::cache_miss_s + tiers.copy_s((group - 1) * bytes),
                        tiers.memory_s(group * (group - 1) * bytes));
    };
    // In each round every rank of a node fetches the blocks of a different node, then the node shares them.
    double total = shared_out(input.bytes), have = 1;
    while (have < nodes) {
        const double more = std::min(have * std::max(1.0, tiers.node().least - 1), nodes - have);
        const double each = std::min(have, more);
        total += tiers.between_nodes(more / each / group, input.bytes * group * each) +
                 shared_out(input.bytes * group * more / std::max(1.0, group - 1));
        have += more;
    }
    return total;
}

}  // namespace

const Algorithm allgather_locality_bruck{
    .collective = Collective::allgather,
    .name = "locality_bruck",
    .sentence = "Bruck's algorithm between nodes with the ranks per node as radix: one message per rank and round.",
    .source = "Bienz, Gautam, Kharel, \"A locality-aware Bruck allgather\", EuroMPI 2022; any sizes of nodes here",
    .keys =
        "radix=K (ranks of the smallest node, at least 2), level=LEVEL (node), inside=linear|shared (linear), "
        "single=SIZE (never), with inside=shared: exposures from there on are read by single copy",
    .relays = true,
    .refuse = refuse_locality_bruck,
    .make = make_locality_bruck,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_locality_bruck,
    .candidates = "locality_bruck locality_bruck:inside=shared",
    .samples =
        "locality_bruck locality_bruck:radix=2,level=leaf locality_bruck:radix=3,inside=shared "
        "locality_bruck:inside=shared,single=64",
};

}  // namespace palmette::collectives
