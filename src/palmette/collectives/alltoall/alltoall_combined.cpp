#include "palmette/collectives/alltoall/alltoall_combined.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/alltoall_order.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::Region;
using plan::Slice;
using plan::StepId;

/// Rounds of an exchange that may be in flight at once.
constexpr std::int32_t rounds_at_once = 2;

constexpr std::int32_t most_rounds = 256;

std::int32_t rounds_of(const Spec& spec) {
    const std::int32_t rounds = spec.integer("rounds", 1);
    if (rounds > most_rounds)
        base::fail("algorithm '", spec.text(), "': at most ", most_rounds, " rounds, not ", rounds);
    return rounds;
}

bool holds(const Interval& interval, std::int64_t position) {
    return interval.first <= position && position < interval.end();
}

/// One rank's part.
class CombinedAlltoall {
  public:
    CombinedAlltoall(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels)
        : job_(job),
          parcels_(parcels),
          p_(job.size()),
          me_(job.position_of(rank).value),
          parts_(slices_of(request, spec)),
          rounds_(rounds_of(spec)),
          uneven_(request.block_bytes < 0),
          group_(parcels.members(parcels.groups().group_of(me_))),
          order_(job, parcels.groups()),
          builder_(rank, plan::BlockOrder::topology) {
        const topology::Partition& nodes = job.nodes().groups;
        const std::int32_t node = nodes.group_of(me_);
        const std::int64_t first = std::max<std::int64_t>(group_.first, nodes.first(node));
        // Members of the group on the same node, which can read each other's memory.
        near_ = {first, std::min<std::int64_t>(group_.end(), nodes.end(node)) - first};
        if (!request.shared_memory || spec.word("inside", {"linear", "shared"}) != "shared" || !few_exposes())
            near_ = {me_, 1};
        for (std::int64_t member = group_.first; member < group_.end(); ++member) {
            outgoing_.push_back(timed(parcels.from(static_cast<std::int32_t>(member))));
            incoming_.push_back(timed(parcels.to(static_cast<std::int32_t>(member))));
        }
    }

    Program make() {
        reserve();
        for (std::uint16_t part = 0; part < parts_; ++part) {
            slice_ = {part, parts_};
            collected_.clear();
            arrived_.clear();
            receive_from_members();
            send_to_members();
            exchange();
            hand_out();
        }
        builder_.stage("copy own block");
        builder_.copy(Buffer::send, Buffer::recv, Blocks(me_ * p_ + me_, 1), {});
        return builder_.finish();
    }

  private:
    /// A parcel with its turn and round.
    struct TimedParcel : Parcel {
        Turn turn;
        std::int32_t round;
    };
    /// A rank's sends, or its receives, by round at one level.
    class Rounds {
      public:
        /// Adds a step; rounds must come in order.
        void add(std::int32_t round, StepId step) { steps_.push_back({round, step}); }
        /// The steps of the last nonempty round up to this one.
        std::vector<StepId> last_until(std::int32_t round) const {
            std::vector<StepId> out;
            auto step = std::upper_bound(steps_.begin(), steps_.end(), round,
                                         [](std::int32_t wanted, const auto& one) { return wanted < one.first; });
            for (const auto end = step; step != steps_.begin() && (step - 1)->first == (end - 1)->first; --step)
                out.push_back((step - 1)->second);
            return out;
        }

      private:
        std::vector<std::pair<std::int32_t, StepId>> steps_;
    };
    /// One pull: blocks for the reader's result, or those that it forwards.
    struct Read {
        std::int64_t reader;
        Buffer to;
        Blocks blocks;
    };
    /// Contents of one exposure and its readers' blocks. Derived identically by the owner and its readers.
    struct Exposure {
        Interval blocks;
        std::vector<Read> reads;
        std::int64_t arrival = -1;  ///< the source whose blocks these are; -1: own input
    };

    bool few_exposes() const {
        const topology::Partition& groups = parcels_.groups();
        std::int64_t readers = groups.even_size();
        if (readers == 0)
            for (std::int32_t g = 0; g < groups.count(); ++g)
                readers = std::max<std::int64_t>(readers, groups.size_of(g));
        // With variable lengths a reader can compute offsets only in an exposure that holds its own blocks alone.
        const std::int64_t exposes =
            uneven_ ? 2 * groups.count() + readers * (1 + parcels_.most_sources()) : 1 + parcels_.most_sources();
        return exposes * parts_ <= most_exposes;
    }

    /// Sorted by turn. All ranks compute the same turns and rounds.
    std::vector<TimedParcel> timed(const std::vector<Parcel>& parcels) const {
        std::vector<TimedParcel> out;
        out.reserve(parcels.size());
        for (const Parcel& parcel : parcels) {
            Turn turn = order_.turn(parcel.from, parcel.to);
            // Parcels between the same groups are spread over time, so that the groups' links carry some of each pair
            // all the time.
            turn.when += TurnOrder::part(parcel.part, parcel.parts);
            const std::uint64_t round = (std::uint64_t{turn.when} * static_cast<std::uint64_t>(rounds_)) >> 32;
            out.push_back({parcel, turn, static_cast<std::int32_t>(round)});
        }
        std::sort(out.begin(), out.end(), [](const TimedParcel& a, const TimedParcel& b) { return a.turn < b.turn; });
        return out;
    }
    template <class Visit>
    static void for_each_in(std::int32_t round, const std::vector<TimedParcel>& parcels, const Visit& visit) {
        for (const TimedParcel& parcel : parcels)
            if (parcel.round == round) visit(parcel);
    }
    static std::size_t level(const TimedParcel& parcel) { return static_cast<std::size_t>(parcel.turn.level); }
    const std::vector<TimedParcel>& outgoing(std::int64_t member) const { return outgoing_[member - group_.first]; }
    const std::vector<TimedParcel>& incoming(std::int64_t member) const { return incoming_[member - group_.first]; }

    Rank at(std::int64_t position) const { return job_.rank_at({static_cast<std::int32_t>(position)}); }
    bool is_near(std::int64_t position) const { return holds(near_, position); }
    std::int32_t tag(std::int32_t phase) const { return phase * parts_ + slice_.index; }
    std::int32_t give_tag(std::int32_t round) const { return tag(round); }
    std::int32_t parcel_tag() const { return tag(rounds_); }
    std::int32_t hand_out_tag(std::int32_t round) const { return tag(rounds_ + 1 + round); }
    Interval row(std::int64_t source, const Interval& targets) const {
        return {source * p_ + targets.first, targets.count};
    }

    /// What a member sends to another one before a round: what that one forwards to other groups. The block for the
    /// member itself, which isn't on the critical path, is sent with the last round.
    Blocks input_for(std::int64_t sender, std::int64_t receiver, std::int32_t round) const {
        Blocks blocks;
        if (round == rounds_ - 1) blocks.insert({sender * p_ + receiver, 1});
        for_each_in(round, outgoing(receiver), [&](const Parcel& parcel) {
            if (holds(parcel.sources, sender)) blocks.insert(row(sender, parcels_.members(parcel.group)));
        });
        return blocks;
    }
    Blocks input_for(std::int64_t sender, std::int64_t receiver) const {
        Blocks blocks;
        for (std::int32_t round = 0; round < rounds_; ++round) blocks.unite(input_for(sender, receiver, round));
        return blocks;
    }
    /// What a member forwards to another one after a round.
    Blocks output_for(std::int64_t sender, std::int64_t receiver, std::int32_t round) const {
        Blocks blocks;
        for_each_in(round, incoming(sender), [&](const Parcel& parcel) {
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s)
                blocks.insert({s * p_ + receiver, 1});
        });
        return blocks;
    }

    /// Blocks for a rank go to its result, others to scratch.
    std::vector<Region> sorted_in(const Blocks& blocks) const { return sorted_in(blocks, me_); }
    std::vector<Region> sorted_in(const Blocks& blocks, std::int64_t receiver) const {
        std::vector<Region> regions;
        for (const Interval& interval : blocks.intervals()) {
            // An interval may run from one row into the next: it is cut at blocks of the receiver's column.
            std::int64_t from = interval.first;
            for (std::int64_t own = (from - receiver + p_ - 1) / p_ * p_ + receiver; own < interval.end(); own += p_) {
                if (own > from) regions.push_back({Buffer::scratch, {from, own - from}});
                regions.push_back({Buffer::recv, {own, 1}});
                from = own + 1;
            }
            if (from < interval.end()) regions.push_back({Buffer::scratch, {from, interval.end() - from}});
        }
        return regions;
    }

    void reserve() {
        for (const Parcel& parcel : outgoing(me_))
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s)
                if (s != me_) reserve_sorted(row(s, parcels_.members(parcel.group)));
        for (const Parcel& parcel : incoming(me_))
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) reserve_sorted(row(s, group_));
        if (!scratch_.empty()) builder_.reserve_scratch(scratch_);
    }
    void reserve_sorted(const Interval& blocks) {
        if (near_.count > 1) return scratch_.insert(blocks);
        for (const Region& region : sorted_in(Blocks(blocks.first, blocks.count)))
            if (region.buffer == Buffer::scratch) scratch_.insert(region.blocks);
    }

    /// Reads of these blocks, one per target buffer.
    std::vector<Read> reads_of(std::int64_t reader, const Blocks& blocks) const {
        Read kept{reader, Buffer::recv, {}};
        Read passed_on{reader, Buffer::scratch, {}};
        for (const Region& region : sorted_in(blocks, reader))
            (region.buffer == Buffer::recv ? kept : passed_on).blocks.insert(region.blocks);
        std::vector<Read> out;
        for (Read& read : std::array{std::move(kept), std::move(passed_on)})
            if (!read.blocks.empty()) out.push_back(std::move(read));
        return out;
    }
    /// Adds one exposure for all of these reads, or one each where lengths vary.
    void add_exposures(std::vector<Exposure>& out, std::vector<Read> reads, const Interval& blocks,
                       std::int64_t arrival) const {
        if (reads.empty()) return;
        if (!uneven_) {
            out.push_back({blocks, std::move(reads), arrival});
            return;
        }
        for (const Read& read : reads)
            for (const Interval& interval : read.blocks.intervals())
                out.push_back({interval, {{read.reader, read.to, Blocks(interval.first, interval.count)}}, arrival});
    }
    /// Exposures of one rank, by tag; those of its input come before those of arrivals.
    std::vector<Exposure> exposures_of(std::int64_t sender) const {
        std::vector<Exposure> out;
        std::vector<Read> reads;
        std::int64_t first = INT64_MAX;
        std::int64_t end = 0;
        for_each_near(sender, [&](std::int64_t reader) {
            for (Read& read : reads_of(reader, input_for(sender, reader))) {
                first = std::min(first, read.blocks.intervals().front().first);
                end = std::max(end, read.blocks.intervals().back().end());
                reads.push_back(std::move(read));
            }
        });
        add_exposures(out, std::move(reads), {first, end - first}, -1);
        for (const Parcel& parcel : incoming(sender))
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) {
                std::vector<Read> of_source;
                for_each_near(sender, [&](std::int64_t reader) {
                    of_source.push_back({reader, Buffer::recv, Blocks(s * p_ + reader, 1)});
                });
                add_exposures(out, std::move(of_source), row(s, near_), s);
            }
        return out;
    }
    template <class Visit>
    void for_each_near(std::int64_t but, const Visit& visit) const {
        for (std::int64_t other = near_.first; other < near_.end(); ++other)
            if (other != but) visit(other);
    }
    /// `arrivals`: those of blocks received from other groups, else those of the input.
    void expose_to_near(bool arrivals) {
        std::int32_t number = 0;
        for (const Exposure& exposure : exposures_of(me_)) {
            const std::int32_t expose_tag = tag(number++);
            if ((exposure.arrival >= 0) != arrivals) continue;
            std::vector<StepId> waits;
            if (arrivals) waits.push_back(arrived_.at(exposure.arrival));
            builder_.expose(expose_tag, arrivals ? Buffer::scratch : Buffer::send, exposure.blocks,
                            exposure.reads.size(), waits, slice_);
        }
    }
    void pull_from_near(bool arrivals) {
        for_each_near(me_, [&](std::int64_t sender) {
            std::int32_t number = 0;
            for (const Exposure& exposure : exposures_of(sender)) {
                const std::int32_t expose_tag = tag(number++);
                if ((exposure.arrival >= 0) != arrivals) continue;
                for (const Read& read : exposure.reads) {
                    if (read.reader != me_) continue;
                    const StepId step =
                        builder_.pull(at(sender), expose_tag, exposure.blocks, read.to, read.blocks, {}, slice_);
                    if (read.to != Buffer::scratch) continue;
                    for (std::int32_t round = 0; round < rounds_; ++round) collected_[{sender, round}].push_back(step);
                }
            }
        });
    }

    /// The other members on other nodes, each rank beginning with the one after it.
    template <class Visit>
    void for_each_far_member(const Visit& visit) const {
        for (std::int64_t i = 1; i < group_.count; ++i) {
            const std::int64_t other = group_.first + (me_ - group_.first + i) % group_.count;
            if (!is_near(other)) visit(other);
        }
    }

    void receive_from_members() {
        builder_.stage("inside the group");
        for (std::int32_t round = 0; round < rounds_; ++round)
            for_each_far_member([&](std::int64_t other) {
                const Blocks blocks = input_for(other, me_, round);
                if (blocks.empty()) return;
                const StepId step = builder_.recv(at(other), give_tag(round), sorted_in(blocks), {}, slice_);
                collected_[{other, round}].push_back(step);
            });
        builder_.stage("between groups");
        for (const Parcel& parcel : incoming(me_)) {
            std::vector<Region> regions;
            Blocks own;
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) {
                own.insert({s * p_ + me_, 1});
                // Exposed blocks must be contiguous.
                if (near_.count > 1)
                    regions.push_back({Buffer::scratch, row(s, group_)});
                else
                    for (const Region& region : sorted_in(Blocks(s * p_ + group_.first, group_.count)))
                        regions.push_back(region);
            }
            const StepId step = builder_.recv(at(parcel.from), parcel_tag(), regions, {}, slice_);
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) arrived_[s] = step;
            if (near_.count > 1) builder_.copy(Buffer::scratch, Buffer::recv, own, {step}, slice_);
        }
        builder_.stage("distribute");
        for (std::int32_t round = 0; round < rounds_; ++round)
            for_each_far_member([&](std::int64_t other) {
                if (const Blocks blocks = output_for(other, me_, round); !blocks.empty())
                    builder_.recv(at(other), hand_out_tag(round), Buffer::recv, blocks, {}, slice_);
            });
    }

    void send_to_members() {
        builder_.stage("inside the group");
        expose_to_near(false);
        for_each_far_member([&](std::int64_t other) {
            std::vector<StepId> waits;
            for (std::int32_t round = 0; round < rounds_; ++round) {
                const Blocks blocks = input_for(me_, other, round);
                if (blocks.empty()) continue;
                // Serialise rounds, as concurrent messages share the bandwidth and complete together.
                const StepId step = builder_.send(at(other), give_tag(round), Buffer::send, blocks, waits, slice_);
                waits = {step};
                if (const auto got = collected_.find({other, round}); got != collected_.end())
                    waits.insert(waits.end(), got->second.begin(), got->second.end());
            }
        });
        pull_from_near(false);
    }

    void exchange() {
        builder_.stage("between groups");
        // Per level, so that slow messages to another leaf never delay those inside, or vice versa.
        std::vector<Rounds> sent(job_.levels().size() + 1);
        std::vector<Rounds> taken(job_.levels().size() + 1);
        const std::vector<TimedParcel>& arrivals = incoming(me_);
        auto next = arrivals.begin();
        for (const TimedParcel& parcel : outgoing(me_)) {
            const std::int32_t now = parcel.round;
            for (; next != arrivals.end() && next->round < now; ++next)
                taken[level(*next)].add(next->round, arrived_.at(next->sources.first));
            // A message depends on earlier rounds only, so there is no cyclic wait.
            std::vector<StepId> waits = sent[level(parcel)].last_until(now - rounds_at_once);
            // Eager sends complete at once, so waiting for sends alone wouldn't throttle: wait for receives, too.
            const std::vector<StepId> came = taken[level(parcel)].last_until(now - rounds_at_once);
            waits.insert(waits.end(), came.begin(), came.end());
            std::vector<Region> regions;
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) {
                regions.push_back({s == me_ ? Buffer::send : Buffer::scratch, row(s, parcels_.members(parcel.group))});
                if (s == me_) continue;
                const auto& steps = collected_.at({s, now});
                waits.insert(waits.end(), steps.begin(), steps.end());
            }
            sent[level(parcel)].add(now, builder_.send(at(parcel.to), parcel_tag(), regions, waits, slice_));
        }
    }

    void hand_out() {
        builder_.stage("distribute");
        expose_to_near(true);
        for (std::int32_t round = 0; round < rounds_; ++round) {
            std::vector<StepId> waits;
            for_each_in(round, incoming(me_),
                        [&](const Parcel& parcel) { waits.push_back(arrived_.at(parcel.sources.first)); });
            for_each_far_member([&](std::int64_t other) {
                if (const Blocks blocks = output_for(me_, other, round); !blocks.empty())
                    builder_.send(at(other), hand_out_tag(round), Buffer::scratch, blocks, waits, slice_);
            });
        }
        pull_from_near(true);
    }

    const Job& job_;
    const Parcels& parcels_;
    std::int64_t p_;
    std::int32_t me_;
    std::uint16_t parts_;
    std::int32_t rounds_;
    bool uneven_;  ///< block lengths vary
    Interval group_, near_;
    TurnOrder order_;
    std::vector<std::vector<TimedParcel>> outgoing_, incoming_;  ///< by member of the group
    Blocks scratch_;
    plan::ProgramBuilder builder_;
    Slice slice_;
    std::map<std::pair<std::int64_t, std::int32_t>, std::vector<StepId>> collected_;
    ///< by source in this group and round: steps that received its blocks
    std::map<std::int64_t, StepId> arrived_;  ///< by source in another group
};

}  // namespace

void check_combined(const Spec& spec) {
    check_single_copy(spec);
    spec.word("inside", {"linear", "shared"});
    spec.size("segment", 0);
    rounds_of(spec);
}

Program combined_alltoall(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels) {
    return CombinedAlltoall(job, rank, request, spec, parcels).make();
}

const topology::Partition& combined_groups(const Job& job, const Spec& spec) {
    // Fallback where the job has no such level: groups are nodes.
    const auto wanted = job.find_level(spec.find("level").value_or("node"));
    return wanted ? job.levels()[*wanted].groups : job.nodes().groups;
}

std::int64_t combined_tags(const Job&, const Request& request, const Spec& spec) {
    const std::int64_t phases = 2 * std::int64_t{rounds_of(spec)} + 1;
    return std::max(phases * slices_of(request, spec), most_exposes);
}

}  // namespace palmette::collectives
