// Operations of the program's own. Each works on words that lie anywhere in an element: a sum commutes, products of
// matrices and hashes of texts put together don't, so that any other order of the ranks shows.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "operands.hpp"

namespace test {

/// The element on which operations work now. MPI hands them nothing but the type.
inline const Shape* current_shape = nullptr;
inline long calls_with_another_type = 0;

template <class Word, std::size_t count, class Combine>
void apply_own(void* in, void* inout, const int* elements, MPI_Datatype type, Combine combine) {
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_extent(type, &lb, &extent);
    if (extent != current_shape->extent) ++calls_with_another_type;
    const auto* left = static_cast<const char*>(in);
    auto* right = static_cast<char*>(inout);
    for (int i = 0; i < *elements; ++i, left += extent, right += extent) {
        Word a[count], b[count];
        for (std::size_t w = 0; w < count; ++w) {
            std::memcpy(&a[w], left + current_shape->ranges[w].offset, sizeof(Word));
            std::memcpy(&b[w], right + current_shape->ranges[w].offset, sizeof(Word));
        }
        combine(a, b);
        for (std::size_t w = 0; w < count; ++w)
            std::memcpy(right + current_shape->ranges[w].offset, &b[w], sizeof(Word));
    }
}

/// Four sums modulo 2^32.
inline void add_words(void* in, void* inout, int* count, MPI_Datatype* type) {
    apply_own<std::uint32_t, 4>(in, inout, count, *type, [](const std::uint32_t* a, std::uint32_t* b) {
        for (int i = 0; i < 4; ++i) b[i] += a[i];
    });
}

/// Products of matrices of two rows and two columns, modulo 2^32.
inline void multiply_matrices(void* in, void* inout, int* count, MPI_Datatype* type) {
    apply_own<std::uint32_t, 4>(in, inout, count, *type, [](const std::uint32_t* a, std::uint32_t* b) {
        const std::uint32_t product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                                          a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        std::memcpy(b, product, sizeof product);
    });
}

/// The polynomial hash of two texts one behind the other; the second word is the base to the power of the length.
inline void join_texts(void* in, void* inout, int* count, MPI_Datatype* type) {
    apply_own<std::uint64_t, 2>(in, inout, count, *type, [](const std::uint64_t* a, std::uint64_t* b) {
        b[0] += a[0] * b[1];
        b[1] *= a[1];
    });
}

/// The larger one, on a basic type.
inline void larger_int(void* in, void* inout, int* count, MPI_Datatype* type) {
    apply_own<std::uint32_t, 1>(in, inout, count, *type, [](const std::uint32_t* a, std::uint32_t* b) {
        if (*a > *b) *b = *a;
    });
}

/// x -> factor x + term in the halves of a word, one function after the other.
inline void compose_maps(void* in, void* inout, int* count, MPI_Datatype* type) {
    apply_own<std::uint64_t, 1>(in, inout, count, *type, [](const std::uint64_t* a, std::uint64_t* b) {
        const std::uint32_t f = static_cast<std::uint32_t>(*a >> 32), t = static_cast<std::uint32_t>(*a);
        const std::uint32_t g = static_cast<std::uint32_t>(*b >> 32), u = static_cast<std::uint32_t>(*b);
        *b = (std::uint64_t{f * g} << 32) | static_cast<std::uint32_t>(g * t + u);
    });
}

struct OwnOperation {
    std::string name;
    MPI_User_function* function;
    bool commutes;
    int words, word_bytes;
    MPI_Op op = MPI_OP_NULL;
};

inline std::vector<OwnOperation> make_own_operations() {
    std::vector<OwnOperation> all = {{"own sum", add_words, true, 4, 4},
                                     {"own matrix product", multiply_matrices, false, 4, 4},
                                     {"own hash of texts", join_texts, false, 2, 8},
                                     {"own maximum", larger_int, true, 1, 4},
                                     {"own composition", compose_maps, false, 1, 8}};
    for (OwnOperation& one : all) MPI_Op_create(one.function, one.commutes ? 1 : 0, &one.op);
    return all;
}

inline void free_own_operations(std::vector<OwnOperation>& all) {
    for (OwnOperation& one : all) MPI_Op_free(&one.op);
}

/// How freely the words of an element may lie.
enum class Freedom { contiguous, no_gap_behind, any };

/// The words of an element somewhere in memory. `items`: no buffer will hold more.
inline Layout own_layout(Rng& rng, const OwnOperation& operation, int items, Freedom freedom, Shape& shape) {
    const MPI_Datatype word = operation.word_bytes == 4 ? MPI_UINT32_T : MPI_UINT64_T;
    const int n = operation.words;
    const MPI_Aint w = operation.word_bytes;
    auto place = [&](auto offset_of, MPI_Aint extent) {
        shape.extent = extent;
        for (int i = 0; i < n; ++i) shape.ranges.push_back({offset_of(i), static_cast<std::size_t>(w)});
    };
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (freedom == Freedom::contiguous || rng.one_in(3)) {
        place([&](int i) { return i * w; }, n * w);
        if (n == 1) return {word, false, 1, "basic"};
        PMPI_Type_contiguous(n, word, &type);
        return {type, true, 1, "contiguous"};
    }
    MPI_Datatype tight = MPI_DATATYPE_NULL;
    int kind = rng.below(freedom == Freedom::any ? 5 : 2);
    // For these MPICH takes as much room as if they lay one behind the other.
    if (kind == 2 && items > 300) kind = 0;
    switch (kind) {
        case 0: {
            const int stride = rng.between(2, 3);
            PMPI_Type_vector(n, 1, stride, word, &type);
            place([&](int i) { return i * stride * w; }, ((n - 1) * stride + 1) * w);
            return {type, true, 1, "vector"};
        }
        case 1: {
            PMPI_Type_create_hvector(n, 1, -2 * w, word, &type);
            place([&](int i) { return -2 * i * w; }, (2 * n - 1) * w);
            return {type, true, 1, "backward"};
        }
        case 2: {
            // The words of an element are columns apart.
            PMPI_Type_vector(n, 1, items + 1, word, &tight);
            PMPI_Type_create_resized(tight, 0, w, &type);
            PMPI_Type_free(&tight);
            place([&](int i) { return i * (items + 1) * w; }, w);
            return {type, true, 1, "interleaved"};
        }
        default:
            break;
    }
    const int slots = n + rng.between(1, 2);
    std::vector<MPI_Aint> at;
    const MPI_Aint shift = rng.between(0, 3);
    for (int i = 0; i < slots; ++i) at.push_back((i - shift) * w);
    rng.shuffle(at);
    const std::vector<int> ones(static_cast<std::size_t>(n), 1);
    const std::vector<MPI_Datatype> members(static_cast<std::size_t>(n), word);
    const bool structure = rng.one_in(2);
    if (structure) {
        PMPI_Type_create_struct(n, ones.data(), at.data(), members.data(), &tight);
    } else {
        PMPI_Type_create_hindexed(n, ones.data(), at.data(), word, &tight);
    }
    const MPI_Aint extent = (slots + rng.below(3)) * w;
    PMPI_Type_create_resized(tight, -shift * w - rng.below(2) * w, extent, &type);
    PMPI_Type_free(&tight);
    place([&](int i) { return at[static_cast<std::size_t>(i)]; }, extent);
    return {type, true, 1, structure ? "struct" : "hindexed"};
}

}  // namespace test
