// Counters of a daemon since its start.
#pragma once

#include <array>
#include <cstdint>

#include "palmette/aggregate/reason.hpp"
#include "palmette/base/json.hpp"

namespace palmette::aggregate {

struct Metrics {
    using ByReason = std::array<std::uint64_t, reason_count>;

    std::uint64_t connections = 0;
    std::uint64_t frames_received = 0;
    std::uint64_t frames_sent = 0;
    std::uint64_t bytes_received = 0;  ///< payload bytes
    std::uint64_t bytes_sent = 0;
    std::uint64_t chunks = 0;  ///< combined or passed on
    std::uint64_t groups = 0;
    ByReason refused{};  ///< connections and groups that weren't taken
    ByReason ended{};    ///< groups, by why they ended

    base::Json json() const;
};

}  // namespace palmette::aggregate
