#include "palmette/collectives/neighbours/neighbour_program.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "palmette/base/error.hpp"

namespace palmette::collectives {
namespace {

using plan::Buffer;
using plan::Region;
using plan::StepId;

constexpr std::int32_t direct_tag = 0, gather_tag = 1, between_tag = 2, spread_tag = 3;
constexpr Buffer gathered = plan::scratch_layer(0), arrived = plan::scratch_layer(1);

/// Two groups of a level with edges from one to the other.
struct Pair {
    std::size_t level;
    std::int32_t from, to;
    friend auto operator<=>(const Pair&, const Pair&) = default;
};

/// One of the ranks that could relay a pair's blocks: different ones for different pairs.
std::int32_t relay_of(const Pair& pair, const std::vector<std::int32_t>& ranks) {
    const auto mixed = (static_cast<std::uint64_t>(pair.from) * 0x9e3779b97f4a7c15U) ^
                       (static_cast<std::uint64_t>(pair.to) * 0xbf58476d1ce4e5b9U);
    return ranks[(mixed >> 32) % ranks.size()];
}

std::vector<std::int32_t> distinct(const std::vector<ParallelEdges>& edges, std::int32_t ParallelEdges::* end) {
    std::vector<std::int32_t> out;
    for (const ParallelEdges& edge : edges) out.push_back(edge.*end);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

class CombinedNeighbourExchange {
  public:
    CombinedNeighbourExchange(const topology::Job& job, Rank rank, const NeighbourBlocks& blocks,
                              const NeighbourRoute& route)
        : job_(job),
          me_(rank.value),
          position_(job.position_of(rank)),
          blocks_(blocks),
          route_(route),
          builder_(rank, plan::BlockOrder::rank, blocks.count()) {}

    plan::Program make(const Neighbourhood& known) {
        sort_out(known);
        receive();
        send();
        copy();
        return builder_.finish();
    }

  private:
    /// By peer: the blocks of one message, and which ranks' messages have to be there before.
    struct Message {
        std::vector<std::int64_t> blocks;
        std::set<std::int32_t> needs;
    };
    using Messages = std::map<std::int32_t, Message>;

    std::optional<Pair> pair_of(const ParallelEdges& edge) const {
        const topology::Position from = job_.position_of({edge.source}), to = job_.position_of({edge.target});
        for (const std::size_t level : route_.levels)
            if (job_.group_at(level, from) != job_.group_at(level, to))
                return Pair{level, job_.group_at(level, from), job_.group_at(level, to)};
        return std::nullopt;
    }

    void append(Message& message, const ParallelEdges& edge) const {
        for (std::int32_t i = 0; i < (blocks_.alltoall ? edge.count : 1); ++i)
            message.blocks.push_back(blocks_.of(edge.source, edge.target, i));
    }

    void sort_out(const Neighbourhood& known) {
        std::map<Pair, std::vector<ParallelEdges>> pairs;
        for (const ParallelEdges& edge : known.edges()) {
            if (edge.target == me_) copies_[edge.source] = edge.count;
            const auto pair = pair_of(edge);
            if (!pair)
                add_direct(edge);
            else if (const std::int32_t mine = job_.group_at(pair->level, position_);
                     mine == pair->from || mine == pair->to)
                pairs[*pair].push_back(edge);
        }
        for (const auto& [pair, edges] : pairs) {
            if (static_cast<std::int32_t>(edges.size()) < route_.combine_from) {
                for (const ParallelEdges& edge : edges) add_direct(edge);
                continue;
            }
            const auto sources = distinct(edges, &ParallelEdges::source);
            const auto targets = distinct(edges, &ParallelEdges::target);
            const std::int32_t sender = relay_of(pair, sources), receiver = relay_of(pair, targets);
            for (const ParallelEdges& edge : edges) {
                if (me_ == sender) {
                    append(between_out_[receiver], edge);
                    if (edge.source != me_) {
                        append(gather_in_[edge.source], edge);
                        between_out_[receiver].needs.insert(edge.source);
                    }
                } else if (edge.source == me_) {
                    append(gather_out_[sender], edge);
                }
                if (me_ == receiver) {
                    append(between_in_[sender], edge);
                    if (edge.target != me_) {
                        append(spread_out_[edge.target], edge);
                        spread_out_[edge.target].needs.insert(sender);
                    }
                } else if (edge.target == me_) {
                    append(spread_in_[receiver], edge);
                }
            }
        }
        for (Messages* all : {&direct_in_, &direct_out_, &gather_in_, &gather_out_, &between_in_, &between_out_,
                              &spread_in_, &spread_out_})
            for (auto& [peer, message] : *all) {
                auto& list = message.blocks;
                std::sort(list.begin(), list.end());
                list.erase(std::unique(list.begin(), list.end()), list.end());
            }
    }

    void add_direct(const ParallelEdges& edge) {
        if (edge.source == me_ && edge.target == me_) return;
        if (edge.source == me_) append(direct_out_[edge.target], edge);
        if (edge.target == me_) append(direct_in_[edge.source], edge);
    }

    /// Buffer of a block that has come from another group.
    Buffer of_arrival(std::int64_t block) const {
        const bool mine =
            blocks_.alltoall ? blocks_.target_of(block) == me_ : copies_.contains(blocks_.source_of(block));
        return mine ? Buffer::recv : arrived;
    }
    Buffer of_departure(std::int64_t block) const { return blocks_.source_of(block) == me_ ? Buffer::send : gathered; }

    template <class PlaceOf>
    static std::vector<Region> regions(const std::vector<std::int64_t>& list, const PlaceOf& place_of) {
        std::vector<Region> out;
        for (const std::int64_t block : list) {
            const Buffer buffer = place_of(block);
            if (!out.empty() && out.back().buffer == buffer && out.back().blocks.end() == block)
                ++out.back().blocks.count;
            else
                out.push_back({buffer, {block, 1}});
        }
        return out;
    }

    template <class PlaceOf>
    std::map<std::int32_t, StepId> receive(const Messages& messages, std::int32_t tag, const PlaceOf& place_of) {
        std::map<std::int32_t, StepId> out;
        for (const auto& [peer, message] : messages) {
            const auto list = regions(message.blocks, place_of);
            out[peer] = builder_.recv({peer}, tag, list, {});
            for (const Region& region : list)
                for (std::int64_t b = region.blocks.first; b < region.blocks.end(); ++b) {
                    if (plan::is_scratch(region.buffer)) relayed_[plan::layer_of(region.buffer)].insert(b);
                    // Further copies of an allgather's block are made from the first one.
                    if (region.buffer == Buffer::recv && !blocks_.alltoall) received_[b] = out[peer];
                }
        }
        return out;
    }

    void receive() {
        const auto to_recv = [](std::int64_t) { return Buffer::recv; };
        builder_.stage("gather");
        gathers_ = receive(gather_in_, gather_tag, [](std::int64_t) { return gathered; });
        builder_.stage("between");
        betweens_ = receive(between_in_, between_tag, [this](std::int64_t b) { return of_arrival(b); });
        builder_.stage("direct");
        receive(direct_in_, direct_tag, to_recv);
        builder_.stage("spread");
        receive(spread_in_, spread_tag, to_recv);
        for (std::size_t layer = 0; layer < 2; ++layer)
            for (const std::int64_t block : relayed_[layer])
                builder_.reserve_scratch({block, 1}, plan::scratch_layer(layer));
    }

    /// Beginning with the peer after this rank, so that not all ranks send to the same one first.
    template <class PlaceOf>
    void send(const Messages& messages, std::int32_t tag, const std::map<std::int32_t, StepId>& before,
              const PlaceOf& place_of) {
        const auto one = [&](const auto& entry) {
            std::vector<StepId> waits;
            for (const std::int32_t rank : entry.second.needs) waits.push_back(before.at(rank));
            std::sort(waits.begin(), waits.end());
            builder_.send({entry.first}, tag, regions(entry.second.blocks, place_of), waits);
        };
        const auto middle = messages.upper_bound(me_);
        std::for_each(middle, messages.end(), one);
        std::for_each(messages.begin(), middle, one);
    }

    void send() {
        const auto from_send = [](std::int64_t) { return Buffer::send; };
        builder_.stage("gather");
        send(gather_out_, gather_tag, {}, from_send);
        builder_.stage("between");
        send(between_out_, between_tag, gathers_, [this](std::int64_t b) { return of_departure(b); });
        builder_.stage("direct");
        send(direct_out_, direct_tag, {}, from_send);
        builder_.stage("spread");
        send(spread_out_, spread_tag, betweens_, [this](std::int64_t b) { return of_arrival(b); });
    }

    void copy() {
        builder_.stage("direct");
        if (const auto own = copies_.find(me_); own != copies_.end()) {
            const std::int64_t count = blocks_.alltoall ? own->second : 1;
            const StepId step = builder_.copy(Buffer::send, Buffer::recv, {blocks_.of(me_, me_, 0), count}, {});
            received_[me_] = step;
        }
        if (blocks_.alltoall) return;
        for (const auto& [source, count] : copies_)
            for (std::int32_t i = 1; i < count; ++i)
                builder_.copy(Buffer::recv, plan::caller_buffer(static_cast<std::size_t>(1 + i)), {source, 1},
                              {received_.at(source)});
    }

    const topology::Job& job_;
    std::int32_t me_;
    topology::Position position_;
    const NeighbourBlocks& blocks_;
    const NeighbourRoute& route_;
    plan::ProgramBuilder builder_;
    std::map<std::int32_t, std::int32_t> copies_;  ///< edges to this rank, by source
    Messages direct_in_, direct_out_, gather_in_, gather_out_, between_in_, between_out_, spread_in_, spread_out_;
    std::map<std::int32_t, StepId> gathers_, betweens_;  ///< steps that received them, by peer
    std::set<std::int64_t> relayed_[2];                  ///< by layer of scratch
    std::unordered_map<std::int64_t, StepId> received_;  ///< allgather: where a block of recv came from
};

}  // namespace

std::int64_t combined_up_to(const Spec& spec) {
    const bool combined = spec.name == "combined";
    if (!combined && spec.name != "direct")
        base::fail("algorithm '", spec.text(), "': a neighbourhood collective is direct or combined");
    for (const auto& [key, value] : spec.options)
        if (!combined || key != "up_to")
            base::fail("algorithm '", spec.text(), "': there is no key '", key, "'",
                       combined ? "; up_to=SIZE is the only one" : "");
    return combined ? spec.size("up_to", INT64_MAX) : -1;
}

plan::Program neighbour_program(const topology::Job& job, Rank rank, const Neighbourhood& known,
                                const NeighbourBlocks& blocks, const NeighbourRoute& route) {
    return CombinedNeighbourExchange(job, rank, blocks, route).make(known);
}

}  // namespace palmette::collectives
