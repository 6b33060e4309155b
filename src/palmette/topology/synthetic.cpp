// The synthetic form of a machine: "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core". Grammar in
// docs/reference/topology-json.md.
#include <cctype>
#include <charconv>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/topology/machine.hpp"

namespace palmette::topology {

using base::cat;
using base::fail;

namespace {
// What is larger exists nowhere, and is told before it takes gigabytes.
constexpr std::size_t most_levels = 64;
constexpr std::int32_t most_slots = 1'000'000;
constexpr std::int64_t most_places = std::int64_t{1} << 24;
}  // namespace

class SyntheticReader {
  public:
    Machine read(std::string_view spec) {
        const auto words = base::split(spec, ':');
        if (words.size() > most_levels) fail("the synthetic machine has more than ", most_levels, " levels");
        for (const std::string_view item : words) items_.push_back(read_item(base::trim(item), spec));
        if (items_.empty()) fail("machine '", spec, "' is empty: write it like 2leaf:4node:2socket:4core");
        std::size_t host = items_.size();
        for (std::size_t i = 0; i < items_.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j)
                if (items_[i].name == items_[j].name)
                    fail("machine '", spec, "': level '", items_[i].name, "' stands twice");
            if (items_[i].name == "node") host = i;
        }
        if (host == items_.size()) items_[--host].name = "node";
        for (const Item& item : items_) {
            const CostSource source = item.latency_s > 0 ? CostSource::given : CostSource::unknown;
            LevelCosts costs;
            costs.latency_s = item.latency_s;
            costs.source = source;
            machine_.levels_.push_back({item.name, costs});
        }
        machine_.host_level_ = static_cast<std::int32_t>(host);
        made_.assign(items_.size(), 0);
        machine_.nodes_.push_back({"fabric"});
        build(0, 0);
        machine_.finish();
        return std::move(machine_);
    }

  private:
    struct Item {
        std::vector<std::int32_t> counts;
        std::string name;
        double up_bytes_per_s = 0;
        double latency_s = 0;
    };

    static Item read_item(std::string_view text, std::string_view spec) {
        Item item;
        std::string_view rest = text;
        for (;;) {
            std::int32_t count = 0;
            const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
            if (error != std::errc() || count < 1)
                fail("machine '", spec, "': '", text, "' must begin with a count of at least 1, like 4node");
            item.counts.push_back(count);
            rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
            if (rest.empty() || rest.front() != '+') break;
            rest.remove_prefix(1);
        }
        std::size_t letters = 0;
        while (letters < rest.size() &&
               (std::isalnum(static_cast<unsigned char>(rest[letters])) || rest[letters] == '_'))
            ++letters;
        if (letters == 0) fail("machine '", spec, "': '", text, "' names no level, write it like 4node");
        item.name = rest.substr(0, letters);
        rest.remove_prefix(letters);
        while (!rest.empty()) {
            const char mark = rest.front();
            rest.remove_prefix(1);
            const std::size_t stop = rest.find_first_of("@~");
            const std::string_view value = rest.substr(0, stop);
            if (mark == '@')
                item.up_bytes_per_s = base::parse_rate(value);
            else if (mark == '~')
                item.latency_s = base::parse_duration(value);
            else
                fail("machine '", spec, "': '", text, "': expected @RATE or ~LATENCY after the level's name");
            rest = stop == std::string_view::npos ? std::string_view() : rest.substr(stop);
        }
        return item;
    }

    std::int32_t next_count(std::size_t level) {
        const Item& item = items_[level];
        return item.counts[static_cast<std::size_t>(parents_seen_[level]++) % item.counts.size()];
    }

    void build(std::size_t level, std::int32_t parent) {
        const auto host = static_cast<std::size_t>(machine_.host_level_);
        if (parents_seen_.empty()) parents_seen_.assign(items_.size(), 0);
        const std::int32_t count = next_count(level);
        for (std::int32_t i = 0; i < count; ++i) {
            if (machine_.nodes_.size() > 1'000'000)
                fail("the synthetic machine has more than a million hosts and switches; write smaller counts");
            MachineNode node;
            node.name = cat(level == host ? "h" : items_[level].name, made_[level]++);
            node.level = static_cast<std::int32_t>(level);
            node.parent = parent;
            node.up_bytes_per_s = items_[level].up_bytes_per_s;
            if (level == host) node.inside = inside();
            machine_.nodes_.push_back(std::move(node));
            if (level < host) build(level + 1, static_cast<std::int32_t>(machine_.nodes_.size()) - 1);
        }
    }

    /// The inside of the next host; equal ones are shared.
    std::int32_t inside() {
        Inside made;
        made.slots = 0;
        made.group_of_slot.resize(items_.size());
        std::vector<std::int32_t> groups(items_.size(), 0);
        const auto first = static_cast<std::size_t>(machine_.host_level_) + 1;
        if (first < items_.size())
            fill(made, groups, first);
        else
            made.slots = 1;
        for (std::size_t i = 0; i < machine_.insides_.size(); ++i)
            if (machine_.insides_[i].group_of_slot == made.group_of_slot && machine_.insides_[i].slots == made.slots)
                return static_cast<std::int32_t>(i);
        made.name = cat("inside", machine_.insides_.size());
        machine_.insides_.push_back(std::move(made));
        return static_cast<std::int32_t>(machine_.insides_.size()) - 1;
    }

    void add_slot(Inside& made) {
        if (++made.slots > most_slots || ++places_ > most_places)
            fail("the synthetic machine has more than ", most_slots, " places in a host or more than ", most_places,
                 " in all; write smaller counts");
    }

    void fill(Inside& made, std::vector<std::int32_t>& groups, std::size_t level) {
        const std::int32_t count = next_count(level);
        for (std::int32_t i = 0; i < count; ++i) {
            if (level + 1 < items_.size())
                fill(made, groups, level + 1);
            else
                add_slot(made);
            made.group_of_slot[level].resize(static_cast<std::size_t>(made.slots), groups[level]++);
        }
    }

    Machine machine_;
    std::int64_t places_ = 0;
    std::vector<Item> items_;
    std::vector<std::int32_t> made_;
    std::vector<std::int64_t> parents_seen_;
};

Machine Machine::synthetic(std::string_view spec) { return SyntheticReader().read(spec); }

}  // namespace palmette::topology
