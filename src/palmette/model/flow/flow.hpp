// A plan played over the links of a job's tree: flows that share them fairly, ranks that do one thing at a time, other
// traffic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/plan/plan.hpp"

namespace palmette::model {

/// Background traffic: an all-to-all among some of the processes of every group of the outermost level. Each of them
/// sends to one of the others at a time, in an order drawn from `seed`, and goes on without end; it stands beside a
/// rank and takes nothing but links from it.
struct FlowTraffic {
    double share = 0;            ///< of the processes of every group, at least one of each; 0: none
    std::int64_t bytes = 65536;  ///< of a message
    double bytes_per_s = 0;      ///< what each process sends at most; 0: as much as links give
    std::uint64_t seed = 1;
};

/// "alltoall[:half|SHARE][:SIZE][@RATE]", "none" or "". Throws base::Error that says what may stand there.
FlowTraffic parse_traffic(std::string_view text);

struct FlowOptions {
    FlowTraffic traffic;
    std::int64_t eager_bytes = 65536;  ///< longer messages flow only once their receiver has posted the recv
    /// Rates are fair but for such a share, 0: exactly. Below 0: exactly for plans of up to 200,000 messages, else
    /// 0.01, and up to 0.08 where changes keep reaching many others.
    double tolerance = -1;
    std::size_t most_bins =
        256;  ///< intervals of time for which bytes of each link are kept; fewer where links are many
    /// Called now and then with the messages that are through, and all of them.
    std::function<void(std::int64_t, std::int64_t)> progress;
};

/// One direction of the edge of one group.
struct FlowLink {
    std::int32_t level = 0, group = 0;  ///< of the job
    bool outwards = false;
    double capacity_bytes_per_s = 0;  ///< what is left of it beside the measured load of the topology
    std::int64_t bytes = 0;           ///< of the plan
    double carried_bytes = 0;         ///< of the plan and of background traffic, until the plan was through
    double utilisation = 0;           ///< carried bytes over what the link can carry in that time
};

struct FlowResult {
    double seconds = 0;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;  ///< of all messages
    std::int64_t background_messages = 0;
    double busiest_rank_s = 0;  ///< time that one rank is busy with messages, copies and reductions
    std::int32_t busiest_rank = 0;
    std::vector<FlowLink> links;  ///< those with a capacity: by level, group, out and in
    double tolerance = 0;         ///< that was used, at most; 0: none
    double bin_s = 0;             ///< length of an interval
    std::size_t bins = 0;
    std::vector<float> carried;  ///< bytes by link and interval
    std::uint64_t settled = 0;   ///< how often rates changed
    std::uint64_t work = 0;      ///< bundles of flows that got a new rate in this
};

/// Plays the programs of all ranks.
///
/// *Links.* Each direction of each edge with a capacity is shared by the messages over it, max-min fair at any moment
/// (flow_sharing.hpp), a single message at most at the stream rate of the level that it crosses. Messages that pass no
/// link have that rate alone. Those of one rank to another flow one after the other, as over one connection, in the
/// order in which they could.
///
/// *Ranks.* A message keeps its sender busy for the level's overhead, then flows (a long one once its receiver has
/// posted the recv), takes the rest of the latency, and keeps its receiver busy for the overhead: alone it takes
/// latency + bytes / rate. Copies, reductions and pulls keep their rank busy at the rates of its memory. A rank does
/// one thing at a time, what was ready first first.
///
/// *Memory.* A pull takes the latency of its level, then its bytes at the rate of copies.
///
/// *Large plans.* With a tolerance, a change of rates isn't followed where it makes less than that share of a
/// difference: links then idle for up to that share where others would use them, and what a message leaves free others
/// get when the next one starts, or after that share of its own time. Where many flows wait for each other, times
/// differ by more than that already when ties fall otherwise.
///
/// What isn't known takes no time. The same arguments give the same result, bit for bit. Time about messages x (links
/// that share their fate), memory 100 bytes a step. Throws base::Error on a plan that doesn't pair up or that can't
/// end, and on lengths of another number than blocks.
FlowResult flow(const plan::Plan& plan, const topology::Job& job, const std::vector<std::int64_t>& block_bytes,
                const FlowOptions& options = {});

}  // namespace palmette::model
