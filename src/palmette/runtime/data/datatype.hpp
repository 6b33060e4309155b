// Size, extent and contiguity of the caller's datatypes, and packing.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

namespace palmette::runtime {

/// Geometry of `count` elements of a datatype.
struct TypeShape {
    std::int64_t size = 0;    ///< bytes of data in one element
    std::int64_t extent = 0;  ///< distance from one element to the next
    bool dense = false;       ///< the elements lie one after the other without holes, in the order of the type map
};

/// The size alone, which is all that a choice needs. False when the MPI can't tell (no datatype at all, or sizes past
/// int where the MPI can't pack so much): the MPI must check the call. Values that can't be a handle raise no error
/// here.
bool size_of(MPI_Datatype type, TypeShape& shape);

/// Extent and contiguity. Returns an MPI code.
int complete(MPI_Datatype type, TypeShape& shape);

/// How a type was made, an MPI_COMBINER_...: also by constructors with large counts. Nothing where the MPI can't tell.
std::optional<int> combiner_of(MPI_Datatype type);
/// One that programs don't free: named, or from MPI_Type_create_f90_... or MPI_Type_get_value_index. False also for
/// what is no type.
bool is_predefined(MPI_Datatype type);

/// `count` elements from `typed` into `packed`, size * count bytes. Counts past int go in several calls. The MPI raises
/// errors on `comm`, whose error handler should return them. Returns an MPI code.
int pack(const char* typed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* packed, MPI_Comm comm);
/// The reverse of pack.
int unpack(const char* packed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* typed,
           MPI_Comm comm);

}  // namespace palmette::runtime
