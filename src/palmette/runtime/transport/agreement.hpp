// Agreement between the ranks of a communicator, before one of them serves a call.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>

namespace palmette::runtime {

/// One rank's contribution, or the common result.
struct Agreement {
    std::uint64_t settings_hash = 0;
    bool settings_agree = true;       ///< result: all hashes are equal
    bool world_known = false;         ///< result: on all ranks
    bool has_communicator = false;    ///< result: on all ranks
    bool host_memory = false;         ///< result: on all ranks; no data of theirs can lie in device memory
    std::uint64_t values_hash = 0;    ///< of all settings, those too that choices don't depend on
    bool values_agree = true;         ///< result: all of these hashes are equal
    bool recorded = false;            ///< result: calls of all ranks are
    bool no_driver = true;            ///< result: no rank has a device's driver
    std::uint64_t verdicts_hash = 0;  ///< of what comparisons on communicators of the same ranks have found
    bool verdicts_agree = true;       ///< result: all of these hashes are equal
    bool mpi_takes = false;           ///< result: on all ranks the MPI takes the memory of all devices
};

/// Collective over `comm`, on which no other messages may be in flight. By messages along a binomial tree, up and down:
/// MPI_Allreduce would make Intel MPI set up shared memory for collectives on each communicator, which it can do for
/// some 500. Nothing on an MPI error.
std::optional<Agreement> agree(MPI_Comm comm, const Agreement& mine);

/// Blocks of one rank's call, or of all ranks'.
struct BlockLengths {
    bool repeat = false;  ///< result: on all ranks
    std::int64_t shortest = 0, longest = 0;
};

/// Collective over `comm`, under the same conditions.
std::optional<BlockLengths> agree_on_blocks(MPI_Comm comm, const BlockLengths& mine);

/// Collective over `comm`, under the same conditions: whether all ranks pass true.
std::optional<bool> all_true(MPI_Comm comm, bool mine);

/// Collective over `comm`, under the same conditions: the same for each of several.
std::optional<std::array<bool, 5>> all_true(MPI_Comm comm, std::array<bool, 5> mine);

/// Collective over `comm`, under the same conditions: the smallest of all ranks' numbers.
std::optional<long long> smallest(MPI_Comm comm, long long mine);

/// Collective over `comm`, under the same conditions: sums over all ranks, modulo 2^64.
using Sums = std::array<std::uint64_t, 4>;
std::optional<Sums> sums(MPI_Comm comm, const Sums& mine);
inline std::optional<std::uint64_t> sum(MPI_Comm comm, std::uint64_t mine) {
    const auto all = sums(comm, {mine});
    return all ? std::optional((*all)[0]) : std::nullopt;
}

/// Collective over `comm`, under the same conditions: whether all ranks pass the same number.
std::optional<bool> all_same(MPI_Comm comm, std::uint64_t mine);

}  // namespace palmette::runtime
