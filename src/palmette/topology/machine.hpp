// Machine: the hardware tree of a cluster, i.e. switch levels, hosts, and levels inside of a host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/base/json.hpp"
#include "palmette/topology/costs.hpp"

namespace palmette::topology {

/// Properties common to a whole level of the machine.
struct MachineLevel {
    std::string name;
    LevelCosts costs;
};

/// A switch group or a host. Children lie in topology order.
struct MachineNode {
    std::string name;
    std::int32_t level = -1;  ///< index into Machine::levels, -1 for the root
    std::int32_t parent = -1;
    double up_bytes_per_s = 0;  ///< capacity of the edge to the parent, each direction; 0: unknown
    double load = 0;            ///< share of that capacity which other traffic takes, 0 to below 1
    bool can_reduce = false;
    std::int32_t inside = -1;  ///< hosts only: index into Machine::insides
};

/// What combines contributions on their way through the network: a process, or a unit of a switch.
struct Aggregator {
    enum class Kind : std::uint8_t {
        daemon,
        sharp,  ///< the switches themselves, from this one down to the hosts; their links are no limit
    };
    std::string name;
    Kind kind = Kind::daemon;
    double up_bytes_per_s = 0;       ///< capacity of its link to the switch, each direction; 0: no limit
    std::int32_t most_children = 0;  ///< contributions that it takes to one result; 0: no limit
    std::int64_t memory_bytes = 0;   ///< for contributions that wait for others; 0: no limit
    std::string address;             ///< HOST:PORT where its daemon listens; empty: none is known

    /// Sets `kind` from "kind" in JSON. Throws base::Error that begins with `where`.
    void read_kind(const base::Json& json, std::string_view where);
    const char* kind_name() const { return kind == Kind::sharp ? "sharp" : "daemon"; }
    /// Throws base::Error that begins with `where`.
    void read_address(const base::Json& json, std::string_view where);
};

/// An aggregator at a switch of the machine.
struct MachineAggregator : Aggregator {
    std::int32_t node = 0;  ///< index into Machine::nodes: the switch
};

/// The inner levels of a host (sockets, cores), shared by all identical hosts.
struct Inside {
    std::string name;
    std::int32_t slots = 1;  ///< places for ranks, in topology order
    /// For each machine level (same index): the group of every slot inside this host, ascending; empty where the level
    /// is missing.
    std::vector<std::vector<std::int32_t>> group_of_slot;
};

/// The whole machine, down to hosts; identical hosts share one `Inside`.
class Machine {
  public:
    /// Reads the synthetic form of docs/reference/topology-json.md. Throws base::Error naming the item at fault.
    static Machine synthetic(std::string_view form);
    /// Reads the `machine` member of a topology.json (or the whole document). Throws base::Error naming the path in the
    /// file.
    static Machine from_json(const base::Json& document);
    static Machine from_file(const std::string& path);

    /// The `machine` object of a topology.json.
    base::Json to_json() const;

    const std::vector<MachineLevel>& levels() const { return levels_; }
    const std::vector<MachineNode>& nodes() const { return nodes_; }
    const std::vector<Inside>& insides() const { return insides_; }
    /// Aggregators in topology order of their switches.
    const std::vector<MachineAggregator>& aggregators() const { return aggregators_; }
    /// Adds an aggregator of kind `sharp` at each switch that can reduce, as all below it can, and the one above it
    /// can't. Nothing where the machine lists such aggregators itself.
    void add_reducing_switches();
    /// Indices into nodes(), in topology order.
    const std::vector<std::int32_t>& hosts() const { return hosts_; }
    const MachineNode& host(std::int32_t host) const {
        return nodes_[static_cast<std::size_t>(hosts_[static_cast<std::size_t>(host)])];
    }
    const MemoryCosts& memory() const { return memory_; }
    /// Costs between two ranks that no level tells apart: on a host whose inner levels are unknown.
    const LevelCosts& unlevelled() const { return unlevelled_; }
    std::int32_t slots_of(std::int32_t host) const;
    std::int64_t total_slots() const;
    /// Index of the host of that name (as it is, then up to the first dot), or -1.
    std::int32_t find_host(std::string_view name) const;
    /// Index of the level called `node`.
    std::int32_t host_level() const { return host_level_; }

  private:
    friend class MachineReader;
    friend class SyntheticReader;
    void finish();

    std::vector<MachineLevel> levels_;
    std::vector<MachineNode> nodes_;
    std::vector<Inside> insides_;
    std::vector<MachineAggregator> aggregators_;
    MemoryCosts memory_;
    LevelCosts unlevelled_;
    std::vector<std::int32_t> hosts_;
    std::vector<std::pair<std::string, std::int32_t>> by_name_;  ///< sorted
    std::int32_t host_level_ = -1;
};

}  // namespace palmette::topology
