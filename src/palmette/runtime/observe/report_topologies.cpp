#include "palmette/runtime/observe/report_topologies.hpp"

#include <array>
#include <cstdio>

#include "palmette/base/text.hpp"

namespace palmette::runtime {
namespace {

using base::Json;

constexpr std::array<const char*, static_cast<std::size_t>(Constructor::count)> names{
    "cart_create", "graph_create", "dist_graph_create", "dist_graph_create_adjacent"};

}  // namespace

const char* name_of(Constructor constructor) { return names[static_cast<std::size_t>(constructor)]; }

void TopologyReport::reordered(Constructor constructor, double before, double after) {
    const std::lock_guard lock(mutex_);
    Row& row = rows_[{static_cast<std::uint8_t>(constructor), {}}];
    ++row.calls;
    row.before += before;
    row.after += after;
}

void TopologyReport::kept_order(Constructor constructor, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    ++rows_[{static_cast<std::uint8_t>(constructor), reason}].calls;
}

Json TopologyReport::pack() const {
    const std::lock_guard lock(mutex_);
    Json out = Json::array();
    for (const auto& [key, row] : rows_) {
        Json item = Json::object();
        item.set("f", static_cast<int>(key.first)).set("w", key.second).set("n", row.calls);
        item.set("b", row.before).set("a", row.after);
        out.push(std::move(item));
    }
    return out;
}

void TopologyReport::absorb(const Json& other) {
    const std::lock_guard lock(mutex_);
    for (const Json& item : other.items("topologies")) {
        Row& row = rows_[{static_cast<std::uint8_t>(item.find("f")->integer("f")), item.find("w")->string("w")}];
        row.calls += item.find("n")->integer("n");
        row.before += item.find("b")->number("b");
        row.after += item.find("a")->number("a");
    }
}

Json TopologyReport::to_json() const {
    const std::lock_guard lock(mutex_);
    Json out = Json::array();
    for (const auto& [key, row] : rows_) {
        Json item = Json::object();
        item.set("function", names[key.first]).set("reordered", key.second.empty()).set("calls", row.calls);
        if (!key.second.empty()) item.set("reason", key.second);
        if (key.second.empty() && row.after > 0) item.set("links_before_over_after", row.before / row.after);
        out.push(std::move(item));
    }
    return out;
}

std::string TopologyReport::page() const {
    const std::lock_guard lock(mutex_);
    std::string out;
    std::array<char, 256> line{};
    for (const auto& [key, row] : rows_) {
        const auto calls = static_cast<long long>(row.calls);
        std::snprintf(line.data(), line.size(), "  %-27s %5lld calls  ", names[key.first], calls);
        out += line.data();
        if (!key.second.empty()) {
            out += "in order:\n      " + base::wrapped(key.second, 6);
            continue;
        }
        if (row.after > 0) {
            std::snprintf(line.data(), line.size(), "reordered: busiest link %.3gx less\n", row.before / row.after);
        } else {
            std::snprintf(line.data(), line.size(), "reordered: nothing leaves a host\n");
        }
        out += line.data();
    }
    return out.empty() ? out : "  communicators with a topology:\n" + out;
}

}  // namespace palmette::runtime
