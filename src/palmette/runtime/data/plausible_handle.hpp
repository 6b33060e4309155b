// Whether a value can be an MPI handle at all. A query for anything else makes the MPI invoke an error handler that is
// unrelated to the program's call (that of MPI_COMM_SELF or MPI_COMM_WORLD, which ends the job where nobody has set
// another one).
#pragma once

#include <mpi.h>

#include <cstdint>

namespace palmette::runtime {

#if defined(PALMETTE_ABI_MPICH)
/// MPICH's handles say what they are: two bits for where the object lies (none: nowhere), four for its kind.
inline bool is_plausible_handle(int handle, unsigned kind) {
    const auto bits = static_cast<unsigned>(handle);
    return bits >> 30 != 0 && (bits >> 26 & 0xf) == kind;
}
inline bool is_plausible(MPI_Datatype type) { return is_plausible_handle(type, 3); }
inline bool is_plausible_op(MPI_Op op) { return is_plausible_handle(op, 6); }
#else
/// Addresses; in the standard ABI also numbers below 4096 for predefined ones.
inline bool is_plausible_address(const void* handle) {
#if defined(PALMETTE_ABI_STANDARD)
    return handle != nullptr;
#else
    return reinterpret_cast<std::uintptr_t>(handle) >= 4096;
#endif
}
inline bool is_plausible(MPI_Datatype type) { return type != MPI_DATATYPE_NULL && is_plausible_address(type); }
inline bool is_plausible_op(MPI_Op op) { return op != MPI_OP_NULL && is_plausible_address(op); }
#endif

}  // namespace palmette::runtime
