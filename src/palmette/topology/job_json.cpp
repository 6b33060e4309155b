// Job -> JSON -> Job: how rank 0 hands the job to the other ranks, and how tools look at it.
#include "palmette/base/error.hpp"
#include "palmette/topology/job.hpp"

namespace palmette::topology {
namespace {

using base::Json;

Json runs_json(const Permutation& permutation) {
    Json out = Json::array();
    for (const Permutation::Run& run : permutation.runs()) {
        Json triple = Json::array();
        triple.push(run.first_index).push(run.first_value).push(run.stride);
        out.push(std::move(triple));
    }
    return out;
}

const Json& member(const Json& json, std::string_view name) {
    const Json* found = json.find(name);
    if (!found) base::fail("job.", name, ": missing");
    return *found;
}

std::int32_t small(const Json& json, std::string_view where) { return static_cast<std::int32_t>(json.integer(where)); }

Permutation read_runs(const Json& json, std::int32_t size, std::string_view where) {
    std::vector<Permutation::Run> runs;
    for (const Json& item : json.items(where)) {
        const auto& triple = item.items(where);
        if (triple.size() != 3) base::fail(where, ": a run has three numbers");
        runs.push_back({small(triple[0], where), small(triple[1], where), small(triple[2], where)});
    }
    return Permutation::from_runs(size, std::move(runs));
}

/// One number where all groups agree, nothing where that is 0.
void write_per_group(Json& out, const char* name, const PerGroup& figures) {
    if (figures.values().empty()) {
        if (figures[0] > 0) out.set(name, figures[0]);
        return;
    }
    Json values = Json::array();
    for (const double value : figures.values()) values.push(value);
    out.set(name, std::move(values));
}

PerGroup read_per_group(const Json& level, const char* name, std::int32_t groups) {
    const Json* json = level.find(name);
    const std::string where = base::cat("job.levels.", name);
    if (!json) return {};
    if (!json->is_array()) return PerGroup(json->number(where));
    std::vector<double> values;
    for (const Json& value : json->items(where)) values.push_back(value.number(where));
    if (static_cast<std::int32_t>(values.size()) != groups)
        base::fail(where, ": expected one number, or one for each of ", groups, " groups, found ", values.size());
    return PerGroup(std::move(values));
}

Json level_json(const JobLevel& level) {
    Json out = Json::object();
    out.set("name", level.name);
    write_costs(level.costs, out);
    if (level.groups.even_size() > 0) {
        out.set("even_size", level.groups.even_size());
    } else {
        Json firsts = Json::array();
        for (std::int32_t g = 0; g < level.groups.count(); ++g) firsts.push(level.groups.first(g));
        out.set("firsts", std::move(firsts));
    }
    write_per_group(out, "up_bytes_per_s", level.up_bytes_per_s);
    write_per_group(out, "load", level.load);
    if (!level.names.empty()) {
        Json names = Json::array();
        for (const std::string& name : level.names) names.push(name);
        out.set("names", std::move(names));
    }
    return out;
}

JobLevel read_level(const Json& json, std::int32_t size) {
    JobLevel level;
    level.name = member(json, "name").string("job.levels.name");
    level.costs = read_level_costs(json, "job.levels");
    if (const Json* even = json.find("even_size")) {
        level.groups = Partition::even(size, small(*even, "job.levels.even_size"));
    } else {
        std::vector<std::int32_t> firsts;
        for (const Json& first : member(json, "firsts").items("job.levels.firsts"))
            firsts.push_back(small(first, "job.levels.firsts"));
        level.groups = Partition::from_firsts(size, std::move(firsts));
    }
    level.up_bytes_per_s = read_per_group(json, "up_bytes_per_s", level.groups.count());
    level.load = read_per_group(json, "load", level.groups.count());
    if (const Json* names = json.find("names"))
        for (const Json& name : names->items("job.levels.names"))
            level.names.push_back(name.string("job.levels.names"));
    return level;
}

}  // namespace

Json Job::to_json() const {
    Json out = Json::object();
    out.set("size", size());
    out.set("rank_at", runs_json(rank_at_));
    out.set("position_of", runs_json(position_of_));
    Json levels = Json::array();
    for (const JobLevel& level : levels_) levels.push(level_json(level));
    out.set("levels", std::move(levels));
    if (inside_.known()) {
        Json costs = Json::object();
        write_costs(inside_, costs);
        out.set("inside", std::move(costs));
    }
    if (memory_.source != CostSource::unknown) {
        Json costs = Json::object();
        write_costs(memory_, costs);
        out.set("memory", std::move(costs));
    }
    return out;
}

Job Job::from_json(const Json& json) {
    Job job;
    const std::int32_t size = small(member(json, "size"), "job.size");
    job.rank_at_ = read_runs(member(json, "rank_at"), size, "job.rank_at");
    job.position_of_ = read_runs(member(json, "position_of"), size, "job.position_of");
    for (const Json& level : member(json, "levels").items("job.levels")) job.levels_.push_back(read_level(level, size));
    if (const Json* costs = json.find("inside")) job.inside_ = read_level_costs(*costs, "job.inside");
    if (const Json* costs = json.find("memory")) job.memory_ = read_memory_costs(*costs, "job.memory");
    job.find_slowest_edges();
    if (!job.find_level("node")) base::fail("job.levels: no level is called 'node'");
    return job;
}

}  // namespace palmette::topology
