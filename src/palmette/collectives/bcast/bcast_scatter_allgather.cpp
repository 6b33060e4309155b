// bcast, scatter_allgather: the root scatters the vector, then an allgather.
//
//   p = 8 on two leaves of two nodes of two ranks, a block for each rank:
//
//       0 → 4 (blocks 4-7), 0 → 2 (2 3), 4 → 6 (6 7), 0 → 1, 2 → 3, 4 → 5, 6 → 7        scatter by topology
//       0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 0                                               allgather
#include <algorithm>
#include <map>

#include "palmette/collectives/exchanges/exchange.hpp"
#include "palmette/collectives/exchanges/exchange_formulas.hpp"
#include "palmette/collectives/exchanges/ring_levels.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/rooted_vector.hpp"
#include "palmette/collectives/trees/tree_formulas.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::StepId;

Pattern pattern_of(const Spec& spec) { return Pattern::parse(spec.find("allgather").value_or("ring")); }

std::optional<std::string> refuse_scatter_allgather(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"allgather"});
    return pattern_of(spec).refuse(job.size());
}

/// `blocks` without those in `known`.
Blocks minus(const Blocks& blocks, const Blocks& known) {
    Blocks out;
    for (const Interval& interval : blocks.intervals()) {
        std::int64_t from = interval.first;
        for (const Interval& hole : known.intervals()) {
            if (hole.end() <= from || hole.first >= interval.end()) continue;
            out.insert({from, hole.first - from});
            from = hole.end();
        }
        out.insert({from, interval.end() - from});
    }
    return out;
}

/// One rank's part: positions are participants, and block i stands for position i.
class ScatterAllgather {
  public:
    ScatterAllgather(const Job& job, Rank rank, const Request& request)
        : job_(job),
          builder_(rank, plan::BlockOrder::topology, job.size()),
          me_(job.position_of(rank)),
          tree_(job, {0, job.size()}, job.position_of(request.root), levels(job), top(job)),
          root_(rank == request.root),
          received_(static_cast<std::size_t>(job.size()), nothing) {}

    Program make(const Pattern& pattern) {
        scatter();
        builder_.stage("allgather");
        const std::vector<topology::Partition> nested = ring_levels(job_, {});
        for (const Exchange& exchange : pattern.schedule(job_.size(), me_.value, nested)) pass(exchange);
        return builder_.finish();
    }

  private:
    static constexpr StepId nothing = static_cast<StepId>(-1);

    /// The default form for small vectors: a short critical path, and no block crosses a link twice.
    static TopologyForm form(const Job& job) { return topology_form(job, {Collective::bcast, Rank{0}, 0}, {}); }
    static std::vector<LevelShape> levels(const Job& job) { return form(job).levels; }
    static TreeShape top(const Job& job) { return form(job).top; }

    void scatter() {
        const TreeNeighbours near = tree_.of(me_);
        std::vector<StepId> arrived;
        if (near.parent) {
            builder_.stage("scatter from " + near.parent->stage + " leader");
            arrived.push_back(builder_.recv(job_.rank_at(near.parent->peer), 0, Buffer::recv, near.parent->blocks, {}));
            remember(near.parent->blocks, arrived.front());
        }
        for (const TreeLink& child : near.children) {
            builder_.stage("scatter from " + child.stage + " leader");
            builder_.send(job_.rank_at(child.peer), 0, here(), child.blocks, arrived);
        }
    }

    void pass(const Exchange& exchange) {
        const std::int32_t p = job_.size();
        const auto run = [p](Range range) {
            Blocks out;
            const std::int32_t straight = std::min(range.count, p - range.first);
            out.insert({range.first, straight});
            out.insert({0, range.count - straight});
            return out;
        };
        const Blocks blocks =
            minus(blocks_of_range(exchange.range, p, run), scattered_to(exchange.send ? exchange.peer : me_.value));
        if (blocks.empty()) return;
        const Rank peer = job_.rank_at({exchange.peer});
        if (exchange.send)
            builder_.send(peer, 1 + exchange.tag, here(), blocks, steps_that_received(blocks));
        else
            remember(blocks, builder_.recv(peer, 1 + exchange.tag, Buffer::recv, blocks, {}));
    }

    Buffer here() const { return root_ ? Buffer::send : Buffer::recv; }

    /// The blocks of a participant after the scatter; the root has all.
    const Blocks& scattered_to(std::int32_t position) {
        const auto [at, fresh] = scattered_.try_emplace(position);
        if (fresh) {
            const TreeNeighbours near = tree_.of({position});
            at->second = near.parent ? near.parent->blocks : Blocks(0, job_.size());
        }
        return at->second;
    }
    void remember(const Blocks& blocks, StepId step) {
        for (const Interval& interval : blocks.intervals())
            std::fill_n(received_.begin() + interval.first, interval.count, step);
    }
    std::vector<StepId> steps_that_received(const Blocks& blocks) const {
        std::vector<StepId> steps;
        for (const Interval& interval : blocks.intervals())
            for (std::int64_t b = interval.first; b < interval.end(); ++b)
                if (const StepId step = received_[static_cast<std::size_t>(b)]; step != nothing) steps.push_back(step);
        std::sort(steps.begin(), steps.end());
        steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
        return steps;
    }

    const Job& job_;
    plan::ProgramBuilder builder_;
    Position me_;
    TopologyTree tree_;
    bool root_;
    std::vector<StepId> received_;  ///< by block; the vector is cut in as many blocks as there are ranks
    std::map<std::int32_t, Blocks> scattered_;
};

Program make_scatter_allgather(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return ScatterAllgather(job, rank, request).make(pattern_of(spec));
}

std::optional<double> formula_scatter_allgather(const FormulaInput& input) {
    const Tiers& tiers = input.tiers;
    const double block = input.bytes / tiers.ranks();
    const std::string_view pattern = input.spec.find("allgather").value_or("ring");
    const auto all = pattern == "ring" ? ring_s(input, block, 1, true) : block_exchange_s(input, pattern, block, 1);
    // Ranks of a node share its link, but their rounds aren't synchronised: 50 % longer, as measured in simulations.
    const double shared = tiers.node().ranks > 1 ? 1.5 : 1;
    return all ? std::optional(shared * *all + shrinking_s(tiers, input.bytes)) : std::nullopt;
}

}  // namespace

const Algorithm bcast_scatter_allgather{
    .collective = Collective::bcast,
    .name = "scatter_allgather",
    .sentence = "The root scatters the vector by topology, then an allgather: no rank receives a block twice.",
    .source =
        "van de Geijn; Barnett et al., Scalable High Performance Computing Conference 1994; Thakur et al., IJHPCA "
        "19(1), 2005",
    .keys = "allgather=ring|recursive_doubling|bruck[.K]|neighbor_exchange|circulant|pat (ring)",
    .preconditions = "the allgather's pattern must support the number of ranks",
    .refuse = refuse_scatter_allgather,
    .make = make_scatter_allgather,
    .formula = formula_scatter_allgather,
    .candidates = "scatter_allgather:allgather=bruck",
    .samples =
        "scatter_allgather scatter_allgather:allgather=recursive_doubling scatter_allgather:allgather=bruck.3 "
        "scatter_allgather:allgather=pat",
};

}  // namespace palmette::collectives
