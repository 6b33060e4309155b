#include "palmette/runtime/data/datatype.hpp"

#include <algorithm>
#include <array>

#include "palmette/runtime/data/operation_handles.hpp"
#include "palmette/runtime/data/plausible_handle.hpp"

#if defined(PALMETTE_ABI_SMPI)
// Elsewhere the table of the MPI's symbols has them (tools/generate_mpi_symbols.py); SimGrid may get them one day.
extern "C" {
int PMPI_Type_get_envelope_c(MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*) __attribute__((weak));
int PMPI_Type_get_contents_c(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int[], MPI_Aint[], MPI_Count[],
                             MPI_Datatype[]) __attribute__((weak));
int PMPI_Pack_c(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*, MPI_Comm) __attribute__((weak));
int PMPI_Unpack_c(const void*, MPI_Count, MPI_Count*, void*, MPI_Count, MPI_Datatype, MPI_Comm) __attribute__((weak));
}
#endif

namespace palmette::runtime {
namespace {

/// How a type was made: MPI_COMBINER_... and how many arguments of each kind its constructor had.
struct Envelope {
    int combiner = MPI_COMBINER_NAMED;
    MPI_Count integers = 0, addresses = 0, large_counts = 0, types = 0;
};

/// Nothing where the MPI can't tell. MPI_Type_get_envelope alone won't do: it is an error for a type that a constructor
/// with large counts has made.
std::optional<Envelope> envelope_of(MPI_Datatype type) {
    if (!is_plausible(type)) return std::nullopt;
    Envelope out;
    if (PMPI_Type_get_envelope_c) {
        if (PMPI_Type_get_envelope_c(type, &out.integers, &out.addresses, &out.large_counts, &out.types,
                                     &out.combiner) != MPI_SUCCESS)
            return std::nullopt;
        return out;
    }
    int integers = 0, addresses = 0, types = 0;
    if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &out.combiner) != MPI_SUCCESS) return std::nullopt;
    out.integers = integers;
    out.addresses = addresses;
    out.types = types;
    return out;
}

bool is_predefined_combiner(const Envelope& made) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    if (made.combiner == MPI_COMBINER_VALUE_INDEX) return true;
#endif
    return made.combiner == MPI_COMBINER_NAMED || made.combiner == MPI_COMBINER_F90_REAL ||
           made.combiner == MPI_COMBINER_F90_COMPLEX || made.combiner == MPI_COMBINER_F90_INTEGER;
}

/// The type that one was made from by a constructor that takes a single one and at most two numbers.
std::optional<MPI_Datatype> inner_type(MPI_Datatype type, const Envelope& made) {
    std::array<int, 2> integers{};
    std::array<MPI_Aint, 2> addresses{};
    std::array<MPI_Count, 2> large_counts{};
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    if (made.integers > 2 || made.addresses > 2 || made.large_counts > 2 || made.types != 1) return std::nullopt;
    const int error =
        PMPI_Type_get_contents_c
            ? PMPI_Type_get_contents_c(type, made.integers, made.addresses, made.large_counts, 1, integers.data(),
                                       addresses.data(), large_counts.data(), &inner)
            : PMPI_Type_get_contents(type, static_cast<int>(made.integers), static_cast<int>(made.addresses), 1,
                                     integers.data(), addresses.data(), &inner);
    if (error != MPI_SUCCESS) return std::nullopt;
    return inner;
}

bool has_no_holes(MPI_Datatype type) {
    MPI_Count size = 0;
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    return PMPI_Type_size_x(type, &size) == MPI_SUCCESS && PMPI_Type_get_extent(type, &lower, &extent) == MPI_SUCCESS &&
           PMPI_Type_get_true_extent(type, &true_lower, &true_extent) == MPI_SUCCESS && lower == 0 && true_lower == 0 &&
           size == extent && size == true_extent;
}

/// A predefined type, or contiguous, duplicated or resized ones all the way down: the only ones whose bytes, where
/// there are no holes, surely lie in the order of the type map. A type that was resized over holes or overlaps may look
/// dense from outside and isn't.
bool is_in_type_map_order(MPI_Datatype type) {
    const auto made = envelope_of(type);
    if (!made) return false;
    if (is_predefined_combiner(*made)) return true;
    const bool resized = made->combiner == MPI_COMBINER_RESIZED;
    if (made->combiner != MPI_COMBINER_CONTIGUOUS && made->combiner != MPI_COMBINER_DUP && !resized) return false;
    auto inner = inner_type(type, *made);
    if (!inner) return false;
    const bool ordered = is_in_type_map_order(*inner) && (!resized || has_no_holes(*inner));
    if (!runtime::is_predefined(*inner)) PMPI_Type_free(&*inner);
    return ordered;
}

bool packs_large() { return PMPI_Pack_c && PMPI_Unpack_c; }

/// Elements that go into one call of MPI_Pack or MPI_Unpack, whose counts are int.
std::int64_t at_once(const TypeShape& shape) {
    return std::max<std::int64_t>(1, (std::int64_t{1} << 30) / std::max<std::int64_t>(shape.size, 1));
}

/// Calls `some(typed offset, packed offset, elements, bytes)` until all elements are through, or the first MPI error.
/// More bytes than an int counts are those of one element.
template <class Some>
int in_pieces(std::int64_t count, const TypeShape& shape, Some some) {
    std::int64_t elements = 0;
    for (std::int64_t done = 0; done < count; done += elements) {
        elements = std::min(count - done, at_once(shape));
        const std::int64_t bytes = elements * shape.size;
        if (bytes > INT32_MAX && !packs_large()) return MPI_ERR_COUNT;
        if (const int error = some(done * shape.extent, done * shape.size, static_cast<int>(elements), bytes))
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
    MPI_Count size = 0;
    if (!is_plausible(type) || PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size == MPI_UNDEFINED || size < 0)
        return false;
    if (size > INT32_MAX && !packs_large()) return false;
    shape.size = size;
    return true;
}

std::optional<int> combiner_of(MPI_Datatype type) {
    const auto made = envelope_of(type);
    return made ? std::optional(made->combiner) : std::nullopt;
}

bool is_predefined(MPI_Datatype type) {
    const auto made = envelope_of(type);
    return made && is_predefined_combiner(*made);
}

int complete(MPI_Datatype type, TypeShape& shape) {
    if (shape.dense) return MPI_SUCCESS;
    MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    if (const int error = PMPI_Type_get_extent(type, &lower, &extent)) return error;
    shape.extent = static_cast<std::int64_t>(extent);
    if (shape.extent != shape.size || lower != 0) return MPI_SUCCESS;
    if (const int error = PMPI_Type_get_true_extent(type, &true_lower, &true_extent)) return error;
    shape.dense = true_lower == 0 && static_cast<std::int64_t>(true_extent) == shape.size && is_in_type_map_order(type);
    return MPI_SUCCESS;
}

int pack(const char* typed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* packed,
         MPI_Comm comm) {
    return in_pieces(count, shape, [&](std::int64_t from, std::int64_t to, int elements, std::int64_t bytes) -> int {
        MPI_Count filled = 0;
        int error = MPI_SUCCESS;
        if (bytes > INT32_MAX) {
            error = PMPI_Pack_c(typed + from, elements, type, packed + to, bytes, &filled, comm);
        } else {
            int position = 0;
            error = PMPI_Pack(typed + from, elements, type, packed + to, static_cast<int>(bytes), &position, comm);
            filled = position;
        }
        return error == MPI_SUCCESS && filled != bytes ? MPI_ERR_INTERN : error;
    });
}

int unpack(const char* packed, std::int64_t count, MPI_Datatype type, const TypeShape& shape, char* typed,
           MPI_Comm comm) {
    return in_pieces(count, shape, [&](std::int64_t to, std::int64_t from, int elements, std::int64_t bytes) -> int {
        if (bytes > INT32_MAX) {
            MPI_Count taken = 0;
            return PMPI_Unpack_c(packed + from, bytes, &taken, typed + to, elements, type, comm);
        }
        int position = 0;
        return PMPI_Unpack(packed + from, static_cast<int>(bytes), &position, typed + to, elements, type, comm);
    });
}

}  // namespace palmette::runtime
