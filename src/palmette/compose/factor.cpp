#include "palmette/compose/factor.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_set>

#include "palmette/base/error.hpp"
#include "palmette/compose/own_program.hpp"
#include "palmette/compose/promise.hpp"

namespace palmette::compose {
namespace {

using base::fail;

/// Accumulates the common properties of a phase's primitives over one traversal.
struct PhaseSummary {
    std::int64_t primitives = 0, single = 0;
    std::int32_t least_root = std::numeric_limits<std::int32_t>::max(), most_root = -1;
    std::int32_t least_other = std::numeric_limits<std::int32_t>::max(), most_other = -1;

    void note(const Primitive& primitive) {
        ++primitives;
        least_root = std::min(least_root, primitive.root.value), most_root = std::max(most_root, primitive.root.value);
        least_other = std::min(least_other, primitive.others.least());
        most_other = std::max(most_other, primitive.others.most());
        if (primitive.others.least() == primitive.others.most()) ++single;
    }
    Manner manner(std::int64_t ranks) const {
        Manner out;
        out.one_root = primitives > 0 && least_root == most_root;
        out.one_other = primitives > 0 && least_other == most_other;
        out.dense = single == primitives && 2 * primitives >= ranks * ranks;
        return out;
    }
};

}  // namespace

std::string Factoring::text() const {
    std::string out;
    for (const Method& method : methods) out += base::cat(out.empty() ? "" : ",", method.text());
    if (stripes > 1) out += base::cat(" stripes=", stripes);
    if (pipeline > 1) out += base::cat(" pipeline=", pipeline);
    return out;
}

std::int64_t bytes_of_stripe(const Composition& composition, std::int32_t stripes, std::int64_t block) {
    return plan::cut_length(composition.lengths()[block / stripes], stripes, composition.element_bytes(),
                            block % stripes);
}

Factory::Factory(const Composition& composition, const Job& job, const Tree& tree, Factoring factoring)
    : composition_(composition),
      job_(job),
      tree_(tree),
      factoring_(std::move(factoring)),
      router_(tree, factoring_.methods, std::max(1, factoring_.stripes)),
      in_rank_order_(true) {
    if (job.size() != composition.ranks())
        fail("the composition has ", composition.ranks(), " ranks and the job ", job.size());
    if (tree.levels.back().groups.size() != job.size())
        fail("the tree has ", tree.levels.back().groups.size(), " ranks and the job ", job.size());
    if (factoring_.stripes < 1 || factoring_.stripes > most_stripes)
        fail("stripes ", factoring_.stripes, ": expected 1 to ", most_stripes);
    if (factoring_.pipeline < 1 || factoring_.pipeline > most_pipeline)
        fail("pipeline ", factoring_.pipeline, ": expected 1 to ", most_pipeline);
    if (factoring_.landings < 1) fail("landings ", factoring_.landings, ": expected 1 or more");
    for (std::int32_t r = 0; r < job.size() && in_rank_order_; ++r)
        in_rank_order_ = job.position_of(Rank{r}).value == r;
    std::vector<PhaseSummary> multicasts(static_cast<std::size_t>(composition.phases())), reductions = multicasts;
    composition.visit([&](std::int32_t phase, const Primitive& primitive) {
        (primitive.reduces ? reductions : multicasts)[static_cast<std::size_t>(phase)].note(primitive);
    });
    // What a rank sees of a local composition tells nothing about the others'.
    const auto manner = [&](const PhaseSummary& seen) {
        return composition.local() ? Manner{} : seen.manner(job.size());
    };
    for (const PhaseSummary& seen : multicasts) multicasts_.push_back(manner(seen));
    for (const PhaseSummary& seen : reductions) reductions_.push_back(manner(seen));
    if (tag_limit() > std::numeric_limits<std::int32_t>::max())
        fail("the composition has too many phases, stages and pipelined parts for the tags of messages");
}

std::int64_t Factory::tag_limit() const {
    return std::int64_t{composition_.phases()} * std::max(1, router_.stages()) * factoring_.pipeline;
}

Manner Factory::manner_of(std::int32_t phase, const Primitive& primitive) const {
    Manner out = (primitive.reduces ? reductions_ : multicasts_)[static_cast<std::size_t>(phase)];
    out.ordered = primitive.reduces && !composition_.operations()[primitive.operation].commutative;
    return out;
}

Factory::PlacedPrimitive Factory::placed(std::int32_t phase, const Primitive& primitive) const {
    PlacedPrimitive out{job_.position_of(primitive.root).value, primitive.others, primitive.reduces,
                        manner_of(phase, primitive)};
    if (in_rank_order_ || primitive.others.count() == job_.size()) return out;
    std::vector<std::int32_t> list;
    for (std::size_t i = 0; i < primitive.others.runs(); ++i)
        for (std::int64_t r = primitive.others.run(i).first; r < primitive.others.run(i).end(); ++r)
            list.push_back(job_.position_of(Rank{static_cast<std::int32_t>(r)}).value);
    out.others = RankSet::of(std::move(list));
    return out;
}

void Factory::edges(std::int32_t me, const PlacedPrimitive& placed, std::int32_t stripe, std::vector<Edge>& out) const {
    const auto& [root, others, reduces, manner] = placed;
    if (manner.ordered && !in_rank_order_) {
        // Positions aren't in rank order: all send directly to the root, which combines in rank order.
        const std::int32_t last = router_.stages() - 1;
        if (me == root)
            for (std::size_t i = 0; i < others.runs(); ++i)
                for (std::int64_t q = others.run(i).first; q < others.run(i).end(); ++q)
                    if (q != me) out.push_back({last, static_cast<std::int32_t>(q), false});
        if (me != root && others.contains(me)) out.push_back({last, root, true});
    } else if (reduces) {
        router_.reduce(me, root, others, stripe, manner, out);
    } else {
        router_.multicast(me, root, others, stripe, manner, out);
    }
}

void Factory::messages_of(std::int32_t phase, const Primitive& primitive,
                          const std::function<void(Rank from, Rank to)>& visit) const {
    const PlacedPrimitive where = placed(phase, primitive);
    std::vector<Edge> messages;
    for (std::int32_t stripe = 0; stripe < factoring_.stripes; ++stripe) {
        // All ranks of a route are reached from the root along its messages.
        std::vector<std::int32_t> reached{where.root};
        std::unordered_set<std::int32_t> known{where.root};
        for (std::size_t i = 0; i < reached.size(); ++i) {
            messages.clear();
            edges(reached[i], where, stripe, messages);
            for (const Edge& edge : messages) {
                if (edge.sends) visit(job_.rank_at({reached[i]}), job_.rank_at({edge.peer}));
                if (known.insert(edge.peer).second) reached.push_back(edge.peer);
            }
        }
    }
}

std::vector<std::int32_t> Factory::ranks_of(std::int32_t phase, const Primitive& primitive) const {
    std::vector<std::int32_t> out{primitive.root.value};
    messages_of(phase, primitive, [&](Rank from, Rank to) { out.push_back(from.value), out.push_back(to.value); });
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

Program Factory::program(Rank rank, std::uint64_t* balance) const {
    if (rank.value < 0 || rank.value >= job_.size())
        fail("rank ", rank, " is outside of a job of ", job_.size(), " ranks");
    OwnProgram own(*this, rank);
    Program out = own.make();
    if (balance) *balance = own.balance();
    return out;
}

plan::Plan Factory::plan() const {
    if (composition_.local()) fail("a local composition makes the plan of one rank only");
    plan::Plan out;
    out.request.collective = plan::Collective::composed;
    out.request.element_bytes = composition_.element_bytes();
    out.algorithm = factoring_.text();
    for (std::int32_t r = 0; r < job_.size(); ++r) out.programs.push_back(program(Rank{r}));
    out.contract = std::make_shared<Promise>(composition_, factoring_.stripes);
    return out;
}

std::int64_t Factory::scratch_bytes(const Program& program) const {
    std::int64_t total = 0;
    for (const plan::Blocks& layer : program.scratch)
        for (const Interval& interval : layer.intervals())
            for (std::int64_t b = interval.first; b < interval.end(); ++b)
                total += bytes_of_stripe(composition_, factoring_.stripes, b);
    return total;
}

}  // namespace palmette::compose
