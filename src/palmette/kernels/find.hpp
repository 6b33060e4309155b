// Dispatch from (operation, element type) to the loop of one instruction set. Each instruction set's .cpp includes this
// once.
#pragma once

#include "palmette/kernels/loops.hpp"

namespace palmette::kernels::PALMETTE_KERNEL_SET {

// gcc 12 fuses a product with a neighbouring difference (FMA) in spite of -ffp-contract=off, and AVX-512 always
// includes FMA: results would differ bitwise from those of other processors. avx512.cpp falls back to AVX2's loop.
#ifdef __AVX512F__
inline constexpr bool fuses_products = true;
#else
inline constexpr bool fuses_products = false;
#endif

template <class Op, class T>
Kernel on_complex() {
    if constexpr (__is_same(Op, Sum)) {
        return complex_sum<T>;
    } else if constexpr (fuses_products && sizeof(T) <= sizeof(double)) {
        return nullptr;
    } else {
        return complex_product<T>;
    }
}

template <class Op>
Kernel arithmetic(Element element) {
    switch (element) {
        case Element::int8:
        case Element::uint8:
            return loop<Op, std::uint8_t>;
        case Element::int16:
        case Element::uint16:
            return loop<Op, std::uint16_t>;
        case Element::int32:
        case Element::uint32:
            return loop<Op, std::uint32_t>;
        case Element::int64:
        case Element::uint64:
            return loop<Op, std::uint64_t>;
        case Element::float16:
            return float16_loop<Op>;
        case Element::bfloat16:
            return bfloat16_loop<Op>;
        case Element::float32:
            return loop<Op, float>;
        case Element::float64:
            return loop<Op, double>;
        case Element::long_double:
            return loop<Op, long double>;
        case Element::complex_float:
            return on_complex<Op, float>();
        case Element::complex_double:
            return on_complex<Op, double>();
        case Element::complex_long_double:
            return on_complex<Op, long double>();
        default:
            return nullptr;
    }
}

template <class Op>
Kernel extremum(Element element) {
    switch (element) {
        case Element::int8:
            return loop<Op, std::int8_t>;
        case Element::int16:
            return loop<Op, std::int16_t>;
        case Element::int32:
            return loop<Op, std::int32_t>;
        case Element::int64:
            return loop<Op, std::int64_t>;
        case Element::uint8:
            return loop<Op, std::uint8_t>;
        case Element::uint16:
            return loop<Op, std::uint16_t>;
        case Element::uint32:
            return loop<Op, std::uint32_t>;
        case Element::uint64:
            return loop<Op, std::uint64_t>;
        case Element::float16:
            return float16_loop<Op>;
        case Element::bfloat16:
            return bfloat16_loop<Op>;
        case Element::float32:
            return loop<Op, float>;
        case Element::float64:
            return loop<Op, double>;
        case Element::long_double:
            return loop<Op, long double>;
        default:
            return nullptr;
    }
}

template <class Op>
Kernel on_integers(Element element) {
    switch (element) {
        case Element::int8:
        case Element::uint8:
            return loop<Op, std::uint8_t>;
        case Element::int16:
        case Element::uint16:
            return loop<Op, std::uint16_t>;
        case Element::int32:
        case Element::uint32:
            return loop<Op, std::uint32_t>;
        case Element::int64:
        case Element::uint64:
            return loop<Op, std::uint64_t>;
        default:
            return nullptr;
    }
}

template <class Op>
Kernel logical(Element element) {
    switch (element) {
        case Element::logical8:
            return loop<Op, std::uint8_t>;
        case Element::logical16:
            return loop<Op, std::uint16_t>;
        case Element::logical32:
            return loop<Op, std::uint32_t>;
        case Element::logical64:
            return loop<Op, std::uint64_t>;
        default:
            return on_integers<Op>(element);
    }
}

template <class Op>
Kernel bitwise(Element element) {
    return element == Element::byte ? loop<Op, std::uint8_t> : on_integers<Op>(element);
}

template <class Better>
Kernel location(Element element) {
    switch (element) {
        case Element::float_int:
            return location_loop<Better, float, int>;
        case Element::double_int:
            return location_loop<Better, double, int>;
        case Element::long_int:
            return location_loop<Better, long, int>;
        case Element::int_int:
            return location_loop<Better, int, int>;
        case Element::short_int:
            return location_loop<Better, short, int>;
        case Element::long_double_int:
            return location_loop<Better, long double, int>;
        case Element::float_float:
            return location_loop<Better, float, float>;
        case Element::double_double:
            return location_loop<Better, double, double>;
        case Element::int64_int64:
            return location_loop<Better, std::int64_t, std::int64_t>;
        default:
            return nullptr;
    }
}

inline Kernel find(Operator op, Element element) {
    switch (op) {
        case Operator::sum:
            return arithmetic<Sum>(element);
        case Operator::prod:
            return arithmetic<Prod>(element);
        case Operator::min:
            return extremum<Min>(element);
        case Operator::max:
            return extremum<Max>(element);
        case Operator::land:
            return logical<LogicalAnd>(element);
        case Operator::lor:
            return logical<LogicalOr>(element);
        case Operator::lxor:
            return logical<LogicalXor>(element);
        case Operator::band:
            return bitwise<BitAnd>(element);
        case Operator::bor:
            return bitwise<BitOr>(element);
        case Operator::bxor:
            return bitwise<BitXor>(element);
        case Operator::minloc:
            return location<Less>(element);
        case Operator::maxloc:
            return location<Greater>(element);
    }
    return nullptr;
}

}  // namespace palmette::kernels::PALMETTE_KERNEL_SET
