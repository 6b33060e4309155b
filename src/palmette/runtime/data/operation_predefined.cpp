#include "palmette/runtime/data/operation_predefined.hpp"

#include <cstddef>
#include <type_traits>

#include "palmette/mpi/library.hpp"
#include "palmette/runtime/data/datatype.hpp"

namespace palmette::runtime {
namespace {

using kernels::Element;
using kernels::Operator;
using enum TypeGroup;

bool is_integer(TypeGroup group) { return group == c_integer || group == fortran_integer || group == multi_language; }

/// Whether MPI defines the operation on that group.
bool is_defined(Operator op, TypeGroup group) {
    switch (op) {
        case Operator::sum:
        case Operator::prod:
            return is_integer(group) || group == floating || group == complex;
        case Operator::min:
        case Operator::max:
            return is_integer(group) || group == floating;
        case Operator::land:
        case Operator::lor:
        case Operator::lxor:
            return group == c_integer || group == logical;
        case Operator::band:
        case Operator::bor:
        case Operator::bxor:
            return is_integer(group) || group == byte;
        case Operator::minloc:
        case Operator::maxloc:
            return group == pair;
    }
    return false;
}

ElementLayout layout_of(Element element) {
    const kernels::ElementBytes bytes = bytes_of(element);
    return {static_cast<std::int64_t>(bytes.size), static_cast<std::int64_t>(bytes.extent), 0,
            static_cast<std::int64_t>(bytes.true_extent)};
}

PredefinedType type_of(TypeGroup group, std::optional<Element> element) {
    PredefinedType type;
    type.has_element = element.has_value();
    type.element = element.value_or(Element::byte);
    if (element) type.layout = layout_of(*element);
    for (std::size_t i = 0; i < kernels::operator_count; ++i) {
        const auto op = static_cast<Operator>(i);
        type.defined[i] = is_defined(op, group);
        if (!element || !type.defined[i]) continue;
        type.kernels[i] = kernels::kernel_for(op, *element);
        type.exact[i] = kernels::is_exact(op, *element);
    }
    return type;
}

std::optional<Element> integer_of(std::size_t size_bytes, bool is_signed) {
    switch (size_bytes) {
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

}  // namespace

const Predefined& Predefined::instance() {
    static const Predefined* all = new Predefined;
    return *all;
}

Predefined::Predefined() {
    add_operations();
    add_c();
    add_extensions();
    add_fortran();
}

void Predefined::add(MPI_Datatype type, TypeGroup group, std::optional<Element> element) {
    if (type != MPI_DATATYPE_NULL) types_.add(type, type_of(group, element));
}

void Predefined::add_by_size(MPI_Datatype type, TypeGroup group, TypeGroup members) {
    PredefinedType row = type_of(group, std::nullopt);
    row.sized = SizedAs{group, members};
    types_.add(type, row);
}

template <class T>
void Predefined::add_integer(MPI_Datatype type, TypeGroup group) {
    add(type, group, integer_of(sizeof(T), std::is_signed_v<T>));
}

void Predefined::add_operations() {
    ops_.add(MPI_SUM, {Operator::sum});
    ops_.add(MPI_PROD, {Operator::prod});
    ops_.add(MPI_MIN, {Operator::min});
    ops_.add(MPI_MAX, {Operator::max});
    ops_.add(MPI_LAND, {Operator::land});
    ops_.add(MPI_LOR, {Operator::lor});
    ops_.add(MPI_LXOR, {Operator::lxor});
    ops_.add(MPI_BAND, {Operator::band});
    ops_.add(MPI_BOR, {Operator::bor});
    ops_.add(MPI_BXOR, {Operator::bxor});
    ops_.add(MPI_MINLOC, {Operator::minloc});
    ops_.add(MPI_MAXLOC, {Operator::maxloc});
    ops_.add(MPI_REPLACE, {std::nullopt});
    ops_.add(MPI_NO_OP, {std::nullopt});
}

void Predefined::add_c() {
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
    add_integer<MPI_Aint>(MPI_AINT, multi_language);
    add_integer<MPI_Offset>(MPI_OFFSET, multi_language);
    add_integer<MPI_Count>(MPI_COUNT, multi_language);
    add(MPI_FLOAT, floating, Element::float32);
    add(MPI_DOUBLE, floating, Element::float64);
    add(MPI_LONG_DOUBLE, floating, Element::long_double);
    add(MPI_C_FLOAT_COMPLEX, complex, Element::complex_float);
    add(MPI_C_DOUBLE_COMPLEX, complex, Element::complex_double);
    add(MPI_C_LONG_DOUBLE_COMPLEX, complex, Element::complex_long_double);
    add(MPI_C_BOOL, logical, Element::logical8);
    add(MPI_BYTE, byte, Element::byte);
    add(MPI_FLOAT_INT, pair, Element::float_int);
    add(MPI_DOUBLE_INT, pair, Element::double_int);
    add(MPI_LONG_INT, pair, Element::long_int);
    add(MPI_2INT, pair, Element::int_int);
    add(MPI_SHORT_INT, pair, Element::short_int);
    add(MPI_LONG_DOUBLE_INT, pair, Element::long_double_int);
// SimGrid's header names them and declares none.
#if defined(MPI_CXX_BOOL) && !defined(PALMETTE_ABI_SMPI)
    add_by_size(MPI_CXX_BOOL, logical, logical);
    add(MPI_CXX_FLOAT_COMPLEX, complex, Element::complex_float);
    add(MPI_CXX_DOUBLE_COMPLEX, complex, Element::complex_double);
    add(MPI_CXX_LONG_DOUBLE_COMPLEX, complex, Element::complex_long_double);
#endif
}

/// Floats of 16 bits, for which no version of the standard has a name in C.
void Predefined::add_extensions() {
#if defined(OPEN_MPI)
    // Declared in mpi-ext.h, by those versions that have it.
    add(static_cast<MPI_Datatype>(mpi::find("ompi_mpi_short_float")), floating, Element::float16);
#elif defined(PALMETTE_ABI_STANDARD)
    // Intel MPI's, from its own mpi_abi.h; the standard leaves these two numbers unassigned.
    add(reinterpret_cast<MPI_Datatype>(0x2f8), floating, Element::float16);
    add(reinterpret_cast<MPI_Datatype>(0x2f9), floating, Element::bfloat16);
#elif defined(PALMETTE_ABI_SMPI)
    // SimGrid's MPI has none.
#else
    // By number, as older headers lack the names: MPIX_C_FLOAT16, MPICH's MPIX_BFLOAT16, Intel MPI's MPIX_C_BF16.
    add(static_cast<MPI_Datatype>(0x4c000246), floating, Element::float16);
    add(static_cast<MPI_Datatype>(0x4c00024c), floating, Element::bfloat16);
    add(static_cast<MPI_Datatype>(0x4c000247), floating, Element::bfloat16);
#endif
}

void Predefined::add_fortran() {
    // How large the default kinds are depends on the options of the Fortran compiler that the MPI was built for.
    add_by_size(MPI_INTEGER, fortran_integer, fortran_integer);
    add_by_size(MPI_REAL, floating, floating);
    add_by_size(MPI_DOUBLE_PRECISION, floating, floating);
    add_by_size(MPI_COMPLEX, complex, complex);
    add_by_size(MPI_DOUBLE_COMPLEX, complex, complex);
    add_by_size(MPI_LOGICAL, logical, logical);
    add_by_size(MPI_2INTEGER, pair, fortran_integer);
    add_by_size(MPI_2REAL, pair, floating);
    add_by_size(MPI_2DOUBLE_PRECISION, pair, floating);
    const auto size = [this](std::int64_t bytes, TypeGroup group, TypeGroup members, Element element) {
        sized_.push_back({bytes, {group, members}, type_of(group, element)});
    };
    size(1, fortran_integer, fortran_integer, Element::int8);
    size(2, fortran_integer, fortran_integer, Element::int16);
    size(4, fortran_integer, fortran_integer, Element::int32);
    size(8, fortran_integer, fortran_integer, Element::int64);
    size(2, floating, floating, Element::float16);
    size(4, floating, floating, Element::float32);
    size(8, floating, floating, Element::float64);
    size(8, complex, complex, Element::complex_float);
    size(16, complex, complex, Element::complex_double);
    size(1, logical, logical, Element::logical8);
    size(2, logical, logical, Element::logical16);
    size(4, logical, logical, Element::logical32);
    size(8, logical, logical, Element::logical64);
    size(8, pair, fortran_integer, Element::int_int);
    size(16, pair, fortran_integer, Element::int64_int64);
    size(8, pair, floating, Element::float_float);
    size(16, pair, floating, Element::double_double);
    // Null handles for what a compiler lacks, or no name at all.
#ifdef MPI_INTEGER1
    add(MPI_INTEGER1, fortran_integer, Element::int8);
#endif
#ifdef MPI_INTEGER2
    add(MPI_INTEGER2, fortran_integer, Element::int16);
#endif
#ifdef MPI_INTEGER4
    add(MPI_INTEGER4, fortran_integer, Element::int32);
#endif
#ifdef MPI_INTEGER8
    add(MPI_INTEGER8, fortran_integer, Element::int64);
#endif
#ifdef MPI_INTEGER16
    add(MPI_INTEGER16, fortran_integer, std::nullopt);
#endif
#ifdef MPI_REAL2
    add(MPI_REAL2, floating, Element::float16);
#endif
#ifdef MPI_REAL4
    add(MPI_REAL4, floating, Element::float32);
#endif
#ifdef MPI_REAL8
    add(MPI_REAL8, floating, Element::float64);
#endif
#ifdef MPI_REAL16
    add(MPI_REAL16, floating, std::nullopt);
#endif
#ifdef MPI_COMPLEX4
    add(MPI_COMPLEX4, complex, std::nullopt);
#endif
#ifdef MPI_COMPLEX8
    add(MPI_COMPLEX8, complex, Element::complex_float);
#endif
#ifdef MPI_COMPLEX16
    add(MPI_COMPLEX16, complex, Element::complex_double);
#endif
#ifdef MPI_COMPLEX32
    add(MPI_COMPLEX32, complex, std::nullopt);
#endif
#ifdef MPI_LOGICAL1
    add(MPI_LOGICAL1, logical, Element::logical8);
#endif
#ifdef MPI_LOGICAL2
    add(MPI_LOGICAL2, logical, Element::logical16);
#endif
#ifdef MPI_LOGICAL4
    add(MPI_LOGICAL4, logical, Element::logical32);
#endif
#ifdef MPI_LOGICAL8
    add(MPI_LOGICAL8, logical, Element::logical64);
#endif
#ifdef MPI_LOGICAL16
    add(MPI_LOGICAL16, logical, std::nullopt);
#endif
}

const PredefinedType* Predefined::by_size(MPI_Datatype type, const PredefinedType& row) const {
    TypeShape shape;
    if (!size_of(type, shape)) return nullptr;
    for (const Sized& known : sized_) {
        if (known.size_bytes == shape.size && known.as == *row.sized) return &known.type;
    }
    return &row;
}

const PredefinedType* Predefined::find_f90(MPI_Datatype type) const {
    const auto combiner = combiner_of(type);
    // No switch: in some mpi.h these aren't constants of the language.
    if (combiner == MPI_COMBINER_F90_REAL) return by_size(type, *types_.find(MPI_REAL));
    if (combiner == MPI_COMBINER_F90_COMPLEX) return by_size(type, *types_.find(MPI_COMPLEX));
    if (combiner == MPI_COMBINER_F90_INTEGER) return by_size(type, *types_.find(MPI_INTEGER));
    return nullptr;
}

}  // namespace palmette::runtime
