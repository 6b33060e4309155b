// Flow-level simulation of a plan on a job's tree: max-min fair sharing of links, serial ranks, background traffic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// Background traffic: an all-to-all among some of the processes of every group of the outermost level. Each process
/// has one message to one of the others in flight at a time, in an order drawn from `seed`, endlessly. It is co-located
/// with a rank and competes with it for links only, not for its CPU time.
struct FlowTraffic {
    double share = 0;            ///< share of every group's processes that send, at least one of each; 0: none
    std::int64_t bytes = 65536;  ///< size of a message
    double bytes_per_s = 0;      ///< rate limit of each process; 0: limited by links only
    std::uint64_t seed = 1;
};

/// "alltoall[:half|SHARE][:SIZE][@RATE]", "none" or "". Throws base::Error that gives the accepted syntax.
FlowTraffic parse_traffic(std::string_view text);

struct FlowOptions {
    FlowTraffic traffic;
    std::int64_t eager_bytes = 65536;  ///< rendezvous threshold: longer messages start once the recv is posted
    /// Relative tolerance of max-min fairness; 0: exact. Below 0: exact for plans of up to 200,000 messages, else 0.01,
    /// and up to 0.08 where rate changes keep propagating to many flows.
    double tolerance = -1;
    std::size_t most_bins =
        256;  ///< time intervals for which the bytes of each link are recorded; fewer where there are many links
    /// Called periodically with the number of completed messages and the total.
    std::function<void(std::int64_t, std::int64_t)> progress;
};

/// One direction of the edge of one group.
struct FlowLink {
    std::int32_t level = 0, group = 0;  ///< indices in the job
    bool outwards = false;
    double capacity_bytes_per_s = 0;  ///< available to the plan: without the measured load of the topology
    std::int64_t bytes = 0;           ///< bytes that the plan sends over it
    double carried_bytes = 0;         ///< bytes of the plan and of background traffic until the plan completed
    double utilisation = 0;           ///< carried bytes over capacity times that time
};

struct FlowResult {
    double seconds = 0;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;  ///< bytes of all messages
    std::int64_t background_messages = 0;
    double busiest_rank_s = 0;  ///< longest CPU time of a rank: overheads, copies and reductions
    std::int32_t busiest_rank = 0;
    std::vector<FlowLink> links;  ///< links with a known capacity: by level, group, out and in
    double tolerance = 0;         ///< the largest tolerance that was used; 0: none
    double bin_s = 0;             ///< length of an interval
    std::size_t bins = 0;
    std::vector<float> carried;  ///< bytes by link and interval
    std::uint64_t settled = 0;   ///< number of times rates were recomputed
    std::uint64_t work = 0;      ///< bundles of flows that were assigned a new rate in these
};

/// Discrete-event simulation of the programs of all ranks.
///
/// *Links.* Messages share each direction of each edge of known capacity max-min fairly at any moment
/// (flow_sharing.hpp); a single message is limited to the stream rate of the level that it crosses. Messages that cross
/// no link have that rate alone. Messages between the same two ranks are serialised in FIFO order, as on one
/// connection.
///
/// *Ranks.* A message occupies its sender for the level's overhead, then is transferred (in a rendezvous, once its
/// receiver has posted the recv), takes the rest of the latency, and occupies its receiver for the overhead: without
/// contention it takes latency + bytes / rate. Copies, reductions, pulls and the packing of blocks that aren't
/// contiguous occupy their rank at the rates of its memory. A rank executes one step at a time, in the order in which
/// they became ready.
///
/// *Memory.* A message within a node occupies its sender until its bytes are transferred, at the stream rate of the
/// level at most, and its receiver for as long, along with the sender or later; a rendezvous keeps neither busy before
/// both are there. Messages of one node share the highest LevelCosts::together_bytes_per_s like a link, which isn't
/// among the result's. A pull takes the latency of its level, then its bytes at the rate of copies.
///
/// *Large plans.* With a tolerance, rate changes below that share aren't propagated: up to that share of a link's
/// capacity may stay unused, and the capacity that a completed message frees is reassigned when the next one starts, or
/// after that share of its own duration. Where many flows depend on each other, different tie-breaking alone changes
/// times by more than that.
///
/// Unknown costs count as zero. Deterministic, bit for bit. Time: about messages x (links coupled by rate changes);
/// memory: 100 bytes a step. Throws base::Error on a plan with unmatched messages or a deadlock, and where the number
/// of lengths isn't that of blocks.
FlowResult flow(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                const FlowOptions& options = {});

}  // namespace palmette::model
