// What the ranks of a communicator must agree on before one of them serves a call.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>

namespace palmette::runtime {

/// What one rank brings along, or what all have in common.
struct Agreement {
    std::uint64_t settings_hash = 0;
    bool settings_agree = true;     ///< result: all hashes are equal
    bool world_known = false;       ///< result: on all ranks
    bool has_communicator = false;  ///< result: on all ranks
    bool host_memory = false;       ///< result: on all ranks; no data of theirs can lie in device memory
    std::uint64_t values_hash = 0;  ///< of all settings, those too that choices don't depend on
    bool values_agree = true;       ///< result: all of these hashes are equal
};

/// Collective over `comm`, on which nobody else may have messages under way. By messages along a binomial tree, up and
/// down: MPI_Allreduce would make Intel MPI set up shared memory for collectives on each communicator, of which it has
/// room for some 500. Nothing on an MPI error.
std::optional<Agreement> agree(MPI_Comm comm, const Agreement& mine);

/// Collective over `comm`, under the same conditions: whether all ranks bring true.
std::optional<bool> all_true(MPI_Comm comm, bool mine);

/// Collective over `comm`, under the same conditions: whether all ranks bring the same number.
std::optional<bool> all_same(MPI_Comm comm, std::uint64_t mine);

}  // namespace palmette::runtime
