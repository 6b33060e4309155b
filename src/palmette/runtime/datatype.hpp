// What palmette needs to know of the caller's datatypes.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace palmette::runtime {

/// Geometry of `count` elements of a datatype.
struct TypeShape {
    std::int64_t size = 0;    ///< bytes of data in one element
    std::int64_t extent = 0;  ///< distance from one element to the next
    bool dense = false;       ///< the elements lie one after the other without holes, in the order of the type map
};

/// The size alone, which is all that a choice needs. False when the MPI can't tell (null or uncommitted types, sizes past int): the
/// call is the MPI's to judge.
bool size_of(MPI_Datatype type, TypeShape& shape);

/// The rest. Returns an MPI code.
int complete(MPI_Datatype type, TypeShape& shape);

/// `count` elements from `typed` into `packed`, size * count bytes. Counts past int go in several calls. Returns an MPI code.
int pack(const char* typed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* packed, MPI_Comm comm);
/// The reverse of pack.
int unpack(const char* packed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* typed,
           MPI_Comm comm);

}  // namespace palmette::runtime
