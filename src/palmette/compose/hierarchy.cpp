#include "palmette/compose/hierarchy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

#include "palmette/base/error.hpp"

namespace palmette::compose {
namespace {

using base::cat;
using base::fail;

std::int32_t number(std::string_view text, std::string_view whole, std::string_view what) {
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1)
        fail(what, " '", whole, "': '", text, "' is no number of 1 or more");
    return value;
}

constexpr std::array<std::pair<Method::Transport, std::string_view>, 4> transports{{
    {Method::Transport::messages, "messages"},
    {Method::Transport::single_copy, "copy"},
    {Method::Transport::ipc, "ipc"},
    {Method::Transport::nccl, "nccl"},
}};

/// "8+8+7": `ranks` divided among `groups` as evenly as possible.
std::string even_sizes(std::int32_t ranks, std::int32_t groups) {
    std::string out;
    for (std::int32_t g = 0; g < groups; ++g)
        out += cat(g > 0 ? "+" : "", ranks / groups + (g < ranks % groups ? 1 : 0));
    return out;
}

/// The last level is that of ranks, the one before that of nodes.
std::string level_name(std::size_t level, std::size_t levels) {
    const std::size_t inside = levels - 1 - level;
    return inside == 0 ? "rank" : inside == 1 ? "node" : inside == 2 ? "leaf" : cat("group", level + 1);
}

}  // namespace

Method Method::parse(std::string_view text) {
    Method out;
    const auto at = text.find('@');
    const std::string_view way = text.substr(0, at);
    if (at != std::string_view::npos) {
        const std::string_view transport = text.substr(at + 1);
        const auto known = std::find_if(transports.begin(), transports.end(),
                                        [&](const auto& one) { return one.second == transport; });
        if (known == transports.end())
            fail("method '", text, "': transport '", transport, "': expected copy, ipc, nccl or messages");
        out.transport = known->first;
    }
    const auto slash = way.find('/');
    std::string_view shape = way.substr(0, slash);
    if (slash != std::string_view::npos) {
        const std::string_view lanes = way.substr(slash + 1);
        out.lanes = lanes == "all" ? 0 : number(lanes, text, "method");
    }
    if (const auto dot = shape.find('.'); dot != std::string_view::npos) {
        out.radix = number(shape.substr(dot + 1), text, "method");
        shape = shape.substr(0, dot);
        if (shape != "tree" || out.radix < 2)
            fail("method '", text, "': only a tree has a radix, of 2 or more: tree.4");
    }
    if (shape == "direct")
        out.shape = Shape::direct;
    else if (shape == "tree")
        out.shape = Shape::tree;
    else if (shape == "ring")
        out.shape = Shape::ring;
    else
        fail("method '", text,
             "': expected direct, tree, tree.K or ring, with /LANES where not all ranks talk, and @copy for single "
             "copies, @ipc for copies between devices or @nccl");
    return out;
}

std::string Method::text() const {
    std::string out = shape == Shape::direct ? "direct" : shape == Shape::ring ? "ring" : cat("tree.", radix);
    if (lanes > 0) out += cat("/", lanes);
    if (transport == Transport::messages) return out;
    for (const auto& [known, name] : transports)
        if (known == transport) out += cat("@", name);
    return out;
}

Tree Tree::of(const Job& job) {
    Tree out;
    Partition last = Partition::even(job.size(), job.size());
    for (const topology::JobLevel& level : job.levels()) {
        if (level.groups == last) continue;
        out.levels.push_back({level.name, level.groups});
        last = level.groups;
    }
    if (!last.all_single() || out.levels.empty()) out.levels.push_back({"rank", Partition::even(job.size(), 1)});
    return out;
}

Job job_of_hierarchy(std::string_view hierarchy, std::int32_t ranks) {
    std::vector<std::vector<std::int32_t>> levels;
    for (const std::string_view level : base::split(hierarchy, ':')) {
        auto& counts = levels.emplace_back();
        for (const std::string_view count : base::split(base::trim(level), '+'))
            counts.push_back(number(base::trim(count), hierarchy, "hierarchy"));
    }
    // groups[l]: how many groups each group of the level above has.
    std::int64_t parents = 1;
    std::vector<std::pair<std::string, std::int32_t>> regular;
    for (std::size_t l = 0; l < levels.size(); ++l) {
        auto& counts = levels[l];
        if (counts.size() == 1) regular.emplace_back(level_name(l, levels.size()), counts.front());
        if (counts.size() != 1 && static_cast<std::int64_t>(counts.size()) != parents)
            fail("hierarchy '", hierarchy, "': level ", l + 1, " lists ", counts.size(),
                 " groups where the level above has ", parents, "; give one number for all, or ", parents,
                 " joined by +");
        if (counts.size() == 1) {
            if (parents * counts.front() > INT32_MAX) fail("hierarchy '", hierarchy, "' makes too many ranks");
            counts.assign(static_cast<std::size_t>(parents), counts.front());
        }
        parents = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        if (parents > INT32_MAX) fail("hierarchy '", hierarchy, "' makes too many ranks");
    }
    if (parents != ranks) {
        const auto above = static_cast<std::int32_t>(levels.back().size());
        std::string fits = cat(ranks);
        if (levels.size() > 1 && above <= ranks && above <= 16) {
            const auto last = hierarchy.rfind(':');
            fits =
                cat(hierarchy.substr(0, last), ":", ranks % above == 0 ? cat(ranks / above) : even_sizes(ranks, above));
        }
        fail("hierarchy '", hierarchy, "' makes ", parents, " ranks where there are ", ranks, "; ", fits, " fits");
    }
    if (regular.size() == levels.size()) {
        // Regular partitions take O(1) memory.
        if (levels.size() == 1) regular.insert(regular.begin(), {"node", 1});
        return Job::regular(regular);
    }
    std::vector<std::string> names;
    for (std::size_t l = 0; l + 1 < levels.size(); ++l) names.push_back(level_name(l, levels.size()));
    // Each rank's group at each level but the last, innermost first.
    std::vector<std::vector<std::int32_t>> key(static_cast<std::size_t>(ranks),
                                               std::vector<std::int32_t>(names.size(), 0));
    if (levels.size() > 1) {
        std::vector<std::int32_t> ends;
        for (std::size_t l = levels.size() - 1; l > 0; --l) {
            // counts[l][g]: children of group g of the level above; as ranks once the inner level is known.
            std::vector<std::int32_t> sizes;
            std::size_t child = 0;
            for (const std::int32_t count : levels[l]) {
                if (ends.empty()) {
                    sizes.push_back(count);
                    continue;
                }
                sizes.push_back(std::accumulate(ends.begin() + static_cast<std::ptrdiff_t>(child),
                                                ends.begin() + static_cast<std::ptrdiff_t>(child) + count, 0));
                child += static_cast<std::size_t>(count);
            }
            ends = sizes;
            std::size_t rank = 0;
            for (std::size_t g = 0; g < sizes.size(); ++g)
                for (std::int32_t i = 0; i < sizes[g]; ++i) key[rank++][l - 1] = static_cast<std::int32_t>(g);
        }
    }
    return Job::from_groups(names, key);
}

}  // namespace palmette::compose
