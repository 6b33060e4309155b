// Why a group of the aggregation service couldn't be made or has ended.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace palmette::aggregate {

enum class Reason : std::uint8_t {
    none,
    connect,         ///< no connection to the daemon
    closed,          ///< the daemon's connection ended
    silent,          ///< no answer to a PING
    stalled,         ///< the daemon lacks nobody's data and yet sends no result
    damaged,         ///< a frame with a wrong checksum or impossible fields
    protocol,        ///< a sound frame that has no place here
    version,         ///< another version of the protocol
    machine,         ///< other byte order, types or kernels: results would differ
    authentication,  ///< wrong secret, or a token that is forged or has expired
    old_epoch,       ///< the frame names an epoch of a group that was made anew since
    unknown_group,
    member_taken,
    quota,        ///< more than the user may have
    no_resource,  ///< more than the daemon has
    stream_lock,  ///< another group streams over this tree
    unsupported,  ///< the profile or MPI has no such operation on such elements
    mismatch,     ///< members asked for different operations
    member_lost,  ///< the connection of another member ended
    parent_lost,  ///< the daemon above failed
    late_join,    ///< members missing for too long
    shutdown,     ///< the daemon ends
    left,         ///< another member left the group
    // Of switches (aggregate/sharp), one for each code of libsharp_coll that says what to do about it.
    no_library,     ///< libsharp_coll isn't where it is looked for
    other_library,  ///< libsharp_coll has another binary interface
    wrong_sum,      ///< the first sum through the switches is wrong
    library,        ///< an error of its own without a reason here
    group_alloc,    ///< no group in the switches
    tree_connect,   ///< no connection to a tree of switches
    group_join,     ///< the group can't be joined
    session,        ///< the aggregation manager isn't reached
    device,         ///< no adapter that it can use
    job_create,     ///< the aggregation manager makes no job
    no_tree,        ///< the switches have no tree for these hosts
    out_of_band,    ///< leaders don't reach each other over the MPI
    lock_denied,    ///< this job may not stream
    registration,   ///< memory can't be registered with the adapter
};
inline constexpr std::size_t reason_count = static_cast<std::size_t>(Reason::registration) + 1;

/// The reason's name in metrics and JSON.
constexpr std::string_view name_of(Reason reason) {
    constexpr std::array<std::string_view, reason_count> names{
        "none",          "connect",     "closed",      "silent",         "stalled",      "damaged",
        "protocol",      "version",     "machine",     "authentication", "old_epoch",    "unknown_group",
        "member_taken",  "quota",       "no_resource", "stream_lock",    "unsupported",  "mismatch",
        "member_lost",   "parent_lost", "late_join",   "shutdown",       "left",         "no_library",
        "other_library", "wrong_sum",   "library",     "group_alloc",    "tree_connect", "group_join",
        "session",       "device",      "job_create",  "no_tree",        "out_of_band",  "lock_denied",
        "registration"};
    return static_cast<std::size_t>(reason) < reason_count ? names[static_cast<std::size_t>(reason)] : "unknown";
}

/// One line about a failure, of bounded length: no memory is allocated where data flows.
struct Detail {
    std::array<char, 192> text{};

    __attribute__((format(printf, 2, 3))) void set(const char* format, ...) noexcept;
    std::string_view view() const { return text.data(); }
};

}  // namespace palmette::aggregate
