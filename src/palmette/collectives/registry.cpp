#include "palmette/collectives/registry.hpp"

#include <algorithm>
#include <array>

#include "palmette/base/error.hpp"
#include "palmette/base/never_destroyed.hpp"
#include "palmette/collectives/rows.hpp"
#include "palmette/plan/space.hpp"

namespace palmette::collectives {

using base::fail;

const std::vector<Algorithm>& algorithms() {
    static const base::NeverDestroyed rows(all_rows());
    return *rows;
}

const Algorithm& algorithm_named(Collective collective, std::string_view name) {
    // Cached: called for every candidate of every choice.
    static const base::NeverDestroyed rows_of([] {
        std::array<std::vector<const Algorithm*>, plan::collective_count + 1> out;  // `composed` has none
        for (const Algorithm& row : algorithms()) out[static_cast<std::size_t>(row.collective)].push_back(&row);
        return out;
    }());
    const std::vector<const Algorithm*>& rows = (*rows_of)[static_cast<std::size_t>(collective)];
    for (const Algorithm* row : rows)
        if (row->name == name) return *row;
    std::string known;
    for (const Algorithm* row : rows) known += (known.empty() ? "" : ", ") + std::string(row->name);
    fail("algorithm '", name, "' is unknown for ", plan::name_of(collective), ": there are ", known);
}

std::int32_t services_of(const Job& job, const Request& request, const Spec& spec) {
    const bool any = !job.aggregators().empty() && algorithm_named(request.collective, spec.name).in_network;
    return any ? static_cast<std::int32_t>(job.aggregators().size()) : 0;
}

Program make_program(const Job& job, Rank rank, const Request& request, const Spec& spec) {
    if (rank.value < 0 || rank.value >= job.size() + services_of(job, request, spec))
        fail("rank ", rank, " is outside of a job of ", job.size(), " ranks");
    if (plan::is_rooted(request.collective) && (request.root.value < 0 || request.root.value >= job.size()))
        fail("root ", request.root, " is outside of a job of ", job.size(), " ranks");
    const Algorithm& row = algorithm_named(request.collective, spec.name);
    if (const auto reason = row.refuse(job, request, spec)) fail("algorithm '", spec.text(), "': ", *reason);
    return row.make(job, rank, request, spec);
}

plan::Plan make_plan(const Job& job, const Request& request, const Spec& spec) {
    plan::Plan out{request, spec.text(), {}};
    const std::int32_t programs = job.size() + services_of(job, request, spec);
    out.programs.reserve(static_cast<std::size_t>(programs));
    for (std::int32_t r = 0; r < programs; ++r) out.programs.push_back(make_program(job, Rank{r}, request, spec));
    return out;
}

std::uint16_t slices_of(const Request& request, const Spec& spec, std::int64_t cut) {
    const std::int64_t segment = spec.size("segment", 0);
    const std::int64_t block = request.block_bytes < 0 ? -1 : (request.block_bytes + cut - 1) / cut;
    if (segment == 0 || block <= segment) return 1;
    return static_cast<std::uint16_t>(std::min(most_slices, (block + segment - 1) / segment));
}

std::int64_t tag_limit(const Job& job, const Request& request, const Spec& spec) {
    if (const auto tags = algorithm_named(request.collective, spec.name).tags) return tags(job, request, spec);
    // Trees use one tag per slice, flat exchanges at most one per rank and slice, leaders twice as many per rail.
    const std::int64_t slices = spec.find("segment") ? most_slices : 1;
    return slices * (job.size() + 1) + spec.integer("leaders", 1) * (2 * std::int64_t{job.size()} + 2);
}

void check_keys(const Spec& spec, const std::vector<std::string_view>& known, const Job* levels) {
    // A table may name levels that this job doesn't have; these are the names that discovery uses.
    static constexpr std::string_view level_names[] = {"dragonfly", "group", "pod",     "block",   "rack",   "leaf",
                                                       "chassis",   "node",  "board",   "package", "socket", "numa",
                                                       "die",       "l3",    "cluster", "l2",      "core"};
    for (const auto& [key, value] : spec.options) {
        const std::string_view name = key;
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        if (levels && (levels->find_level(name) || name.starts_with("tier") ||
                       std::find(std::begin(level_names), std::end(level_names), name) != std::end(level_names)))
            continue;
        std::string list;
        for (const std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
        fail("algorithm '", spec.text(), "': key '", name, "' is unknown; there ", known.size() == 1 ? "is " : "are ",
             list.empty() ? "none" : list, levels ? " and the names of levels" : "");
    }
}

namespace {

bool asks_for_node_memory(const Spec& spec) {
    return std::any_of(spec.options.begin(), spec.options.end(),
                       [](const auto& option) { return option.second == "shared"; });
}

}  // namespace

bool uses_node_memory(const Algorithm& row, const Spec& spec) {
    return row.node_memory == NodeMemory::always ||
           (row.node_memory == NodeMemory::where_asked && asks_for_node_memory(spec));
}

bool in_segments(const Spec& spec) { return spec.find("segment").has_value(); }

bool chained_on_top(const Spec& spec) { return spec.find("top") == "chain"; }

void check_single_copy(const Spec& spec) {
    if (!spec.find("single")) return;
    spec.size("single", 0);
    if (!asks_for_node_memory(spec))
        fail("algorithm '", spec.text(), "': single=SIZE needs shared memory; add inside=shared, or leave it out");
}

}  // namespace palmette::collectives
