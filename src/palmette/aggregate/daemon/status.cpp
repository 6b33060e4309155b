// Daemon: what `palmette-aggregator status` shows.
#include <array>
#include <cstdio>

#include "palmette/aggregate/daemon/daemon.hpp"
#include "palmette/base/text.hpp"
#include "palmette/base/version.hpp"

namespace palmette::aggregate {
namespace {

/// Groups and users in one answer: it must fit into the socket at once.
constexpr std::size_t most_listed = 256;

base::Json number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

base::Json of_usage(const Usage& usage) {
    base::Json object = base::Json::object();
    object.set("groups", number(usage.groups)).set("slots", number(usage.slots)).set("bytes", number(usage.bytes));
    return object;
}

base::Json of_group(const Group& group) {
    std::uint64_t first = 0;
    bool at_above = false;
    const std::uint64_t missing = group.missing(first, at_above);
    base::Json object = base::Json::object();
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(group.identity.number));
    object.set("group", text.data()).set("epoch", number(group.identity.epoch)).set("uid", number(group.identity.uid));
    object.set("members", number(group.members.size())).set("joined", number(group.joined)).set("ready", group.ready);
    object.set("tree", number(group.identity.shape.tree));
    object.set("mode", group.identity.shape.mode == Mode::stream ? "stream" : "datagram");
    object.set("slots", number(group.identity.shape.slots));
    object.set("chunk_bytes", number(group.identity.shape.chunk_bytes));
    object.set("chunks", number(group.window.combined())).set("missing", number(missing));
    if (missing > 0) object.set("first_missing", number(first)).set("missing_above", at_above);
    return object;
}

}  // namespace

base::Json Daemon::status() const {
    base::Json object = base::Json::object();
    object.set("format", "palmette-aggregator").set("version", 1).set("name", settings_.name);
    object.set("palmette", version_text).set("protocol", int{protocol_version});
    object.set("address", Address{settings_.listen.host, port_}.text());
    if (settings_.parent) object.set("parent", settings_.parent->text());
    object.set("uptime_s", std::chrono::duration<double>(Clock::now() - started_).count());
    object.set("limits", settings_.limits.json());
    object.set("open_connections", number(open_)).set("streams", number(ledger_.streams()));
    object.set("in_use", of_usage(ledger_.total()));
    base::Json users = base::Json::array();
    std::size_t listed = 0;
    for (const auto& [uid, usage] : ledger_.users()) {
        if (++listed > most_listed) break;
        users.push(of_usage(usage).set("uid", number(uid)));
    }
    object.set("users", std::move(users));
    base::Json groups = base::Json::array();
    listed = 0;
    for (const auto& [known, group] : groups_) {
        if (++listed > most_listed) break;
        groups.push(of_group(*group));
    }
    object.set("groups", std::move(groups)).set("counters", metrics_.json());
    return object;
}

}  // namespace palmette::aggregate
