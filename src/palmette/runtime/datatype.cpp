#include "palmette/runtime/datatype.hpp"

#include <algorithm>

#include "palmette/runtime/operation_handles.hpp"

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

/// Elements that go into one call of MPI_Pack or MPI_Unpack, whose counts are int.
std::int64_t at_once(const TypeShape& shape) {
    return std::max<std::int64_t>(1, (std::int64_t{1} << 30) / std::max<std::int64_t>(shape.size, 1));
}

/// Calls `some(typed offset, packed offset, elements, bytes)` until all elements are through, or the first MPI error.
template <class Some>
int in_pieces(std::int64_t count, const TypeShape& shape, Some some) {
    std::int64_t elements = 0;
    for (std::int64_t done = 0; done < count; done += elements) {
        elements = std::min(count - done, at_once(shape));
        const std::int64_t bytes = elements * shape.size;
        if (bytes > INT32_MAX) return MPI_ERR_COUNT;
        if (const int error =
                some(done * shape.extent, done * shape.size, static_cast<int>(elements), static_cast<int>(bytes)))
            return error;
    }
    return MPI_SUCCESS;
}

/// The types that programs use most. Predefined handles are never freed, so a table may hold them.
const HandleTable<MPI_Datatype, std::int64_t, 7>& common_types() {
    static const auto table = [] {
        HandleTable<MPI_Datatype, std::int64_t, 7> out;
        for (const MPI_Datatype type : {MPI_BYTE,        MPI_CHAR,
                                        MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR,
                                        MPI_SHORT,       MPI_UNSIGNED_SHORT,
                                        MPI_INT,         MPI_UNSIGNED,
                                        MPI_LONG,        MPI_UNSIGNED_LONG,
                                        MPI_FLOAT,       MPI_DOUBLE,
                                        MPI_INT8_T,      MPI_INT16_T,
                                        MPI_INT32_T,     MPI_INT64_T,
                                        MPI_UINT8_T,     MPI_UINT16_T,
                                        MPI_UINT32_T,    MPI_UINT64_T,
                                        MPI_LONG_LONG,   MPI_UNSIGNED_LONG_LONG,
                                        MPI_C_BOOL}) {
            int size = 0;
            if (type != MPI_DATATYPE_NULL && PMPI_Type_size(type, &size) == MPI_SUCCESS && size > 0)
                out.add(type, size);
        }
        return out;
    }();
    return table;
}

}  // namespace

bool size_of(MPI_Datatype type, TypeShape& shape) {
    if (const std::int64_t* common = common_types().find(type)) {
        shape = {*common, *common, true};
        return true;
    }
    int size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED || size < 0)
        return false;
    shape.size = size;
    return true;
}

int complete(MPI_Datatype type, TypeShape& shape) {
    if (shape.dense) return MPI_SUCCESS;
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
    return in_pieces(count, shape, [&](std::int64_t from, std::int64_t to, int elements, int bytes) -> int {
        int position = 0;
        const int error = PMPI_Pack(typed + from, elements, type, packed + to, bytes, &position, comm);
        return error == MPI_SUCCESS && position != bytes ? MPI_ERR_INTERN : error;
    });
}

int unpack(const char* packed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* typed,
           MPI_Comm comm) {
    return in_pieces(count, shape, [&](std::int64_t to, std::int64_t from, int elements, int bytes) -> int {
        int position = 0;
        return PMPI_Unpack(packed + from, bytes, &position, typed + to, elements, type, comm);
    });
}

}  // namespace palmette::runtime
