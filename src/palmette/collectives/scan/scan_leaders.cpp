// scan and exscan, leaders: totals of groups go up, level by level; the outermost leaders exchange; prefixes come down.
//
//   p = 8 on two nodes of four:
//
//       1 2 3 → 0        |   5 6 → 4         up: all contributions to the leader, which accumulates them in order
//       0 ─────────────── → 4                between: the total of the ranks before
//       0 → 1 2 3        |   4 → 5 6 7       down: to each its exclusive prefix
#include <algorithm>

#include "palmette/collectives/exchanges/scan_exchange.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::StepId;

constexpr std::int32_t up_tag = 0, down_tag = 1, first_tag_between = 2;

/// One rank's part. Positions and ranks are the same here.
class LeadersMaker {
  public:
    LeadersMaker(const Job& job, Rank rank, const Spec& spec)
        : job_(job),
          self_(rank.value),
          pattern_(ScanPattern::parse(spec.find("between").value_or("all"))),
          builder_(rank) {
        for (std::size_t i = level_of_groups(job, spec); i < job.levels().size(); ++i)
            levels_.push_back(&job.levels()[i].groups);
    }

    Program make(Collective collective) {
        builder_.stage("totals to leader");
        HeldBlocks total{Buffer::send, {}};
        std::size_t depth = levels_.size();
        while (depth > 0 && groups(depth - 1).first(group(depth - 1)) == self_) total = add_up(--depth, total);
        if (depth > 0 && !ends_all(depth)) send(leader(depth - 1), up_tag, total);
        std::optional<HeldBlocks> before;
        if (depth == 0) {
            builder_.stage("between leaders");
            before = exchange(total);
        } else if (self_ > 0) {
            builder_.stage("prefixes to ranks");
            const Buffer landing = fresh();
            before = HeldBlocks{landing, {builder_.recv(Rank{leader(depth - 1)}, down_tag, landing, all_, {})}};
        }
        builder_.stage("prefixes to ranks");
        for (; depth < levels_.size(); ++depth) send_prefixes(depth, before);
        finish_prefix(builder_, collective, before, readers_, {});
        scratch_.reserve(builder_);
        return builder_.finish();
    }

  private:
    /// Prefix sums over the subgroups of a group, at its leader.
    struct Sums {
        std::vector<std::int32_t> leaders;  ///< leaders of the subgroups
        std::vector<HeldBlocks> until;      ///< inclusive prefix up to this subgroup
    };

    const topology::Partition& groups(std::size_t depth) const { return *levels_[depth]; }
    std::int32_t group(std::size_t depth) const { return groups(depth).group_of(self_); }
    std::int32_t leader(std::size_t depth) const { return groups(depth).first(group(depth)); }
    /// Whether the subgroup of this rank at `depth` (single ranks below the last level) contains the last rank: its
    /// total isn't needed.
    bool ends_all(std::size_t depth) const {
        return depth == levels_.size() ? self_ == job_.size() - 1 : groups(depth).end(group(depth)) == job_.size();
    }
    Buffer fresh() {
        const Buffer layer = plan::scratch_layer(layers_++);
        scratch_.need(layer, all_);
        return layer;
    }
    void read(const HeldBlocks& held, StepId step) {
        if (held.buffer == Buffer::send) readers_.push_back(step);
    }
    StepId send(std::int32_t to, std::int32_t tag, const HeldBlocks& held) {
        const StepId step = builder_.send(Rank{to}, tag, held.buffer, all_, held.ready);
        read(held, step);
        return step;
    }
    HeldBlocks sum(const HeldBlocks& left, const HeldBlocks& right, Buffer target, std::vector<StepId> waits = {}) {
        waits.insert(waits.end(), left.ready.begin(), left.ready.end());
        waits.insert(waits.end(), right.ready.begin(), right.ready.end());
        const StepId step = builder_.reduce(left.buffer, right.buffer, target, all_, waits);
        read(left, step);
        read(right, step);
        return {target, {step}};
    }

    /// The leader of a group receives and accumulates the totals of its subgroups. Returns the group's total.
    HeldBlocks add_up(std::size_t depth, const HeldBlocks& own) {
        sums_.resize(levels_.size());
        Sums& sums = sums_[depth];
        sums.leaders = {self_};
        sums.until = {own};
        const std::int32_t end = groups(depth).end(group(depth));
        const bool single = depth + 1 == levels_.size();
        for (std::int32_t next = self_;;) {
            next = single ? next + 1 : groups(depth + 1).end(groups(depth + 1).group_of(next));
            if (next >= end) break;
            sums.leaders.push_back(next);
            const std::int32_t next_end = single ? next + 1 : groups(depth + 1).end(groups(depth + 1).group_of(next));
            if (next_end == job_.size()) break;
            const Buffer landing = fresh();
            const HeldBlocks theirs{landing, {builder_.recv(Rank{next}, up_tag, landing, all_, {})}};
            sums.until.push_back(sum(sums.until.back(), theirs, landing));
        }
        return sums.until.back();
    }

    std::optional<HeldBlocks> exchange(const HeldBlocks& total) {
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = groups(0).count(),
            .me = group(0),
            .rank_of = [this](std::int32_t g) { return Rank{groups(0).first(g)}; },
            .blocks_of = [this](std::int32_t, std::int32_t) { return all_; },
            .input = total.buffer,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .first_layer = layers_,
            .ready = total.ready,
            .first_tag = first_tag_between,
            .slice = {},
            .ordered = true,
        };
        layers_ += ScanPattern::most_layers;
        ScanPattern::Before made = pattern_.exclusive(context);
        if (total.buffer == Buffer::send) readers_.insert(readers_.end(), made.readers.begin(), made.readers.end());
        return made.prefix;
    }

    /// Sends the leader of each subgroup but the own one its exclusive prefix.
    void send_prefixes(std::size_t depth, const std::optional<HeldBlocks>& before) {
        const Sums& sums = sums_[depth];
        for (std::size_t i = 1; i < sums.leaders.size(); ++i) {
            const HeldBlocks& until = sums.until[i - 1];
            send(sums.leaders[i], down_tag, before ? sum(*before, until, fresh()) : until);
        }
    }

    const Job& job_;
    std::int32_t self_;
    ScanPattern pattern_;
    plan::ProgramBuilder builder_;
    std::vector<const topology::Partition*> levels_;
    const Blocks all_{0, 1};
    ScratchBuffer scratch_;
    std::size_t layers_ = 0;
    std::vector<Sums> sums_;
    std::vector<StepId> readers_;  ///< steps that read the own contribution
};

std::optional<std::string> refuse_leaders(const Job& job, const Request&, const Spec& spec) {
    check_keys(spec, {"level", "between"});
    ScanPattern::parse(spec.find("between").value_or("all"));
    if (!positions_are_ranks(job))
        return std::string("ranks are scattered over the machine, so groups don't consist of consecutive ranks");
    return std::nullopt;
}

std::int64_t tags_leaders(const Job&, const Request&, const Spec&) { return first_tag_between + ScanPattern::tags; }

Program make_leaders(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    return LeadersMaker(job, rank, spec).make(request.collective);
}

}  // namespace

const Algorithm scan_leaders{
    .collective = Collective::scan,
    .name = "leaders",
    .sentence = "Totals go up the levels to leaders, which exchange across the outermost one, and prefixes come down.",
    .source =
        "Blelloch, IEEE Transactions on Computers 38(11), 1989, on the tree of the machine; Sanders, Traeff, "
        "EuroPVM/MPI 2006",
    .keys = "level=LEVEL (node), the outermost with leaders; between=all|recursive_doubling|linear (all)",
    .preconditions = "ranks in topology order",
    .relays = true,
    .refuse = refuse_leaders,
    .make = make_leaders,
    .tags = tags_leaders,
    .samples = "leaders leaders:between=linear leaders:level=leaf,between=recursive_doubling",
};

}  // namespace palmette::collectives
