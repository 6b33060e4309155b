// The arguments of a collective call, in one form for all functions.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "palmette/runtime/data/counts.hpp"
#include "palmette/select/table.hpp"

namespace palmette::runtime {

/// One side of a call: where data lies, and how much. Non-owning and not validated: arguments that MPI ignores at this
/// rank may be anything.
struct Side {
    /// How the blocks of the ranks are described.
    enum class Form : std::uint8_t {
        alike,   ///< `count` elements of `type` each
        listed,  ///< `counts` by rank, at `displacements` in extents where the function takes any
        typed    ///< counts, displacements in bytes and `types` by rank
    };

    const void* buffer = nullptr;
    Form form = Form::alike;
    std::int64_t count = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    Counts counts, displacements;
    const MPI_Datatype* types = nullptr;

    static Side alike(const void* buffer, std::int64_t count, MPI_Datatype type) {
        return {buffer, Form::alike, count, type, {}, {}, nullptr};
    }
    static Side listed(const void* buffer, Counts counts, Counts displacements, MPI_Datatype type) {
        return {buffer, Form::listed, 0, type, counts, displacements, nullptr};
    }
    static Side typed(const void* buffer, Counts counts, Counts displacements, const MPI_Datatype* types) {
        return {buffer, Form::typed, 0, MPI_DATATYPE_NULL, counts, displacements, types};
    }

    bool in_place() const { return buffer == MPI_IN_PLACE; }
    void* writable() const { return const_cast<void*>(buffer); }
};

/// One call, filled by the generated wrappers. An argument that a function has only once is set on both sides: the
/// buffer of a broadcast, count and type of a reduction, whose counts by rank (reduce_scatter) are those of the
/// receiving side.
struct CallArguments {
    select::Function function = select::Function::barrier;
    bool blocking = true;
    MPI_Comm comm = MPI_COMM_NULL;
    Side send, recv;
    MPI_Op op = MPI_OP_NULL;
    int root = 0;
};

}  // namespace palmette::runtime
