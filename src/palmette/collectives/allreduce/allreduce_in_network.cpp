// allreduce, in_network: groups reduce-scatter inside, an aggregator above them combines the parts of all groups and
// sends them back, groups allgather. At the same time hosts reduce the rest of the vector around a ring.
// Long because the cut of the vector, the members' parts and an aggregator's must fit each other block by block.
//
//   p = 6 on three leaves of two, half of the vector through the aggregator a (blocks A B), half by the ring (C):
//
//       A: 1 → 0   3 → 2   5 → 4     reduce-scatter inside each leaf
//       B: 0 → 1   2 → 3   4 → 5
//       A: 0 2 4 → a → 0 2 4         each leaf's edge carries A and B once each way
//       B: 1 3 5 → a → 1 3 5
//       A: 0 → 1   2 → 3   4 → 5     allgather
//       B: 1 → 0   3 → 2   5 → 4
//       C: 0 → 1 → 2 → 3 → 4 → 5 → 0 and 1 → 0, 3 → 2, 5 → 4: nested ring
//
// Short vectors aren't cut: groups reduce along a binomial tree to one member each, an aggregator combines theirs, and
// the results go back down the trees.
//
// combine=hosts: the same without aggregators. Each owner adds its part to what comes from the group before and sends
// it on, and the result comes back the same way. The brackets are the aggregator's, ((0 + 2) + 4), so that a call that
// an aggregator has failed can be repeated with the same bits.
#include <algorithm>
#include <numeric>
#include <set>

#include "palmette/base/error.hpp"
#include "palmette/collectives/exchanges/network_share.hpp"
#include "palmette/collectives/exchanges/reduce_exchange.hpp"
#include "palmette/collectives/rows.hpp"

namespace palmette::collectives {
namespace {

using plan::Blocks;
using plan::Buffer;
using plan::Interval;
using plan::Slice;
using plan::StepId;
using topology::JobAggregator;
using topology::Partition;

/// By default a member's part is cut in so many segments, within these limits: with few the way up and the way down
/// don't overlap, shorter ones cost more in messages than they gain.
constexpr std::int64_t default_segments = 64, least_segment = 4096, most_segment = 16384;
/// Switches stream what is at least 16 KB long, and a message costs their adapters more than its bytes.
constexpr std::int64_t segments_of_switches = 16, least_segment_of_switches = 16384, most_segment_of_switches = 131072;
/// Segments that a group reduces ahead. With all of them at once those that are complete would queue behind the rest on
/// the members' links, and the groups' links stand idle until then.
constexpr std::int32_t default_window = 2;
/// Segments that a member has outstanding while hosts reduce the rest: more would queue ahead of their messages.
constexpr std::size_t outstanding_beside_hosts = 4;

/// Size in bytes up to which a vector isn't cut, and members keep its result for each other (aggregate/kept/peers.hpp).
constexpr std::int64_t most_short = 4096;

bool goes_whole(const Request& request, const Spec& spec) {
    return spec.word("keep", {"no", "yes"}) == "yes" && request.block_bytes > 0 && request.block_bytes <= most_short &&
           !spec.find("share") && !spec.find("segment");
}

/// The key share=PERCENT, as a share; nothing: computed.
std::optional<double> given_share(const Spec& spec) {
    if (spec.find("share") == "auto" || !spec.find("share")) return std::nullopt;
    const std::int32_t percent = spec.integer("share", 100);
    if (percent > 100) base::fail("algorithm '", spec.text(), "': share is auto or 1 to 100, not ", percent);
    return percent / 100.0;
}

/// Whether hosts do what an aggregator would do.
bool by_hosts(const Spec& spec) {
    const std::string_view by = spec.find("combine").value_or("aggregators");
    if (by != "aggregators" && by != "hosts")
        base::fail("algorithm '", spec.text(), "': combine is aggregators or hosts, not ", by);
    return by == "hosts";
}

/// How the vector is cut, the same on all ranks and aggregators: a stripe for each aggregator, of `parts` parts of some
/// blocks, then the hosts' part, of p times some blocks.
class Cut {
  public:
    Cut(const Job& job, const Request& request, const Spec& spec)
        : job_(job),
          level_(network_level(job, spec)),
          aggregators_(top_aggregators(job)),
          switches_(switches_reduce(job)),
          short_(goes_whole(request, spec)),
          parts_(switches_ || short_ ? 1 : parts_for(groups())) {
        if (short_) aggregators_.resize(1);
        const double share = short_ ? 1 : given_share(spec).value_or(network_share(job, level_, aggregators_));
        const double together = aggregate_capacity(job, aggregators_);
        std::vector<double> shares;
        std::vector<std::int64_t> units;
        for (const std::int32_t one : aggregators_) {
            shares.push_back(together > 0 ? share * aggregator(one).up_bytes_per_s / together : share);
            units.push_back(parts_);
        }
        if (share < 1) shares.push_back(1 - share), units.push_back(job.size());
        times_ = blocks_for(shares, units);
        for (std::size_t i = 0; i < times_.size(); ++i) {
            firsts_.push_back(blocks_);
            blocks_ += times_[i] * units[i];
        }
        for (std::size_t stripe = 0; stripe < aggregators_.size(); ++stripe)
            bytes_.push_back(vector_begin(request, firsts_[stripe] + times_[stripe] * parts_) -
                             vector_begin(request, firsts_[stripe]));
        find_runs();
        // The largest run of one aggregator's stripe is cut in segments.
        const std::int64_t largest = *std::max_element(bytes_.begin(), bytes_.end()) * largest_run() / parts_;
        const std::int64_t usual =
            switches_ ? std::clamp(largest / segments_of_switches, least_segment_of_switches, most_segment_of_switches)
                      : std::clamp(largest / default_segments, least_segment, most_segment);
        const std::int64_t segment = spec.size("segment", usual);
        slices_ =
            static_cast<std::uint16_t>(std::clamp<std::int64_t>((largest + segment - 1) / segment, 1, most_slices));
        hosts_request_ = request;
        if (hosts())
            hosts_request_.block_bytes = vector_begin(request, blocks_) - vector_begin(request, firsts_.back());
        hosts_spec_ = Spec{"ring", {}};
        if (const auto given = spec.find("segment")) hosts_spec_.options.emplace_back("segment", *given);
        ahead_ = spec.integer("window", default_window);
    }

    const Partition& groups() const { return job_.levels()[level_].groups; }
    std::size_t level() const { return level_; }
    std::int64_t blocks() const { return blocks_; }
    std::int32_t parts() const { return parts_; }
    bool switches() const { return switches_; }
    bool is_short() const { return short_; }
    const std::vector<std::int32_t>& aggregators() const { return aggregators_; }
    const JobAggregator& aggregator(std::int32_t index) const {
        return job_.aggregators()[static_cast<std::size_t>(index)];
    }
    std::uint16_t slices() const { return slices_; }
    std::int32_t ahead() const { return ahead_; }
    /// Slices of every group that the aggregator of a stripe has room for; nothing: no limit.
    std::optional<std::int64_t> window(std::size_t stripe) const {
        const std::int64_t memory = aggregator(aggregators_[stripe]).memory_bytes;
        if (memory <= 0) return std::nullopt;
        return memory / std::max<std::int64_t>(1, (bytes_[stripe] + slices_ - 1) / slices_ * groups().count());
    }

    /// The parts of member i of a group of `size`.
    Interval parts_of(std::int64_t i, std::int64_t size) const {
        const std::int64_t first = i * parts_ / size;
        return {first, (i + 1) * parts_ / size - first};
    }
    /// Ranges of parts that have one owner in every group.
    const std::vector<Interval>& runs() const { return runs_; }
    /// The owner of a run in a group of `size`.
    std::int64_t owner_of(std::size_t run, std::int64_t size) const {
        return ((runs_[run].first + 1) * size - 1) / parts_;
    }
    Blocks blocks_of(std::size_t stripe, Interval parts) const {
        return {firsts_[stripe] + parts.first * times_[stripe], parts.count * times_[stripe]};
    }
    Blocks blocks_of(Interval parts) const {
        Blocks out;
        for (std::size_t stripe = 0; stripe < aggregators_.size(); ++stripe) out.unite(blocks_of(stripe, parts));
        return out;
    }

    bool hosts() const { return times_.size() > aggregators_.size(); }
    std::int64_t hosts_first() const { return firsts_.back(); }
    std::int64_t hosts_times() const { return times_.back(); }
    const Request& hosts_request() const { return hosts_request_; }
    const Spec& hosts_spec() const { return hosts_spec_; }
    /// Tags of the reduction inside of groups and of messages between them; the hosts' come behind.
    std::int64_t tags() const {
        const auto between = static_cast<std::int64_t>(aggregators_.size() * runs_.size());
        return slices_ * std::max<std::int64_t>(ring_tags(), between);
    }
    std::int32_t ring_tags() const { return 2 * groups().largest(); }
    /// Tag of a message with an aggregator: modulo channels() it is the run.
    std::int32_t tag_of(std::size_t stripe, std::size_t run, Slice slice) const {
        return static_cast<std::int32_t>((stripe * slices_ + slice.index) * runs_.size() + run);
    }
    std::int32_t channels() const { return static_cast<std::int32_t>(runs_.size()); }
    std::int64_t first_segments() const {
        return std::accumulate(bytes_.begin(), bytes_.end(), std::int64_t{0}) / slices_ * groups().count();
    }

  private:
    std::int64_t vector_begin(const Request& request, std::int64_t block) const {
        return request.block_bytes < 0 ? 0
                                       : plan::cut_begin(request.block_bytes, blocks_, request.element_bytes, block);
    }

    /// So many that each member of a group has about as many as another one, whatever the group's size.
    static std::int32_t parts_for(const Partition& groups) {
        std::int64_t common = groups.largest();
        for (std::int32_t g = 0; g < groups.count() && common <= 4 * std::int64_t{groups.largest()}; ++g)
            common = std::lcm(common, std::int64_t{groups.size_of(g)});
        return common <= 4 * std::int64_t{groups.largest()} ? static_cast<std::int32_t>(common) : groups.largest();
    }

    std::int64_t largest_run() const {
        std::int64_t out = 1;
        for (const Interval& run : runs_) out = std::max(out, run.count);
        return out;
    }

    void find_runs() {
        std::vector<std::int64_t> begins;
        std::set<std::int64_t> sizes;
        for (std::int32_t g = 0; g < groups().count(); ++g) sizes.insert(groups().size_of(g));
        for (const std::int64_t size : sizes)
            for (std::int64_t i = 0; i < size; ++i) begins.push_back(parts_of(i, size).first);
        std::sort(begins.begin(), begins.end());
        begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
        begins.push_back(parts_);
        for (std::size_t i = 0; i + 1 < begins.size(); ++i) runs_.push_back({begins[i], begins[i + 1] - begins[i]});
    }

    const Job& job_;
    std::size_t level_;
    std::vector<std::int32_t> aggregators_;
    bool switches_;  ///< one member of each group has all messages with them
    bool short_;     ///< as with switches
    std::int32_t parts_;
    std::vector<Interval> runs_;
    std::vector<std::int64_t> times_, firsts_;  ///< by stripe, then the hosts' part: blocks a unit, first block
    std::int64_t blocks_ = 0;
    std::vector<std::int64_t> bytes_;  ///< by stripe
    std::uint16_t slices_ = 1;
    std::int32_t ahead_ = default_window;
    Request hosts_request_;
    Spec hosts_spec_;
};

/// One rank's part.
class Member {
  public:
    Member(const Job& job, const Cut& cut, Rank rank, bool by_hosts)
        : job_(job),
          cut_(cut),
          by_hosts_(by_hosts),
          builder_(rank, plan::BlockOrder::topology, cut.blocks()),
          group_(cut.groups().group_of(job.position_of(rank).value)),
          first_(cut.groups().first(group_)),
          size_(cut.groups().size_of(group_)),
          me_(job.position_of(rank).value - first_),
          results_(cut.aggregators().size() * cut.runs().size()) {
        if (!by_hosts) builder_.channels(cut.channels());
    }

    Program make() {
        for (std::uint16_t i = 0; i < cut_.slices(); ++i) make_slice({i, cut_.slices()});
        scratch_.reserve(builder_);
        if (cut_.hosts()) {
            const Program hosts = make_program(job_, rank_at(me_), cut_.hosts_request(), cut_.hosts_spec());
            builder_.include(hosts, cut_.hosts_first(), cut_.hosts_times(), static_cast<std::int32_t>(cut_.tags()), 0);
        }
        return builder_.finish();
    }

  private:
    Rank rank_at(std::int32_t member) const { return job_.rank_at({first_ + member}); }

    void make_slice(Slice slice) {
        const auto ahead = static_cast<std::size_t>(cut_.ahead() - 1);
        const ReduceContext context{
            .builder = builder_,
            .scratch = scratch_,
            .n = size_,
            .me = me_,
            .rank_of = [&](std::int32_t member) { return rank_at(member); },
            .blocks_of =
                [&](std::int32_t first, std::int32_t count) {
                    const Interval begin = cut_.parts_of(first, size_), last = cut_.parts_of(first + count - 1, size_);
                    return cut_.blocks_of(Interval{begin.first, last.end() - begin.first});
                },
            .input = Buffer::send,
            .work = Buffer::recv,
            .result = Buffer::recv,
            .ready =
                ahead < reduced_.size() ? std::vector{reduced_[reduced_.size() - 1 - ahead]} : std::vector<StepId>(),
            .first_tag = slice.index * cut_.ring_tags(),
            .slice = slice,
        };
        if (size_ == 1) {
            between_groups({Buffer::send, {}}, slice);
            return;
        }
        if (cut_.is_short()) return make_short(slice);
        ReduceRing ring(context, nested());
        builder_.stage("reduce in groups");
        ring.reduce_scatter();
        reduced_.push_back(ring.completed());
        const std::vector<StepId> results = between_groups({Buffer::recv, {ring.completed()}}, slice);
        builder_.stage("distribute in groups");
        ring.allgather(results);
    }

    /// A binomial tree, whose root is the member that has messages with aggregators: the last one, so that v is the
    /// distance from it.
    void make_short(Slice slice) {
        const Blocks blocks = cut_.blocks_of(0, {0, 1});
        const std::int32_t v = size_ - 1 - me_;
        const auto rank_of = [&](std::int32_t other) { return rank_at(size_ - 1 - other); };
        std::vector<std::int32_t> children;
        for (std::int32_t d = 1; v % (2 * d) == 0 && v + d < size_; d *= 2) children.push_back(v + d);
        builder_.stage("reduce in groups");
        HeldBlocks held{Buffer::send, {}};
        for (std::size_t i = 0; i < children.size(); ++i) {
            const Buffer layer = plan::scratch_layer(i);
            scratch_.need(layer, blocks);
            std::vector<StepId> waits{builder_.recv(rank_of(children[i]), 0, layer, blocks, {}, slice)};
            add_steps(waits, held.ready);
            held = {Buffer::recv, {builder_.reduce(held.buffer, layer, Buffer::recv, blocks, waits, slice)}};
        }
        std::vector<StepId> result;
        if (v == 0) {
            result = between_groups(held, slice);
            builder_.stage("distribute in groups");
        } else {
            const Rank parent = rank_of(v & (v - 1));
            const StepId sent = builder_.send(parent, 0, held.buffer, blocks, held.ready, slice);
            builder_.stage("distribute in groups");
            result = {builder_.recv(parent, 0, Buffer::recv, blocks, {sent}, slice)};
        }
        for (std::size_t i = children.size(); i-- > 0;)
            builder_.send(rank_of(children[i]), 0, Buffer::recv, blocks, result, slice);
    }

    /// Combines the own parts with those of the other groups. Returns the steps after which they are complete.
    std::vector<StepId> between_groups(const HeldBlocks& own, Slice slice) {
        builder_.stage(by_hosts_ ? "between groups" : "aggregators");
        std::vector<StepId> out;
        for (std::size_t stripe = 0; stripe < cut_.aggregators().size(); ++stripe)
            for (std::size_t run = 0; run < cut_.runs().size(); ++run) {
                if (cut_.owner_of(run, size_) != me_) continue;
                const Blocks blocks = cut_.blocks_of(stripe, cut_.runs()[run]);
                const std::int32_t tag = cut_.tag_of(stripe, run, slice);
                out.push_back(by_hosts_ ? along_groups(own, run, tag, blocks, slice)
                                        : through_aggregator(own, stripe, run, tag, blocks, slice));
            }
        return out;
    }

    StepId through_aggregator(const HeldBlocks& own, std::size_t stripe, std::size_t run, std::int32_t tag,
                              const Blocks& blocks, Slice slice) {
        const Rank service{job_.size() + cut_.aggregators()[stripe]};
        std::vector<StepId> waits = own.ready;
        // Without room for more, the next slice is sent when the result of an earlier one is here.
        std::vector<StepId>& results = results_[stripe * cut_.runs().size() + run];
        auto window = static_cast<std::size_t>(cut_.window(stripe).value_or(cut_.slices()));
        if (cut_.hosts()) window = std::min(window, outstanding_beside_hosts);
        if (results.size() >= window) waits.push_back(results[results.size() - window]);
        const StepId sent = builder_.send(service, tag, own.buffer, blocks, waits, slice);
        results.push_back(builder_.recv(service, tag, Buffer::recv, blocks, {sent}, slice));
        return results.back();
    }

    StepId along_groups(const HeldBlocks& own, std::size_t run, std::int32_t tag, const Blocks& blocks, Slice slice) {
        const std::int32_t groups = cut_.groups().count();
        const auto owner = [&](std::int32_t group) {
            const std::int64_t member = cut_.owner_of(run, cut_.groups().size_of(group));
            return job_.rank_at({cut_.groups().first(group) + static_cast<std::int32_t>(member)});
        };
        std::vector<StepId> ready = own.ready;
        Buffer held = own.buffer;
        if (group_ > 0) {
            // Layer 0 has been read by the reduction inside when `own` is complete.
            scratch_.need(Buffer::scratch, blocks);
            ready.push_back(builder_.recv(owner(group_ - 1), tag, Buffer::scratch, blocks, own.ready, slice));
            ready = {builder_.reduce(Buffer::scratch, own.buffer, Buffer::recv, blocks, ready, slice)};
            held = Buffer::recv;
        }
        if (group_ + 1 < groups) {
            const StepId sent = builder_.send(owner(group_ + 1), tag, held, blocks, ready, slice);
            ready = {builder_.recv(owner(group_ + 1), tag, Buffer::recv, blocks, {sent}, slice)};
        }
        if (group_ > 0) builder_.send(owner(group_ - 1), tag, Buffer::recv, blocks, ready, slice);
        return ready.front();
    }

    /// The levels inside of the group, as partitions of its members.
    std::vector<Partition> nested() const {
        std::vector<Partition> out;
        for (std::size_t l = cut_.level() + 1; l < job_.levels().size(); ++l) {
            const Partition& groups = job_.levels()[l].groups;
            std::vector<std::int32_t> firsts;
            for (std::int32_t g = groups.group_of(first_); g < groups.count() && groups.first(g) < first_ + size_; ++g)
                firsts.push_back(groups.first(g) - first_);
            Partition inside = Partition::from_firsts(size_, std::move(firsts));
            if (inside.count() > 1 && !inside.all_single()) out.push_back(std::move(inside));
        }
        return out;
    }

    const Job& job_;
    const Cut& cut_;
    bool by_hosts_;
    plan::ProgramBuilder builder_;
    ScratchBuffer scratch_;
    std::int32_t group_, first_, size_, me_;
    std::vector<StepId> reduced_;               ///< by slice: the own parts, inside of the group
    std::vector<std::vector<StepId>> results_;  ///< by stripe and run, then slice
};

/// A service position's part: the contributions of group g arrive in layer g of scratch, results are made in layer 0.
Program make_service(const Job& job, const Cut& cut, std::int32_t index, bool idle) {
    plan::ProgramBuilder builder({job.size() + index}, plan::BlockOrder::topology, cut.blocks());
    builder.serve(index);
    builder.stage("aggregators");
    const auto at = std::find(cut.aggregators().begin(), cut.aggregators().end(), index);
    if (idle || at == cut.aggregators().end()) return builder.finish();
    const auto stripe = static_cast<std::size_t>(at - cut.aggregators().begin());
    const Partition& groups = cut.groups();
    const auto count = static_cast<std::size_t>(groups.count());
    builder.channels(cut.channels());
    // A tree of switches has no such limit: it is played with fewer layers, each used again.
    const std::size_t layers = std::min(count, plan::most_layers_of_scratch);
    const auto layer_of = [&](std::size_t g) {
        return plan::scratch_layer(g < layers ? g : 1 + (g - 1) % (layers - 1));
    };
    for (std::size_t layer = 0; layer < layers; ++layer)
        builder.reserve_scratch(cut.blocks_of(stripe, {0, cut.parts()}), plan::scratch_layer(layer));
    for (std::uint16_t i = 0; i < cut.slices(); ++i)
        for (std::size_t run = 0; run < cut.runs().size(); ++run) {
            const Slice slice{i, cut.slices()};
            const Blocks blocks = cut.blocks_of(stripe, cut.runs()[run]);
            const std::int32_t tag = cut.tag_of(stripe, run, slice);
            std::vector<Rank> owners;
            for (std::int32_t g = 0; g < groups.count(); ++g) {
                const std::int64_t member = cut.owner_of(run, groups.size_of(g));
                owners.push_back(job.rank_at({groups.first(g) + static_cast<std::int32_t>(member)}));
            }
            std::vector<StepId> arrived;
            const auto receive = [&](std::size_t g, const std::vector<StepId>& free) {
                arrived.push_back(builder.recv(owners[g], tag, layer_of(g), blocks, free, slice));
            };
            for (std::size_t g = 0; g < layers; ++g) receive(g, {});
            StepId combined = arrived[0];
            for (std::size_t g = 1; g < count; ++g) {
                combined = builder.reduce(Buffer::scratch, layer_of(g), Buffer::scratch, blocks, {combined, arrived[g]},
                                          slice);
                if (g + layers - 1 < count) receive(g + layers - 1, {combined});  // in the same layer
            }
            for (const Rank owner : owners) builder.send(owner, tag, Buffer::scratch, blocks, {combined}, slice);
        }
    return builder.finish();
}

std::optional<std::string> refuse_in_network(const Job& job, const Request& request, const Spec& spec) {
    check_keys(spec, {"level", "share", "segment", "window", "combine", "keep"});
    spec.word("keep", {"no", "yes"});
    const bool hosts = by_hosts(spec);
    given_share(spec);
    spec.size("segment", most_segment);
    if (request.ordered) return std::string("an aggregator doesn't combine contributions in rank order");
    if (job.aggregators().empty()) return std::string("no aggregator serves the job");
    if (top_aggregators(job).empty()) return std::string("no aggregator stands above all groups of the job");
    const topology::JobLevel& level = job.levels()[network_level(job, spec)];
    const std::int32_t groups = level.groups.count();
    if (groups < 3) return base::cat("an aggregator saves nothing between fewer than 3 groups of level ", level.name);
    if (!hosts && !switches_reduce(job) && static_cast<std::size_t>(groups) > plan::most_layers_of_scratch)
        return base::cat(groups, " groups of level ", level.name, " are more than the ", plan::most_layers_of_scratch,
                         " that one aggregator combines");
    const Cut cut(job, request, spec);
    for (std::size_t stripe = 0; !hosts && stripe < cut.aggregators().size(); ++stripe) {
        const JobAggregator& one = cut.aggregator(cut.aggregators()[stripe]);
        if (one.most_children > 0 && groups > one.most_children)
            return base::cat(one.name, " combines at most ", one.most_children, " contributions, and there are ",
                             groups, " groups of level ", level.name);
        if (cut.window(stripe).value_or(1) < 1)
            return base::cat(one.name, " has ", one.memory_bytes, " bytes, too few for a segment of each group");
    }
    return std::nullopt;
}

std::int64_t tags_in_network(const Job& job, const Request& request, const Spec& spec) {
    if (top_aggregators(job).empty()) return 1;  // refused
    const Cut cut(job, request, spec);
    return cut.tags() + (cut.hosts() ? tag_limit(job, cut.hosts_request(), cut.hosts_spec()) : 0);
}

Program make_in_network(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    const Cut cut(job, request, spec);
    if (rank.value < job.size()) return Member(job, cut, rank, by_hosts(spec)).make();
    // Where hosts combine, aggregators have nothing to do.
    return make_service(job, cut, rank.value - job.size(), by_hosts(spec));
}

}  // namespace

bool in_network_keeps(const Request& request, const Spec& spec) {
    return spec.name == allreduce_in_network.name && !by_hosts(spec) && goes_whole(request, spec);
}

Rank in_network_owner(const Job& job, std::size_t level, std::int32_t group) {
    const Partition& groups = job.levels()[level].groups;
    return job.rank_at({groups.first(group) + groups.size_of(group) - 1});
}

std::int64_t in_network_first_segments(const Job& job, const Request& request, const Spec& spec) {
    return Cut(job, request, spec).first_segments();
}

const Algorithm allreduce_in_network{
    .collective = Collective::allreduce,
    .name = "in_network",
    .sentence =
        "Groups reduce-scatter inside, an aggregator above them combines all groups' parts and sends them back; at "
        "the same time hosts reduce the rest of the vector around a ring.",
    .source =
        "Graham et al., COMHPC 2016 (aggregation in switches); Sapio et al., NSDI 2021 (window of slots); the split "
        "is palmette's",
    .keys =
        "level=LEVEL (the outermost; node where switches reduce), share=auto|PERCENT through aggregators (auto: by "
        "capacities), segment=SIZE (4K to 16K by the size, 16K to 128K for switches), window=N segments reduced ahead "
        "(2), combine=hosts (the same brackets without aggregators), keep=yes (up to 4 KB without an agreement; an "
        "experiment, see decision 37)",
    .preconditions =
        "the topology lists an aggregator above all groups, of which there are at least 3; the operation is "
        "commutative and predefined",
    .relays = true,
    .refuse = refuse_in_network,
    .make = make_in_network,
    .tags = tags_in_network,
    .in_network = true,
};

}  // namespace palmette::collectives
