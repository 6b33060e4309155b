#include "palmette/topology/machine.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "palmette/base/address.hpp"
#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/topology/limits.hpp"

namespace palmette::topology {

using base::cat;
using base::fail;
using base::Json;

void Aggregator::read_address(const Json& json, std::string_view where) {
    address = json.string(where);
    base::Address read;
    try {
        read = base::Address::read(address);
    } catch (const base::Error& error) {
        fail(where, ": ", error.what());
    }
    if (read.host.empty() || read.port == 0) fail(where, ": '", address, "': expected the daemon's host and port");
}

void Aggregator::read_kind(const Json& json, std::string_view where) {
    const std::string& text = json.string(where);
    if (text != "daemon" && text != "sharp") fail(where, ": '", text, "': expected daemon or sharp");
    kind = text == "sharp" ? Kind::sharp : Kind::daemon;
}

void Machine::add_reducing_switches() {
    const auto is_sharp = [](const MachineAggregator& one) { return one.kind == Aggregator::Kind::sharp; };
    if (std::any_of(aggregators_.begin(), aggregators_.end(), is_sharp)) return;
    // Parents stand before their children.
    std::vector<bool> all(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) all[i] = nodes_[i].level == host_level_ || nodes_[i].can_reduce;
    for (std::size_t i = nodes_.size(); i-- > 1;)
        if (!all[i]) all[static_cast<std::size_t>(nodes_[i].parent)] = false;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].level == host_level_ || !all[i]) continue;
        if (nodes_[i].parent >= 0 && all[static_cast<std::size_t>(nodes_[i].parent)]) continue;
        MachineAggregator made;
        made.name = cat("SHARP at ", nodes_[i].name.empty() ? "the top" : nodes_[i].name);
        made.kind = Aggregator::Kind::sharp;
        made.node = static_cast<std::int32_t>(i);
        const auto behind = std::find_if(aggregators_.begin(), aggregators_.end(),
                                         [&](const MachineAggregator& one) { return one.node > made.node; });
        aggregators_.insert(behind, std::move(made));
    }
}

void Machine::finish() {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].level == host_level_) hosts_.push_back(static_cast<std::int32_t>(i));
    if (hosts_.empty()) fail("the machine has no hosts: level 'node' has no entry in the tree");
    for (std::size_t h = 0; h < hosts_.size(); ++h)
        by_name_.emplace_back(host(static_cast<std::int32_t>(h)).name, static_cast<std::int32_t>(h));
    std::sort(by_name_.begin(), by_name_.end());
    for (std::size_t i = 1; i < by_name_.size(); ++i)
        if (by_name_[i].first == by_name_[i - 1].first)
            fail("host '", by_name_[i].first, "' is listed twice in the machine's tree");
    for (const MachineLevel& level : levels_)
        if (!aggregators_.empty() && level.name == "aggregator")
            fail("a machine with aggregators can't have a level called 'aggregator'; give the level another name");
}

std::int32_t Machine::slots_of(std::int32_t index) const {
    return insides_[static_cast<std::size_t>(host(index).inside)].slots;
}

std::int64_t Machine::total_slots() const {
    std::int64_t total = 0;
    for (std::size_t h = 0; h < hosts_.size(); ++h) total += slots_of(static_cast<std::int32_t>(h));
    return total;
}

std::int32_t Machine::find_host(std::string_view name) const {
    const auto look_up = [this](std::string_view wanted) {
        const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), wanted,
                                         [](const auto& entry, std::string_view w) { return entry.first < w; });
        return at != by_name_.end() && at->first == wanted ? at->second : -1;
    };
    const std::int32_t whole = look_up(name);
    return whole >= 0 ? whole : look_up(name.substr(0, name.find('.')));
}

/// Reads the `machine` object of a topology.json.
class MachineReader {
  public:
    Machine read(const Json& document) {
        const Json* object = document.find("machine");
        const Json& machine = object ? *object : document;
        if (!machine.is_object())
            fail("machine: expected an object; is this a topology.json written by 'palmette discover'?");
        if (const Json* version = document.find("version"); object && version && version->integer("version") != 1)
            fail("version: this palmette reads version 1, the file has ", version->integer("version"),
                 "; write it anew with 'palmette discover'");
        read_levels(machine);
        if (const Json* memory = machine.find("memory"))
            machine_.memory_ = read_memory_costs(*memory, "machine.memory");
        if (const Json* costs = machine.find("same_host"))
            machine_.unlevelled_ = read_level_costs(*costs, "machine.same_host");
        if (const Json* insides = machine.find("insides"))
            for (const auto& [name, value] : insides->members("machine.insides")) read_inside(name, value);
        const Json* tree = machine.find("tree");
        if (!tree) fail("machine.tree: missing");
        read_node(*tree, -1, -1, "machine.tree");
        machine_.finish();
        return std::move(machine_);
    }

  private:
    void read_levels(const Json& machine) {
        const Json* levels = machine.find("levels");
        if (!levels) fail("machine.levels: missing");
        for (const Json& item : levels->items("machine.levels")) {
            const Json* name = item.find("name");
            if (!name) fail("machine.levels: an entry has no name");
            MachineLevel level{name->string("machine.levels.name"), {}};
            level.costs = read_level_costs(item, cat("machine.levels[", level.name, "]"));
            machine_.levels_.push_back(std::move(level));
        }
        if (machine_.levels_.size() > most_levels)
            fail("machine.levels: ", machine_.levels_.size(), " levels; leave out all but ", most_levels);
        machine_.host_level_ = level_index("node");
        if (machine_.host_level_ < 0) fail("machine.levels: no level is called 'node', the level of hosts");
    }

    std::int32_t level_index(std::string_view name) const {
        for (std::size_t i = 0; i < machine_.levels_.size(); ++i)
            if (machine_.levels_[i].name == name) return static_cast<std::int32_t>(i);
        return -1;
    }

    /// Paths for errors are made where there is one: of ten thousand hosts they take longer than reading.
    static const std::string& text(const Json& value, const std::string& where, const char* member) {
        return value.kind() == Json::Kind::string ? value.string({}) : value.string(where + member);
    }
    static double number(const Json& value, const std::string& where, const char* member) {
        return value.kind() == Json::Kind::number ? value.number({}) : value.number(where + member);
    }

    std::int32_t level_of(const Json& node, std::int32_t above, const std::string& where) const {
        const Json* name = node.find("level");
        if (!name) fail(where, ".level: missing");
        const std::int32_t level = level_index(text(*name, where, ".level"));
        if (level < 0) fail(where, ".level: '", name->string(where), "' is not listed in machine.levels");
        if (level <= above)
            fail(where, ".level: '", name->string(where), "' must stand below its parent's level in machine.levels");
        return level;
    }

    void read_inside(const std::string& name, const Json& children) {
        Inside inside;
        inside.name = name;
        inside.slots = 0;
        inside.group_of_slot.resize(machine_.levels_.size());
        groups_.assign(machine_.levels_.size(), 0);
        add_children(inside, children, machine_.host_level_, cat("machine.insides.", name));
        if (inside.slots < 1) fail("machine.insides.", name, ": has no slot for a rank");
        for (auto& group : inside.group_of_slot)
            if (!group.empty()) group.resize(static_cast<std::size_t>(inside.slots), group.back());
        machine_.insides_.push_back(std::move(inside));
    }

    void add_children(Inside& inside, const Json& children, std::int32_t above, const std::string& where) {
        for (const Json& child : children.items(where)) {
            const std::int32_t level = level_of(child, above, where);
            const Json* count = child.find("count");
            const std::int64_t times = count ? count->integer(where + ".count") : 1;
            if (times < 1 || times > 1'000'000) fail(where, ".count: expected 1 to 1000000, found ", times);
            for (std::int64_t i = 0; i < times; ++i) {
                const std::int32_t first = inside.slots;
                const Json* below = child.find("children");
                if (below && !below->items(where).empty())
                    add_children(inside, *below, level, where);
                else if (++inside.slots > 1'000'000)
                    fail(where, ": more than 1000000 slots in one host; correct the counts");
                auto& group = inside.group_of_slot[static_cast<std::size_t>(level)];
                // Slots of siblings that lack this level get groups of their own, so that numbers stay ascending.
                while (static_cast<std::int32_t>(group.size()) < first)
                    group.push_back(groups_[static_cast<std::size_t>(level)]++);
                group.resize(static_cast<std::size_t>(inside.slots), groups_[static_cast<std::size_t>(level)]++);
            }
        }
    }

    std::int32_t plain_inside(std::int64_t slots) {
        const std::string name = cat(slots, "slot");
        for (std::size_t i = 0; i < machine_.insides_.size(); ++i)
            if (machine_.insides_[i].name == name) return static_cast<std::int32_t>(i);
        Inside inside;
        inside.name = name;
        inside.slots = static_cast<std::int32_t>(slots);
        inside.group_of_slot.resize(machine_.levels_.size());
        machine_.insides_.push_back(std::move(inside));
        return static_cast<std::int32_t>(machine_.insides_.size()) - 1;
    }

    void read_node(const Json& json, std::int32_t parent, std::int32_t above, const std::string& where) {
        MachineNode node;
        node.parent = parent;
        if (parent >= 0) node.level = level_of(json, above, where);
        if (const Json* name = json.find("name")) node.name = text(*name, where, ".name");
        const bool is_host = node.level == machine_.host_level_;
        if (is_host && read_plain_host(json, node)) {
            machine_.nodes_.push_back(std::move(node));
            return;
        }
        const std::string here = node.name.empty() ? where : cat(where, "[", node.name, "]");
        if (const Json* up = json.find("up_bytes_per_s")) {
            node.up_bytes_per_s = number(*up, here, ".up_bytes_per_s");
            if (node.up_bytes_per_s != 0 && !base::is_rate(node.up_bytes_per_s))
                fail(here, ".up_bytes_per_s: expected 0 for unknown, or 1 to 1e18, found ", node.up_bytes_per_s);
        }
        if (const Json* load = json.find("load")) {
            node.load = load->number(here + ".load");
            if (!(node.load >= 0 && node.load < 1)) fail(here, ".load: expected 0 to below 1, found ", node.load);
        }
        if (const Json* reduce = json.find("can_reduce")) node.can_reduce = reduce->boolean(here + ".can_reduce");
        if (is_host) {
            if (json.find("aggregators")) fail(here, ".aggregators: a host has none; list them at its switch");
            if (node.name.empty()) fail(here, ".name: a host needs a name");
            node.inside = inside_of(json, here);
            machine_.nodes_.push_back(std::move(node));
            return;
        }
        if (node.level > machine_.host_level_)
            fail(here, ": '", machine_.levels_[static_cast<std::size_t>(node.level)].name,
                 "' stands outside of a host; put it into machine.insides");
        const auto index = static_cast<std::int32_t>(machine_.nodes_.size());
        if (const Json* aggregators = json.find("aggregators"))
            for (const Json& aggregator : aggregators->items(here + ".aggregators"))
                read_aggregator(aggregator, index, here + ".aggregators");
        const std::int32_t level = node.level;
        machine_.nodes_.push_back(std::move(node));
        if (const Json* children = json.find("children")) read_children(*children, index, level, here + ".children");
    }

    void read_children(const Json& children, std::int32_t parent, std::int32_t level, const std::string& where) {
        for (const Json& child : children.items(where)) read_node(child, parent, level, where);
    }

    /// A host with a name, a link and a known inside, and nothing else that counts: no path is made for it.
    bool read_plain_host(const Json& json, MachineNode& node) const {
        if (node.name.empty() || json.find("load") || json.find("can_reduce") || json.find("aggregators")) return false;
        const Json* const up = json.find("up_bytes_per_s");
        if (up && (up->kind() != Json::Kind::number || !base::is_rate(up->number({})))) return false;
        const Json* const inside = json.find("inside");
        if (!inside || inside->kind() != Json::Kind::string) return false;
        const std::string& name = inside->string({});
        for (std::size_t i = 0; i < machine_.insides_.size(); ++i) {
            if (machine_.insides_[i].name != name) continue;
            node.inside = static_cast<std::int32_t>(i);
            if (up) node.up_bytes_per_s = up->number({});
            return true;
        }
        return false;
    }

    void read_aggregator(const Json& json, std::int32_t node, const std::string& where) {
        MachineAggregator made;
        made.node = node;
        const Json* name = json.find("name");
        if (!name || name->string(where + ".name").empty()) fail(where, ".name: an aggregator needs a name");
        made.name = name->string(where + ".name");
        const std::string here = cat(where, "[", made.name, "]");
        if (const Json* kind = json.find("kind")) made.read_kind(*kind, here + ".kind");
        for (const char* of_daemons : {"up_bytes_per_s", "address"})
            if (made.kind == Aggregator::Kind::sharp && json.find(of_daemons))
                fail(here, ".", of_daemons, ": switches that reduce have none; leave it out");
        if (const Json* up = json.find("up_bytes_per_s")) {
            made.up_bytes_per_s = up->number(here + ".up_bytes_per_s");
            if (!base::is_rate(made.up_bytes_per_s))
                fail(here, ".up_bytes_per_s: expected 1 to 1e18, found ", made.up_bytes_per_s,
                     "; leave it out where the link is no limit");
        }
        if (const Json* address = json.find("address")) made.read_address(*address, here + ".address");
        if (const Json* limits = json.find("limits")) {
            made.most_children = static_cast<std::int32_t>(limit(*limits, "children", INT32_MAX, here));
            made.memory_bytes = limit(*limits, "bytes", INT64_MAX, here);
        }
        machine_.aggregators_.push_back(std::move(made));
    }

    static std::int64_t limit(const Json& limits, const char* name, std::int64_t most, const std::string& where) {
        const Json* given = limits.find(name);
        if (!given) return 0;
        const std::string at = cat(where, ".limits.", name);
        const std::int64_t value = given->integer(at);
        if (value < 1 || value > most)
            fail(at, ": expected 1 to ", most, ", found ", value, "; leave it out for no limit");
        return value;
    }

    std::int32_t inside_of(const Json& json, const std::string& where) {
        if (const Json* inside = json.find("inside")) {
            const std::string& name = inside->string(where + ".inside");
            for (std::size_t i = 0; i < machine_.insides_.size(); ++i)
                if (machine_.insides_[i].name == name) return static_cast<std::int32_t>(i);
            fail(where, ".inside: '", name, "' is not in machine.insides");
        }
        const Json* slots = json.find("slots");
        const std::int64_t count = slots ? slots->integer(where + ".slots") : 1;
        if (count < 1 || count > 1'000'000) fail(where, ".slots: expected 1 to 1000000, found ", count);
        return plain_inside(count);
    }

    Machine machine_;
    std::vector<std::int32_t> groups_;
};

Machine Machine::from_json(const Json& document) { return MachineReader().read(document); }

namespace {

/// The document without its `fabric`, which lists all cables and is most of the file of a large cluster, as `palmette
/// discover` writes it: members in lines of their own, `machine` behind `fabric`. null stands in its place. Where
/// another file is taken for such a one the result is no JSON; empty where it isn't.
std::string without_fabric(std::string_view text) {
    constexpr std::string_view fabric = "\n  \"fabric\": ", machine = ",\n  \"machine\": ";
    const std::size_t begin = text.find(fabric);
    const std::size_t end = begin == std::string_view::npos ? begin : text.find(machine, begin + fabric.size());
    if (end == std::string_view::npos) return {};
    return cat(text.substr(0, begin + fabric.size()), "null", text.substr(end));
}

/// A large file where it lies; empty of others, which are read whole.
class MappedFile {
  public:
    explicit MappedFile(const std::string& path) {
        constexpr off_t worth_mapping = 1 << 16;
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat status{};
        if (file < 0) return;
        if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= worth_mapping) {
            size_ = static_cast<std::size_t>(status.st_size);
            data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
        }
        close(file);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (data_ != MAP_FAILED) munmap(data_, size_);
    }
    std::string_view text() const {
        return data_ == MAP_FAILED ? std::string_view() : std::string_view(static_cast<const char*>(data_), size_);
    }

  private:
    void* data_ = MAP_FAILED;
    std::size_t size_ = 0;
};

}  // namespace

Machine Machine::from_file(const std::string& path) {
    // Where that can't be used, the whole text has the right line for the error.
    if (const std::string part = without_fabric(MappedFile(path).text()); !part.empty()) {
        try {
            return from_json(Json::parse(part));
        } catch (const base::Error&) {
        }
    }
    const Json document = Json::parse_file(path);
    try {
        return from_json(document);
    } catch (const base::Error& error) {
        fail(path, ": ", error.what());
    }
}

}  // namespace palmette::topology
