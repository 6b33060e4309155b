#include "palmette/topology/costs.hpp"

#include <string_view>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"

namespace palmette::topology {
namespace {

using base::Json;

double figure(const Json& object, const char* name, const std::string& where) {
    const Json* value = object.find(name);
    if (!value || value->kind() == Json::Kind::null) return 0;
    const std::string at = where + "." + name;
    const double number = value->number(at);
    const bool is_rate = std::string_view(name).ends_with("bytes_per_s");
    if (is_rate ? number != 0 && !base::is_rate(number) : !base::is_duration(number))
        base::fail(at, ": expected 0 for unknown, or ", is_rate ? "1 to 1e18 bytes" : "up to 1e9 seconds", ", found ",
                   number);
    return number;
}

CostSource source_of(const Json& object, const std::string& where) {
    const Json* source = object.find("source");
    if (!source || source->kind() == Json::Kind::null) return CostSource::given;
    return source->string(where + ".source") == "calibrated" ? CostSource::calibrated : CostSource::given;
}

void put(Json& object, const char* name, double value) {
    if (value > 0) object.set(name, value);
}

}  // namespace

const char* name_of(CostSource source) {
    switch (source) {
        case CostSource::unknown:
            return "unknown";
        case CostSource::given:
            return "given";
        case CostSource::calibrated:
            return "calibrated";
    }
    return "unknown";
}

LevelCosts read_level_costs(const Json& object, const std::string& where) {
    LevelCosts costs;
    costs.latency_s = figure(object, "latency_s", where);
    costs.overhead_s = figure(object, "overhead_s", where);
    costs.stream_bytes_per_s = figure(object, "stream_bytes_per_s", where);
    costs.together_bytes_per_s = figure(object, "together_bytes_per_s", where);
    costs.receive_overhead_s = figure(object, "receive_overhead_s", where);
    if (costs.receive_overhead_s > 2 * costs.overhead_s)
        base::fail(where, ".receive_overhead_s: expected at most twice overhead_s, the mean of both ends, found ",
                   costs.receive_overhead_s);
    if (costs.known()) costs.source = source_of(object, where);
    return costs;
}

MemoryCosts read_memory_costs(const Json& object, const std::string& where) {
    MemoryCosts costs;
    costs.copy_bytes_per_s = figure(object, "copy_bytes_per_s", where);
    costs.reduce_bytes_per_s = figure(object, "reduce_bytes_per_s", where);
    if (costs.copy_bytes_per_s > 0 || costs.reduce_bytes_per_s > 0) costs.source = source_of(object, where);
    return costs;
}

void write_costs(const LevelCosts& costs, Json& object) {
    put(object, "latency_s", costs.latency_s);
    put(object, "overhead_s", costs.overhead_s);
    put(object, "stream_bytes_per_s", costs.stream_bytes_per_s);
    put(object, "together_bytes_per_s", costs.together_bytes_per_s);
    put(object, "receive_overhead_s", costs.receive_overhead_s);
    if (costs.known()) object.set("source", name_of(costs.source));
}

void write_costs(const MemoryCosts& costs, Json& object) {
    put(object, "copy_bytes_per_s", costs.copy_bytes_per_s);
    put(object, "reduce_bytes_per_s", costs.reduce_bytes_per_s);
    if (costs.source != CostSource::unknown) object.set("source", name_of(costs.source));
}

}  // namespace palmette::topology
