// Measured or given costs of messages and memory, as read from a topology.json; 0 means unknown everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "palmette/base/json.hpp"

namespace palmette::topology {

/// Provenance of a cost value: unknown, given by a user, or measured by `palmette calibrate`.
enum class CostSource : std::uint8_t { unknown, given, calibrated };
const char* name_of(CostSource source);

/// Costs of messages that leave a group of one level and stay inside of the parent group.
struct LevelCosts {
    double latency_s = 0;           ///< one way, tiny message, end to end: includes the overheads of both ends
    double overhead_s = 0;          ///< CPU time per message of the sender or receiver (o of LogP)
    double stream_bytes_per_s = 0;  ///< bandwidth of one pair's large messages without contention
    CostSource source = CostSource::unknown;  ///< source of the values that aren't 0
    double together_bytes_per_s = 0;  ///< intra-node: aggregate bandwidth of all concurrent messages of one node
    double receive_overhead_s = 0;    ///< CPU time per message of the receiver, where it isn't the mean of both ends

    bool known() const { return latency_s > 0 || overhead_s > 0 || stream_bytes_per_s > 0 || together_bytes_per_s > 0; }
    friend bool operator==(const LevelCosts&, const LevelCosts&) = default;
};

/// Rates of one rank in its own memory.
struct MemoryCosts {
    double copy_bytes_per_s = 0;
    double reduce_bytes_per_s = 0;  ///< bytes of result
    CostSource source = CostSource::unknown;
    friend bool operator==(const MemoryCosts&, const MemoryCosts&) = default;
};

/// Reads the members that are present. Throws base::Error naming `where` and the member for a negative value or a wrong
/// type. Any source other than "calibrated" counts as given.
LevelCosts read_level_costs(const base::Json& object, const std::string& where);
MemoryCosts read_memory_costs(const base::Json& object, const std::string& where);
/// Adds the known members to an object.
void write_costs(const LevelCosts& costs, base::Json& object);
void write_costs(const MemoryCosts& costs, base::Json& object);

}  // namespace palmette::topology
