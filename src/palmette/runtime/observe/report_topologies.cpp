#include "palmette/runtime/observe/report_topologies.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "palmette/base/text.hpp"

namespace palmette::runtime {
namespace {

using base::Json;

constexpr std::array<const char*, static_cast<std::size_t>(Constructor::count)> names{
    "cart_create", "graph_create", "dist_graph_create", "dist_graph_create_adjacent"};

struct Purpose {
    const char* setting;
    const char* what;
};
/// By topology::GridPurpose.
constexpr std::array<Purpose, 2> purposes{{{"halo", "halos"}, {"exchange", "exchanges within rows and columns"}}};

}  // namespace

const char* name_of(Constructor constructor) { return names[static_cast<std::size_t>(constructor)]; }

TopologyReport::Row& TopologyReport::row_of(Constructor constructor, const std::string& reason,
                                            const std::optional<GridOrder>& grid) {
    Row& row = rows_[{static_cast<std::uint8_t>(constructor), reason,
                      grid ? static_cast<std::int8_t>(grid->purpose) : std::int8_t{-1}}];
    ++row.calls;
    if (grid) row.most_other_gain = std::max(row.most_other_gain, grid->other_gain);
    return row;
}

void TopologyReport::reordered(Constructor constructor, double before, double after,
                               const std::optional<GridOrder>& grid) {
    const std::lock_guard lock(mutex_);
    Row& row = row_of(constructor, {}, grid);
    row.before += before;
    row.after += after;
}

void TopologyReport::kept_order(Constructor constructor, const std::string& reason,
                                const std::optional<GridOrder>& grid) {
    const std::lock_guard lock(mutex_);
    row_of(constructor, reason, grid);
}

Json TopologyReport::pack() const {
    const std::lock_guard lock(mutex_);
    Json out = Json::array();
    for (const auto& [key, row] : rows_) {
        Json item = Json::object();
        item.set("f", static_cast<int>(key.constructor)).set("w", key.reason).set("n", row.calls);
        item.set("b", row.before).set("a", row.after);
        item.set("p", static_cast<int>(key.purpose)).set("o", row.most_other_gain);
        out.push(std::move(item));
    }
    return out;
}

void TopologyReport::absorb(const Json& other) {
    const std::lock_guard lock(mutex_);
    for (const Json& item : other.items("topologies")) {
        Row& row = rows_[{static_cast<std::uint8_t>(item.find("f")->integer("f")), item.find("w")->string("w"),
                          static_cast<std::int8_t>(item.find("p")->integer("p"))}];
        row.calls += item.find("n")->integer("n");
        row.before += item.find("b")->number("b");
        row.after += item.find("a")->number("a");
        row.most_other_gain = std::max(row.most_other_gain, item.find("o")->number("o"));
    }
}

Json TopologyReport::to_json() const {
    const std::lock_guard lock(mutex_);
    Json out = Json::array();
    for (const auto& [key, row] : rows_) {
        const bool reordered = key.reason.empty();
        Json item = Json::object();
        item.set("function", names[key.constructor]).set("reordered", reordered).set("calls", row.calls);
        if (!reordered) item.set("reason", key.reason);
        if (reordered && row.after > 0) item.set("links_before_over_after", row.before / row.after);
        if (key.purpose >= 0) item.set("ordered_for", purposes[static_cast<std::size_t>(key.purpose)].setting);
        if (row.most_other_gain > 0) item.set("other_purpose_gain", row.most_other_gain);
        out.push(std::move(item));
    }
    return out;
}

std::string TopologyReport::page(bool exchanges) const {
    const std::lock_guard lock(mutex_);
    std::string out;
    std::array<char, 256> line{};
    for (const auto& [key, row] : rows_) {
        const auto calls = static_cast<long long>(row.calls);
        std::snprintf(line.data(), line.size(), "  %-27s %5lld calls  ", names[key.constructor], calls);
        out += line.data();
        if (!key.reason.empty()) {
            out += "in order:\n      " + base::wrapped(key.reason, 6);
        } else if (row.after > 0) {
            std::snprintf(line.data(), line.size(), "reordered: busiest link %.3gx less\n", row.before / row.after);
            out += line.data();
        } else {
            out += "reordered: nothing leaves a host\n";
        }
        constexpr double worth_a_line = 1.02;
        if (key.purpose < 0 || row.most_other_gain < worth_a_line) continue;
        const bool halo = key.purpose == static_cast<std::int8_t>(topology::GridPurpose::halo);
        if (halo && !exchanges) continue;
        const Purpose& other = purposes[halo ? 1 : 0];
        std::snprintf(line.data(), line.size(),
                      "ordered for %s; with PALMETTE_REORDER=%s the busiest link carries %.3gx "
                      "less of %s",
                      purposes[halo ? 0 : 1].what, other.setting, row.most_other_gain, other.what);
        out += "      " + base::wrapped(line.data(), 6);
    }
    return out.empty() ? out : "  communicators with a topology:\n" + out;
}

}  // namespace palmette::runtime
