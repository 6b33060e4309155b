// Every algorithm is a row: name, one sentence, source, keys, preconditions, and the function that makes a rank's
// program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmette/collectives/spec.hpp"
#include "palmette/plan/plan.hpp"

namespace palmette::collectives {

using plan::Collective;
using plan::Program;
using plan::Request;
using topology::Job;
using topology::Rank;

/// Whether ranks of a node exchange through memory that they share.
enum class NodeMemory : std::uint8_t {
    never,
    where_asked,  ///< where a key of the specification has the value `shared`
    always
};

struct Algorithm {
    plan::Collective collective;
    std::string_view name;
    std::string_view sentence;
    std::string_view source;         ///< where the method was published
    std::string_view keys;           ///< what may stand behind the name, for people
    std::string_view preconditions;  ///< for people; `refuse` checks them
    /// True when a rank handles blocks of others, whose sizes it may not know (gatherv, scatterv).
    bool relays;
    /// Why this algorithm can't serve that job and request with that spec, or nothing. Looks only at what all ranks
    /// share. Throws base::Error on a spec with an unknown key or a bad value.
    std::optional<std::string> (*refuse)(const Job& job, const Request& request, const Spec& spec);
    /// Pure: depends on the arguments only; time and memory grow with the rank's own steps and the depth of the tree
    /// (`earliest`: with the nodes).
    Program (*make)(const Job& job, Rank rank, const Request& request, const Spec& spec);
    /// More tags than any message of a plan uses, from what all ranks share; null: the bound that suits trees and
    /// allgather patterns.
    std::int64_t (*tags)(const Job& job, const Request& request, const Spec& spec) = nullptr;
    /// What a plan uses besides messages.
    NodeMemory node_memory = NodeMemory::never;
};

/// Whether a plan by this specification may have steps in a node's memory, which all ranks can see from it.
bool uses_node_memory(const Algorithm& row, const Spec& spec);

/// All rows, in the order in which `palmette plan --list` prints them.
const std::vector<Algorithm>& algorithms();

/// Throws base::Error that lists the names there are.
const Algorithm& algorithm_named(Collective collective, std::string_view name);

/// The program of one rank. Throws base::Error when the spec is wrong or a precondition doesn't hold.
Program make_program(const Job& job, Rank rank, const Request& request, const Spec& spec);

/// The programs of all ranks, for tools. Same errors.
plan::Plan make_plan(const Job& job, const Request& request, const Spec& spec);

inline constexpr std::int64_t most_slices = 64;
/// Slices that key segment=SIZE cuts every block into: 1 without the key, at most most_slices. `cut`: blocks that the
/// vector is cut in, where the request's bytes are a whole vector's.
std::uint16_t slices_of(const Request& request, const Spec& spec, std::int64_t cut = 1);

/// More tags than any message of the algorithm uses: an upper bound from what all ranks share.
std::int64_t tag_limit(const Job& job, const Request& request, const Spec& spec);

/// Throws base::Error unless every key of the spec is one of `known` or, where `levels` is set, the name of a level.
void check_keys(const Spec& spec, const std::vector<std::string_view>& known, const Job* levels = nullptr);

/// Key single=SIZE: exposures of so many bytes and more are read in their owner's memory, where the kernel allows that.
/// The plan is the same; the runtime reads the key. Throws base::Error for a bad size and for a spec that shares no
/// memory.
void check_single_copy(const Spec& spec);

}  // namespace palmette::collectives
