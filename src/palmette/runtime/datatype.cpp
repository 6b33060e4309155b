#include "palmette/runtime/datatype.hpp"

#include <algorithm>

namespace palmette::runtime {
namespace {

/// A predefined type, or contiguous or duplicated ones all the way down: the only ones whose bytes surely lie in the order of the type map.
bool in_order(MPI_Datatype type) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
    if (combiner == MPI_COMBINER_NAMED) return true;
    if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) return false;
    int count = 0;
    MPI_Aint address = 0;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    if (PMPI_Type_get_contents(type, integers, addresses, 1, &count, &address, &inner) != MPI_SUCCESS) return false;
    const bool ordered = in_order(inner);
    if (PMPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
        combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(&inner);
    return ordered;
}

/// Elements that go into one call of MPI_Pack.
std::int64_t at_once(const TypeShape& shape) {
    return std::max<std::int64_t>(1, (std::int64_t{1} << 30) / std::max<std::int64_t>(shape.size, 1));
}

}  // namespace

bool size_of(MPI_Datatype type, TypeShape& shape) {
    int size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED || size < 0)
        return false;
    shape.size = size;
    return true;
}

int complete(MPI_Datatype type, TypeShape& shape) {
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    if (const int error = PMPI_Type_get_extent(type, &lower, &extent)) return error;
    shape.extent = static_cast<std::int64_t>(extent);
    if (shape.extent != shape.size || lower != 0) return MPI_SUCCESS;
    if (const int error = PMPI_Type_get_true_extent(type, &true_lower, &true_extent)) return error;
    shape.dense = true_lower == 0 && static_cast<std::int64_t>(true_extent) == shape.size && in_order(type);
    return MPI_SUCCESS;
}

int pack(const char* typed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* packed,
         MPI_Comm comm) {
    for (std::int64_t left = count; left > 0;) {
        const std::int64_t elements = std::min(left, at_once(shape));
        const std::int64_t bytes = elements * shape.size;
        if (bytes > INT32_MAX) return MPI_ERR_COUNT;
        int position = 0;
        const int error =
            PMPI_Pack(typed, static_cast<int>(elements), type, packed, static_cast<int>(bytes), &position, comm);
        if (error != MPI_SUCCESS) return error;
        if (position != bytes) return MPI_ERR_INTERN;
        typed += elements * shape.extent;
        packed += bytes;
        left -= elements;
    }
    return MPI_SUCCESS;
}

int unpack(const char* packed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* typed,
           MPI_Comm comm) {
    for (std::int64_t left = count; left > 0;) {
        const std::int64_t elements = std::min(left, at_once(shape));
        const std::int64_t bytes = elements * shape.size;
        if (bytes > INT32_MAX) return MPI_ERR_COUNT;
        int position = 0;
        const int error =
            PMPI_Unpack(packed, static_cast<int>(bytes), &position, typed, static_cast<int>(elements), type, comm);
        if (error != MPI_SUCCESS) return error;
        typed += elements * shape.extent;
        packed += bytes;
        left -= elements;
    }
    return MPI_SUCCESS;
}

}  // namespace palmette::runtime
