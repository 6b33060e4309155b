// MPI's predefined operations and the predefined datatypes that they work on, found by handle.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

#include "palmette/runtime/kernels.hpp"

namespace palmette::runtime {

/// The groups of datatypes by which MPI says what an operation is defined for (MPI 5.0, section 6.9.2).
enum class TypeGroup : std::uint8_t {
    c_integer,
    fortran_integer,
    multi_language,  ///< MPI_AINT, MPI_OFFSET, MPI_COUNT
    floating,
    complex,
    logical,
    byte,
    pair,  ///< for MINLOC and MAXLOC
};

/// Whether MPI defines the operation on that group.
bool is_defined(Operator op, TypeGroup group);

struct PredefinedType {
    TypeGroup group = TypeGroup::byte;
    std::optional<Element> element;  ///< none: the kernels don't know such elements, as of 16-byte reals of Fortran
};

/// Costs a few nanoseconds, and for Fortran's default kinds a PMPI_Type_size: how large they are is the MPI's to say.
/// Nothing for types that no predefined reduction works on.
std::optional<PredefinedType> predefined_type(MPI_Datatype type);

/// The type that stands for all those that MPI_Type_create_f90_* makes with such a size; nothing for other types.
std::optional<PredefinedType> f90_type(MPI_Datatype type);

struct PredefinedOp {
    std::optional<Operator> op;  ///< none: MPI_REPLACE and MPI_NO_OP, which reduce nothing
};
/// Nothing for user-defined operations and MPI_OP_NULL.
std::optional<PredefinedOp> predefined_op(MPI_Op op);

}  // namespace palmette::runtime
