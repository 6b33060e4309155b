// gather and scatter, bine: a binomial tree with negabinary distances, which are a third shorter on average.
//
//   p = 8, root 0, blocks of each subtree:   0 ── 3 (2 3 4 5)      3 ── 4 (4 5), 2
//                                            0 ── 7 (6 7)          7 ── 6,  4 ── 5
//                                            0 ── 1
//
// Every subtree is an interval of ranks (modulo p), so a message has one piece, or two where it wraps around. Where p
// is no power of two, some members have one rank more below them.
#include <algorithm>

#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/bine.hpp"
#include "palmette/collectives/trees/rooted.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

/// One member of the tree, numbered from the root on in topology or in rank order.
class Member {
  public:
    Member(std::int32_t p, std::int32_t root, std::int32_t self)
        : p_(p), root_(root), member_((self - root + p) % p), pairs_(p), near_(bine_tree(p, member_)) {}

    TreeNeighbours neighbours() const {
        TreeNeighbours out;
        const std::int32_t group = pairs_.group_of(member_);
        const bool first_of_pair = pairs_.first(group) == member_;
        const bool has_second = first_of_pair && pairs_.first(group + 1) - member_ > 1;
        // The children reach 2^(k-1), ..., 2, 1 groups each.
        auto step = static_cast<std::int32_t>(near_.children.size()) - (has_second ? 1 : 0);
        if (near_.parent) out.parent = {position(*near_.parent), below(member_, first_of_pair ? step : -1), "tree"};
        for (const std::int32_t child : near_.children)
            out.children.push_back({position(child), below(child, --step), "tree"});
        return out;
    }

  private:
    Position position(std::int32_t member) const { return {(member + root_) % p_}; }

    /// The blocks of a subtree of 2^step groups at a member; step -1: the second of a pair alone.
    plan::Blocks below(std::int32_t member, std::int32_t step) const {
        plan::Blocks blocks;
        const auto insert = [&](std::int32_t first, std::int32_t count) {
            const std::int32_t begin = position(first).value;
            const std::int32_t straight = std::min(count, p_ - begin);
            blocks.insert({begin, straight});
            blocks.insert({0, count - straight});
        };
        if (step < 0) {
            insert(member, 1);
            return blocks;
        }
        const BineButterfly butterfly{pairs_.groups()};
        const std::int32_t first = butterfly.first_held(pairs_.group_of(member), step);
        const std::int32_t groups = std::int32_t{1} << step;
        const std::int32_t straight = std::min(groups, pairs_.groups() - first);
        insert(pairs_.first(first), pairs_.first(first + straight) - pairs_.first(first));
        insert(0, pairs_.first(groups - straight));
        return blocks;
    }

    std::int32_t p_, root_, member_;
    BinePairs pairs_;
    BineNeighbours near_;
};

std::optional<std::string> refuse_bine_blocks(const Job&, const Request&, const Spec& spec) {
    check_keys(spec, {"order", "segment"});
    spec.word("order", {"topology", "rank"});
    spec.size("segment", 0);
    return std::nullopt;
}

RootedTree tree(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    RootedTree tree;
    tree.parts = slices_of(request, spec);
    const bool by_rank = spec.word("order", {"topology", "rank"}) == "rank";
    if (by_rank) tree.order = plan::BlockOrder::rank;
    tree.self = by_rank ? Position{rank.value} : job.position_of(rank);
    const std::int32_t root = by_rank ? request.root.value : job.position_of(request.root).value;
    tree.neighbours = Member(job.size(), root, tree.self.value).neighbours();
    return tree;
}

Program make_gather_bine(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return gather_along(job, rank, tree(job, rank, request, spec));
}
Program make_scatter_bine(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return scatter_along(job, rank, tree(job, rank, request, spec));
}

// gather and scatter are each other reversed in time.
constexpr std::string_view samples_bine = "bine bine:order=rank,segment=20";

/// As many stages as a binomial tree's.
std::optional<double> formula_bine(const FormulaInput& input) {
    return blocks_along_s(input, flat_phases(input, TreeShape{2}));
}

}  // namespace

const Algorithm gather_bine{
    .collective = Collective::gather,
    .name = "bine",
    .sentence =
        "A binomial tree with negabinary distances: log_2 p stages whose partners are nearer than a binomial tree's.",
    .source =
        "De Sensi et al., \"Bine trees: enhancing collective operations by optimizing communication locality\", SC "
        "2025",
    .keys = "order=topology|rank, segment=SIZE",
    .relays = true,
    .refuse = refuse_bine_blocks,
    .make = make_gather_bine,
    .formula = formula_bine,
    .samples = samples_bine,
    .kin = "k_nomial",
};

const Algorithm scatter_bine{
    .collective = Collective::scatter,
    .name = "bine",
    .sentence =
        "A binomial tree with negabinary distances: log_2 p stages whose partners are nearer than a binomial tree's.",
    .source =
        "De Sensi et al., \"Bine trees: enhancing collective operations by optimizing communication locality\", SC "
        "2025",
    .keys = "order=topology|rank, segment=SIZE",
    .relays = true,
    .refuse = refuse_bine_blocks,
    .make = make_scatter_bine,
    .formula = formula_bine,
    .samples = samples_bine,
    .kin = "k_nomial",
};

}  // namespace palmette::collectives
