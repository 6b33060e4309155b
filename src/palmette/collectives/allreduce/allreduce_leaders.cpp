// allreduce, leaders: chunks of the vector are reduced at a different leader each, allreduced between the groups'
// leaders of the same chunk, and broadcast inside.
//
//   p = 8 on two nodes of four, leaders=2 (chunk A at 0 and 4, chunk B at 2 and 6):
//
//       A: 1 2 3 → 0     B: 0 1 3 → 2   |   A: 5 6 7 → 4     B: 4 5 7 → 6     reduce inside the node
//       A: 0 ═══════ 4   and   B: 2 ═══════ 6                                 between nodes: each chunk in its own lane
//       A: 0 → 1 2 3     B: 2 → 0 1 3   |   A: 4 → 5 6 7     B: 6 → 4 5 7     distribute
//
//   With inside=shared the first and the last step go through shared memory: leaders read their chunk of every
//   rank's vector in place, and every rank reads the results. With leaders=1 and inner levels it is five phases:
//   sockets, between sockets, between nodes, and back.
#include <algorithm>

#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/leader_groups.hpp"
#include "palmette/collectives/exchanges/vector_tree.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::Slice;
using plan::StepId;

/// Tags of exposes, per slice.
enum : std::int32_t { expose_below, expose_above, expose_result, exposes_a_slice };

/// One rank's part.
class LeadersMaker {
  public:
    LeadersMaker(const Job& job, Rank rank, const Request& request, const Spec& spec)
        : job_(job),
          request_(request),
          groups_(job, spec),
          pattern_(ReducePattern::parse(spec.find("between").value_or("recursive_doubling"))),
          parts_(pattern_.parts(groups_.count())),
          shared_(groups_.shared(request)),
          slices_(slices(request, spec, std::int64_t{parts_} * groups_.chunks(), shared_)),
          builder_(rank, plan::BlockOrder::topology, std::int64_t{parts_} * groups_.chunks()),
          self_(job.position_of(rank)),
          g_(groups_.group_of(self_)),
          cell_(groups_.cell(self_)),
          led_(groups_.chunks_led(self_.value - cell_.first, cell_.count)) {
        if (pattern_.kind == ReducePattern::Kind::ring) outer_ = groups_.outer_levels();
    }

    /// The tag space of exposes is small.
    static std::uint16_t slices(const Request& request, const Spec& spec, std::int64_t cut, bool shared) {
        constexpr std::uint16_t most_shared = (plan::most_expose_tags - 1) / exposes_a_slice;
        const std::uint16_t all = slices_of(request, spec, cut);
        return shared ? std::min(all, most_shared) : all;
    }

    Program make() {
        for (std::uint16_t i = 0; i < slices_; ++i) make_slice({i, slices_});
        scratch_.reserve(builder_);
        return builder_.finish();
    }

  private:
    Interval run_of(Interval chunks) const { return {chunks.first * parts_, chunks.count * parts_}; }
    Blocks blocks_of(Interval chunks) const {
        const Interval run = run_of(chunks);
        return {run.first, run.count};
    }

    /// Steps for one chunk of the group: reduce inside, exchange between leaders, broadcast.
    struct LeaderChunk {
        std::int32_t chunk;
        VectorTree tree;
        HeldBlocks held;
    };

    /// Every rank begins after the chunks that it leads, which avoids contention at the first leader.
    std::vector<std::int32_t> chunks_in_turn() const {
        std::vector<std::int32_t> out;
        const Interval handled = shared_ ? led_ : Interval{0, groups_.chunks()};
        const Interval group = groups_.group(g_);
        const std::int64_t turn = shared_ ? 0 : groups_.chunks_led(self_.value - group.first, group.count).end();
        for (std::int64_t i = 0; i < handled.count; ++i)
            out.push_back(static_cast<std::int32_t>(handled.first + (turn + i) % handled.count));
        return out;
    }

    void make_slice(Slice slice) {
        if (shared_) expose_input(slice);
        std::vector<LeaderChunk> handled;
        for (const std::int32_t chunk : chunks_in_turn()) {
            ChunkTree::Neighbours near = groups_.tree(g_, chunk, shared_).of(self_);
            if (shared_)
                std::erase_if(near.children,
                              [&](Position p) { return p.value >= cell_.first && p.value < cell_.end(); });
            VectorTree tree(job_, self_, builder_, scratch_, {near.parent, near.children}, blocks_of({chunk, 1}),
                            slice);
            const HeldBlocks own = shared_ ? pull_chunk(chunk, slice) : HeldBlocks{Buffer::send, {}};
            builder_.stage("reduce inside");
            const HeldBlocks held = tree.up(own, Buffer::recv, tag(chunk, 0, slice));
            handled.push_back({chunk, std::move(tree), held});
        }
        builder_.stage("between leaders");
        for (LeaderChunk& one : handled)
            if (one.tree.root()) one.held = {Buffer::recv, exchange(one.chunk, one.held, one.tree.layers(), slice)};
        builder_.stage("distribute");
        std::vector<StepId> complete;
        for (LeaderChunk& one : handled)
            add_steps(complete, one.tree.down(one.held, Buffer::recv, tag(one.chunk, 1, slice)));
        if (shared_) share_results(complete, slice);
    }

    std::int32_t tag(std::int32_t chunk, std::int32_t phase, Slice slice) const {
        return (2 * chunk + phase) * slices_ + slice.index;
    }

    std::vector<StepId> exchange(std::int32_t chunk, const HeldBlocks& held, std::size_t first_layer, Slice slice) {
        const std::int32_t n = groups_.count();
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = n,
            .me = g_,
            .rank_of = [&](std::int32_t g) { return at(groups_.leader(g, chunk)); },
            .blocks_of = [&](std::int32_t first,
                             std::int32_t count) { return Blocks(std::int64_t{chunk} * parts_ + first, count); },
            .input = held.buffer,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .first_layer = first_layer,
            .ready = held.ready,
            .first_tag = 2 * groups_.chunks() * slices_ + (chunk * slices_ + slice.index) * pattern_.tags(n),
            .slice = slice,
            .ordered = request_.ordered,
        };
        return pattern_.allreduce(context, outer_);
    }

    Rank at(std::int64_t position) const { return job_.rank_at({static_cast<std::int32_t>(position)}); }

    /// Exposes the chunks that others of the cell lead: those below the own ones and those above.
    std::pair<Interval, Interval> foreign(Interval led) const {
        return {{0, led.first}, {led.end(), groups_.chunks() - led.end()}};
    }

    void expose_input(Slice slice) {
        exposed_.clear();
        const auto [below, above] = foreign(led_);
        if (cell_.count == 1) return;
        builder_.stage("reduce inside");
        for (const auto& [chunks, which] : {std::pair(below, expose_below), std::pair(above, expose_above)})
            if (chunks.count > 0)
                exposed_.push_back(
                    {chunks, builder_.expose(slice.index * exposes_a_slice + which, Buffer::send, run_of(chunks),
                                             static_cast<std::size_t>(chunks.count), {}, slice)});
    }

    /// Pulls and combines the chunk of every member of the cell with the own one, neighbours first.
    HeldBlocks pull_chunk(std::int32_t chunk, Slice slice) {
        builder_.stage("reduce inside");
        HeldBlocks held{Buffer::send, {}};
        const auto join = [&](std::int64_t peer) {
            const auto [below, above] = foreign(groups_.chunks_led(peer - cell_.first, cell_.count));
            const bool is_below = chunk < below.end();
            held = {Buffer::recv,
                    {builder_.pull_reduce(at(peer),
                                          slice.index * exposes_a_slice + (is_below ? expose_below : expose_above),
                                          run_of(is_below ? below : above), peer < self_.value, held.buffer,
                                          Buffer::recv, blocks_of({chunk, 1}), held.ready, slice)}};
        };
        for (std::int64_t peer = self_.value; peer-- > cell_.first;) join(peer);
        for (std::int64_t peer = self_.value + 1; peer < cell_.end(); ++peer) join(peer);
        return held;
    }

    void share_results(const std::vector<StepId>& complete, Slice slice) {
        if (cell_.count == 1) return;
        const std::int32_t result_tag = slice.index * exposes_a_slice + expose_result;
        if (led_.count > 0)
            builder_.expose(result_tag, Buffer::recv, run_of(led_), static_cast<std::size_t>(cell_.count - 1), complete,
                            slice);
        for (std::int64_t i = 1; i < cell_.count; ++i) {
            const std::int64_t peer = (self_.value - cell_.first + i) % cell_.count;
            const Interval theirs = groups_.chunks_led(peer, cell_.count);
            if (theirs.count == 0) continue;
            std::vector<StepId> waits;
            for (const auto& [chunks, step] : exposed_)
                if (theirs.first >= chunks.first && theirs.first < chunks.end()) waits.push_back(step);
            builder_.pull(at(cell_.first + peer), result_tag, run_of(theirs), Buffer::recv, blocks_of(theirs), waits,
                          slice);
        }
    }

    const Job& job_;
    const Request& request_;
    LeaderGroups groups_;
    ReducePattern pattern_;
    std::int32_t parts_;
    bool shared_;
    std::uint16_t slices_;
    plan::ProgramBuilder builder_;
    Position self_;
    std::int32_t g_;
    Interval cell_;                           ///< ranks of the group on this node
    Interval led_;                            ///< with shared memory: chunks that this rank leads in its cell
    std::vector<topology::Partition> outer_;  ///< for a ring
    ScratchBuffer scratch_;
    std::vector<std::pair<Interval, StepId>> exposed_;  ///< chunks, and the step that exposes them
};

std::optional<std::string> refuse_leaders(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"leaders", "between", "inside", "level", "segment", "single"});
    check_single_copy(spec);
    spec.size("segment", 0);
    const LeaderGroups groups(job, spec);
    const ReducePattern pattern = ReducePattern::parse(spec.find("between").value_or("recursive_doubling"));
    if (const auto reason = pattern.refuse(groups.count(), request.ordered)) return reason;
    if (request.ordered && groups.inside().radix != 0 && groups.chunks() > 1)
        return std::string("trees with several leaders don't combine contributions in rank order");
    return refuse_scattered(job, request);
}

std::int64_t tags_leaders(const Job& job, const Request& request, const Spec& spec) {
    const LeaderGroups groups(job, spec);
    const ReducePattern pattern = ReducePattern::parse(spec.find("between").value_or("recursive_doubling"));
    const std::int64_t cut = std::int64_t{pattern.parts(groups.count())} * groups.chunks();
    return std::int64_t{slices_of(request, spec, cut)} * groups.chunks() * (2 + pattern.tags(groups.count()));
}

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return LeadersMaker(job, rank, request, spec).make();
}

/// All ranks of the groups of a level lead a chunk, as many as the smallest group has: with very uneven ones its few
/// ranks determine the time.
std::optional<double> formula_of_level(const FormulaInput& input, std::string_view level, std::string_view between) {
    const Tiers& tiers = input.tiers;
    const std::size_t tier = tiers.named(level);
    const double n = input.bytes, members = tiers[tier].ranks, many = tiers[tier].least;
    if (tiers[tier].name != level || members >= tiers.ranks() || tiers[tier].most > 2 * many) return std::nullopt;
    const auto exchange = vector_exchange_s(input, between, n / many, members, members / many);
    if (!exchange) return std::nullopt;
    return tiers.spread_within(tier, many, n / many, true) + *exchange +
           tiers.spread_within(tier, many, n / many, false);
}

std::optional<double> formula_leaders(const FormulaInput& input) {
    if (input.spec.find("segment")) return std::nullopt;
    const Tiers& tiers = input.tiers;
    const double n = input.bytes, group = tiers.node().ranks;
    const std::string_view between = input.spec.find("between").value_or("recursive_doubling");
    const std::string_view inside = input.spec.find("inside").value_or("linear");
    const std::string_view leaders = input.spec.find("leaders").value_or("1");
    if (const auto level = input.spec.find("level"))
        return leaders == "all" && inside == "linear" ? formula_of_level(input, *level, between) : std::nullopt;
    if (leaders != "all" && input.spec.integer("leaders", 1) > 1 && inside != "linear") return std::nullopt;
    const double many =
        leaders == "all" ? group : std::min(group, static_cast<double>(input.spec.integer("leaders", 1)));
    if (many <= 1) {
        const auto exchange = vector_exchange_s(input, between, n, group, group);
        if (!exchange) return std::nullopt;
        return leader_in_node_s(input, n, inside, true) + *exchange + leader_in_node_s(input, n, inside, false);
    }
    const auto exchange = vector_exchange_s(input, between, n / many, group, group / many);
    if (!exchange) return std::nullopt;
    const double chunk = n / many;
    if (many < group) {
        // A leader receives from all other ranks of its node; these send one chunk to each leader.
        const double one = tiers.intra_node().overhead_s + chunk / tiers.intra_node().stream;
        const double ends =
            tiers.intra_node().latency_s + std::max((group - 1 + many - 1) * one, tiers.memory_s((group - 1) * n));
        return 2 * ends + tiers.reduce_s(chunk * (group - 1)) + *exchange;
    }
    return split_in_node_s(input, inside, n, true) + *exchange + split_in_node_s(input, inside, n, false);
}

}  // namespace

const Algorithm allreduce_leaders{
    .collective = Collective::allreduce,
    .name = "leaders",
    .sentence =
        "Groups reduce each chunk of the vector at a different leader, leaders of a chunk exchange, results are "
        "broadcast; slices overlap.",
    .source =
        "Bayatpour, Chakraborty, Subramoni, Lu, Panda, SC 2017 (several leaders); Traeff, Hunold, CLUSTER 2020 (lanes)",
    .keys =
        "leaders=L|all (1), between=recursive_doubling|recursive_multiplying[.K]|all|rabenseifner|circulant|pat|ring|"
        "direct "
        "(recursive_doubling), inside=linear|binomial|k_nomial.K|shared (linear), level=LEVEL (node), segment=SIZE, "
        "single=SIZE (never), with inside=shared: exposures from there on are read by single copy",
    .preconditions =
        "an operation that isn't commutative needs ranks in topology order, between other than ring, circulant and "
        "pat, and one leader "
        "where inside is a k-nomial tree",
    .relays = true,
    .refuse = refuse_leaders,
    .make = make_leaders,
    .tags = tags_leaders,
    .node_memory = NodeMemory::where_asked,
    .formula = formula_leaders,
    .candidates =
        "leaders:between=recursive_doubling,inside=linear leaders:between=rabenseifner,inside=linear "
        "leaders:between=recursive_doubling,inside=shared leaders:between=rabenseifner,inside=shared "
        "leaders:leaders=all,between=recursive_doubling,inside=shared "
        "leaders:leaders=all,between=rabenseifner,inside=shared "
        "leaders:leaders=all,between=recursive_doubling,inside=linear "
        "leaders:leaders=all,between=rabenseifner,inside=linear leaders:leaders=all,between=all,inside=linear "
        "leaders:leaders=all,between=pat,inside=shared leaders:leaders=all,between=pat,level=leaf",
    .samples =
        "leaders leaders:leaders=all,between=rabenseifner leaders:leaders=2,between=ring,inside=binomial,segment=8 "
        "leaders:leaders=3,between=direct,level=leaf,segment=4 leaders:between=all,level=leaf,inside=k_nomial.3 "
        "leaders:leaders=all,between=recursive_multiplying.3,inside=shared "
        "leaders:leaders=2,between=direct,inside=shared,level=leaf,segment=4 "
        "leaders:leaders=5,between=recursive_doubling,inside=shared,segment=8 "
        "leaders:leaders=all,between=ring,inside=shared,single=64 "
        "leaders:leaders=2,between=all,level=socket,inside=shared leaders:leaders=all,between=pat "
        "leaders:between=circulant,level=leaf,inside=binomial,segment=8 "
        "leaders:leaders=2,between=circulant,inside=shared",
};

}  // namespace palmette::collectives
