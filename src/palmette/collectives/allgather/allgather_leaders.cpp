// allgather, leaders: gather to one or several leaders per group, exchange between leaders, broadcast inside.
//
//   p = 8 on two nodes of four, leaders=2 (ranks 0 2 | 4 6), layout=rails:
//
//       1 → 0    3 → 2   |   5 → 4    7 → 6      gather to the leader of one's part of the group
//       0 ═══════ 4      and      2 ═══════ 6    rail 0 and rail 1: leaders of the same number, group by group
//       0 → 1 2 3, 2 → 0 1 3 | 4 → 5 6 7, ...    each leader forwards blocks as they arrive
//
//   With inside=shared every rank exposes its own block, which all of its node read there, and a leader exposes only
//   what arrives from other nodes: no block passes through a leader that its readers can get where it lies.
#include <algorithm>
#include <cmath>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/ring_levels.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

enum class Layout { rails, rail_major, node_major };

/// The parts of groups, their leaders, and the leaders' order in the exchange.
class Leaders {
  public:
    Leaders(const Job& job, const Spec& spec)
        : job_(job),
          layout_(layout_of(spec)),
          leaders_(spec.integer("leaders", 1)),
          pattern_(Pattern::parse(spec.find("between").value_or("ring"))),
          shared_(spec.find("inside") == "shared"),
          inside_(TreeShape::parse(shared_ ? "linear" : spec.find("inside").value_or("linear"))),
          level_(level_of(job, spec)) {}

    static Layout layout_of(const Spec& spec) {
        const std::string_view word = spec.word("layout", {"rails", "rail_major", "node_major"});
        return word == "rails" ? Layout::rails : word == "rail_major" ? Layout::rail_major : Layout::node_major;
    }
    static std::size_t level_of(const Job& job, const Spec& spec) {
        // Fallback where the job has no such level: groups are nodes.
        const auto wanted = job.find_level(spec.find("level").value_or("node"));
        return wanted ? *wanted : *job.find_level("node");
    }

    const topology::Partition& groups() const { return job_.levels()[level_].groups; }
    std::int32_t leaders() const { return leaders_; }

    Interval group(std::int32_t g) const { return {groups().first(g), groups().size_of(g)}; }
    /// Part `rail` of group g; parts of a group smaller than the number of rails may be empty.
    Interval part(std::int32_t g, std::int32_t rail) const {
        const std::int64_t size = groups().size_of(g);
        const std::int64_t begin = size * rail / leaders_;
        return {groups().first(g) + begin, size * (rail + 1) / leaders_ - begin};
    }
    std::int32_t rail_of(std::int32_t g, std::int64_t position) const {
        std::int32_t rail = 0;
        while (part(g, rail).end() <= position) ++rail;
        return rail;
    }
    /// The position that leads a part: its first, or the group's first for an empty part.
    std::int64_t leader(std::int32_t g, std::int32_t rail) const {
        const Interval p = part(g, rail);
        return p.count > 0 ? p.first : groups().first(g);
    }

    std::optional<std::string> refuse() const {
        const std::int32_t n = groups().count();
        if (layout_ == Layout::rails) return pattern_.refuse(n);
        for (std::int32_t g = 0; g < n; ++g)
            if (groups().size_of(g) < leaders_)
                return base::cat("layout ", layout_ == Layout::rail_major ? "rail_major" : "node_major",
                                 " needs at least ", leaders_, " ranks in each group, group ", g, " has ",
                                 groups().size_of(g));
        return pattern_.refuse(n * leaders_);
    }

    Program make(Rank rank, const Request& request) const {
        const std::int64_t me = job_.position_of(rank).value;
        if (shared_ && request.shared_memory && shares(groups().group_of(static_cast<std::int32_t>(me))))
            return make_shared(rank);
        plan::ProgramBuilder builder(rank, plan::BlockOrder::topology);
        builder.stage("copy own block");
        const StepId own = builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {});
        const std::int32_t g = groups().group_of(static_cast<std::int32_t>(me));
        const GatherSteps gathered = gather(builder, me, g, own);
        if (layout_ == Layout::rails)
            for (std::int32_t rail = 0; rail < leaders_; ++rail) serve_rail(builder, me, g, rail, gathered);
        else
            serve_rail(builder, me, g, rail_of(g, me), gathered);
        return builder.finish();
    }

  private:
    struct GatherSteps {
        std::vector<StepId> complete;  ///< the steps that complete a leader's part
        std::vector<StepId> all;       ///< all steps that access the result's blocks of the part
    };

    /// Levels below the group's own, so that the tree inside is topology-aware as well.
    std::vector<LevelShape> inner_levels() const {
        std::vector<LevelShape> out;
        for (std::size_t i = level_ + 1; i < job_.levels().size(); ++i) out.push_back({i, inside_});
        return out;
    }

    Position as_position(std::int64_t p) const { return {static_cast<std::int32_t>(p)}; }
    Rank at(std::int64_t p) const { return job_.rank_at(as_position(p)); }

    /// Gathers the blocks of a part at its leader.
    GatherSteps gather(plan::ProgramBuilder& builder, std::int64_t me, std::int32_t g, StepId own) const {
        const std::int32_t rail = rail_of(g, me);
        builder.stage("gather to leader");
        const TreeNeighbours near =
            TopologyTree(job_, part(g, rail), as_position(leader(g, rail)), inner_levels(), inside_)
                .of(as_position(me));
        GatherSteps steps;
        steps.complete.push_back(own);
        for (const TreeLink& child : near.children)
            steps.complete.push_back(builder.recv(job_.rank_at(child.peer), 0, Buffer::recv, child.blocks, {}));
        steps.all = steps.complete;
        if (near.parent)
            steps.all.push_back(
                builder.send(job_.rank_at(near.parent->peer), 0, Buffer::recv, near.parent->blocks, steps.complete));
        return steps;
    }

    std::int32_t participants() const { return groups().count() * (layout_ == Layout::rails ? 1 : leaders_); }
    std::pair<std::int32_t, std::int32_t> group_and_rail(std::int32_t participant, std::int32_t rail) const {
        switch (layout_) {
            case Layout::rails:
                return {participant, rail};
            case Layout::rail_major:
                return {participant % groups().count(), participant / groups().count()};
            case Layout::node_major:
                return {participant / leaders_, participant % leaders_};
        }
        return {0, 0};
    }
    std::int32_t participant_of(std::int32_t g, std::int32_t rail) const {
        switch (layout_) {
            case Layout::rails:
                return g;
            case Layout::rail_major:
                return rail * groups().count() + g;
            case Layout::node_major:
                return g * leaders_ + rail;
        }
        return 0;
    }
    Blocks blocks_of(Range range, std::int32_t rail) const {
        Blocks blocks;
        if (leaders_ == 1) {
            // Participants are whole groups in order, so their blocks are one interval, or two where the range wraps
            // around.
            const std::int32_t straight = std::min(range.count, groups().count() - range.first);
            const auto run = [&](std::int32_t first, std::int32_t count) {
                const std::int32_t begin = groups().first(first);
                blocks.insert({begin, groups().first(first + count) - begin});
            };
            run(range.first, straight);
            run(0, range.count - straight);
            return blocks;
        }
        for (std::int32_t i = 0; i < range.count; ++i) {
            const auto [g, r] = group_and_rail((range.first + i) % participants(), rail);
            blocks.insert(part(g, r));
        }
        return blocks;
    }
    Blocks blocks_in(Range range, std::int32_t rail) const {
        return blocks_of_range(range, participants(), [&](Range part) { return blocks_of(part, rail); });
    }
    /// Outer levels at which a ring between groups closes.
    std::vector<topology::Partition> outer_levels() const {
        return layout_ == Layout::rails ? ring_levels_round(job_, level_) : std::vector<topology::Partition>{};
    }

    /// One rail's steps in a group: its leader exchanges with the other leaders and forwards each arrival at once. The
    /// other ranks derive from the leader's schedule what will arrive.
    void serve_rail(plan::ProgramBuilder& builder, std::int64_t me, std::int32_t g, std::int32_t rail,
                    const GatherSteps& gathered) const {
        const std::int32_t n = participants();
        const std::int64_t lead = leader(g, rail);
        const std::int32_t self = participant_of(g, rail);
        const Schedule schedule = pattern_.schedule(n, self, outer_levels());
        // With rails every leader broadcasts to the whole group; otherwise every leader gets all blocks and broadcasts
        // to its part.
        const Interval receivers = layout_ == Layout::rails ? group(g) : part(g, rail);
        const TreeNeighbours near =
            TopologyTree(job_, receivers, as_position(lead), inner_levels(), inside_).of(as_position(me));
        const Blocks own_part(part(g, rail).first, part(g, rail).count);
        // Tag 0 gathers; each rail then has n + 1 tags for the exchange (tags are at most n) and n for the broadcasts
        // inside.
        const std::int32_t first_tag = 1 + (layout_ == Layout::rails ? rail * (2 * n + 1) : 0);
        std::int32_t tag = first_tag + n + 1;
        if (me == lead) {
            builder.stage(layout_ == Layout::rails && leaders_ > 1 ? base::cat("between leaders, rail ", rail)
                                                                   : std::string("between leaders"));
            Exchanger exchanger(
                builder,
                [&](std::int32_t i) {
                    const auto [other, r] = group_and_rail(i, rail);
                    return at(leader(other, r));
                },
                [&](Range range) { return blocks_of(range, rail); }, n, self, gathered.complete, first_tag);
            exchanger.run(schedule);
            builder.stage("distribute");
            hand_out(builder, near, tag, own_part, gathered.complete);
            for (const Exchanger::Arrival& arrival : exchanger.arrivals())
                hand_out(builder, near, ++tag, arrival.blocks, {arrival.step});
            return;
        }
        builder.stage("distribute");
        take_and_hand_out(builder, near, tag, own_part, me, gathered.all);
        for (const Exchange& exchange : schedule)
            if (const Blocks blocks = blocks_in(exchange.range, rail); !exchange.send && !blocks.empty())
                take_and_hand_out(builder, near, ++tag, blocks, me, {});
    }

    /// A rank never receives its own block: it has it, and with MPI_IN_PLACE nothing else may write there.
    void hand_out(plan::ProgramBuilder& builder, const TreeNeighbours& near, std::int32_t tag, const Blocks& blocks,
                  const std::vector<StepId>& after) const {
        if (blocks.empty()) return;
        for (const TreeLink& child : near.children) {
            if (!blocks.contains(child.peer.value))
                builder.send(job_.rank_at(child.peer), tag, Buffer::recv, blocks, after);
            else if (const Blocks wanted = blocks.without(child.peer.value); !wanted.empty())
                builder.send(job_.rank_at(child.peer), tag, Buffer::recv, wanted, after);
        }
    }
    void take_and_hand_out(plan::ProgramBuilder& builder, const TreeNeighbours& near, std::int32_t tag,
                           const Blocks& blocks, std::int64_t me, std::vector<StepId> after) const {
        const Blocks wanted = blocks.without(me);
        if (!wanted.empty())
            after.push_back(builder.recv(job_.rank_at(near.parent->peer), tag, Buffer::recv, wanted, after));
        hand_out(builder, near, tag, blocks, after);
    }

    /// With rails every leader hands out to the whole group; otherwise every leader gets all blocks, and hands out to
    /// its part.
    Interval receivers(std::int32_t g, std::int32_t rail) const {
        return layout_ == Layout::rails ? group(g) : part(g, rail);
    }
    Schedule schedule_of(std::int32_t g, std::int32_t rail) const {
        return pattern_.schedule(participants(), participant_of(g, rail), outer_levels());
    }
    /// What a leader exposes, in the order of arrival.
    std::vector<Interval> arrivals_of(std::int32_t g, std::int32_t rail) const {
        std::vector<Interval> out;
        for (const Exchange& exchange : schedule_of(g, rail)) {
            if (exchange.send) continue;
            const Blocks blocks = blocks_of(exchange.range, rail);
            out.insert(out.end(), blocks.intervals().begin(), blocks.intervals().end());
        }
        return out;
    }
    /// Whether a group lies in a node, and no rank of it exposes more pieces than it has tags: the same for all of its
    /// ranks.
    bool shares(std::int32_t g) const {
        if (level_ < *job_.find_level("node")) return false;
        std::size_t most = 0;
        std::size_t of_first = 0;  // leads the empty parts, too
        for (std::int32_t rail = 0; rail < leaders_; ++rail) {
            const std::size_t pieces = arrivals_of(g, rail).size();
            if (leader(g, rail) == groups().first(g)) of_first += pieces;
            most = std::max({most, pieces, of_first});
        }
        return 1 + most <= static_cast<std::size_t>(plan::most_expose_tags);
    }

    Program make_shared(Rank rank) const {
        const std::int64_t me = job_.position_of(rank).value;
        const std::int32_t g = groups().group_of(static_cast<std::int32_t>(me));
        const std::int32_t my_rail = rail_of(g, me);
        const Interval near = receivers(g, my_rail);
        const auto others = static_cast<std::size_t>(near.count - 1);
        plan::ProgramBuilder builder(rank, plan::BlockOrder::topology);
        builder.stage("copy own block");
        std::vector<StepId> complete{builder.copy(Buffer::send, Buffer::recv, Blocks(me, 1), {})};
        builder.stage("share own block");
        if (others > 0) builder.expose(0, Buffer::send, {me, 1}, others, {});
        const Interval mine = part(g, my_rail);
        for (std::int64_t i = 1; i < near.count; ++i) {
            const std::int64_t other = near.first + (me - near.first + i) % near.count;
            const StepId pulled = builder.pull(at(other), 0, {other, 1}, Buffer::recv, Blocks(other, 1), {});
            if (mine.first <= other && other < mine.end()) complete.push_back(pulled);
        }
        std::int32_t tag_of_first = 1;
        for (std::int32_t rail = 0; rail < leaders_; ++rail) {
            if (layout_ != Layout::rails && rail != my_rail) continue;
            std::int32_t own_tag = 1;
            std::int32_t& tag = leader(g, rail) == groups().first(g) ? tag_of_first : own_tag;
            if (leader(g, rail) == me)
                lead_shared(builder, g, rail, complete, others, tag);
            else
                follow_shared(builder, me, g, rail, tag);
        }
        return builder.finish();
    }
    void lead_shared(plan::ProgramBuilder& builder, std::int32_t g, std::int32_t rail,
                     const std::vector<StepId>& complete, std::size_t readers, std::int32_t& tag) const {
        builder.stage("between leaders");
        const std::int32_t n = participants();
        Exchanger exchanger(
            builder,
            [&](std::int32_t i) {
                const auto [other, r] = group_and_rail(i, rail);
                return at(leader(other, r));
            },
            [&](Range range) { return blocks_of(range, rail); }, n, participant_of(g, rail), complete,
            layout_ == Layout::rails ? rail * (n + 1) : 0);
        exchanger.run(schedule_of(g, rail));
        builder.stage("distribute");
        for (const Exchanger::Arrival& arrival : exchanger.arrivals())
            for (const Interval& interval : arrival.blocks.intervals())
                if (readers > 0) builder.expose(tag++, Buffer::recv, interval, readers, {arrival.step});
    }
    void follow_shared(plan::ProgramBuilder& builder, std::int64_t me, std::int32_t g, std::int32_t rail,
                       std::int32_t& tag) const {
        builder.stage("distribute");
        for (const Interval& interval : arrivals_of(g, rail))
            builder.pull(at(leader(g, rail)), tag++, interval, Buffer::recv,
                         Blocks(interval.first, interval.count).without(me), {});
    }

    const Job& job_;
    Layout layout_;
    std::int32_t leaders_;
    Pattern pattern_;
    bool shared_;
    TreeShape inside_;
    std::size_t level_;
};

std::optional<std::string> refuse_leaders(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"leaders", "between", "inside", "layout", "level", "single"});
    check_single_copy(spec);
    return Leaders(job, spec).refuse();
}

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return Leaders(job, spec).make(rank, request);
}

/// Blocks pass through the memory of nodes. `links`: time of the leaders' exchange.
double leaders_in_memory_s(const FormulaInput& input, double links, double leaders, bool at_once) {
    const Tiers& tiers = input.tiers;
    const double m = input.bytes, p = tiers.ranks(), group = tiers.node().ranks, nodes = tiers.nodes();
    // Every rank exposes its block and reads the others'; a leader exposes its share of what arrives, and all read all
    // of it.
    const auto shared_out = [&](double exposed, double read, double pieces) {
        if (group <= 1) return 0.0;
        return tiers.intra_node().latency_s + tiers.copy_s(exposed) +
               std::max(pieces * assumed::cache_miss_s + tiers.copy_s(read), tiers.memory_s(group * read));
    };
    const double arrivals = at_once ? nodes - 1 : std::ceil(std::log2(std::max(2.0, nodes)));
    const double others = m * (p - group);
    const double out = nodes > 1 ? shared_out(others / leaders, others, leaders * arrivals) : 0.0;
    return shared_out(m, (group - 1) * m, group - 1) + (at_once ? std::max(links, out) + out / nodes : links + out);
}

/// Each leader collects the blocks of its share of the members, exchanges them with the leaders of its lane, and
/// forwards all that arrives. All leaders of a node exchange concurrently, over the same links.
double several_leaders_s(const FormulaInput& input, double links, double leaders, bool linear, bool at_once) {
    const Tiers& tiers = input.tiers;
    const double m = input.bytes, p = tiers.ranks(), group = tiers.node().ranks, nodes = tiers.nodes();
    const double own = group / leaders;
    const Tier& side = tiers.intra_node();
    const double arrivals = at_once ? nodes - 1 : std::ceil(std::log2(std::max(2.0, nodes)));
    // A rank receives all blocks and forwards its share of them: a leader to the whole node, or each rank to a few.
    const double forwarded = linear ? (group - 1) / leaders : 1.5;
    const double depth = linear ? group - 1 : std::ceil(std::log2(group));
    const double work = depth * arrivals * side.overhead_s + (1 + forwarded) * m * p / side.stream;
    const double distributed = std::max(work, tiers.memory_s((group - 1) * m * p));
    return 2 * side.latency_s + (own - 1) * side.overhead_s +
           (at_once ? std::max(links, distributed) + distributed / nodes : links + distributed);
}

std::optional<double> formula_leaders(const FormulaInput& input) {
    if (input.has_any({"level", "layout"}) || input.spec.find("leaders") == "all") return std::nullopt;
    const Tiers& tiers = input.tiers;
    const double m = input.bytes, group = tiers.node().ranks, nodes = tiers.nodes();
    const double leaders = std::min(group, static_cast<double>(input.spec.integer("leaders", 1)));
    const std::string_view between = input.spec.find("between").value_or("ring");
    const auto exchange = nodes > 1 ? block_exchange_s(input, between, m * group, group) : std::optional<double>(0.0);
    if (!exchange) return std::nullopt;
    // Arriving blocks are forwarded immediately: around a ring, intra-node copies overlap with inter-node transfers.
    const bool at_once = between == "ring";
    std::string_view inside = input.spec.find("inside").value_or("linear");
    if (inside == "shared") {
        if (input.shares) return leaders_in_memory_s(input, *exchange, leaders, at_once);
        inside = "linear";
    }
    if (leaders > 1) return several_leaders_s(input, *exchange, leaders, inside == "linear", at_once);
    const double collected = leader_in_node_s(input, inside == "linear" ? m : m * group / 2, inside, false);
    const double distributed = leader_in_node_s(input, m * tiers.ranks(), inside, false);
    if (at_once) return collected + std::max(*exchange, distributed) + distributed / nodes;
    return collected + *exchange + distributed;
}

}  // namespace

const Algorithm allgather_leaders{
    .collective = Collective::allgather,
    .name = "leaders",
    .sentence =
        "One or more leaders per node (or other level) exchange over rails; they gather from members and broadcast "
        "each arrival at once.",
    .source =
        "Kandalla et al., IPDPS workshops 2009 (multi-leader allgather); the order of leaders as in "
        "docs/decisions/0004",
    .keys =
        "leaders=L (1), between=ring|recursive_doubling|bruck[.K]|neighbor_exchange|all|circulant|pat|bine (ring), "
        "inside=linear|binomial|k_nomial.K|shared (linear), layout=rails|rail_major|node_major (rails), level=LEVEL "
        "(node), single=SIZE (never), with inside=shared: exposures from there on are read by single copy",
    .preconditions =
        "the pattern between leaders must support their number; rail_major and node_major need as many ranks as "
        "leaders in every group; inside=shared reads memory where groups lie in nodes and a rank exposes at most 64 "
        "pieces, and sends messages otherwise",
    .relays = true,
    .refuse = refuse_leaders,
    .make = make_leaders,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_leaders,
    .candidates =
        "leaders:between=recursive_doubling,inside=binomial leaders:between=bruck,inside=binomial "
        "leaders:leaders=4,between=bruck,inside=binomial leaders:leaders=4,between=ring,inside=linear "
        "leaders:leaders=2,between=pat",
    .samples =
        "leaders leaders:leaders=2,between=bruck leaders:leaders=3,between=ring,inside=binomial "
        "leaders:leaders=2,between=recursive_doubling,layout=rail_major "
        "leaders:leaders=2,between=bruck.3,layout=node_major,inside=binomial "
        "leaders:between=neighbor_exchange,inside=k_nomial.3 leaders:level=leaf,between=ring "
        "leaders:level=leaf,leaders=2,between=bruck,inside=binomial leaders:level=leaf,between=all "
        "leaders:leaders=2,between=circulant leaders:between=bine,inside=binomial leaders:inside=shared "
        "leaders:leaders=3,between=bruck,inside=shared leaders:leaders=2,inside=shared,layout=rail_major,single=64 "
        "leaders:leaders=2,between=pat",
};

}  // namespace palmette::collectives
