// bcast, leaders: the vector in chunks, each of which is broadcast between groups by leaders of its own, then inside
// the groups.
//
//   p = 12 on three leaves of two nodes of two, root 0, level=leaf, leaders=2 (chunk A at 0, 4, 8; chunk B at 2, 6,
//   10):
//
//       A:  0 ═══ 4 ═══ 8         between leaves, along a chain with a different first leaf for each chunk
//       B:  0 → 2 ═══ 10 ═══ 6
//       A:  0 → 2 1, 2 → 3   |   4 → 6 5, 6 → 7   |   8 → 10 9, 10 → 11       inside, from the leader on
//       B:  0 → 1, 2 → 3     |   6 → 5 7, 5 → 4   |   10 → 9 11, 9 → 8
//
//   With as many leaders as there are nodes in the root's group, all of these send to other groups at once, and with as
//   many as there are other groups, or a multiple, no uplink but the root's carries the whole vector out: under
//   background traffic, more senders get a larger share of a link. Groups are taken in a circle, whatever is
//   above them: level= is best the outermost.
#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/leader_groups.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"

namespace palmette::collectives {
namespace {

TreeShape between_of(const Spec& spec) { return TreeShape::parse(spec.find("between").value_or("chain")); }

/// The neighbours of one rank in the tree of each chunk.
class ChunkTrees {
  public:
    ChunkTrees(const Job& job, const LeaderGroups& groups, TreeShape between, Position root, Position self)
        : job_(job),
          groups_(groups),
          between_(between),
          root_(root),
          self_(self),
          home_(groups.group_of(root)),
          g_(groups.group_of(self)) {}

    TreeNeighbours of(std::int32_t chunk) const {
        TreeNeighbours near;
        const Position leader = leader_of(g_, chunk);
        if (g_ == home_ && leader != root_) {
            if (self_ == root_) near.children.push_back(link(leader, groups_.level_name()));
            if (self_ == leader) near.parent = link(root_, groups_.level_name());
        }
        if (self_ == leader) add_between(chunk, near);
        add_inside(chunk, near);
        return near;
    }

  private:
    Position leader_of(std::int32_t g, std::int32_t chunk) const {
        return {static_cast<std::int32_t>(groups_.leader(g, chunk))};
    }
    static TreeLink link(Position peer, const std::string& stage) { return {peer, {}, stage}; }

    /// Groups are numbered from the root's on; each chunk rotates the others, to begin with a different one.
    std::int32_t turn(std::int32_t chunk) const {
        const std::int32_t others = groups_.count() - 1;
        if (others < 2) return 0;
        return groups_.chunks() >= others ? chunk % others
                                          : static_cast<std::int32_t>(std::int64_t{chunk} * others / groups_.chunks());
    }
    std::int32_t member_of(std::int32_t g, std::int32_t chunk) const {
        const std::int32_t n = groups_.count();
        const std::int32_t place = (g - home_ + n) % n;
        return place == 0 ? 0 : 1 + (place - 1 - turn(chunk) + n - 1) % (n - 1);
    }
    std::int32_t group_at(std::int32_t member, std::int32_t chunk) const {
        const std::int32_t n = groups_.count();
        return member == 0 ? home_ : (home_ + 1 + (member - 1 + turn(chunk)) % (n - 1)) % n;
    }

    void add_between(std::int32_t chunk, TreeNeighbours& near) const {
        const std::int32_t n = groups_.count();
        const std::int32_t me = member_of(g_, chunk);
        const auto leader_at = [&](std::int32_t member) { return leader_of(group_at(member, chunk), chunk); };
        if (const auto parent = between_.parent(me, n)) near.parent = link(leader_at(*parent), "top");
        for (const SubTree& child : between_.children(me, n))
            near.children.push_back(link(leader_at(child.first), "top"));
    }

    /// The leader's tree over its group. In the root's own group the root already has the chunk and sends it to its
    /// children only.
    void add_inside(std::int32_t chunk, TreeNeighbours& near) const {
        const bool home = g_ == home_;
        const ChunkTree tree = groups_.tree(g_, chunk, false, home ? std::optional(root_) : std::nullopt);
        const ChunkTree::Neighbours inside = tree.of(self_);
        const topology::Partition& nodes = job_.nodes().groups;
        const auto same_node = [&](Position p) { return nodes.group_of(p.value) == nodes.group_of(self_.value); };
        const auto stage = [&](Position p) { return same_node(p) ? std::string("node") : groups_.level_name(); };
        if (inside.parent && !(home && self_ == root_)) near.parent = link(*inside.parent, stage(*inside.parent));
        for (const bool intra_node : {false, true})  // inter-node messages first
            for (const Position child : inside.children)
                if (same_node(child) == intra_node && !(home && child == root_))
                    near.children.push_back(link(child, stage(child)));
    }

    const Job& job_;
    const LeaderGroups& groups_;
    TreeShape between_;
    Position root_, self_;
    std::int32_t home_, g_;
};

std::optional<std::string> refuse_leaders(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"leaders", "level", "between", "inside", "segment"});
    between_of(spec);
    TreeShape::parse(spec.find("inside").value_or("linear"));
    spec.size("segment", 0);
    if (const LeaderGroups groups(job, spec, Spread::turns); groups.chunks() > most_slices)
        return base::cat("at most ", most_slices, " leaders, not ", groups.chunks());
    return std::nullopt;
}

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const LeaderGroups groups(job, spec, Spread::turns);
    RootedTree tree;
    tree.self = job.position_of(rank);
    const ChunkTrees trees(job, groups, between_of(spec), job.position_of(request.root), tree.self);
    tree.neighbours = trees.of(0);
    for (std::int32_t chunk = 1; chunk < groups.chunks(); ++chunk) tree.lanes.push_back(trees.of(chunk));
    tree.parts = whole_rounds(slices_of(request, spec), groups.chunks());
    return bcast_along(job, rank, spec, tree);
}

}  // namespace

const Algorithm bcast_leaders{
    .collective = Collective::bcast,
    .name = "leaders",
    .sentence =
        "Several leaders per group, each of which forwards a chunk of the vector between groups and inside its own.",
    .source =
        "Kandalla, Subramoni, Santhanaraman, Koop, Panda, IPDPS workshops 2009 (multi-leader allgather); for bcast "
        "here",
    .keys =
        "leaders=L|all (1, all: as many as the smallest group has ranks), level=LEVEL (node), "
        "between=linear|binomial|k_nomial.K|postal.K|k_ary.K|chain (chain), inside=SHAPE (linear), segment=SIZE",
    .refuse = refuse_leaders,
    .make = make_leaders,
    .tags = one_tag_a_slice,
    .samples =
        "leaders leaders:leaders=2,between=binomial,inside=chain,segment=24 "
        "leaders:leaders=all,level=leaf,inside=chain "
        "leaders:leaders=6,level=leaf,between=chain,inside=binomial,segment=20 "
        "leaders:leaders=3,level=leaf,between=linear",
};

}  // namespace palmette::collectives
