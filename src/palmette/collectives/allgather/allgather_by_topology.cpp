// allgather, by_topology: gather to leaders at every chosen level, exchange between the leaders at the top, broadcast
// each arrival down at once.
//
//   p = 8 on two leaves of two nodes, node=linear,leaf=linear,top=all:
//
//       leaf 0 ............ leaf 1
//       0 ── 2              4 ── 6      up: 1 to 0, 3 to 2, then 2 to 0; the same on the right
//       │    │              │    │      across: 0 and 4 exchange, so the critical path crosses the slow edge once
//       1    3              5    7      down: 0 to 2 and 1, 2 to 3: each link carries each block once
#include <algorithm>

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/topology_tree.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

/// The levels with leaders, outermost first: those that the spec names, or all, binomial, when it names none.
std::vector<LevelShape> level_shapes(const Job& job, const Spec& spec) {
    const bool named = spec.options.size() > (spec.find("top") ? 1U : 0U);
    std::vector<LevelShape> out;
    for (std::size_t i = 0; i < job.levels().size(); ++i)
        if (const auto shape = spec.find(job.levels()[i].name); shape || !named)
            out.push_back({i, shape ? TreeShape::parse(*shape) : TreeShape{2}});
    return out;
}

Pattern top_of(const Spec& spec) { return Pattern::parse(spec.find("top").value_or("all")); }

class ByTopology {
  public:
    ByTopology(const Job& job, Rank rank, const Spec& spec)
        : job_(job),
          top_(top_of(spec)),
          me_(job.position_of(rank).value),
          groups_(groups_of(job, spec)),
          group_(groups_.group_of(me_)),
          members_{groups_.first(group_), groups_.size_of(group_)},
          builder_(rank, plan::BlockOrder::topology) {
        std::vector<LevelShape> inside = level_shapes(job, spec);
        TreeShape shape{2};
        if (!inside.empty()) {
            shape = inside.front().shape;
            inside.erase(inside.begin());
        }
        near_ = TopologyTree(job, members_, {groups_.first(group_)}, std::move(inside), shape).of({me_});
    }

    /// The groups whose leaders exchange: those of the outermost chosen level, or single ranks.
    static topology::Partition groups_of(const Job& job, const Spec& spec) {
        const std::vector<LevelShape> levels = level_shapes(job, spec);
        return levels.empty() ? topology::Partition::even(job.size(), 1) : job.levels()[levels.front().level].groups;
    }

    Program make() {
        builder_.stage("copy own block");
        own_.push_back(builder_.copy(Buffer::send, Buffer::recv, Blocks(me_, 1), {}));
        for (const TreeLink& child : near_.children) {
            builder_.stage("gather to " + child.stage + " leader");
            own_.push_back(builder_.recv(job_.rank_at(child.peer), up, Buffer::recv, child.blocks, {}));
        }
        if (near_.parent) {
            builder_.stage("gather to " + near_.parent->stage + " leader");
            builder_.send(job_.rank_at(near_.parent->peer), up, Buffer::recv, near_.parent->blocks, own_);
            take_from_leader();
        } else {
            lead();
        }
        return builder_.finish();
    }

  private:
    static constexpr std::int32_t up = 0;
    static constexpr std::int32_t first_tag = 1;

    Blocks blocks_of(Range range) const {
        Blocks blocks;
        const std::int32_t straight = std::min(range.count, groups_.count() - range.first);
        const auto run = [&](std::int32_t first, std::int32_t count) {
            blocks.insert({groups_.first(first), groups_.first(first + count) - groups_.first(first)});
        };
        run(range.first, straight);
        run(0, range.count - straight);
        return blocks;
    }
    /// The group's blocks outside of a member's subtree.
    Blocks lacking(const Blocks& subtree) const {
        Blocks out;
        std::int64_t from = members_.first;
        for (const Interval& interval : subtree.intervals()) {
            out.insert({from, interval.first - from});
            from = interval.end();
        }
        out.insert({from, members_.end() - from});
        return out;
    }
    Schedule schedule() const { return top_.schedule(groups_.count(), group_, {}); }

    void lead() {
        builder_.stage("between leaders");
        Exchanger exchanger(
            builder_, [this](std::int32_t group) { return job_.rank_at({groups_.first(group)}); },
            [this](Range range) { return blocks_of(range); }, groups_.count(), group_, own_, first_tag);
        exchanger.run(schedule());
        hand_out_group({});
        std::int32_t tag = first_tag;
        for (const Exchanger::Arrival& arrival : exchanger.arrivals()) hand_out(++tag, arrival.blocks, {arrival.step});
    }
    void take_from_leader() {
        const Rank parent = job_.rank_at(near_.parent->peer);
        builder_.stage("distribute");
        hand_out_group({builder_.recv(parent, first_tag, Buffer::recv, lacking(near_.parent->blocks), {})});
        std::int32_t tag = first_tag;
        for (const Exchange& exchange : schedule())
            if (!exchange.send) {
                const Blocks blocks =
                    blocks_of_range(exchange.range, groups_.count(), [this](Range part) { return blocks_of(part); });
                ++tag;
                hand_out(tag, blocks, {builder_.recv(parent, tag, Buffer::recv, blocks, {})});
            }
    }
    /// `rest`: the steps that complete the group's blocks together with own_.
    void hand_out_group(std::vector<StepId> rest) {
        builder_.stage("distribute");
        rest.insert(rest.end(), own_.begin(), own_.end());
        for (const TreeLink& child : near_.children)
            builder_.send(job_.rank_at(child.peer), first_tag, Buffer::recv, lacking(child.blocks), rest);
    }
    void hand_out(std::int32_t tag, const Blocks& blocks, const std::vector<StepId>& after) {
        builder_.stage("distribute");
        for (const TreeLink& child : near_.children)
            builder_.send(job_.rank_at(child.peer), tag, Buffer::recv, blocks, after);
    }

    const Job& job_;
    Pattern top_;
    std::int32_t me_;
    topology::Partition groups_;
    std::int32_t group_;
    Interval members_;
    TreeNeighbours near_;
    plan::ProgramBuilder builder_;
    std::vector<StepId> own_;  ///< the steps that complete the subtree's blocks
};

std::optional<std::string> refuse_by_topology(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"top"}, &job);
    for (const auto& [key, value] : spec.options)
        if (key != "top") TreeShape::parse(value);
    return top_of(spec).refuse(ByTopology::groups_of(job, spec).count());
}

Program make_by_topology(const Job& job, Rank rank, const Request&, const Spec& spec) {
    return ByTopology(job, rank, spec).make();
}

}  // namespace

const Algorithm allgather_by_topology{
    .collective = Collective::allgather,
    .name = "by_topology",
    .sentence =
        "Leaders gather level by level, those at the top exchange, and each arrival is broadcast down at once: the "
        "top is crossed once on the critical path.",
    .source = "Kandalla, Subramoni, Vishnu, Panda, IPDPS workshops 2010, for allgather and with any number of levels",
    .keys =
        "LEVEL=linear|binomial|k_nomial.K for each level with leaders (all, binomial), "
        "top=all|ring|recursive_doubling|bruck[.K]|neighbor_exchange|circulant|pat|bine (all)",
    .preconditions = "the pattern at the top must support the number of groups there",
    .relays = true,
    .refuse = refuse_by_topology,
    .make = make_by_topology,
    .samples =
        "by_topology by_topology:node=linear,leaf=linear,top=all by_topology:node=binomial,top=circulant "
        "by_topology:leaf=k_nomial.3,pod=linear,top=ring",
};

}  // namespace palmette::collectives
