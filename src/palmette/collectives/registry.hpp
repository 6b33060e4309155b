// Registry of algorithms, one row each: name, one sentence, source, keys, preconditions, the generator of a rank's
// program, the formula of its time, what the model tries of it, and what tests force.
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

struct FormulaInput;

/// Whether ranks of a node communicate through shared memory.
enum class NodeMemory : std::uint8_t {
    never,
    where_asked,  ///< where a key of the specification has the value `shared`
    always
};

struct Algorithm {
    plan::Collective collective;
    std::string_view name;
    std::string_view sentence;
    std::string_view source;                  ///< where the method was published
    std::string_view keys;                    ///< options after the name, for people
    std::string_view preconditions = "none";  ///< for people; `refuse` checks them
    /// True when a rank forwards blocks of others, whose sizes it may not know (gatherv, scatterv).
    bool relays = false;
    /// Why this algorithm can't serve that job and request with that spec, or nothing. Depends only on data that is the
    /// same on all ranks. Throws base::Error on a spec with an unknown key or a bad value.
    std::optional<std::string> (*refuse)(const Job& job, const Request& request, const Spec& spec);
    /// Pure: depends on the arguments only; time and memory grow with the rank's own steps and the depth of the tree
    /// (`earliest`: with the nodes).
    Program (*make)(const Job& job, Rank rank, const Request& request, const Spec& spec);
    /// Exclusive upper bound of the tags of a plan, the same on all ranks; null: the default, for trees and allgather
    /// patterns.
    std::int64_t (*tags)(const Job& job, const Request& request, const Spec& spec) = nullptr;
    /// Whether plans use shared memory in addition to messages.
    NodeMemory node_memory = NodeMemory::never;
    /// Plans have a program for each aggregator of the job, at the service positions behind the ranks: `make` is called
    /// for these, too.
    bool in_network = false;
    /// Whether segments are forwarded along a chain or ring, and so arrive one after the other; null: never.
    bool (*pipelined)(const Spec& spec) = nullptr;
    /// Closed formula of the time in seconds, as model::Estimator takes it (formula.hpp); nothing for specifications
    /// that it doesn't cover. Null: the algorithm has none, so that its time is a simulation's.
    std::optional<double> (*formula)(const FormulaInput& input) = nullptr;
    /// Specifications, separated by blanks, that the model considers where no row of a decision table speaks, and the
    /// tuner where it has no grid of keys.
    std::string_view candidates = {};
    /// Specifications that every test of algorithms goes through, in C++ and under MPIs. Segments are for blocks of
    /// some bytes.
    std::string_view samples = {};
    /// Name of the algorithm of the same collective that is nearest to it and that other MPIs have, for `palmette
    /// export`; empty: its own.
    std::string_view kin = {};
};

/// Whether a plan by this specification may have shared-memory steps; the same answer on all ranks.
bool uses_node_memory(const Algorithm& row, const Spec& spec);

/// All rows, in the order in which `palmette plan --list` prints them.
const std::vector<Algorithm>& algorithms();

/// Throws base::Error that lists the known names.
const Algorithm& algorithm_named(Collective collective, std::string_view name);

/// Number of service positions of a plan by this specification, the first of which has the number of ranks as its rank.
std::int32_t services_of(const Job& job, const Request& request, const Spec& spec);

/// The program of one rank, or service position. Throws base::Error when the spec is wrong or a precondition doesn't
/// hold.
Program make_program(const Job& job, Rank rank, const Request& request, const Spec& spec);

/// The programs of all ranks and service positions, for tools. Same errors.
plan::Plan make_plan(const Job& job, const Request& request, const Spec& spec);

inline constexpr std::int64_t most_slices = 64;
/// Slices that key segment=SIZE cuts every block into: 1 without the key, at most most_slices. `cut`: blocks that the
/// vector is cut in, where the request's bytes are a whole vector's.
std::uint16_t slices_of(const Request& request, const Spec& spec, std::int64_t cut = 1);

/// Exclusive upper bound of the algorithm's tags, the same on all ranks.
std::int64_t tag_limit(const Job& job, const Request& request, const Spec& spec);

/// Throws base::Error unless every key of the spec is one of `known` or, where `levels` is set, the name of a level.
void check_keys(const Spec& spec, const std::vector<std::string_view>& known, const Job* levels = nullptr);

/// For `Algorithm::pipelined`: whether blocks are cut into segments; whether leaders of the outermost groups are a
/// chain.
bool in_segments(const Spec& spec);
bool chained_on_top(const Spec& spec);

/// Key single=SIZE: exposures of at least SIZE bytes are read by single copy, where the kernel allows that. The plan
/// is the same; the runtime reads the key. Throws base::Error for a bad size and for a spec that shares no memory.
void check_single_copy(const Spec& spec);

}  // namespace palmette::collectives
