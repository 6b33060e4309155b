// The synthetic form of a machine: its grammar, and the machine that it describes.
#include "palmette/topology/synthetic.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "palmette/base/error.hpp"
#include "palmette/base/units.hpp"
#include "palmette/topology/limits.hpp"
#include "palmette/topology/machine.hpp"

namespace palmette::topology {

using base::cat;
using base::fail;

namespace {
// Limits that no real cluster reaches: larger forms are refused before they allocate gigabytes.
constexpr std::int32_t most_slots = 1'000'000;
constexpr double most_hosts = 1e6;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

constexpr std::string_view aggregator = "aggregator";

/// "aggregator@RATE+aggregator", as it stands alone for the top switch or behind a level's '+'.
std::vector<double> parse_aggregators(std::string_view text, std::string_view form) {
    std::vector<double> out;
    for (std::string_view one : base::split(text, '+')) {
        one = base::trim(one);
        const bool named = one.starts_with(aggregator);
        if (named) one.remove_prefix(aggregator.size());
        if (!named || (!one.empty() && one.front() != '@'))
            fail("machine '", form, "': '", text, "': expected aggregator or aggregator@RATE, several joined by +");
        out.push_back(one.empty() ? 0 : base::parse_rate(base::trim(one.substr(1))));
    }
    return out;
}

SyntheticLevel parse_level(std::string_view text, std::string_view form) {
    SyntheticLevel level;
    std::string_view rest = text;
    const std::size_t plus = text.find("+aggregator");
    if (plus != std::string_view::npos) {
        level.aggregators = parse_aggregators(text.substr(plus + 1), form);
        rest = base::trim(text.substr(0, plus));
    }
    for (;;) {
        std::int32_t count = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
        if (error != std::errc() || count < 1)
            fail("machine '", form, "': '", text, "' must begin with a count of at least 1, like 4node");
        level.counts.push_back(count);
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        if (rest.empty() || rest.front() != '+') break;
        rest.remove_prefix(1);
    }
    rest = base::trim(rest);
    std::size_t length = 0;
    while (length < rest.size() && is_name(rest[length])) ++length;
    if (length == 0 || rest.front() == '-')
        fail("machine '", form, "': '", text, "' names no level, write it like 4node");
    level.name = rest.substr(0, length);
    rest.remove_prefix(length);
    while (!rest.empty()) {
        const char mark = rest.front();
        rest.remove_prefix(1);
        const std::size_t stop = rest.find_first_of("@~");
        const std::string_view value = base::trim(rest.substr(0, stop));
        if (mark == '@')
            level.up_bytes_per_s = base::parse_rate(value);
        else if (mark == '~')
            level.latency_s = base::parse_duration(value);
        else
            fail("machine '", form, "': '", text, "': expected @RATE or ~LATENCY after the level's name");
        rest = stop == std::string_view::npos ? std::string_view() : rest.substr(stop);
    }
    return level;
}
/// Names that can't be meant inside of a host, and those that can't be meant outside. "group" and "block" may be
/// either.
constexpr std::array<std::string_view, 5> of_switches{"dragonfly", "pod", "rack", "leaf", "chassis"};
constexpr std::array<std::string_view, 7> of_hosts{"package", "socket", "numa", "die", "l3", "l2", "core"};

/// Levels stand from the outermost inwards: a leaf inside of a node, or a core outside of one, is a slip.
void check_order(const std::vector<SyntheticLevel>& levels, const std::vector<std::string_view>& words,
                 std::string_view form) {
    const std::size_t first = words.size() - levels.size();
    const auto is_node = [](const SyntheticLevel& level) { return level.name == "node"; };
    const auto node = static_cast<std::size_t>(std::ranges::find_if(levels, is_node) - levels.begin());
    const auto is_in = [&](std::size_t at, const auto& names) {
        return std::ranges::find(names, levels[at].name) != names.end();
    };
    std::string outer;
    std::string inner;
    std::string slip;
    for (std::size_t at = 0; at < levels.size(); ++at) {
        const bool outside = at < node && !is_in(at, of_hosts);
        const bool inside = at > node && !is_in(at, of_switches);
        const std::string word(base::trim(words[first + at]));
        // The node stands first among what is inside of it.
        if (at == node)
            inner = word + ":" + inner;
        else
            (outside || (at > node && !inside) ? outer : inner) += word + ":";
        if (slip.empty() && at != node && !outside && !inside)
            slip = cat(levels[at].name, at > node ? " stands inside of node" : " stands outside of node");
    }
    if (slip.empty()) return;
    std::string meant = outer + inner;
    meant.pop_back();
    fail("machine '", form, "': ", slip, ", and levels go from the outermost inwards; did you mean ", meant, "?");
}
}  // namespace

SyntheticForm parse_synthetic(std::string_view form) {
    if (base::trim(form).empty()) fail("machine '", form, "' is empty: write it like 2leaf:4node:2socket:4core");
    const auto words = base::split(form, ':');
    if (words.size() > most_levels) fail("the synthetic machine has more than ", most_levels, " levels");
    SyntheticForm out;
    std::vector<SyntheticLevel>& levels = out.levels;
    bool has_node = false;
    for (const std::string_view word : words) {
        if (word.data() == words.front().data() && words.size() > 1 && base::trim(word).starts_with(aggregator)) {
            out.aggregators = parse_aggregators(base::trim(word), form);
            continue;
        }
        SyntheticLevel level = parse_level(base::trim(word), form);
        if (!level.aggregators.empty() && (has_node || level.name == "node"))
            fail("machine '", form, "': '", base::trim(word), "': aggregators stand at switches, above the level node");
        for (const SyntheticLevel& before : levels)
            if (before.name == level.name)
                fail("machine '", form, "': level '", level.name, "' stands twice; give each level a name of its own");
        has_node = has_node || level.name == "node";
        levels.push_back(std::move(level));
    }
    if (has_node) check_order(levels, words, form);
    if (!has_node) {
        if (!levels.back().aggregators.empty())
            fail("machine '", form, "': aggregators stand at switches, above the level node");
        levels.back().name = "node";
    }
    double groups = 1;
    for (const SyntheticLevel& level : levels) {
        groups *= *std::max_element(level.counts.begin(), level.counts.end());
        if (level.name == "node" ? groups > most_hosts : groups > most_hosts * most_slots)
            fail("machine '", form, "' has more than a million hosts, or places in a host; write smaller counts");
        if (level.name == "node") groups = most_hosts;
    }
    return out;
}

class SyntheticReader {
  public:
    Machine read(std::string_view form) {
        SyntheticForm parsed = parse_synthetic(form);
        items_ = std::move(parsed.levels);
        std::size_t host = 0;
        while (items_[host].name != "node") ++host;
        for (const SyntheticLevel& item : items_) {
            LevelCosts costs;
            costs.latency_s = item.latency_s.value_or(0);
            costs.source = costs.latency_s > 0 ? CostSource::given : CostSource::unknown;
            machine_.levels_.push_back({item.name, costs});
        }
        machine_.host_level_ = static_cast<std::int32_t>(host);
        made_.assign(items_.size(), 0);
        machine_.nodes_.push_back({"fabric"});
        add_aggregators(parsed.aggregators);
        build(0, 0);
        machine_.finish();
        return std::move(machine_);
    }

  private:
    std::int32_t next_count(std::size_t level) {
        const SyntheticLevel& item = items_[level];
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
            add_aggregators(items_[level].aggregators);
            if (level < host) build(level + 1, static_cast<std::int32_t>(machine_.nodes_.size()) - 1);
        }
    }

    /// Adds aggregators at the newest node.
    void add_aggregators(const std::vector<double>& capacities) {
        for (const double capacity : capacities) {
            MachineAggregator made;
            made.name = cat(aggregator, machine_.aggregators_.size());
            made.up_bytes_per_s = capacity;
            made.node = static_cast<std::int32_t>(machine_.nodes_.size()) - 1;
            machine_.aggregators_.push_back(std::move(made));
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
    std::vector<SyntheticLevel> items_;
    std::vector<std::int32_t> made_;
    std::vector<std::int64_t> parents_seen_;
};

Machine Machine::synthetic(std::string_view form) { return SyntheticReader().read(form); }

}  // namespace palmette::topology
