#include "palmette/model/bound/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "palmette/base/error.hpp"
#include "palmette/model/bound/one_port.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::model {
namespace {

using plan::Collective;
using plan::Request;
using topology::Job;
using topology::JobLevel;

/// Share of the capacity that `senders` ranks can use when they are bound round robin to `ports` ports.
double share_of_ports(std::int64_t senders, std::int64_t ports) {
    return static_cast<double>(senders) / static_cast<double>(ports * ((senders + ports - 1) / ports));
}

class Terms {
  public:
    Terms(const Job& job, const Request& request, const std::vector<std::int64_t>& block_bytes,
          const BoundOptions& options)
        : job_(job), request_(request), options_(options), crossing_(job, request, block_bytes) {
        for (const auto& [level, ports] : options.ports) {
            if (!job.find_level(level)) base::fail("ports: the job has no level '", level, "'");
            if (ports < 1) base::fail("ports: level '", level, "' needs at least one port, not ", ports);
        }
        if (options.at_once < 0) base::fail("messages at once: a rank can't have ", options.at_once, " in flight");
    }

    std::vector<EdgeTerm> edges(const JobLevel& level) const {
        const std::vector<Traffic> traffic = crossing_.of_groups(level.groups);
        std::vector<EdgeTerm> out;
        out.reserve(traffic.size());
        for (std::int32_t g = 0; g < level.groups.count(); ++g) {
            out.push_back(edge(level, g, traffic[static_cast<std::size_t>(g)]));
            if (!level.names.empty()) out.back().name = level.names[static_cast<std::size_t>(g)];
        }
        return out;
    }

    BoundTerms all() const {
        BoundTerms out;
        for (std::size_t l = 0; l < job_.levels().size(); ++l) out.levels.push_back(level_terms(l));
        out.rounds = rounds();
        out.one_port = one_port(out.rounds);
        out.copy = copied();
        out.reduce = reduced();
        out.limit = limit(out, false);
        out.limit_in_network = limit(out, true);
        return out;
    }

  private:
    EdgeTerm edge(const JobLevel& level, std::int32_t group, Traffic traffic) const {
        EdgeTerm out{group, {}, traffic, level.up_bytes_per_s[group], 0, traffic.out > traffic.in};
        for (const auto& [name, ports] : options_.ports)
            if (name == level.name) out.capacity_bytes_per_s *= share_of_ports(level.groups.size_of(group), ports);
        if (out.capacity_bytes_per_s > 0)
            out.seconds = static_cast<double>(std::max(traffic.out, traffic.in)) / out.capacity_bytes_per_s;
        return out;
    }

    LevelTerms level_terms(std::size_t index) const {
        const JobLevel& level = job_.levels()[index];
        const std::vector<Traffic> traffic = crossing_.of_groups(level.groups);
        LevelTerms out;
        out.level = level.name;
        out.groups = level.groups.count();
        out.latency_s = level.costs.latency_s;
        double bytes_out = 0, bytes_in = 0, capacities = 0;
        for (std::int32_t g = 0; g < out.groups; ++g) {
            const EdgeTerm one = edge(level, g, traffic[static_cast<std::size_t>(g)]);
            bytes_out += static_cast<double>(one.traffic.out), bytes_in += static_cast<double>(one.traffic.in);
            capacities += one.capacity_bytes_per_s;
            if (one.capacity_bytes_per_s <= 0)
                ++out.unknown;
            else if (out.worst.group < 0 || one.seconds > out.worst.seconds)
                out.worst = one;
        }
        out.crossed = is_crossed(index) && (is_barrier() || bytes_out + bytes_in > 0);
        if (out.worst.group >= 0 && !level.names.empty())
            out.worst.name = level.names[static_cast<std::size_t>(out.worst.group)];
        out.together_bytes = aggregate_bytes(out.groups, std::max(bytes_out, bytes_in));
        if (out.unknown > 0 || out.groups < 2) return out;
        out.together_bytes_per_s = capacities;
        out.together_s = out.together_bytes / capacities;
        if (request_.collective == Collective::allreduce) add_aggregators(index, out);
        return out;
    }

    /// Above a level: aggregators of which no group of the level is an ancestor.
    void add_aggregators(std::size_t index, LevelTerms& out) const {
        double links = 0;
        bool any = false, limited = true;
        for (const topology::JobAggregator& one : job_.aggregators()) {
            if (one.level >= static_cast<std::int32_t>(index)) continue;
            any = true;
            links += one.up_bytes_per_s;
            limited = limited && one.up_bytes_per_s > 0;
        }
        if (job_.aggregators().empty()) return;
        const double k = out.groups, vector = static_cast<double>(crossing_.total());
        // As messages that leave groups: all by way of aggregators, or as many as their links allow.
        const double all_s = k * vector / out.together_bytes_per_s;
        const double mixed = out.together_bytes_per_s + links * (k - 2) / k;
        const bool all = any && k > 2 && (!limited || out.together_bytes / mixed < all_s);
        out.with_aggregators_bytes = all ? k * vector : out.together_bytes;
        out.with_aggregators_bytes_per_s = all ? out.together_bytes_per_s : mixed;
        out.with_aggregators_s = out.with_aggregators_bytes / out.with_aggregators_bytes_per_s;
    }

    double aggregate_bytes(std::int64_t groups, double leaving) const {
        const auto each = static_cast<double>(groups - 1) * static_cast<double>(crossing_.total());
        switch (request_.collective) {
            case Collective::allreduce:
                return 2 * each;
            case Collective::bcast:
            case Collective::reduce:
            case Collective::allgather:
            case Collective::reduce_scatter:
                return each;
            default:
                return leaving;
        }
    }

    bool is_barrier() const { return request_.collective == Collective::barrier; }

    /// In some parent group (for rooted collectives, the root's) there are two groups or more.
    bool is_crossed(std::size_t index) const {
        const topology::Partition& groups = job_.levels()[index].groups;
        const std::int32_t parents = index == 0 ? 1 : job_.levels()[index - 1].groups.count();
        if (!plan::is_rooted(request_.collective)) return groups.count() > parents;
        const std::int32_t root = job_.position_of(request_.root).value;
        const std::int32_t parent_size =
            index == 0 ? job_.size()
                       : job_.levels()[index - 1].groups.size_of(job_.levels()[index - 1].groups.group_of(root));
        return groups.size_of(groups.group_of(root)) < parent_size;
    }

    /// The smallest latency and overhead between members; nothing where a latency is unknown, so that no bound follows.
    struct Smallest {
        double latency_s = 0, overhead_s = 0;
        bool overhead_known = true;
    };
    std::optional<Smallest> smallest(std::size_t levels, bool with_inside) const {
        Smallest out;
        bool first = true;
        const auto take = [&](const topology::LevelCosts& costs) {
            out.latency_s = first ? costs.latency_s : std::min(out.latency_s, costs.latency_s);
            out.overhead_s = first ? costs.overhead_s : std::min(out.overhead_s, costs.overhead_s);
            out.overhead_known = out.overhead_known && costs.overhead_s > 0;
            first = false;
        };
        for (std::size_t l = 0; l < levels; ++l) {
            const std::int32_t parents = l == 0 ? 1 : job_.levels()[l - 1].groups.count();
            if (job_.levels()[l].groups.count() > parents) take(job_.levels()[l].costs);
        }
        if (with_inside) take(job_.inside());
        if (first || out.latency_s <= 0) return std::nullopt;
        return out;
    }

    RoundsTerm rounds() const {
        const std::size_t nodes = *job_.find_level("node");
        const topology::Partition& groups = job_.levels()[nodes].groups;
        RoundsTerm out;
        out.members = options_.messages_only ? job_.size() : groups.count();
        const std::size_t levels = options_.messages_only ? job_.levels().size() : nodes + 1;
        const bool inside = options_.messages_only && !job_.levels().back().groups.all_single();
        const std::optional<Smallest> least = smallest(levels, inside);
        // A rank with an empty block need not communicate.
        if (out.members < 2 || !least || !(is_barrier() || crossing_.all_move())) return out;
        out.latency_s = least->latency_s;
        if (options_.at_once > 0)
            out.at_once = options_.at_once;
        else if (least->overhead_known)
            out.at_once = std::max<std::int64_t>(1, std::llround(std::ceil(least->latency_s / least->overhead_s)));
        if (!options_.messages_only) {
            std::int32_t largest = 0;
            for (std::int32_t g = 0; g < groups.count(); ++g) largest = std::max(largest, groups.size_of(g));
            out.at_once *= largest;
        }
        if (options_.messages_only) out.spread_s = spread();
        if (out.at_once > 0)
            for (std::int64_t informed = 1; informed < out.members; informed *= out.at_once + 1) ++out.rounds;
        out.seconds = std::max(out.rounds * out.latency_s, out.spread_s);
        return out;
    }

    OnePortTerm one_port(const RoundsTerm& rounds) const {
        OnePortTerm out;
        out.members = rounds.members;
        out.latency_s = rounds.latency_s;
        if (out.latency_s <= 0) return out;
        const JobLevel& nodes = job_.levels()[*job_.find_level("node")];
        std::int64_t smallest = job_.size();
        if (!options_.messages_only || nodes.groups.all_single())
            for (std::int32_t g = 0; g < nodes.groups.count(); ++g) {
                smallest = std::min<std::int64_t>(smallest, nodes.groups.size_of(g));
                if (nodes.up_bytes_per_s[g] <= 0) out.bytes_per_s = std::numeric_limits<double>::infinity();
                out.bytes_per_s = std::max(out.bytes_per_s, nodes.up_bytes_per_s[g]);
            }
        else
            smallest = 1;
        if (std::isinf(out.bytes_per_s)) out.bytes_per_s = 0;
        const OnePort port{out.members, out.latency_s, out.bytes_per_s};
        switch (request_.collective) {
            case Collective::bcast:
            case Collective::reduce:
            case Collective::allreduce:
            case Collective::scan:
            case Collective::exscan: {
                out.bytes = crossing_.total();
                const BlockRounds least = least_rounds(port, out.bytes, request_.element_bytes);
                out.blocks = least.blocks, out.rounds = least.rounds, out.seconds = least.seconds;
                return out;
            }
            case Collective::alltoall:
                out.bytes = crossing_.even() ? smallest * smallest * crossing_.block_of({0}) : 0;
                break;
            case Collective::barrier:
                break;
            default:
                out.bytes = crossing_.even() ? smallest * crossing_.block_of({0}) : 0;
        }
        out.rounds = doublings(out.members);
        out.seconds = least_collecting_s(port, out.bytes);
        return out;
    }

    /// The gaps at both ends of a message, as far as overheads are known.
    MessageEnds ends() const {
        if (options_.ends) return *options_.ends;
        const auto& levels = job_.levels();
        const auto inner = levels.begin() + static_cast<std::ptrdiff_t>(*job_.find_level("node")) + 1;
        Gaps gaps{job_.inside().overhead_s, levels.front().costs.overhead_s};
        for (auto level = levels.begin(); level != levels.end(); ++level) {
            double& gap_s = level < inner ? gaps.between_s : gaps.inside_s;
            gap_s = std::min(gap_s, level->costs.overhead_s);
        }
        return {gaps, gaps};
    }

    double spread() const {
        if (options_.at_once > 0) return 0;
        const auto [send, receive] = ends();
        const bool rooted = plan::is_rooted(request_.collective);
        const bool from = request_.collective != Collective::gather && request_.collective != Collective::reduce;
        const bool to = request_.collective != Collective::bcast && request_.collective != Collective::scatter;
        // In a scan, the first rank's contribution goes to all ranks, and the last rank depends on all contributions.
        const topology::Rank source = rooted ? request_.root : topology::Rank{0};
        const topology::Rank target = rooted ? request_.root : topology::Rank{job_.size() - 1};
        return std::max(from ? spread_s(job_, job_.position_of(source), send) : 0,
                        to ? spread_s(job_, job_.position_of(target), receive) : 0);
    }

    MemoryTerm copied() const {
        MemoryTerm out{0, job_.memory().copy_bytes_per_s, 0};
        switch (request_.collective) {
            case Collective::gather:
            case Collective::scatter:
                out.bytes = crossing_.block_of(request_.root);
                break;
            case Collective::allgather:
            case Collective::alltoall:
                for (std::int32_t r = 0; r < (crossing_.even() ? 1 : job_.size()); ++r)
                    out.bytes = std::max(out.bytes, crossing_.block_of({r}));
                break;
            default:
                break;
        }
        if (out.bytes_per_s > 0) out.seconds = static_cast<double>(out.bytes) / out.bytes_per_s;
        return out;
    }

    MemoryTerm reduced() const {
        MemoryTerm out{0, job_.memory().reduce_bytes_per_s, 0};
        const std::int64_t p = job_.size();
        const std::int64_t steps = p - (request_.collective == Collective::exscan ? 2 : 1);
        if (plan::is_reduction(request_.collective) && steps > 0)
            out.bytes = static_cast<std::int64_t>(static_cast<double>(crossing_.total()) *
                                                  (static_cast<double>(steps) / static_cast<double>(p)));
        if (out.bytes_per_s > 0) out.seconds = static_cast<double>(out.bytes) / out.bytes_per_s;
        return out;
    }

    Bound limit(const BoundTerms& terms, bool in_network) const {
        Bound best;
        const auto take = [&](Bound candidate) {
            if (candidate.seconds > best.seconds) best = std::move(candidate);
        };
        for (const LevelTerms& level : terms.levels) {
            const EdgeTerm& worst = level.worst;
            take({worst.seconds, "link", level.level, worst.group, worst.name, worst.outwards,
                  std::max(worst.traffic.out, worst.traffic.in), worst.capacity_bytes_per_s});
            if (in_network && level.with_aggregators_s > 0)
                take({level.with_aggregators_s,
                      "aggregators",
                      level.level,
                      -1,
                      {},
                      true,
                      static_cast<std::int64_t>(level.with_aggregators_bytes),
                      level.with_aggregators_bytes_per_s});
            // For other collectives the sum is an average over edges, so the slowest edge is never the weaker bound.
            if (!in_network && request_.collective == Collective::allreduce)
                take({level.together_s,
                      "links",
                      level.level,
                      -1,
                      {},
                      true,
                      static_cast<std::int64_t>(level.together_bytes),
                      level.together_bytes_per_s});
        }
        for (const LevelTerms& level : terms.levels)
            if (level.crossed) take({level.latency_s, "latency", level.level, -1, {}, false, 0, 0});
        if (!in_network) take({terms.rounds.seconds, "rounds", {}, -1, {}, false, 0, 0});
        take({terms.copy.seconds, "copy", {}, -1, {}, false, terms.copy.bytes, terms.copy.bytes_per_s});
        if (!in_network)
            take({terms.reduce.seconds, "reduce", {}, -1, {}, false, terms.reduce.bytes, terms.reduce.bytes_per_s});
        return best;
    }

    const Job& job_;
    const Request& request_;
    const BoundOptions& options_;
    Crossing crossing_;
};

}  // namespace

BoundTerms bound_terms(const Job& job, const Request& request, const std::vector<std::int64_t>& block_bytes,
                       const BoundOptions& options) {
    return Terms(job, request, block_bytes, options).all();
}

std::vector<EdgeTerm> bound_edges(const Job& job, const Request& request, const std::vector<std::int64_t>& block_bytes,
                                  std::size_t level, const BoundOptions& options) {
    if (level >= job.levels().size()) base::fail("level ", level, " is outside of 0 to ", job.levels().size() - 1);
    return Terms(job, request, block_bytes, options).edges(job.levels()[level]);
}

Bound bound(const Job& job, const Request& request, const std::vector<std::int64_t>& block_bytes) {
    return bound_terms(job, request, block_bytes).limit;
}

}  // namespace palmette::model
