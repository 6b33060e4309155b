// Floats of 16 bits by way of doubles and a search for the nearest: slow, and nothing in common with the kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "palmette/kernels/kernels.hpp"

namespace palmette::test {

template <int fraction_bits, int smallest_exponent>
struct Half {
    static double value(std::uint16_t bits) {
        const int exponent = (bits & 0x7fff) >> fraction_bits;
        const int fraction = bits & ((1 << fraction_bits) - 1);
        const double size = exponent == 0 ? std::ldexp(fraction, smallest_exponent - fraction_bits)
                                          : std::ldexp(fraction + (1 << fraction_bits),
                                                       exponent - 1 + smallest_exponent - fraction_bits);
        return bits & 0x8000 ? -size : size;
    }
    /// The nearest, of two the even one. What is nearest to the number behind the largest is infinite.
    static std::uint16_t nearest(double wanted) {
        const double size = std::abs(wanted);
        unsigned low = 0, high = infinity;
        while (high - low > 1) {
            const unsigned middle = (low + high) / 2;
            (value(static_cast<std::uint16_t>(middle)) <= size ? low : high) = middle;
        }
        const double below = size - value(static_cast<std::uint16_t>(low));
        const double above = value(static_cast<std::uint16_t>(high)) - size;
        const unsigned bits = below < above || (below == above && low % 2 == 0) ? low : high;
        return static_cast<std::uint16_t>(bits | (std::signbit(wanted) ? 0x8000U : 0U));
    }
    static constexpr unsigned infinity = 0x7fffU >> fraction_bits << fraction_bits;
};
using Binary16 = Half<10, -14>;
using Brain16 = Half<7, -126>;

template <class Format>
std::uint16_t half_by_operator(kernels::Operator op, std::uint16_t a, std::uint16_t b) {
    const double x = Format::value(a), y = Format::value(b);
    switch (op) {
        case kernels::Operator::sum:
            return Format::nearest(x + y);
        case kernels::Operator::prod:
            return Format::nearest(x * y);
        case kernels::Operator::min:
            return x < y ? a : b;
        default:
            return x > y ? a : b;
    }
}

}  // namespace palmette::test
