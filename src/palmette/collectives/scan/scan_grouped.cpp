// scan and exscan, grouped: prefixes inside of groups, then from every other group its prefix before the own rank. For
// scattered ranks.
//
//   two leaves, ranks 0 3 4 6 on one and 1 2 5 7 on the other; a rank sends its leaf's prefix to the next rank of
//   the other leaf:
//
//       0 → 3 → 4 → 6       1 → 2 → 5 → 7       inside: prefixes among the ranks of a leaf
//       0 → 1   4 → 5   6 → 7                   between: 1 gets 0's, 5 that of 0 3 4, 7 that of 0 3 4 6
//       2 → 3   5 → 6                                    3 gets that of 1 2, 6 that of 1 2 5
//       1 → 2   3 → 4                           inside: 2 needs the same as 1, and 4 the same as 3
//
// Two groups exchange as many vectors as their ranks alternate, all concurrently.
#include <algorithm>
#include <limits>

#include "palmette/collectives/exchanges/scan_exchange.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/collectives/trees/tree_shape.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::Slice;
using plan::StepId;
using Ranks = std::vector<std::int32_t>;  ///< ascending

/// Upper bound of ranks: every rank's generator examines all others.
constexpr std::int32_t most_ranks = 1024;
/// Each contributes a vector that is received in a layer of scratch.
constexpr std::int32_t most_siblings = 96;

ScanPattern inside_pattern(const Spec& spec) {
    return ScanPattern::parse(spec.find("inside").value_or("recursive_doubling"));
}

/// At each level from the outermost to `innermost`: one tag from siblings, and one per group to forward inside.
std::int64_t tags_a_slice(const Job& job, std::size_t innermost) {
    std::int64_t tags = ScanPattern::tags;
    for (std::size_t level = 0; level <= innermost; ++level) tags += 1 + job.levels()[level].groups.count();
    return tags;
}

/// The groups of a level that are in one group of the level above; all of them at the outermost.
Interval children(const Job& job, std::size_t level, std::int32_t parent) {
    const topology::Partition& groups = job.levels()[level].groups;
    if (level == 0) return {0, groups.count()};
    const topology::Partition& parents = job.levels()[level - 1].groups;
    const std::int32_t first = groups.group_of(parents.first(parent));
    return {first, groups.group_of(parents.end(parent) - 1) + 1 - first};
}

/// The ranks at positions of the machine.
Ranks ranks_at(const Job& job, std::int32_t first, std::int32_t end) {
    Ranks out;
    for (std::int32_t position = first; position < end; ++position) out.push_back(job.rank_at({position}).value);
    std::sort(out.begin(), out.end());
    return out;
}

/// The first rank after another one, the largest number where there is none.
std::int32_t next_after(const Ranks& ranks, std::int32_t rank) {
    const auto found = std::upper_bound(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? std::numeric_limits<std::int32_t>::max() : *found;
}

/// One rank's part.
class GroupedMaker {
  public:
    GroupedMaker(const Job& job, Rank rank, const Spec& spec)
        : job_(job),
          self_(rank.value),
          position_(job.position_of(rank).value),
          innermost_(level_of_groups(job, spec)),
          inside_(inside_pattern(spec)),
          builder_(rank) {
        for (std::size_t level = 0; level <= innermost_; ++level) {
            const topology::Partition& of_level = groups(level);
            const std::int32_t parent = level > 0 ? groups(level - 1).group_of(position_) : 0;
            const Interval together = children(job, level, parent);
            Siblings& siblings = siblings_.emplace_back();
            for (auto group = static_cast<std::int32_t>(together.first); group < together.end(); ++group) {
                Ranks ranks = ranks_at(job, of_level.first(group), of_level.end(group));
                if (group == of_level.group_of(position_))
                    siblings.own = std::move(ranks);
                else
                    siblings.others.emplace_back(group, std::move(ranks));
            }
        }
    }

    Program make(const Request& request, const Spec& spec) {
        const std::uint16_t of = slices_of(request, spec);
        for (std::uint16_t i = 0; i < of; ++i) {
            slice_ = {i, of};
            first_tag_ = static_cast<std::int32_t>(i * tags_a_slice(job_, innermost_));
            layers_ = 0;
            readers_.clear();
            builder_.stage("inside groups");
            std::optional<HeldBlocks> before = prefix_inside();
            std::int32_t tag = first_tag_ + ScanPattern::tags;
            for (std::size_t level = innermost_ + 1; level-- > 0;) {
                before = add_siblings(level, tag, before);
                tag += 1 + job_.levels()[level].groups.count();
            }
            finish_prefix(builder_, request.collective, before, readers_, slice_);
        }
        scratch_.reserve(builder_);
        return builder_.finish();
    }

  private:
    /// At one level: the ranks of the own group, and by group those of its siblings in the level above.
    struct Siblings {
        Ranks own;
        std::vector<std::pair<std::int32_t, Ranks>> others;
    };

    const topology::Partition& groups(std::size_t level) const { return job_.levels()[level].groups; }
    Buffer fresh() {
        const Buffer layer = plan::scratch_layer(layers_++);
        scratch_.need(layer, all_);
        return layer;
    }
    StepId send(std::int32_t to, std::int32_t tag, const HeldBlocks& held) {
        const StepId step = builder_.send(Rank{to}, tag, held.buffer, all_, held.ready, slice_);
        if (held.buffer == Buffer::send) readers_.push_back(step);
        return step;
    }

    /// Exclusive prefix of this rank in its smallest group.
    std::optional<HeldBlocks> prefix_inside() {
        const Ranks& own = siblings_[innermost_].own;
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = static_cast<std::int32_t>(own.size()),
            .me = static_cast<std::int32_t>(std::lower_bound(own.begin(), own.end(), self_) - own.begin()),
            .rank_of = [&own](std::int32_t member) { return Rank{own[static_cast<std::size_t>(member)]}; },
            .blocks_of = [this](std::int32_t, std::int32_t) { return all_; },
            .input = Buffer::send,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .first_layer = layers_,
            .ready = {},
            .first_tag = first_tag_,
            .slice = slice_,
            .ordered = true,
        };
        layers_ += ScanPattern::most_layers;
        ScanPattern::Before made = inside_.exclusive(context);
        readers_.insert(readers_.end(), made.readers.begin(), made.readers.end());
        return made.prefix;
    }

    /// `before`: exclusive prefix of this rank in its group at this level. Returns that in the group's parent.
    std::optional<HeldBlocks> add_siblings(std::size_t level, std::int32_t tag,
                                           const std::optional<HeldBlocks>& before) {
        const auto& [own, others] = siblings_[level];
        if (others.empty()) return before;
        std::vector<HeldBlocks> parts;
        builder_.stage("between groups");
        std::optional<HeldBlocks> until;  // the own contribution included
        for (const auto& [group, theirs] : others) {
            if (const std::int32_t next = next_after(theirs, self_); next < next_after(own, self_)) {
                if (!until) until = with_own(before);
                send(next, tag, *until);
            }
            if (theirs.front() < self_) parts.push_back(take(own, theirs, tag, tag + 1 + group));
        }
        return add_up(before, parts);
    }

    HeldBlocks with_own(const std::optional<HeldBlocks>& before) {
        if (!before) return {Buffer::send, {}};
        const Buffer target = fresh();
        const StepId step = builder_.reduce(before->buffer, Buffer::send, target, all_, before->ready, slice_);
        readers_.push_back(step);
        return {target, {step}};
    }

    /// A sibling's prefix before this rank: received from the last rank there, or from ranks of the own group that need
    /// the prefix, too.
    HeldBlocks take(const Ranks& own, const Ranks& theirs, std::int32_t tag, std::int32_t tag_on) {
        const std::int32_t last = *(std::lower_bound(theirs.begin(), theirs.end(), self_) - 1);
        const auto run = std::upper_bound(own.begin(), own.end(), last);
        const auto run_end = std::lower_bound(run, own.end(), next_after(theirs, last));
        const auto n = static_cast<std::int32_t>(run_end - run);
        const auto me = static_cast<std::int32_t>(std::lower_bound(run, run_end, self_) - run);
        const TreeShape tree{4};
        const auto parent = tree.parent(me, n);
        const Buffer landing = fresh();
        const std::int32_t from = parent ? run[*parent] : last;
        const HeldBlocks held{landing, {builder_.recv(Rank{from}, parent ? tag_on : tag, landing, all_, {}, slice_)}};
        for (const SubTree& child : tree.children(me, n)) send(run[child.first], tag_on, held);
        return held;
    }

    std::optional<HeldBlocks> add_up(std::optional<HeldBlocks> sum, const std::vector<HeldBlocks>& parts) {
        std::optional<Buffer> target;
        for (const HeldBlocks& part : parts) {
            if (!sum) {
                sum = part;
                continue;
            }
            if (!target) target = fresh();
            std::vector<StepId> waits = sum->ready;
            waits.insert(waits.end(), part.ready.begin(), part.ready.end());
            sum = HeldBlocks{*target, {builder_.reduce(part.buffer, sum->buffer, *target, all_, waits, slice_)}};
        }
        return sum;
    }

    const Job& job_;
    std::int32_t self_, position_;
    std::size_t innermost_;
    ScanPattern inside_;
    std::vector<Siblings> siblings_;  ///< by level
    plan::ProgramBuilder builder_;
    const Blocks all_{0, 1};
    ScratchBuffer scratch_;
    Slice slice_;
    std::int32_t first_tag_ = 0;
    std::size_t layers_ = 0;
    std::vector<StepId> readers_;  ///< steps that read the own contribution
};

std::optional<std::string> refuse_grouped(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"level", "inside", "segment"});
    inside_pattern(spec);
    spec.size("segment", 0);
    if (request.ordered)
        return std::string("the operation isn't commutative, and sums of groups aren't combined in rank order");
    if (job.size() > most_ranks)
        return "more than " + std::to_string(most_ranks) + " ranks, each of which would have to examine all";
    std::int64_t siblings = 0;
    for (std::size_t level = 0; level <= level_of_groups(job, spec); ++level) {
        std::int64_t most = 0;
        for (std::int32_t parent = 0; parent < (level > 0 ? job.levels()[level - 1].groups.count() : 1); ++parent)
            most = std::max(most, children(job, level, parent).count - 1);
        siblings += most;
    }
    if (siblings > most_siblings)
        return "more than " + std::to_string(most_siblings) + " sibling groups; a level=LEVEL further out has fewer";
    return std::nullopt;
}

std::int64_t tags_grouped(const Job& job, const Request& request, const Spec& spec) {
    return slices_of(request, spec) * tags_a_slice(job, level_of_groups(job, spec));
}

Program make_grouped(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return GroupedMaker(job, rank, spec).make(request, spec);
}

}  // namespace

const Algorithm scan_grouped{
    .collective = Collective::scan,
    .name = "grouped",
    .sentence =
        "Prefixes inside of groups; then each rank receives the prefix of every other group up to it, at all levels.",
    .source = "this project: what a commutative operation makes of a group's ranks needs no order between groups",
    .keys =
        "level=LEVEL (node), the innermost with groups; inside=recursive_doubling|all|linear (recursive_doubling), "
        "segment=SIZE",
    .preconditions = "a commutative operation, at most 1024 ranks and 96 sibling groups",
    .relays = true,
    .refuse = refuse_grouped,
    .make = make_grouped,
    .tags = tags_grouped,
    .samples = "grouped grouped:inside=all,segment=20 grouped:level=leaf,inside=linear",
};

}  // namespace palmette::collectives
