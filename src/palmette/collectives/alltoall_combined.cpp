#include "palmette/collectives/alltoall_combined.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "palmette/collectives/alltoall_order.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::Region;
using plan::Slice;
using plan::StepId;

bool holds(const Interval& interval, std::int64_t position) {
    return interval.first <= position && position < interval.end();
}

/// One rank's part.
class Combined {
  public:
    Combined(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels)
        : job_(job),
          parcels_(parcels),
          p_(job.size()),
          me_(job.position_of(rank).value),
          parts_(slices_of(request, spec)),
          uneven_(request.block_bytes < 0),
          group_(parcels.members(parcels.groups().group_of(me_))),
          builder_(rank, plan::BlockOrder::topology) {
        const topology::Partition& nodes = job.nodes().groups;
        const std::int32_t node = nodes.group_of(me_);
        const std::int64_t first = std::max<std::int64_t>(group_.first, nodes.first(node));
        // Members of the group on the same node: those that can read each other's memory.
        near_ = {first, std::min<std::int64_t>(group_.end(), nodes.end(node)) - first};
        if (!request.shared_memory || spec.word("inside", {"linear", "shared"}) != "shared" || !few_exposes())
            near_ = {me_, 1};
        outgoing_ = in_turn(parcels.from(me_));
        incoming_ = in_turn(parcels.to(me_));
    }

    Program make() {
        reserve();
        for (std::uint16_t part = 0; part < parts_; ++part) {
            slice_ = {part, parts_};
            collected_.clear();
            arrived_.clear();
            take_from_members();
            give_to_members();
            exchange();
            hand_out();
        }
        builder_.stage("copy own block");
        builder_.copy(Buffer::send, Buffer::recv, Blocks(me_ * p_ + me_, 1), {});
        return builder_.finish();
    }

  private:
    /// One pull: what goes to the reader's result, or what it passes on.
    struct Read {
        std::int64_t reader;
        Buffer to;
        Blocks blocks;
    };
    /// What one exposure holds and who reads which of its blocks. Made by the owner and by its readers alike.
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
        // Where blocks have any length, a reader can place its blocks only in an exposure that holds nothing else.
        const std::int64_t exposes =
            uneven_ ? 2 * groups.count() + readers * (1 + parcels_.most_sources()) : 1 + parcels_.most_sources();
        return exposes * parts_ <= most_exposes;
    }

    std::vector<Parcel> in_turn(std::vector<Parcel> parcels) const {
        const TurnOrder order(job_, TurnOrder::Kind::balanced);
        std::sort(parcels.begin(), parcels.end(), [&](const Parcel& a, const Parcel& b) {
            return order.turn(a.from, a.to) < order.turn(b.from, b.to);
        });
        return parcels;
    }

    Rank at(std::int64_t position) const { return job_.rank_at({static_cast<std::int32_t>(position)}); }
    bool is_near(std::int64_t position) const { return holds(near_, position); }
    std::int32_t tag(std::int32_t phase) const { return phase * parts_ + slice_.index; }
    Interval row(std::int64_t source, const Interval& targets) const {
        return {source * p_ + targets.first, targets.count};
    }

    /// What a member gives to another one before the exchange: the block for it, and what it takes along to other groups.
    Blocks input_for(std::int64_t giver, std::int64_t taker) const {
        Blocks blocks(giver * p_ + taker, 1);
        for (const Parcel& parcel : parcels_.from(static_cast<std::int32_t>(taker)))
            if (holds(parcel.sources, giver)) blocks.insert(row(giver, parcels_.members(parcel.group)));
        return blocks;
    }
    /// What a member hands to another one after it.
    Blocks output_for(std::int64_t giver, std::int64_t taker) const {
        Blocks blocks;
        for (const Parcel& parcel : parcels_.to(static_cast<std::int32_t>(giver)))
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s)
                blocks.insert({s * p_ + taker, 1});
        return blocks;
    }

    /// Blocks for a rank belong in its result, others wait in scratch.
    std::vector<Region> sorted_in(const Blocks& blocks) const { return sorted_in(blocks, me_); }
    std::vector<Region> sorted_in(const Blocks& blocks, std::int64_t taker) const {
        std::vector<Region> regions;
        for (const Interval& interval : blocks.intervals()) {
            // An interval may run from one row into the next: it is cut where a block of the taker's column lies.
            std::int64_t from = interval.first;
            for (std::int64_t own = (from - taker + p_ - 1) / p_ * p_ + taker; own < interval.end(); own += p_) {
                if (own > from) regions.push_back({Buffer::scratch, {from, own - from}});
                regions.push_back({Buffer::recv, {own, 1}});
                from = own + 1;
            }
            if (from < interval.end()) regions.push_back({Buffer::scratch, {from, interval.end() - from}});
        }
        return regions;
    }

    void reserve() {
        for (const Parcel& parcel : outgoing_)
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s)
                if (s != me_) reserve_sorted(row(s, parcels_.members(parcel.group)));
        for (const Parcel& parcel : incoming_)
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) reserve_sorted(row(s, group_));
        if (!scratch_.empty()) builder_.reserve_scratch(scratch_);
    }
    void reserve_sorted(const Interval& blocks) {
        if (near_.count > 1) return scratch_.insert(blocks);
        for (const Region& region : sorted_in(Blocks(blocks.first, blocks.count)))
            if (region.buffer == Buffer::scratch) scratch_.insert(region.blocks);
    }

    /// Reads of these blocks, one for each place that they go to.
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
    /// Adds one exposure that holds all of these reads, or one each where blocks may have any length.
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
    /// Exposures of one rank, by tag; all of its input come before those of what arrived.
    std::vector<Exposure> exposures_of(std::int64_t giver) const {
        std::vector<Exposure> out;
        std::vector<Read> reads;
        std::int64_t first = INT64_MAX;
        std::int64_t end = 0;
        for_each_near(giver, [&](std::int64_t reader) {
            for (Read& read : reads_of(reader, input_for(giver, reader))) {
                first = std::min(first, read.blocks.intervals().front().first);
                end = std::max(end, read.blocks.intervals().back().end());
                reads.push_back(std::move(read));
            }
        });
        add_exposures(out, std::move(reads), {first, end - first}, -1);
        for (const Parcel& parcel : in_turn(parcels_.to(static_cast<std::int32_t>(giver))))
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) {
                std::vector<Read> of_source;
                for_each_near(giver, [&](std::int64_t reader) {
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
    /// `arrivals`: those of what came from other groups, else those of the input.
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
        for_each_near(me_, [&](std::int64_t giver) {
            std::int32_t number = 0;
            for (const Exposure& exposure : exposures_of(giver)) {
                const std::int32_t expose_tag = tag(number++);
                if ((exposure.arrival >= 0) != arrivals) continue;
                for (const Read& read : exposure.reads) {
                    if (read.reader != me_) continue;
                    const StepId step =
                        builder_.pull(at(giver), expose_tag, exposure.blocks, read.to, read.blocks, {}, slice_);
                    if (read.to == Buffer::scratch) collected_[giver].push_back(step);
                }
            }
        });
    }

    /// The other members, each rank beginning with the one after it.
    template <class Visit>
    void for_each_far_member(const Visit& visit) const {
        for (std::int64_t i = 1; i < group_.count; ++i) {
            const std::int64_t other = group_.first + (me_ - group_.first + i) % group_.count;
            if (!is_near(other)) visit(other);
        }
    }

    void take_from_members() {
        builder_.stage("inside the group");
        for_each_far_member([&](std::int64_t other) {
            collected_[other].push_back(builder_.recv(at(other), tag(0), sorted_in(input_for(other, me_)), {}, slice_));
        });
        builder_.stage("between groups");
        for (const Parcel& parcel : incoming_) {
            std::vector<Region> regions;
            Blocks own;
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) {
                own.insert({s * p_ + me_, 1});
                // What others read must lie in one piece.
                if (near_.count > 1)
                    regions.push_back({Buffer::scratch, row(s, group_)});
                else
                    for (const Region& region : sorted_in(Blocks(s * p_ + group_.first, group_.count)))
                        regions.push_back(region);
            }
            const StepId step = builder_.recv(at(parcel.from), tag(1), regions, {}, slice_);
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) arrived_[s] = step;
            if (near_.count > 1) builder_.copy(Buffer::scratch, Buffer::recv, own, {step}, slice_);
        }
        builder_.stage("hand out");
        for_each_far_member([&](std::int64_t other) {
            if (const Blocks blocks = output_for(other, me_); !blocks.empty())
                builder_.recv(at(other), tag(2), Buffer::recv, blocks, {}, slice_);
        });
    }

    void give_to_members() {
        builder_.stage("inside the group");
        expose_to_near(false);
        for_each_far_member([&](std::int64_t other) {
            builder_.send(at(other), tag(0), Buffer::send, input_for(me_, other), {}, slice_);
        });
        pull_from_near(false);
    }

    void exchange() {
        builder_.stage("between groups");
        for (const Parcel& parcel : outgoing_) {
            std::vector<Region> regions;
            std::vector<StepId> waits;
            for (std::int64_t s = parcel.sources.first; s < parcel.sources.end(); ++s) {
                regions.push_back({s == me_ ? Buffer::send : Buffer::scratch, row(s, parcels_.members(parcel.group))});
                if (s == me_) continue;
                const auto& steps = collected_.at(s);
                waits.insert(waits.end(), steps.begin(), steps.end());
            }
            builder_.send(at(parcel.to), tag(1), regions, waits, slice_);
        }
    }

    void hand_out() {
        builder_.stage("hand out");
        expose_to_near(true);
        std::vector<StepId> all;
        for (const auto& [source, step] : arrived_)
            if (std::find(all.begin(), all.end(), step) == all.end()) all.push_back(step);
        for_each_far_member([&](std::int64_t other) {
            if (const Blocks blocks = output_for(me_, other); !blocks.empty())
                builder_.send(at(other), tag(2), Buffer::scratch, blocks, all, slice_);
        });
        pull_from_near(true);
    }

    const Job& job_;
    const Parcels& parcels_;
    std::int64_t p_;
    std::int32_t me_;
    std::uint16_t parts_;
    bool uneven_;  ///< blocks may have any length
    Interval group_, near_;
    std::vector<Parcel> outgoing_, incoming_;
    Blocks scratch_;
    plan::ProgramBuilder builder_;
    Slice slice_;
    std::map<std::int64_t, std::vector<StepId>> collected_;  ///< by source in this group: steps that brought its blocks
    std::map<std::int64_t, StepId> arrived_;                 ///< by source in another group
};

}  // namespace

Program combined_alltoall(const Job& job, Rank rank, const Request& request, const Spec& spec, const Parcels& parcels) {
    return Combined(job, rank, request, spec, parcels).make();
}

const topology::Partition& combined_groups(const Job& job, const Spec& spec) {
    // A job that doesn't spread over the wanted level has its nodes for groups.
    const auto wanted = job.find_level(spec.find("level").value_or("node"));
    return wanted ? job.levels()[*wanted].groups : job.nodes().groups;
}

std::int64_t combined_tags(const Job&, const Request& request, const Spec& spec) {
    return std::max<std::int64_t>(std::int64_t{3} * slices_of(request, spec), most_exposes);
}

}  // namespace palmette::collectives
