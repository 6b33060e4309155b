#include "palmette/trace/sent.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "palmette/trace/roles.hpp"

namespace palmette::trace {

std::vector<Sent> sent(const Trace& trace) {
    Roles roles(trace);
    std::map<std::pair<std::int32_t, std::int32_t>, Sent> pairs;
    for (std::size_t p = 0; p < trace.processes.size(); ++p)
        for (const TracedThread& thread : trace.processes[p].threads)
            thread.for_each([&](const Event& event) {
                const Channel* const channel =
                    roles.channel_of(event, static_cast<std::int32_t>(p), Kind::send, roles.begins_send(event));
                if (!channel) return;
                Sent& pair = pairs[{std::get<1>(*channel), std::get<2>(*channel)}];
                ++pair.messages;
                pair.bytes += static_cast<double>(event.bytes);
            });
    std::vector<Sent> out;
    for (auto& [key, pair] : pairs) {
        pair.from = key.first;
        pair.to = key.second;
        out.push_back(pair);
    }
    return out;
}

}  // namespace palmette::trace
