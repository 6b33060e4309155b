// Job -> JSON -> Job: serialisation for the broadcast from rank 0, and for tools.
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
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

std::int32_t small(const Json& json, std::string_view where) {
    const std::int64_t value = json.integer(where);
    if (value < INT32_MIN || value > INT32_MAX) base::fail(where, ": can't be ", value);
    return static_cast<std::int32_t>(value);
}

/// Whether the runs are a permutation of 0 to size - 1.
void check_values(const Permutation& permutation, std::int32_t size, std::string_view where) {
    std::vector<bool> seen(static_cast<std::size_t>(size));
    const auto& runs = permutation.runs();
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const std::int64_t end = r + 1 < runs.size() ? runs[r + 1].first_index : size;
        std::int64_t value = runs[r].first_value;
        for (std::int64_t i = runs[r].first_index; i < end; ++i, value += runs[r].stride) {
            if (value < 0 || value >= size || seen[static_cast<std::size_t>(value)])
                base::fail(where, ": ", value, " is no rank or is listed twice");
            seen[static_cast<std::size_t>(value)] = true;
        }
    }
}

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
    const auto checked = [&](const Json& value) {
        const double number = value.number(where);
        if (number != 0 && !(name == std::string_view("load") ? number > 0 && number < 1 : base::is_rate(number)))
            base::fail(where, ": can't be ", number);
        return number;
    };
    if (!json->is_array()) return PerGroup(checked(*json));
    std::vector<double> values;
    for (const Json& value : json->items(where)) values.push_back(checked(value));
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

Json aggregator_json(const JobAggregator& one) {
    Json out = Json::object();
    out.set("name", one.name).set("level", one.level).set("group", one.group);
    if (one.kind != Aggregator::Kind::daemon) out.set("kind", one.kind_name());
    if (one.up_bytes_per_s > 0) out.set("up_bytes_per_s", one.up_bytes_per_s);
    if (!one.address.empty()) out.set("address", one.address);
    if (one.most_children > 0) out.set("children", one.most_children);
    if (one.memory_bytes > 0) out.set("bytes", one.memory_bytes);
    return out;
}

JobAggregator read_aggregator(const Json& json, const std::vector<JobLevel>& levels) {
    constexpr const char* where = "job.aggregators";
    JobAggregator one;
    one.name = member(json, "name").string(where);
    one.level = small(member(json, "level"), where);
    one.group = small(member(json, "group"), where);
    const auto count = static_cast<std::int32_t>(levels.size());
    if (one.level < -1 || one.level >= count || one.group < 0 ||
        (one.level >= 0 && one.group >= levels[static_cast<std::size_t>(one.level)].groups.count()))
        base::fail(where, ": ", one.name, " stands at no switch of the job");
    if (const Json* kind = json.find("kind")) one.read_kind(*kind, where);
    if (const Json* up = json.find("up_bytes_per_s")) one.up_bytes_per_s = up->number(where);
    if (const Json* address = json.find("address"))
        one.read_address(*address, base::cat(where, "[", one.name, "].address"));
    if (const Json* children = json.find("children")) one.most_children = small(*children, where);
    if (const Json* bytes = json.find("bytes")) one.memory_bytes = bytes->integer(where);
    if ((one.up_bytes_per_s != 0 && !base::is_rate(one.up_bytes_per_s)) || one.most_children < 0 ||
        one.memory_bytes < 0)
        base::fail(where, ": ", one.name, " has a limit out of range");
    return one;
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
    if (machine_levels_.size() > levels_.size()) {
        Json names = Json::array();
        for (const std::string& name : machine_levels_) names.push(name);
        out.set("machine_levels", std::move(names));
    }
    if (!aggregators_.empty()) {
        Json aggregators = Json::array();
        for (const JobAggregator& one : aggregators_) aggregators.push(aggregator_json(one));
        out.set("aggregators", std::move(aggregators));
    }
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
    if (const Json* names = json.find("machine_levels"))
        for (const Json& name : names->items("job.machine_levels"))
            job.machine_levels_.push_back(name.string("job.machine_levels"));
    else
        for (const JobLevel& level : job.levels_) job.machine_levels_.push_back(level.name);
    if (const Json* aggregators = json.find("aggregators"))
        for (const Json& one : aggregators->items("job.aggregators"))
            job.aggregators_.push_back(read_aggregator(one, job.levels_));
    if (const Json* costs = json.find("inside")) job.inside_ = read_level_costs(*costs, "job.inside");
    if (const Json* costs = json.find("memory")) job.memory_ = read_memory_costs(*costs, "job.memory");
    job.find_slowest_edges();
    if (!job.find_level("node")) base::fail("job.levels: no level is called 'node'");
    return job;
}

void Job::check() const {
    if (size() < 1 || size() > (1 << 24)) base::fail("job.size: can't be ", size());
    check_values(rank_at_, size(), "job.rank_at");
    check_values(position_of_, size(), "job.position_of");
    for (std::int32_t position = 0; position < size(); ++position)
        if (position_of_[rank_at_[position]] != position)
            base::fail("job.position_of: isn't the inverse of rank_at at ", position);
    for (std::size_t l = 0; l < levels_.size(); ++l) {
        const JobLevel& level = levels_[l];
        if (!level.names.empty() && std::ssize(level.names) != level.groups.count())
            base::fail("job.levels.names: ", level.names.size(), " names for ", level.groups.count(), " groups");
        for (std::size_t above = 0; above < l; ++above)
            if (levels_[above].name == level.name) base::fail("job.levels: two are called '", level.name, "'");
        // Groups lie in those of the level above.
        for (std::int32_t g = 0; l > 0 && g < levels_[l - 1].groups.count(); ++g) {
            const std::int32_t first = levels_[l - 1].groups.first(g);
            if (level.groups.first(level.groups.group_of(first)) != first)
                base::fail("job.levels: groups of '", level.name, "' cross those of '", levels_[l - 1].name, "'");
        }
    }
}

}  // namespace palmette::topology
