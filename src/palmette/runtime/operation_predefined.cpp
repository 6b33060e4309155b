#include "palmette/runtime/operation_predefined.hpp"

#include <cstddef>
#include <type_traits>

#include "palmette/runtime/datatype.hpp"
#include "palmette/runtime/operation_handles.hpp"

#ifdef OPEN_MPI
// Declared in mpi-ext.h, by those versions that have it; null where the library hasn't.
extern "C" struct ompi_predefined_datatype_t ompi_mpi_short_float __attribute__((weak));
#endif

namespace palmette::runtime {
namespace {

struct TypeRow {
    TypeGroup group = TypeGroup::byte;
    std::optional<Element> element;
    /// The element follows from the type's size; of a pair, that's the group of its members.
    std::optional<TypeGroup> sized;
};

constexpr std::optional<Element> integer_of(std::size_t size, bool is_signed) {
    switch (size) {
        case 1:
            return is_signed ? Element::int8 : Element::uint8;
        case 2:
            return is_signed ? Element::int16 : Element::uint16;
        case 4:
            return is_signed ? Element::int32 : Element::uint32;
        case 8:
            return is_signed ? Element::int64 : Element::uint64;
        default:
            return std::nullopt;
    }
}

std::optional<Element> sized_element(TypeGroup group, std::size_t size) {
    switch (group) {
        case TypeGroup::fortran_integer:
            return integer_of(size, true);
        case TypeGroup::floating:
            if (size == 2) return Element::float16;
            if (size == 4) return Element::float32;
            if (size == 8) return Element::float64;
            break;
        case TypeGroup::complex:
            if (size == 8) return Element::complex_float;
            if (size == 16) return Element::complex_double;
            break;
        case TypeGroup::logical:
            if (size == 1) return Element::logical8;
            if (size == 2) return Element::logical16;
            if (size == 4) return Element::logical32;
            if (size == 8) return Element::logical64;
            break;
        default:
            break;
    }
    return std::nullopt;
}

/// Fortran's pairs have two members of one type.
std::optional<Element> pair_of(std::optional<Element> member) {
    if (member == Element::int32) return Element::int_int;
    if (member == Element::int64) return Element::int64_int64;
    if (member == Element::float32) return Element::float_float;
    if (member == Element::float64) return Element::double_double;
    return std::nullopt;
}

class Types {
  public:
    Types() {
        add_c();
        add_extensions();
        add_fortran();
    }
    const TypeRow* find(MPI_Datatype type) const { return table_.find(type); }

  private:
    void add(MPI_Datatype type, TypeGroup group, std::optional<Element> element) {
        if (type != MPI_DATATYPE_NULL) table_.add(type, {group, element, std::nullopt});
    }
    void add_by_size(MPI_Datatype type, TypeGroup group) {
        if (type != MPI_DATATYPE_NULL) table_.add(type, {group, std::nullopt, group});
    }
    void add_pair_by_size(MPI_Datatype type, TypeGroup members) {
        if (type != MPI_DATATYPE_NULL) table_.add(type, {TypeGroup::pair, std::nullopt, members});
    }
    template <class T>
    void add_integer(MPI_Datatype type, TypeGroup group = TypeGroup::c_integer) {
        add(type, group, integer_of(sizeof(T), std::is_signed_v<T>));
    }

    void add_c() {
        add_integer<signed char>(MPI_SIGNED_CHAR);
        add_integer<unsigned char>(MPI_UNSIGNED_CHAR);
        add_integer<short>(MPI_SHORT);
        add_integer<unsigned short>(MPI_UNSIGNED_SHORT);
        add_integer<int>(MPI_INT);
        add_integer<unsigned>(MPI_UNSIGNED);
        add_integer<long>(MPI_LONG);
        add_integer<unsigned long>(MPI_UNSIGNED_LONG);
        add_integer<long long>(MPI_LONG_LONG);
        add_integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
        add_integer<std::int8_t>(MPI_INT8_T);
        add_integer<std::int16_t>(MPI_INT16_T);
        add_integer<std::int32_t>(MPI_INT32_T);
        add_integer<std::int64_t>(MPI_INT64_T);
        add_integer<std::uint8_t>(MPI_UINT8_T);
        add_integer<std::uint16_t>(MPI_UINT16_T);
        add_integer<std::uint32_t>(MPI_UINT32_T);
        add_integer<std::uint64_t>(MPI_UINT64_T);
        add_integer<MPI_Aint>(MPI_AINT, TypeGroup::multi_language);
        add_integer<MPI_Offset>(MPI_OFFSET, TypeGroup::multi_language);
        add_integer<MPI_Count>(MPI_COUNT, TypeGroup::multi_language);
        add(MPI_FLOAT, TypeGroup::floating, Element::float32);
        add(MPI_DOUBLE, TypeGroup::floating, Element::float64);
        add(MPI_LONG_DOUBLE, TypeGroup::floating, Element::long_double);
        add(MPI_C_FLOAT_COMPLEX, TypeGroup::complex, Element::complex_float);
        add(MPI_C_DOUBLE_COMPLEX, TypeGroup::complex, Element::complex_double);
        add(MPI_C_LONG_DOUBLE_COMPLEX, TypeGroup::complex, Element::complex_long_double);
        add(MPI_C_BOOL, TypeGroup::logical, Element::logical8);
#ifdef MPI_CXX_BOOL
        add_by_size(MPI_CXX_BOOL, TypeGroup::logical);
        add(MPI_CXX_FLOAT_COMPLEX, TypeGroup::complex, Element::complex_float);
        add(MPI_CXX_DOUBLE_COMPLEX, TypeGroup::complex, Element::complex_double);
        add(MPI_CXX_LONG_DOUBLE_COMPLEX, TypeGroup::complex, Element::complex_long_double);
#endif
        add(MPI_BYTE, TypeGroup::byte, Element::byte);
        add(MPI_FLOAT_INT, TypeGroup::pair, Element::float_int);
        add(MPI_DOUBLE_INT, TypeGroup::pair, Element::double_int);
        add(MPI_LONG_INT, TypeGroup::pair, Element::long_int);
        add(MPI_2INT, TypeGroup::pair, Element::int_int);
        add(MPI_SHORT_INT, TypeGroup::pair, Element::short_int);
        add(MPI_LONG_DOUBLE_INT, TypeGroup::pair, Element::long_double_int);
    }

    /// Floats of 16 bits, which no version of the standard names for C.
    void add_extensions() {
#if defined(OPEN_MPI)
        add(reinterpret_cast<MPI_Datatype>(&ompi_mpi_short_float), TypeGroup::floating, Element::float16);
#elif defined(PALMETTE_ABI_STANDARD)
        // Intel MPI's, from its own mpi.h; the standard gives these two handles to nobody.
        add(reinterpret_cast<MPI_Datatype>(0x2f8), TypeGroup::floating, Element::float16);
        add(reinterpret_cast<MPI_Datatype>(0x2f9), TypeGroup::floating, Element::bfloat16);
#else
        // MPICH's, from 4.1 and from 5.0 on, and Intel MPI's bfloat16: by number, as older headers lack the names.
        add(static_cast<MPI_Datatype>(0x4c000246), TypeGroup::floating, Element::float16);
        add(static_cast<MPI_Datatype>(0x4c00024c), TypeGroup::floating, Element::bfloat16);
        add(static_cast<MPI_Datatype>(0x4c000247), TypeGroup::floating, Element::bfloat16);
#endif
    }

    void add_fortran() {
        // How large the default kinds are depends on the options of the Fortran compiler that the MPI was built for.
        add_by_size(MPI_INTEGER, TypeGroup::fortran_integer);
        add_by_size(MPI_REAL, TypeGroup::floating);
        add_by_size(MPI_DOUBLE_PRECISION, TypeGroup::floating);
        add_by_size(MPI_COMPLEX, TypeGroup::complex);
        add_by_size(MPI_DOUBLE_COMPLEX, TypeGroup::complex);
        add_by_size(MPI_LOGICAL, TypeGroup::logical);
        add_pair_by_size(MPI_2INTEGER, TypeGroup::fortran_integer);
        add_pair_by_size(MPI_2REAL, TypeGroup::floating);
        add_pair_by_size(MPI_2DOUBLE_PRECISION, TypeGroup::floating);
#ifdef MPI_INTEGER1
        add(MPI_INTEGER1, TypeGroup::fortran_integer, Element::int8);
#endif
#ifdef MPI_INTEGER2
        add(MPI_INTEGER2, TypeGroup::fortran_integer, Element::int16);
#endif
#ifdef MPI_INTEGER4
        add(MPI_INTEGER4, TypeGroup::fortran_integer, Element::int32);
#endif
#ifdef MPI_INTEGER8
        add(MPI_INTEGER8, TypeGroup::fortran_integer, Element::int64);
#endif
#ifdef MPI_INTEGER16
        add(MPI_INTEGER16, TypeGroup::fortran_integer, std::nullopt);
#endif
#ifdef MPI_REAL2
        add(MPI_REAL2, TypeGroup::floating, Element::float16);
#endif
#ifdef MPI_REAL4
        add(MPI_REAL4, TypeGroup::floating, Element::float32);
#endif
#ifdef MPI_REAL8
        add(MPI_REAL8, TypeGroup::floating, Element::float64);
#endif
#ifdef MPI_REAL16
        add(MPI_REAL16, TypeGroup::floating, std::nullopt);
#endif
#ifdef MPI_COMPLEX4
        add(MPI_COMPLEX4, TypeGroup::complex, std::nullopt);
#endif
#ifdef MPI_COMPLEX8
        add(MPI_COMPLEX8, TypeGroup::complex, Element::complex_float);
#endif
#ifdef MPI_COMPLEX16
        add(MPI_COMPLEX16, TypeGroup::complex, Element::complex_double);
#endif
#ifdef MPI_COMPLEX32
        add(MPI_COMPLEX32, TypeGroup::complex, std::nullopt);
#endif
#ifdef MPI_LOGICAL1
        add(MPI_LOGICAL1, TypeGroup::logical, Element::logical8);
#endif
#ifdef MPI_LOGICAL2
        add(MPI_LOGICAL2, TypeGroup::logical, Element::logical16);
#endif
#ifdef MPI_LOGICAL4
        add(MPI_LOGICAL4, TypeGroup::logical, Element::logical32);
#endif
#ifdef MPI_LOGICAL8
        add(MPI_LOGICAL8, TypeGroup::logical, Element::logical64);
#endif
#ifdef MPI_LOGICAL16
        add(MPI_LOGICAL16, TypeGroup::logical, std::nullopt);
#endif
    }

    HandleTable<MPI_Datatype, TypeRow, 8> table_;
};

std::optional<Element> element_of(MPI_Datatype type, TypeGroup group, TypeGroup members) {
    TypeShape shape;
    if (!size_of(type, shape)) return std::nullopt;
    const auto size = static_cast<std::size_t>(shape.size);
    return group == TypeGroup::pair ? pair_of(sized_element(members, size / 2)) : sized_element(members, size);
}

class Ops {
  public:
    Ops() {
        table_.add(MPI_SUM, {Operator::sum});
        table_.add(MPI_PROD, {Operator::prod});
        table_.add(MPI_MIN, {Operator::min});
        table_.add(MPI_MAX, {Operator::max});
        table_.add(MPI_LAND, {Operator::land});
        table_.add(MPI_LOR, {Operator::lor});
        table_.add(MPI_LXOR, {Operator::lxor});
        table_.add(MPI_BAND, {Operator::band});
        table_.add(MPI_BOR, {Operator::bor});
        table_.add(MPI_BXOR, {Operator::bxor});
        table_.add(MPI_MINLOC, {Operator::minloc});
        table_.add(MPI_MAXLOC, {Operator::maxloc});
        table_.add(MPI_REPLACE, {std::nullopt});
        table_.add(MPI_NO_OP, {std::nullopt});
    }
    const PredefinedOp* find(MPI_Op op) const { return table_.find(op); }

  private:
    HandleTable<MPI_Op, PredefinedOp, 6> table_;
};

}  // namespace

bool is_defined(Operator op, TypeGroup group) {
    const bool integer =
        group == TypeGroup::c_integer || group == TypeGroup::fortran_integer || group == TypeGroup::multi_language;
    switch (op) {
        case Operator::sum:
        case Operator::prod:
            return integer || group == TypeGroup::floating || group == TypeGroup::complex;
        case Operator::min:
        case Operator::max:
            return integer || group == TypeGroup::floating;
        case Operator::land:
        case Operator::lor:
        case Operator::lxor:
            return group == TypeGroup::c_integer || group == TypeGroup::logical;
        case Operator::band:
        case Operator::bor:
        case Operator::bxor:
            return integer || group == TypeGroup::byte;
        case Operator::minloc:
        case Operator::maxloc:
            return group == TypeGroup::pair;
    }
    return false;
}

std::optional<PredefinedType> predefined_type(MPI_Datatype type) {
    static const Types types;
    const TypeRow* row = types.find(type);
    if (row == nullptr) return std::nullopt;
    if (!row->sized) return PredefinedType{row->group, row->element};
    return PredefinedType{row->group, element_of(type, row->group, *row->sized)};
}

std::optional<PredefinedType> f90_type(MPI_Datatype type) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    if (type == MPI_DATATYPE_NULL ||
        PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return std::nullopt;
    // Not in a switch: these aren't constants of the language in every mpi.h.
    std::optional<TypeGroup> group;
    if (combiner == MPI_COMBINER_F90_REAL) group = TypeGroup::floating;
    if (combiner == MPI_COMBINER_F90_COMPLEX) group = TypeGroup::complex;
    if (combiner == MPI_COMBINER_F90_INTEGER) group = TypeGroup::fortran_integer;
    if (!group) return std::nullopt;
    return PredefinedType{*group, element_of(type, *group, *group)};
}

std::optional<PredefinedOp> predefined_op(MPI_Op op) {
    static const Ops ops;
    const PredefinedOp* found = ops.find(op);
    return found != nullptr ? std::optional(*found) : std::nullopt;
}

}  // namespace palmette::runtime
