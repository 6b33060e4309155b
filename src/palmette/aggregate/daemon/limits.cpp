#include "palmette/aggregate/daemon/limits.hpp"

#include <limits>

#include "palmette/aggregate/frame.hpp"
#include "palmette/base/error.hpp"

namespace palmette::aggregate {
namespace {

/// Calls visit(name, member, least, most) for each number, visit(name, member) for each switch.
template <class Of, class Number, class Switch>
void each(Of& limits, Number number, Switch yes_or_no) {
    number("trees", limits.trees, 1, 256);
    number("groups_per_tree", limits.groups_per_tree, 1, 1U << 20);
    number("members", limits.members, 1, 65535);
    number("slots_total", limits.slots_total, 1, 1U << 30);
    number("slots_per_group", limits.slots_per_group, 1, 65535);
    number("datagram_bytes", limits.datagram_bytes, 32, most_chunk_bytes);
    number("stream_bytes", limits.stream_bytes, 0, most_chunk_bytes);
    yes_or_no("exclusive_stream", limits.exclusive_stream);
    yes_or_no("sharp_types", limits.sharp_types);
    number("user_percent", limits.user_percent, 1, 100);
    number("groups_per_user", limits.groups_per_user, 1, 1U << 20);
    number("memory_bytes", limits.memory_bytes, 4096, 1LL << 50);
    number("connections", limits.connections, 1, 1U << 20);
    number("connections_per_address", limits.connections_per_address, 1, 1U << 20);
}

}  // namespace

Limits Limits::of_profile(std::string_view name) {
    Limits limits;
    limits.profile = name;
    if (name == "open") return limits;
    if (name == "quantum") {
        limits.trees = 2;
        limits.slots_total = 768;
        limits.slots_per_group = 8;
        limits.datagram_bytes = 1024;
        limits.stream_bytes = 1U << 16;
        limits.exclusive_stream = limits.sharp_types = true;
        limits.user_percent = 20;
        return limits;
    }
    if (name == "switch-ib2") {
        limits.trees = 1;
        limits.slots_total = 768;
        limits.slots_per_group = 8;
        limits.datagram_bytes = 256;
        limits.stream_bytes = 0;
        limits.sharp_types = true;
        limits.user_percent = 20;
        return limits;
    }
    if (name == "slingshot") {
        limits.slots_total = 64;
        limits.slots_per_group = 8;
        limits.datagram_bytes = 32;
        limits.stream_bytes = 0;
        return limits;
    }
    base::fail("profile '", name, "': there are open, quantum, switch-ib2 and slingshot");
}

void Limits::read(const base::Json& object, const std::string& where) {
    for (const auto& [name, value] : object.members(where)) {
        bool known = false;
        const std::string member = base::cat(where, ".", name);
        each(
            *this,
            [&](std::string_view known_name, auto& number, std::int64_t least, std::int64_t most) {
                if (name != known_name) return;
                known = true;
                const std::int64_t given = value.integer(member);
                if (given < least || given > most)
                    base::fail(member, ": ", given, " is not between ", least, " and ", most);
                number = static_cast<std::remove_reference_t<decltype(number)>>(given);
            },
            [&](std::string_view known_name, bool& flag) {
                if (name != known_name) return;
                known = true;
                flag = value.boolean(member);
            });
        if (!known) base::fail(member, ": no such limit; docs/guide/aggregator.md lists them");
    }
}

base::Json Limits::json() const {
    base::Json object = base::Json::object();
    object.set("profile", profile);
    each(
        *this,
        [&](std::string_view name, auto number, std::int64_t, std::int64_t) {
            object.set(std::string(name), static_cast<std::int64_t>(number));
        },
        [&](std::string_view name, bool flag) { object.set(std::string(name), flag); });
    return object;
}

}  // namespace palmette::aggregate
