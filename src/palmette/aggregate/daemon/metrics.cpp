#include "palmette/aggregate/daemon/metrics.hpp"

#include <string>

namespace palmette::aggregate {
namespace {

base::Json by_reason(const Metrics::ByReason& counters) {
    base::Json object = base::Json::object();
    for (std::size_t reason = 0; reason < reason_count; ++reason) {
        if (counters[reason] > 0)
            object.set(std::string(name_of(static_cast<Reason>(reason))), static_cast<std::int64_t>(counters[reason]));
    }
    return object;
}

}  // namespace

base::Json Metrics::json() const {
    base::Json object = base::Json::object();
    const auto set = [&](const char* name, std::uint64_t value) { object.set(name, static_cast<std::int64_t>(value)); };
    set("connections", connections);
    set("frames_received", frames_received);
    set("frames_sent", frames_sent);
    set("bytes_received", bytes_received);
    set("bytes_sent", bytes_sent);
    set("chunks", chunks);
    set("groups", groups);
    object.set("refused", by_reason(refused));
    object.set("ended", by_reason(ended));
    return object;
}

}  // namespace palmette::aggregate
