// Compares the arguments of all ranks of one collective and names the ranks that mismatch. Independent of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace palmette::runtime {

/// Bytes that a rank sends to, or expects from, each rank of the communicator.
struct Amounts {
    enum class Kind : std::uint8_t { unspecified, each, root_only, listed };
    Kind kind = Kind::unspecified;
    std::vector<std::int64_t> bytes;  ///< one number, or with `listed` one for each rank

    static Amounts each(std::int64_t bytes) { return {Kind::each, {bytes}}; }
    static Amounts root_only(std::int64_t bytes) { return {Kind::root_only, {bytes}}; }
    static Amounts listed(std::vector<std::int64_t> bytes) { return {Kind::listed, std::move(bytes)}; }
};

/// One rank's arguments, as far as they must match the other ranks'. Fields that a function doesn't use keep their
/// defaults.
struct CheckedCall {
    std::string function;          ///< "MPI_Gatherv"
    std::int64_t root = -1;        ///< -1: the function has none
    std::int64_t bytes = -1;       ///< equal on all ranks: of broadcasts and reductions
    std::int64_t type_bytes = -1;  ///< of one element of a reduction
    std::string op;                ///< of a reduction: "MPI_SUM", "(user-defined, commutative)"
    std::string elements;          ///< "integers", "floating-point numbers"; empty: not known, or nothing to compare
    Amounts to, from;              ///< what i sends to j must be what j expects from i, where both specify it

    /// An argument that is invalid by itself: "a count of -1". Then nothing else is checked.
    enum class Fault : std::uint8_t { none, function, root, count, type, op, other };
    Fault fault = Fault::none;
    std::string faulty;
    std::string place;  ///< where the program makes it, as `CallPlace` packs it; empty: not known
};

/// The first mismatch or invalid argument. `text` names rank, argument, value, what the others passed and what to do.
struct Verdict {
    CheckedCall::Fault fault = CheckedCall::Fault::none;
    std::string text;
    std::vector<std::size_t> ranks;  ///< whose places tell where: those that are wrong first, then one of the others
};

/// Compares the calls of all ranks, in the order of ranks. Nothing when they match.
std::optional<Verdict> judge(const std::vector<CheckedCall>& calls);

/// "rank 3", "ranks 1, 2 and 5", "ranks 1, 2, 3 and 40 more".
std::string ranks_text(const std::vector<std::size_t>& ranks);

}  // namespace palmette::runtime
