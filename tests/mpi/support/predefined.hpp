// The predefined datatypes and operations of the MPI that runs, with what the standard says about them (MPI 5.0,
// section 6.9.2), written down once more than in the runtime, for the tests.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rng.hpp"

namespace test {

/// What random data of a type must look like: finite numbers other than zero, logicals that are 0 or 1.
enum class Fill { bits, real2, brain, short_brain, real4, real8, long_double, real16, logical, pair };

struct PredefinedType {
    std::string name;
    MPI_Datatype type;
    char group;  ///< C integer, Fortran integer, Multi-language, Real, compleX, Logical, Byte, Pair
    Fill fill;
};

struct PredefinedOp {
    std::string name;
    MPI_Op op;
    std::string groups;  ///< that it is defined for
};

inline const std::vector<PredefinedOp>& predefined_ops() {
    static const std::vector<PredefinedOp> ops{
        {"MPI_SUM", MPI_SUM, "CFMRX"},  {"MPI_PROD", MPI_PROD, "CFMRX"}, {"MPI_MIN", MPI_MIN, "CFMR"},
        {"MPI_MAX", MPI_MAX, "CFMR"},   {"MPI_LAND", MPI_LAND, "CL"},    {"MPI_LOR", MPI_LOR, "CL"},
        {"MPI_LXOR", MPI_LXOR, "CL"},   {"MPI_BAND", MPI_BAND, "CFMB"},  {"MPI_BOR", MPI_BOR, "CFMB"},
        {"MPI_BXOR", MPI_BXOR, "CFMB"}, {"MPI_MINLOC", MPI_MINLOC, "P"}, {"MPI_MAXLOC", MPI_MAXLOC, "P"},
    };
    return ops;
}

/// Intel MPI is known by its version only: its programs are built with MPICH's header.
inline bool is_intel() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    return std::strstr(text, "Intel") != nullptr;
}

#ifdef OPEN_MPI
extern "C" struct ompi_predefined_datatype_t ompi_mpi_short_float __attribute__((weak));
#endif

/// Predefined types that the header names and the library has.
inline std::vector<PredefinedType> predefined_types() {
    std::vector<PredefinedType> types{
#define NAMED(type, group, fill) {#type, type, group, Fill::fill}
        NAMED(MPI_SIGNED_CHAR, 'C', bits),
        NAMED(MPI_UNSIGNED_CHAR, 'C', bits),
        NAMED(MPI_SHORT, 'C', bits),
        NAMED(MPI_UNSIGNED_SHORT, 'C', bits),
        NAMED(MPI_INT, 'C', bits),
        NAMED(MPI_UNSIGNED, 'C', bits),
        NAMED(MPI_LONG, 'C', bits),
        NAMED(MPI_UNSIGNED_LONG, 'C', bits),
        NAMED(MPI_LONG_LONG, 'C', bits),
        NAMED(MPI_UNSIGNED_LONG_LONG, 'C', bits),
        NAMED(MPI_INT8_T, 'C', bits),
        NAMED(MPI_INT16_T, 'C', bits),
        NAMED(MPI_INT32_T, 'C', bits),
        NAMED(MPI_INT64_T, 'C', bits),
        NAMED(MPI_UINT8_T, 'C', bits),
        NAMED(MPI_UINT16_T, 'C', bits),
        NAMED(MPI_UINT32_T, 'C', bits),
        NAMED(MPI_UINT64_T, 'C', bits),
        NAMED(MPI_AINT, 'M', bits),
        NAMED(MPI_OFFSET, 'M', bits),
        NAMED(MPI_COUNT, 'M', bits),
        NAMED(MPI_FLOAT, 'R', real4),
        NAMED(MPI_DOUBLE, 'R', real8),
        NAMED(MPI_LONG_DOUBLE, 'R', long_double),
        NAMED(MPI_C_FLOAT_COMPLEX, 'X', real4),
        NAMED(MPI_C_DOUBLE_COMPLEX, 'X', real8),
        NAMED(MPI_C_LONG_DOUBLE_COMPLEX, 'X', long_double),
        NAMED(MPI_C_BOOL, 'L', logical),
        NAMED(MPI_BYTE, 'B', bits),
        NAMED(MPI_FLOAT_INT, 'P', pair),
        NAMED(MPI_DOUBLE_INT, 'P', pair),
        NAMED(MPI_LONG_INT, 'P', pair),
        NAMED(MPI_2INT, 'P', pair),
        NAMED(MPI_SHORT_INT, 'P', pair),
        NAMED(MPI_LONG_DOUBLE_INT, 'P', pair),
        NAMED(MPI_INTEGER, 'F', bits),
        NAMED(MPI_REAL, 'R', real4),
        NAMED(MPI_DOUBLE_PRECISION, 'R', real8),
        NAMED(MPI_COMPLEX, 'X', real4),
        NAMED(MPI_DOUBLE_COMPLEX, 'X', real8),
        NAMED(MPI_LOGICAL, 'L', logical),
        NAMED(MPI_2INTEGER, 'P', pair),
        NAMED(MPI_2REAL, 'P', pair),
        NAMED(MPI_2DOUBLE_PRECISION, 'P', pair),
        NAMED(MPI_CXX_BOOL, 'L', logical),
        NAMED(MPI_CXX_FLOAT_COMPLEX, 'X', real4),
        NAMED(MPI_CXX_DOUBLE_COMPLEX, 'X', real8),
        NAMED(MPI_CXX_LONG_DOUBLE_COMPLEX, 'X', long_double),
        NAMED(MPI_INTEGER1, 'F', bits),
        NAMED(MPI_INTEGER2, 'F', bits),
        NAMED(MPI_INTEGER4, 'F', bits),
        NAMED(MPI_INTEGER8, 'F', bits),
        NAMED(MPI_REAL4, 'R', real4),
        NAMED(MPI_REAL8, 'R', real8),
        NAMED(MPI_REAL16, 'R', real16),
        NAMED(MPI_COMPLEX8, 'X', real4),
        NAMED(MPI_COMPLEX16, 'X', real8),
        NAMED(MPI_COMPLEX32, 'X', real16),
        NAMED(MPI_LOGICAL1, 'L', logical),
        NAMED(MPI_LOGICAL2, 'L', logical),
        NAMED(MPI_LOGICAL4, 'L', logical),
        NAMED(MPI_LOGICAL8, 'L', logical),
    };
#ifdef OPEN_MPI
    const auto half = reinterpret_cast<MPI_Datatype>(&ompi_mpi_short_float);
    if (half != nullptr) types.push_back({"MPIX_SHORT_FLOAT", half, 'R', Fill::real2});
#else
    if (is_intel()) {
        // From Intel's mpi.h and mpi_abi.h.
#ifdef MPI_ABI
        types.push_back({"MPIX_C_FLOAT16", reinterpret_cast<MPI_Datatype>(0x2f8), 'R', Fill::real2});
        types.push_back({"MPIX_C_BF16", reinterpret_cast<MPI_Datatype>(0x2f9), 'R', Fill::brain});
#else
        types.push_back({"MPIX_C_FLOAT16", static_cast<MPI_Datatype>(0x4c000246), 'R', Fill::real2});
        types.push_back({"MPIX_C_BF16", static_cast<MPI_Datatype>(0x4c000247), 'R', Fill::brain});
#endif
    } else {
#ifndef MPI_ABI
        types.insert(types.end(), {NAMED(MPIX_C_FLOAT16, 'R', real2), NAMED(MPIX_BFLOAT16, 'R', short_brain)});
#endif
        types.insert(types.end(), {NAMED(MPI_INTEGER16, 'F', bits), NAMED(MPI_REAL2, 'R', real2),
                                   NAMED(MPI_COMPLEX4, 'X', real2), NAMED(MPI_LOGICAL16, 'L', logical)});
    }
#endif
#undef NAMED
    std::erase_if(types, [](const PredefinedType& one) {
        int size = 0;
        return one.type == MPI_DATATYPE_NULL || MPI_Type_size(one.type, &size) != MPI_SUCCESS || size <= 0;
    });
    return types;
}

/// What makes the MPI abort instead of answering.
inline bool aborts(const PredefinedOp& op, const PredefinedType& type) {
    if (is_intel()) return type.name == "MPI_COMPLEX32";      // under the standard ABI
    return type.name == "MPIX_BFLOAT16" && op.op != MPI_SUM;  // MPICH 5.0.2: an assertion
}

/// Random elements for which the MPI's answer is the right one: Open MPI 5.0.11 sums short integers with saturation,
/// but only where vector instructions do it, and takes MPI_OFFSET for unsigned.
inline bool only_modest([[maybe_unused]] const PredefinedOp& op, [[maybe_unused]] const PredefinedType& type) {
#ifdef OPEN_MPI
    int size = 0;
    MPI_Type_size(type.type, &size);
    return type.fill == Fill::bits && ((op.op == MPI_SUM && size <= 2) || type.type == MPI_OFFSET);
#else
    return false;
#endif
}

/// A number from -2 to 2, not zero, with many digits: sums and products of such stay finite.
inline double small_number(Rng& rng) {
    const double size = 0.25 + 1.75 * static_cast<double>(rng.next() >> 11) * 0x1p-53;
    return rng.one_in(2) ? size : -size;
}

template <class T>
void put_all(std::vector<char>& data, T (*one)(Rng&), Rng& rng) {
    for (std::size_t at = 0; at + sizeof(T) <= data.size(); at += sizeof(T)) {
        const T value = one(rng);
        std::memcpy(&data[at], &value, sizeof(T));
    }
}

template <class T>
void put_small(char* at, Rng& rng) {
    const auto value = static_cast<T>(rng.between(-2, 2));
    std::memcpy(at, &value, sizeof value);
}

template <class Value, class Index>
void put_pairs_of(std::vector<char>& data, Rng& rng) {
    struct Pair {
        Value value;
        Index index;
    };
    for (std::size_t at = 0; at + sizeof(Pair) <= data.size(); at += sizeof(Pair)) {
        put_small<Value>(&data[at], rng);
        put_small<Index>(&data[at + offsetof(Pair, index)], rng);
    }
}

inline void put_pairs(std::vector<char>& data, const std::string& name, std::size_t extent, Rng& rng) {
    if (name == "MPI_FLOAT_INT") put_pairs_of<float, int>(data, rng);
    if (name == "MPI_DOUBLE_INT") put_pairs_of<double, int>(data, rng);
    if (name == "MPI_LONG_INT") put_pairs_of<long, int>(data, rng);
    if (name == "MPI_2INT") put_pairs_of<int, int>(data, rng);
    if (name == "MPI_SHORT_INT") put_pairs_of<short, int>(data, rng);
    if (name == "MPI_LONG_DOUBLE_INT") put_pairs_of<long double, int>(data, rng);
    if (name == "MPI_2INTEGER" && extent == 8) put_pairs_of<std::int32_t, std::int32_t>(data, rng);
    if (name == "MPI_2INTEGER" && extent == 16) put_pairs_of<std::int64_t, std::int64_t>(data, rng);
    if (name == "MPI_2REAL") put_pairs_of<float, float>(data, rng);
    if (name == "MPI_2DOUBLE_PRECISION") put_pairs_of<double, double>(data, rng);
}

/// Random elements as they lie one after the other, `extent` bytes each. Pairs: small values, so that many are equal.
inline void fill(std::vector<char>& data, const PredefinedType& type, std::size_t extent, bool modest, Rng& rng) {
    for (char& byte : data) byte = static_cast<char>(rng.next());
    switch (type.fill) {
        case Fill::bits:
            // Not negative, and so that two don't overflow.
            for (std::size_t at = extent - 1; modest && at < data.size(); at += extent)
                data[at] = static_cast<char>(data[at] & 0x3f);
            break;
        case Fill::real2:
            put_all<std::uint16_t>(
                data,
                [](Rng& r) {
                    return static_cast<std::uint16_t>((r.next() & 0x83ffU) | static_cast<unsigned>(r.between(13, 16))
                                                                                 << 10);
                },
                rng);
            break;
        case Fill::brain:
            put_all<std::uint16_t>(
                data,
                [](Rng& r) {
                    return static_cast<std::uint16_t>((r.next() & 0x807fU) | static_cast<unsigned>(r.between(125, 128))
                                                                                 << 7);
                },
                rng);
            break;
        case Fill::short_brain:  // three digits: MPICH rounds what lies in the middle up instead of to even
            put_all<std::uint16_t>(
                data,
                [](Rng& r) {
                    return static_cast<std::uint16_t>((r.next() & 0x8070U) | static_cast<unsigned>(r.between(125, 128))
                                                                                 << 7);
                },
                rng);
            break;
        case Fill::real4:
            put_all<float>(data, [](Rng& r) { return static_cast<float>(small_number(r)); }, rng);
            break;
        case Fill::real8:
            put_all<double>(data, small_number, rng);
            break;
        case Fill::long_double:
            put_all<long double>(data, [](Rng& r) { return static_cast<long double>(small_number(r)) / 3; }, rng);
            break;
        case Fill::real16:  // binary128: sign and exponent are the two bytes at the end
            put_all<std::uint64_t>(data, [](Rng& r) { return r.next(); }, rng);
            for (std::size_t at = 14; at + 1 < data.size(); at += 16) {
                data[at] = static_cast<char>(0xfc + rng.below(3));
                data[at + 1] = static_cast<char>(rng.one_in(2) ? 0x3f : 0xbf);
            }
            break;
        case Fill::logical:
            for (std::size_t at = 0; at < data.size(); ++at)
                data[at] = static_cast<char>(at % extent == 0 ? rng.below(2) : 0);
            break;
        case Fill::pair:
            put_pairs(data, type.name, extent, rng);
            break;
    }
}

}  // namespace test
