// What messages and memory cost, as a topology.json tells it; 0 stands for unknown everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "palmette/base/json.hpp"

namespace palmette::topology {

/// Where a figure comes from: nobody knows it, somebody wrote it down, or `palmette calibrate` measured it.
enum class CostSource : std::uint8_t { unknown, given, calibrated };
const char* name_of(CostSource source);

/// A message that leaves a group of one level and stays inside of the parent group.
struct LevelCosts {
    double latency_s = 0;                     ///< one way, tiny, end to end: the overheads of both ends are part of it
    double overhead_s = 0;                    ///< time that a rank is busy with a message, sending or receiving
    double stream_bytes_per_s = 0;            ///< what one pair's large messages reach when nobody else sends
    CostSource source = CostSource::unknown;  ///< of those figures that aren't 0
    double together_bytes_per_s = 0;          ///< inside of nodes: what all messages of one node carry at the same time

    bool known() const { return latency_s > 0 || overhead_s > 0 || stream_bytes_per_s > 0 || together_bytes_per_s > 0; }
    friend bool operator==(const LevelCosts&, const LevelCosts&) = default;
};

/// One rank in its own memory.
struct MemoryCosts {
    double copy_bytes_per_s = 0;
    double reduce_bytes_per_s = 0;  ///< bytes of result
    CostSource source = CostSource::unknown;
    friend bool operator==(const MemoryCosts&, const MemoryCosts&) = default;
};

/// Reads the members that are there. Throws base::Error naming `where` and the member for a negative figure or another
/// type. A source other than "calibrated" is somebody's word.
LevelCosts read_level_costs(const base::Json& object, const std::string& where);
MemoryCosts read_memory_costs(const base::Json& object, const std::string& where);
/// Adds the members that are known to an object.
void write_costs(const LevelCosts& costs, base::Json& object);
void write_costs(const MemoryCosts& costs, base::Json& object);

}  // namespace palmette::topology
