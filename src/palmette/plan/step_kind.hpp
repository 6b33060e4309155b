// The kinds of steps and their properties: one table for verifier, counters, drawings, players and executors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace palmette::plan {

/// send, recv a message between two ranks copy within a rank reduce target = left op right, elementwise expose lets a
/// number of ranks of the same node read a region; complete when all have, or at once where the
///               region is copied first
/// pull          reads what a rank of the same node exposes
/// pull_reduce   target = own op exposed, or exposed op own
enum class StepKind : std::uint8_t { send, recv, copy, reduce, expose, pull, pull_reduce };
inline constexpr std::size_t step_kinds = 7;

struct StepTraits {
    const char* name;
    bool has_peer;    ///< involves one other rank, the step's peer
    bool is_remote;   ///< moves bytes between ranks, by a transport
    bool is_message;  ///< half of a message: the peer has the matching step with the same tag
    bool needs_node;  ///< the ranks must share a node's memory
    bool reads;       ///< reads regions of its own buffers
    bool writes;      ///< writes regions of its own buffers
    bool combines;    ///< applies the reduction's operation
};

inline constexpr std::array<StepTraits, step_kinds> step_traits{{
    //               peer   remote message node   reads  writes combines
    {"send", true, true, true, false, true, false, false},
    {"recv", true, true, true, false, false, true, false},
    {"copy", false, false, false, false, true, true, false},
    {"reduce", false, false, false, false, true, true, true},
    {"expose", false, true, false, true, true, false, false},
    {"pull", true, true, false, true, false, true, false},
    {"pull_reduce", true, true, false, true, true, true, true},
}};

constexpr const StepTraits& traits(StepKind kind) { return step_traits[static_cast<std::size_t>(kind)]; }
constexpr const char* name_of(StepKind kind) { return traits(kind).name; }
constexpr bool has_peer(StepKind kind) { return traits(kind).has_peer; }
constexpr bool is_remote(StepKind kind) { return traits(kind).is_remote; }
constexpr bool is_message(StepKind kind) { return traits(kind).is_message; }
constexpr bool combines(StepKind kind) { return traits(kind).combines; }
/// Reads what a peer of the node exposes.
constexpr bool pulls(StepKind kind) { return traits(kind).needs_node && traits(kind).has_peer; }

}  // namespace palmette::plan
