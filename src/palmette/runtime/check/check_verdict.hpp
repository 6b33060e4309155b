// What the ranks of one collective must pass alike, and who doesn't. No MPI in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace palmette::runtime {

/// Bytes that a rank sends to, or expects from, each rank of the communicator.
struct Amounts {
    enum class Kind : std::uint8_t { unsaid, each, root_only, listed };
    Kind kind = Kind::unsaid;
    std::vector<std::int64_t> bytes;  ///< one number, or with `listed` one for each rank

    static Amounts each(std::int64_t bytes) { return {Kind::each, {bytes}}; }
    static Amounts root_only(std::int64_t bytes) { return {Kind::root_only, {bytes}}; }
    static Amounts listed(std::vector<std::int64_t> bytes) { return {Kind::listed, std::move(bytes)}; }
};

/// What one rank passes, as far as it has to fit what the others pass. What doesn't matter in a function stays as it
/// is.
struct CheckedCall {
    std::string function;          ///< "MPI_Gatherv"
    std::int64_t root = -1;        ///< -1: the function has none
    std::int64_t bytes = -1;       ///< that all ranks must give alike: of broadcasts and reductions
    std::int64_t type_bytes = -1;  ///< of one element of a reduction
    std::string op;                ///< of a reduction: "MPI_SUM", "a commutative operation of the program's"
    Amounts to, from;              ///< what i sends to j must be what j expects from i, where both say it

    /// An argument that is wrong by itself: "a count of -1". Then nothing else is looked at.
    enum class Fault : std::uint8_t { none, function, root, count, type, op, other };
    Fault fault = Fault::none;
    std::string faulty;
};

/// The first thing that is wrong. `text` names rank, argument, value, what the others passed and what to do.
struct Verdict {
    CheckedCall::Fault fault = CheckedCall::Fault::none;
    std::string text;
};

/// Looks at the calls of all ranks, in the order of ranks. Nothing when they fit.
std::optional<Verdict> judge(const std::vector<CheckedCall>& calls);

}  // namespace palmette::runtime
