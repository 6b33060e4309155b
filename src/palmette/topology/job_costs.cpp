#include "palmette/topology/job_costs.hpp"

#include <algorithm>

#include "palmette/base/text.hpp"

namespace palmette::topology {
namespace {

CostValue cost_value(double known, CostSource source, double fallback) {
    if (known <= 0) return {fallback, Provenance::assumed};
    return {known, source == CostSource::calibrated ? Provenance::calibrated : Provenance::given};
}

bool any_capacity(const Job& job) {
    return std::any_of(job.levels().begin(), job.levels().end(),
                       [](const JobLevel& level) { return level.slowest_edge_bytes_per_s > 0; });
}

MessageCosts message_costs(const LevelCosts& known, double latency_s, double overhead_s, double stream) {
    MessageCosts out;
    out.latency_s = cost_value(known.latency_s, known.source, latency_s);
    // The overheads of both ends are part of the latency, so each is at most half of it.
    out.overhead_s = cost_value(known.overhead_s, known.source, std::min(overhead_s, out.latency_s.value / 2));
    out.stream_bytes_per_s = cost_value(known.stream_bytes_per_s, known.source, stream);
    out.together_bytes_per_s = known.together_bytes_per_s;
    out.receive_overhead_s = std::min(known.receive_overhead_s, 2 * out.overhead_s.value);
    return out;
}

/// Assumed costs of messages between nodes under one switch, by the kind of network that the rate of its links tells.
struct Network {
    double latency_s, overhead_s;
};

Network assumed_network(const Job& job) {
    const double rate = job.nodes().slowest_edge_bytes_per_s;
    if (rate <= 0 || rate > assumed::tcp_up_to_bytes_per_s) return {assumed::node_latency_s, assumed::overhead_s};
    const bool slow = rate <= assumed::slow_tcp_up_to_bytes_per_s;
    return {slow ? assumed::slow_tcp_latency_s : assumed::tcp_latency_s, assumed::tcp_overhead_s};
}

}  // namespace

const char* name_of(Provenance provenance) {
    switch (provenance) {
        case Provenance::calibrated:
            return "calibrated";
        case Provenance::given:
            return "given";
        case Provenance::assumed:
            return "assumed";
    }
    return "assumed";
}

Costs Costs::of(const Job& job) {
    Costs out;
    const std::size_t node = *job.find_level("node");
    // Where any edge capacity is known, edges limit a stream; else one NIC does.
    const double stream = any_capacity(job) ? 0 : assumed::node_stream_bytes_per_s;
    double inner_latency_s = 0;
    const auto put_inside = [&](std::size_t at, const LevelCosts& known) {
        out.levels[at] = message_costs(known, std::max(assumed::inside_latency_s, inner_latency_s),
                                       assumed::inside_overhead_s, assumed::inside_stream_bytes_per_s);
        inner_latency_s = out.levels[at].latency_s.value;
    };
    out.levels.resize(job.levels().size() + 1);
    put_inside(job.levels().size(), job.inside());
    for (std::size_t l = job.levels().size(); l-- > node + 1;) put_inside(l, job.levels()[l].costs);
    inner_latency_s = 0;
    const Network network = assumed_network(job);
    for (std::size_t l = node + 1; l-- > 0;) {
        const double further = assumed::further_latency_s * static_cast<double>(node - l);
        out.levels[l] = message_costs(job.levels()[l].costs, std::max(network.latency_s + further, inner_latency_s),
                                      network.overhead_s, stream);
        inner_latency_s = out.levels[l].latency_s.value;
    }
    out.unknown_node_edge_bytes_per_s = out.levels[node].stream_bytes_per_s.value;
    const MemoryCosts& memory = job.memory();
    out.copy_bytes_per_s = cost_value(memory.copy_bytes_per_s, memory.source, assumed::copy_bytes_per_s);
    out.reduce_bytes_per_s = cost_value(memory.reduce_bytes_per_s, memory.source, assumed::reduce_bytes_per_s);
    return out;
}

double Costs::edge_bytes_per_s(const Job& job, std::size_t level, std::int32_t group) const {
    const double free = job.levels()[level].free_bytes_per_s(group);
    if (free > 0) return free;
    return job.levels()[level].name == "node" ? unknown_node_edge_bytes_per_s : 0;
}

std::vector<CostAssumption> assumptions(const Job& job, const Costs& costs) {
    std::vector<CostAssumption> out;
    for (std::size_t l = 0; l < costs.levels.size(); ++l) {
        const bool inside = l == job.levels().size();
        if (inside && job.levels().back().groups.all_single()) break;
        const std::string name = inside ? "ranks side by side" : job.levels()[l].name;
        const MessageCosts& message = costs.levels[l];
        out.push_back({base::cat("latency of ", name), message.latency_s.value, "s", message.latency_s.provenance});
        out.push_back({base::cat("overhead of ", name), message.overhead_s.value, "s", message.overhead_s.provenance});
        if (message.together_bytes_per_s > 0)
            out.push_back({base::cat("all streams of ", name), message.together_bytes_per_s, "bytes/s",
                           message.latency_s.provenance});
        if (message.stream_bytes_per_s.value > 0)
            out.push_back({base::cat("stream of ", name), message.stream_bytes_per_s.value, "bytes/s",
                           message.stream_bytes_per_s.provenance});
        if (inside) break;
        const double known = job.levels()[l].slowest_edge_bytes_per_s;
        const double edge = known > 0 ? known : costs.edge_bytes_per_s(job, l, 0);
        if (edge > 0)
            out.push_back({base::cat("slowest edge of ", name), edge, "bytes/s",
                           known > 0 ? Provenance::given : Provenance::assumed});
    }
    for (const JobAggregator& one : job.aggregators())
        if (one.up_bytes_per_s > 0)
            out.push_back({base::cat("link of ", one.name), one.up_bytes_per_s, "bytes/s", Provenance::given});
    out.push_back({"copying", costs.copy_bytes_per_s.value, "bytes/s", costs.copy_bytes_per_s.provenance});
    out.push_back({"reducing", costs.reduce_bytes_per_s.value, "bytes/s", costs.reduce_bytes_per_s.provenance});
    return out;
}

}  // namespace palmette::topology
