#include "palmette/trace/sent.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "palmette/trace/roles.hpp"
#include "palmette/trace/waits.hpp"

namespace palmette::trace {

std::vector<PairTraffic> sent(const Trace& trace) {
    Roles roles(trace);
    std::map<std::pair<std::int32_t, std::int32_t>, PairTraffic> pairs;
    for (std::size_t p = 0; p < trace.processes.size(); ++p)
        for (const TracedThread& thread : trace.processes[p].threads)
            thread.for_each([&](const Event& event) {
                const Channel* const channel =
                    roles.channel_of(event, static_cast<std::int32_t>(p), Kind::send, roles.begins_send(event));
                if (!channel) return;
                PairTraffic& pair = pairs[{std::get<1>(*channel), std::get<2>(*channel)}];
                ++pair.messages;
                pair.bytes += static_cast<double>(event.bytes);
            });
    std::vector<PairTraffic> out;
    for (auto& [key, pair] : pairs) {
        pair.from = key.first;
        pair.to = key.second;
        out.push_back(pair);
    }
    return out;
}

LinkUse link_use(const Trace& trace, const std::vector<std::int32_t>& group_of, std::int32_t group) {
    const auto is_inside = [&](std::int32_t process) {
        const std::int32_t rank = trace.processes[static_cast<std::size_t>(process)].rank;
        return rank >= 0 && static_cast<std::size_t>(rank) < group_of.size() &&
               group_of[static_cast<std::size_t>(rank)] == group;
    };
    const auto add = [&](LinkUser& user, std::int32_t from, std::int32_t to, double bytes) {
        const bool leaves = is_inside(from);
        if (leaves == is_inside(to)) return;
        (leaves ? user.bytes_out : user.bytes_in) += bytes;
    };
    // What one call by a plan of a process sends; a plan's recorder is one process.
    std::vector<std::optional<LinkUser>> of_plan(trace.plans.size());
    const auto of_call = [&](std::uint32_t number, std::int32_t process) -> const LinkUser& {
        std::optional<LinkUser>& known = of_plan[number];
        if (known) return *known;
        const TracedPlan& plan = trace.plans[number];
        const auto& members = trace.communicators[plan.communicator].process_of;
        known.emplace();
        for (const TracedSend& send : plan.sends)
            if (const auto peer = static_cast<std::size_t>(send.peer);
                send.peer >= 0 && peer < members.size() && members[peer] >= 0)
                add(*known, process, members[peer], send.bytes);
        return *known;
    };
    Roles roles(trace);
    std::map<std::pair<std::uint32_t, std::uint32_t>, LinkUser> users;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t, std::uint64_t>, std::uint64_t> own;
    for (std::size_t p = 0; p < trace.processes.size(); ++p) {
        const auto process = static_cast<std::int32_t>(p);
        for (const TracedThread& thread : trace.processes[p].threads)
            thread.for_each([&](const Event& event) {
                LinkUser* const user = &users[{event.function, event.path}];
                if (const Channel* const channel =
                        roles.channel_of(event, process, Kind::send, roles.begins_send(event)))
                    return add(*user, std::get<1>(*channel), std::get<2>(*channel), static_cast<double>(event.bytes));
                if (!roles.is_collective_event(event)) return;
                if (event.plan != 0) {
                    const LinkUser& once = of_call(event.plan, process);
                    user->bytes_out += once.bytes_out;
                    user->bytes_in += once.bytes_in;
                    return;
                }
                const std::int32_t root = root_of(roles.kind(event), event);
                if (roles.rank_in(process, event.communicator) != std::max(0, root)) return;
                const std::uint64_t bytes = own.size() < most_sizes ? event.bytes : rounded_down(event.bytes);
                ++own[{event.function, event.path, event.communicator, root, bytes}];
            });
    }
    LinkUse out;
    for (auto& [key, user] : users) {
        if (user.bytes_out + user.bytes_in <= 0) continue;
        std::tie(user.function, user.path) = key;
        out.users.push_back(user);
    }
    for (const auto& [key, calls] : own) {
        const auto& [function, path, communicator, root, bytes] = key;
        out.unserved.push_back({function, path, communicator, root, bytes, calls});
    }
    return out;
}

}  // namespace palmette::trace
