// What reductions work on: every predefined operation with all its types, and operations of the program's own, some of
// which don't commute, on types of all shapes. The data are such that any order of the operands gives the same bits,
// as far as the operation lets the order change.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "layouts.hpp"
#include "predefined.hpp"
#include "rng.hpp"

namespace test {

/// Where the data of an element lie, in bytes from its address; padding belongs to them but holds nothing.
struct Shape {
    struct Range {
        MPI_Aint offset;
        std::size_t bytes;
        bool padding = false;
    };
    std::vector<Range> ranges;
    MPI_Aint extent = 0;
};

/// An operation on a type.
struct Operand {
    std::string name;
    MPI_Op op = MPI_OP_NULL;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    Shape shape;
    const PredefinedType* predefined = nullptr;  ///< null: the operation is the program's
    char group = ' ';
    bool modest = false;  ///< only of small positive numbers the MPI's result is right
};

inline Shape shape_of(const PredefinedType& type) {
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    int size = 0;
    PMPI_Type_get_extent(type.type, &lb, &extent);
    PMPI_Type_size(type.type, &size);
    const auto bytes = static_cast<std::size_t>(size);
    const auto width = static_cast<std::size_t>(extent);
    constexpr std::size_t digits = 10, whole = sizeof(long double);  // x87's
    if (type.name == "MPI_LONG_DOUBLE_INT")
        return {{{0, digits}, {digits, whole - digits, true}, {whole, sizeof(int)}}, extent};
    if (type.fill == Fill::long_double) {
        Shape shape{{}, extent};
        for (std::size_t at = 0; at < bytes; at += whole) {
            shape.ranges.push_back({static_cast<MPI_Aint>(at), digits});
            shape.ranges.push_back({static_cast<MPI_Aint>(at + digits), whole - digits, true});
        }
        return shape;
    }
    if (type.name == "MPI_SHORT_INT") return {{{0, sizeof(short)}, {4, sizeof(int)}}, extent};
    // Other pairs have a hole behind the index only.
    return {{{0, std::min(bytes, width)}}, extent};
}

/// Whether order matters with any data that we could choose, or the MPIs do other things than the standard says.
inline bool usable(const PredefinedOp& op, const PredefinedType& type) {
    if (op.groups.find(type.group) == std::string::npos || aborts(op, type) || type.fill == Fill::real16) return false;
    // Products of Gaussian integers don't fit into so few digits.
    int size = 0;
    PMPI_Type_size(type.type, &size);
    return !(op.name == "MPI_PROD" && type.group == 'X' && size < 8);
}

/// All pairs that the MPI knows; local, but the same on all ranks. Call it with errors returned on MPI_COMM_WORLD and
/// MPI_COMM_SELF.
inline std::vector<Operand> predefined_operands(const std::vector<PredefinedType>& types) {
    std::vector<Operand> result;
    for (const PredefinedOp& op : predefined_ops()) {
        for (const PredefinedType& type : types) {
            if (!usable(op, type)) continue;
            alignas(16) char in[64] = {}, inout[64] = {};
            if (PMPI_Reduce_local(in, inout, 1, type.type, op.op) != MPI_SUCCESS) continue;
            result.push_back({op.name + " of " + type.name, op.op, type.type, shape_of(type), &type, type.group,
                              only_modest(op, type)});
        }
    }
    return result;
}

/// Numbers whose sums and products are exact in any order, as reals of type T: small integers, or powers of two.
template <class T>
void put_exact(std::vector<char>& data, bool product, Rng& rng) {
    for (std::size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
        static const double powers[] = {1, -1, 2, 0.5, -2, 1, -1, 1};
        const double value = product ? powers[rng.below(8)] : rng.between(1, 8) * (rng.one_in(2) ? 1 : -1);
        const T number = static_cast<T>(value);
        std::memcpy(&data[at], &number, sizeof number);
    }
}

/// 2 + i turned by a right angle or several: no product of such has a part that is zero, so no sign of a zero either.
template <class T>
void put_gaussian(std::vector<char>& data, Rng& rng) {
    static const double turns[4][2] = {{2, 1}, {-1, 2}, {-2, -1}, {1, -2}};
    for (std::size_t at = 0; at + 2 * sizeof(T) <= data.size(); at += 2 * sizeof(T)) {
        const double* turn = turns[rng.below(4)];
        const T number[2] = {static_cast<T>(turn[0]), static_cast<T>(turn[1])};
        std::memcpy(&data[at], number, sizeof number);
    }
}

/// Exact numbers in the formats that have no C++ type here: the sign, and 1, 2, 4 or 8 times 1 (or 1/2).
inline void put_exact_halves(std::vector<char>& data, unsigned bias, unsigned shift, bool product, Rng& rng) {
    for (std::size_t at = 0; at + 2 <= data.size(); at += 2) {
        const int power = product ? rng.between(-1, 1) * rng.below(2) : rng.between(0, 3);
        const unsigned sign = rng.one_in(2) ? 0x8000U : 0U;
        const auto value = static_cast<std::uint16_t>(sign | (bias + static_cast<unsigned>(power)) << shift);
        std::memcpy(&data[at], &value, sizeof value);
    }
}

inline void fill_exact(std::vector<char>& data, const Operand& operand, Rng& rng) {
    const PredefinedType& type = *operand.predefined;
    const auto width = static_cast<std::size_t>(operand.shape.extent);
    const bool product = operand.op == MPI_PROD;
    const bool complex_product = product && type.group == 'X';
    switch (type.fill) {
        case Fill::real2:
            return put_exact_halves(data, 15, 10, product, rng);
        case Fill::brain:
        case Fill::short_brain:
            return put_exact_halves(data, 127, 7, product, rng);
        case Fill::real4:
            return complex_product ? put_gaussian<float>(data, rng) : put_exact<float>(data, product, rng);
        case Fill::real8:
            return complex_product ? put_gaussian<double>(data, rng) : put_exact<double>(data, product, rng);
        case Fill::long_double:
            return complex_product ? put_gaussian<long double>(data, rng) : put_exact<long double>(data, product, rng);
        case Fill::bits:
            rng.fill(data.data(), data.size());
            // Logical operations are dull on numbers that are never zero.
            if (operand.op == MPI_LAND || operand.op == MPI_LOR || operand.op == MPI_LXOR) {
                for (std::size_t at = 0; at + width <= data.size(); at += width)
                    if (rng.one_in(2)) std::memset(&data[at], 0, width);
            }
            for (std::size_t at = 0; operand.modest && at + width <= data.size(); at += width) {
                data[at + width - 1] &= 7;  // the sum of sixteen ranks still fits
                if (width == 2) data[at] = 0;
            }
            return;
        case Fill::logical:
            for (std::size_t at = 0; at < data.size(); ++at)
                data[at] = static_cast<char>(at % width == 0 ? rng.below(2) : 0);
            return;
        case Fill::pair:
            rng.fill(data.data(), data.size());
            return put_pairs(data, type.name, width, rng);
        case Fill::real16:
            return;  // see usable()
    }
}

}  // namespace test
