// Vectorised loops of the predefined reductions: target[i] = left[i] op right[i]. No MPI in here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace palmette::kernels {

/// The predefined operations, named as MPI names them (MPI 5.0, section 6.9.2).
enum class Operator : std::uint8_t { sum, prod, min, max, land, lor, lxor, band, bor, bxor, minloc, maxloc };

/// Element types in memory. Fortran's types map to those of C with the same representation; a pair is a C struct, with
/// its padding.
enum class Element : std::uint8_t {
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,   ///< IEEE 754 binary16
    bfloat16,  ///< the upper half of a float
    float32,
    float64,
    long_double,
    complex_float,
    complex_double,
    complex_long_double,
    logical8,  ///< C's _Bool and Fortran's logical of one byte: 0 is false, the rest true; results are 0 and 1
    logical16,
    logical32,
    logical64,
    byte,
    float_int,  ///< struct { float value; int index; }
    double_int,
    long_int,
    int_int,
    short_int,
    long_double_int,
    float_float,
    double_double,
    int64_int64,
};

inline constexpr std::size_t operator_count = static_cast<std::size_t>(Operator::maxloc) + 1;
inline constexpr std::size_t element_count = static_cast<std::size_t>(Element::int64_int64) + 1;

/// Bytes of an element.
struct ElementBytes {
    std::size_t size = 0;         ///< data, without the padding of a pair
    std::size_t extent = 0;       ///< stride between elements
    std::size_t true_extent = 0;  ///< to the end of the data
};
ElementBytes bytes_of(Element element);

std::string_view name_of(Operator op);
std::string_view name_of(Element element);

/// `count` elements, at any alignment. `target` may be `left` or `right` itself; otherwise the three don't overlap.
/// Padding of `target` is left alone. The result of an element depends bitwise on its two operands only: neither on the
/// instruction set nor on its position in the array.
using Kernel = void (*)(const void* left, const void* right, void* target, std::size_t count);

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };
std::string_view name_of(InstructionSet set);

/// Instruction sets that this processor and its operating system support, the best one last.
std::span<const InstructionSet> instruction_sets();

/// The best loop that this processor supports. Null where MPI doesn't define the operation on such elements.
Kernel kernel_for(Operator op, Element element);
/// The loop of one of instruction_sets().
Kernel kernel_for(Operator op, Element element, InstructionSet set);

/// Whether the operation is exactly associative and commutative: bitwise the same result for any order and grouping of
/// the operands.
bool is_exact(Operator op, Element element);

}  // namespace palmette::kernels
