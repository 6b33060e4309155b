// reduce_scatter, leaders: reduce inside groups to leaders, exchange between leaders, scatter inside.
//
//   p = 8 on two nodes of four, leaders=2 (lane A: blocks 0 1 4 5 at 0 and 4, lane B: blocks 2 3 6 7 at 2 and 6):
//
//       A: 1 2 3 → 0     B: 0 1 3 → 2   |   A: 5 6 7 → 4     B: 4 5 7 → 6     reduce the lane's blocks inside the node
//       A: 0 ═════ 4 (4 5 there, 0 1 here)   B: 2 ═════ 6 (6 7, 2 3)          between nodes
//       0 → 1     2 → 3   |   4 → 5     6 → 7                                 distribute
#include <algorithm>

#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/exchanges/vector_tree.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

constexpr std::int32_t up_tag = 0, down_tag = 1, between_tag = 2;

/// Key between: direct (default), circulant or pat.
ReducePattern between_of(const Spec& spec) {
    return ReducePattern::parse(spec.word("between", {"direct", "circulant", "pat"}));
}
constexpr std::int32_t expose_input = 0, expose_result = 1;

/// Groups of one level and the lanes between them.
class Lanes {
  public:
    Lanes(const Job& job, const Spec& spec) : job_(job) {
        const auto wanted = job.find_level(spec.find("level").value_or("node"));
        const std::size_t node = *job.find_level("node");
        level_ = wanted ? *wanted : node;
        const std::int32_t smallest = groups().smallest();
        count_ = spec.find("leaders") == "all" ? smallest : std::min(smallest, spec.integer("leaders", 1));
        const bool wants_shared = spec.find("inside") == "shared";
        shared_ = wants_shared && level_ >= node;
        inside_ = TreeShape::parse(wants_shared ? "linear" : spec.find("inside").value_or("linear"));
        for (std::size_t i = level_ + 1; i < job.levels().size(); ++i) inner_.push_back({i, inside_});
    }

    const topology::Partition& groups() const { return job_.levels()[level_].groups; }
    std::int32_t count() const { return count_; }
    bool shared() const { return shared_; }
    Interval group(std::int32_t g) const { return {groups().first(g), groups().size_of(g)}; }
    /// Positions of group g whose blocks lane `lane` carries; the first of them is the leader.
    Interval served(std::int32_t g, std::int32_t lane) const {
        const std::int64_t size = groups().size_of(g);
        const std::int64_t begin = size * lane / count_;
        return {groups().first(g) + begin, size * (lane + 1) / count_ - begin};
    }
    Position leader(std::int32_t g, std::int32_t lane) const {
        return {static_cast<std::int32_t>(served(g, lane).first)};
    }
    Blocks blocks(std::int32_t lane) const {
        if (count_ == 1) return {0, job_.size()};
        Blocks out;
        for (std::int32_t g = 0; g < groups().count(); ++g) out.insert(served(g, lane));
        return out;
    }
    TreePlace place(Position self, std::int32_t g, std::int32_t lane) const {
        const TreeNeighbours near =
            TopologyTree(job_, group(g), leader(g, lane), inner_, inside_, Numbering::sides).of(self);
        TreePlace place;
        if (near.parent) place.parent = near.parent->peer;
        for (const TreeLink& child : near.children) place.children.push_back(child.peer);
        std::sort(place.children.begin(), place.children.end(),
                  [](Position a, Position b) { return a.value < b.value; });
        return place;
    }

  private:
    const Job& job_;
    std::size_t level_ = 0;
    std::int32_t count_ = 1;
    bool shared_ = false;
    TreeShape inside_;
    std::vector<LevelShape> inner_;
};

class Maker {
  public:
    Maker(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : job_(job),
          request_(request),
          lanes_(job, spec),
          pattern_(between_of(spec)),
          tags_a_lane_(between_tag + pattern_.tags(lanes_.groups().count())),
          shared_(lanes_.shared() && request.shared_memory),
          builder_(rank),
          self_(job.position_of(rank)),
          g_(lanes_.groups().group_of(self_.value)) {}

    Program make() {
        const Interval group = lanes_.group(g_);
        if (shared_ && group.count > 1) {
            builder_.stage("reduce inside");
            const std::int32_t led = own_lane() >= 0 ? 1 : 0;
            if (lanes_.count() > led)
                builder_.expose(expose_input, Buffer::send, {0, job_.size()},
                                static_cast<std::size_t>(lanes_.count() - led), {});
        }
        for (std::int32_t lane = 0; lane < lanes_.count(); ++lane) serve(lane);
        scratch_.reserve(builder_);
        return builder_.finish();
    }

  private:
    /// The lane that this rank leads, or -1.
    std::int32_t own_lane() const {
        for (std::int32_t lane = 0; lane < lanes_.count(); ++lane)
            if (lanes_.leader(g_, lane).value == self_.value) return lane;
        return -1;
    }

    void serve(std::int32_t lane) {
        const Interval served = lanes_.served(g_, lane);
        const bool leads = served.first == self_.value;
        builder_.stage("reduce inside");
        const Blocks blocks = lanes_.blocks(lane);
        HeldBlocks held{Buffer::send, {}};
        std::size_t layers = 0;
        if (shared_) {
            if (leads) held = pull(blocks);
        } else {
            VectorTree tree(job_, self_, builder_, scratch_, lanes_.place(self_, g_, lane), blocks, {});
            layers = tree.layers();
            held = tree.up(held, plan::scratch_layer(layers), lane * tags_a_lane_ + up_tag);
        }
        if (leads) {
            builder_.stage("between leaders");
            held = exchange(lane, held, layers + 1);
        }
        builder_.stage("distribute");
        hand_out(lane, served, held);
    }

    HeldBlocks pull(const Blocks& blocks) {
        HeldBlocks held{Buffer::send, {}};
        const Interval group = lanes_.group(g_);
        const Buffer work = plan::scratch_layer(0);
        if (group.count > 1) scratch_.need(work, blocks);
        const auto join = [&](std::int64_t peer) {
            held = {
                work,
                {builder_.pull_reduce(job_.rank_at({static_cast<std::int32_t>(peer)}), expose_input, {0, job_.size()},
                                      peer < self_.value, held.buffer, work, blocks, held.ready)}};
        };
        for (std::int64_t peer = self_.value; peer-- > group.first;) join(peer);
        for (std::int64_t peer = self_.value + 1; peer < group.end(); ++peer) join(peer);
        return held;
    }

    HeldBlocks exchange(std::int32_t lane, const HeldBlocks& held, std::size_t first_layer) {
        const Interval served = lanes_.served(g_, lane);
        if (lanes_.groups().count() == 1) return held;
        const Buffer result = served.count == 1 ? Buffer::recv : plan::scratch_layer(first_layer);
        const bool direct = pattern_.kind == ReducePattern::Kind::direct;
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = lanes_.groups().count(),
            .me = g_,
            .rank_of = [&](std::int32_t g) { return job_.rank_at(lanes_.leader(g, lane)); },
            .blocks_of =
                [&](std::int32_t first, std::int32_t count) {
                    Blocks out;
                    for (std::int32_t g = first; g < first + count; ++g) out.insert(lanes_.served(g, lane));
                    return out;
                },
            .input = held.buffer,
            .work = direct ? result : plan::scratch_layer(first_layer + 1 + SkipExchange::layers),
            .result = result,
            .first_layer = first_layer + 1,
            .ready = held.ready,
            .first_tag = lane * tags_a_lane_ + between_tag,
            .slice = {},
            .ordered = request_.ordered,
        };
        if (direct) return {result, DirectExchange(context).reduce_scatter()};
        return SkipExchange(context, pattern_.kind == ReducePattern::Kind::pat ? pat_steps(context.n)
                                                                               : circulant_steps(context.n))
            .reduce_parts();
    }

    /// The leader has its served blocks in `held`.
    void hand_out(std::int32_t lane, Interval served, const HeldBlocks& held) {
        const std::int32_t tag = lane * tags_a_lane_ + down_tag;
        const Interval others{served.first + 1, served.count - 1};
        if (served.first == self_.value) {
            if (held.buffer != Buffer::recv)
                builder_.copy(held.buffer, Buffer::recv, Blocks(self_.value, 1), held.ready);
            if (shared_ && others.count > 0)
                builder_.expose(expose_result, held.buffer, others, static_cast<std::size_t>(others.count), held.ready);
            for (std::int64_t p = others.first; !shared_ && p < others.end(); ++p)
                builder_.send(job_.rank_at({static_cast<std::int32_t>(p)}), tag, held.buffer, Blocks(p, 1), held.ready);
            return;
        }
        if (self_.value < served.first || self_.value >= served.end()) return;
        const Rank leader = job_.rank_at(lanes_.leader(g_, lane));
        const Blocks own(self_.value, 1);
        if (shared_)
            builder_.pull(leader, expose_result, others, Buffer::recv, own, {});
        else
            builder_.recv(leader, tag, Buffer::recv, own, {});
    }

    const Job& job_;
    const Request& request_;
    Lanes lanes_;
    ReducePattern pattern_;
    std::int32_t tags_a_lane_;
    bool shared_;
    plan::ProgramBuilder builder_;
    Position self_;
    std::int32_t g_;
    ScratchBuffer scratch_;
};

std::optional<std::string> refuse_leaders(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"leaders", "between", "inside", "level", "single"});
    check_single_copy(spec);
    const Lanes lanes(job, spec);
    if (const auto reason = between_of(spec).refuse(lanes.groups().count(), request.ordered)) return reason;
    return refuse_scattered(job, request);
}

std::int64_t tags_leaders(const Job& job, const Request&, const Spec& spec) {
    const Lanes lanes(job, spec);
    return std::int64_t{lanes.count()} * (between_tag + between_of(spec).tags(lanes.groups().count()));
}

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return Maker(job, rank, request, spec).make();
}

/// Each rank combines a share of the node's vectors, exchanges it with the ranks of its lane, and hands out what has
/// come together.
double all_lead_s(const FormulaInput& input, std::string_view between, std::string_view inside) {
    const Tiers& tiers = input.tiers;
    const double m = input.bytes, group = tiers.node().ranks, nodes = tiers.nodes();
    const double steps = between == "direct" ? tiers.between_nodes(nodes - 1, m) : skips_s(tiers, between, m, group, 1);
    const double exchange = nodes > 1 ? steps + tiers.reduce_s(m * (nodes - 1)) : 0;
    return split_in_node_s(input, inside, m * tiers.ranks(), true) + exchange +
           (group > 1 && input.shares
                ? tiers.intra_node().latency_s + (group - 1) * assumed::cache_miss_s + 2 * tiers.copy_s(m)
                : tiers.within_node(1, m));
}

std::optional<double> formula_leaders(const FormulaInput& input) {
    if (input.spec.find("level")) return std::nullopt;
    const Tiers& tiers = input.tiers;
    const double m = input.bytes, p = tiers.ranks(), group = tiers.node().ranks, nodes = tiers.nodes();
    const std::string_view inside = input.spec.find("inside").value_or("linear");
    const std::string_view between = input.spec.find("between").value_or("direct");
    if (input.spec.find("leaders") == "all")
        return inside == "shared" ? std::optional(all_lead_s(input, between, inside)) : std::nullopt;
    if (std::min(group, static_cast<double>(input.spec.integer("leaders", 1))) > 1) return std::nullopt;
    // Vectors are reduced to the leader, blocks of other nodes go directly to their leaders, each member gets its
    // block.
    double exchange = nodes > 1 ? tiers.round(group, m * group, Partners::shift, group) : 0;
    for (std::size_t t = 0; t + 1 < tiers.count(); ++t)
        if (!tiers[t].inside && tiers[t].edge > 0 && tiers[t].ranks < p)
            exchange = std::max(exchange, (p - tiers[t].ranks) * m * tiers[t].ranks / group / tiers[t].edge);
    // Of a leader, whose messages are all outstanding at once.
    if (nodes > 1) exchange = std::max(exchange, tiers[0].latency_s + (nodes - 2) * 2 * tiers.busy(0, m * group));
    if (between != "direct" && nodes > 1) {
        const auto steps = block_exchange_s(input, between, m * group, group);
        if (!steps) return std::nullopt;
        exchange = *steps;
    }
    return leader_in_node_s(input, m * p, inside, true) + exchange + tiers.reduce_s(m * group * (nodes - 1)) +
           leader_in_node_s(input, m, "linear", false);
}

}  // namespace

const Algorithm reduce_scatter_leaders{
    .collective = Collective::reduce_scatter,
    .name = "leaders",
    .sentence =
        "Groups reduce at one leader or, in lanes, at several; leaders exchange blocks and scatter them in their "
        "groups.",
    .source = "Traeff, Hunold, CLUSTER 2020 (lanes)",
    .keys =
        "leaders=L|all (1; at most the ranks of the smallest group), between=direct|circulant|pat (direct), "
        "inside=linear|binomial|k_nomial.K|shared "
        "(linear), level=LEVEL (node), single=SIZE (never), with inside=shared: exposures from there on are read by "
        "single copy",
    .preconditions = "an operation that isn't commutative needs ranks in topology order, and between=direct",
    .relays = true,
    .refuse = refuse_leaders,
    .make = make_leaders,
    .tags = tags_leaders,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_leaders,
    .candidates =
        "leaders:leaders=all,inside=shared leaders:inside=linear leaders:leaders=all,between=pat,inside=shared",
    .samples =
        "leaders leaders:leaders=all,inside=binomial leaders:leaders=2,level=leaf leaders:leaders=2,inside=shared "
        "leaders:leaders=2,inside=shared,single=64 leaders:leaders=all,inside=shared leaders:between=circulant "
        "leaders:leaders=all,between=pat,inside=shared leaders:leaders=2,between=pat,level=leaf,inside=binomial",
};

}  // namespace palmette::collectives
