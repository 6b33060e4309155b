// What a daemon gives, as profiles named after the hardware whose limits they have. Exhaustion is a refusal, counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "palmette/base/json.hpp"

namespace palmette::aggregate {

struct Limits {
    std::string profile = "open";
    std::uint32_t trees = 8;  ///< numbers that groups may name; each has its own groups and its own lock
    std::uint32_t groups_per_tree = 256;
    std::uint32_t members = 1024;             ///< members of a group in this daemon
    std::uint32_t slots_total = 65536;        ///< SHARP's OSTs
    std::uint32_t slots_per_group = 64;       ///< chunks in flight
    std::uint32_t datagram_bytes = 1U << 18;  ///< most bytes of a chunk
    std::uint32_t stream_bytes = 1U << 20;    ///< most bytes of a chunk in a streaming group; 0: none may stream
    bool exclusive_stream = false;            ///< one group at a time streams over a tree
    bool sharp_types = false;
    std::uint32_t user_percent = 100;  ///< share of slots and memory for one user
    std::uint32_t groups_per_user = 256;
    std::uint64_t memory_bytes = 1ULL << 30;
    std::uint32_t connections = 4096;
    std::uint32_t connections_per_address = 1024;

    /// "open", "quantum", "switch-ib2" or "slingshot". Throws base::Error that lists them.
    static Limits of_profile(std::string_view name);
    /// Sets members by the names that they have here. Throws base::Error that names the member.
    void read(const base::Json& object, const std::string& where);
    base::Json json() const;
};

}  // namespace palmette::aggregate
