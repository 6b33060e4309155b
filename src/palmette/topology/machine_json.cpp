// Machine -> the `machine` object of a topology.json.
#include "palmette/topology/machine.hpp"

namespace palmette::topology {
namespace {

using base::Json;

/// The subtree of the slots [begin, end) of an inside, from `level` on.
Json inside_children(const Machine& machine, const Inside& inside, std::size_t level, std::int32_t begin,
                     std::int32_t end) {
    while (level < inside.group_of_slot.size() && inside.group_of_slot[level].empty()) ++level;
    Json out = Json::array();
    if (level >= inside.group_of_slot.size()) return out;
    const auto& group = inside.group_of_slot[level];
    std::string last;
    Json pending;
    std::int64_t count = 0;
    const auto flush = [&] {
        if (count > 1) pending.set("count", count);
        if (count > 0) out.push(std::move(pending));
    };
    for (std::int32_t first = begin; first < end;) {
        std::int32_t stop = first;
        while (stop < end && group[static_cast<std::size_t>(stop)] == group[static_cast<std::size_t>(first)]) ++stop;
        Json child = Json::object();
        child.set("level", machine.levels()[level].name);
        Json below = inside_children(machine, inside, level + 1, first, stop);
        if (!below.items("children").empty()) child.set("children", std::move(below));
        std::string text = child.dump();
        if (text == last) {
            ++count;
        } else {
            flush();
            pending = std::move(child);
            last = std::move(text);
            count = 1;
        }
        first = stop;
    }
    flush();
    return out;
}

Json aggregators_json(const Machine& machine, std::int32_t index) {
    Json out = Json::array();
    for (const MachineAggregator& one : machine.aggregators()) {
        if (one.node != index) continue;
        Json item = Json::object();
        item.set("name", one.name);
        if (one.kind != Aggregator::Kind::daemon) item.set("kind", one.kind_name());
        if (one.up_bytes_per_s > 0) item.set("up_bytes_per_s", one.up_bytes_per_s);
        if (!one.address.empty()) item.set("address", one.address);
        Json limits = Json::object();
        if (one.most_children > 0) limits.set("children", std::int64_t{one.most_children});
        if (one.memory_bytes > 0) limits.set("bytes", one.memory_bytes);
        if (!limits.members("limits").empty()) item.set("limits", std::move(limits));
        out.push(std::move(item));
    }
    return out;
}

Json node_json(const Machine& machine, const std::vector<std::vector<std::int32_t>>& children, std::int32_t index) {
    const MachineNode& node = machine.nodes()[static_cast<std::size_t>(index)];
    Json out = Json::object();
    if (!node.name.empty()) out.set("name", node.name);
    if (node.level >= 0) out.set("level", machine.levels()[static_cast<std::size_t>(node.level)].name);
    if (node.up_bytes_per_s > 0) out.set("up_bytes_per_s", node.up_bytes_per_s);
    if (node.load > 0) out.set("load", node.load);
    if (node.can_reduce) out.set("can_reduce", true);
    if (Json aggregators = aggregators_json(machine, index); !aggregators.items("aggregators").empty())
        out.set("aggregators", std::move(aggregators));
    if (node.inside >= 0) {
        const Inside& inside = machine.insides()[static_cast<std::size_t>(node.inside)];
        bool any = false;
        for (const auto& group : inside.group_of_slot) any = any || !group.empty();
        if (any)
            out.set("inside", inside.name);
        else
            out.set("slots", std::int64_t{inside.slots});
    }
    if (!children[static_cast<std::size_t>(index)].empty()) {
        Json list = Json::array();
        for (const std::int32_t child : children[static_cast<std::size_t>(index)])
            list.push(node_json(machine, children, child));
        out.set("children", std::move(list));
    }
    return out;
}

}  // namespace

Json Machine::to_json() const {
    Json out = Json::object();
    Json levels = Json::array();
    for (const MachineLevel& level : levels_) {
        Json item = Json::object();
        item.set("name", level.name);
        write_costs(level.costs, item);
        levels.push(std::move(item));
    }
    out.set("levels", std::move(levels));
    if (memory_.source != CostSource::unknown) {
        Json memory = Json::object();
        write_costs(memory_, memory);
        out.set("memory", std::move(memory));
    }
    if (unlevelled_.known()) {
        Json costs = Json::object();
        write_costs(unlevelled_, costs);
        out.set("same_host", std::move(costs));
    }
    Json insides = Json::object();
    for (const Inside& inside : insides_) {
        Json children = inside_children(*this, inside, 0, 0, inside.slots);
        if (!children.items("insides").empty()) insides.set(inside.name, std::move(children));
    }
    out.set("insides", std::move(insides));
    std::vector<std::vector<std::int32_t>> children(nodes_.size());
    for (std::size_t i = 1; i < nodes_.size(); ++i)
        children[static_cast<std::size_t>(nodes_[i].parent)].push_back(static_cast<std::int32_t>(i));
    out.set("tree", node_json(*this, children, 0));
    return out;
}

}  // namespace palmette::topology
