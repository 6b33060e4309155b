// 16-bit floating point (binary16, bfloat16) computed in float, rounded to nearest even: double rounding is innocuous
// for sums and products (Figueroa, "When is double rounding innocuous?", 1995). Branch-free, so that the loops around
// vectorise on any processor. Independent of flush-to-zero mode, except bfloat16, whose subnormal numbers are float's.
//
// Included by loops.hpp, once for each instruction set.
#pragma once

#include <cstdint>

namespace palmette::kernels::PALMETTE_KERNEL_SET {

/// Branch-free select that the compiler can't turn back into a branch, which would keep the loop around from
/// vectorising.
inline std::uint32_t either(bool condition, std::uint32_t yes, std::uint32_t no) {
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
    return (yes & mask) | (no & ~mask);
}

struct Float16 {
    std::uint16_t bits;

    float widened() const {
        const std::uint32_t sign = (bits & 0x8000U) << 16;
        const std::uint32_t magnitude = bits & 0x7fffU;
        const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
        const std::uint32_t normal = (magnitude << 13) + (112U << 23);
        const std::uint32_t infinite = (magnitude << 13) | 0x7f800000U | either(magnitude > 0x7c00U, 0x400000U, 0U);
        std::uint32_t wide = either(magnitude < 0x7c00U, normal, infinite);
        wide = either(magnitude < 0x0400U, __builtin_bit_cast(std::uint32_t, subnormal), wide);
        return __builtin_bit_cast(float, wide | sign);
    }

    static Float16 rounded(float value) {
        const auto wide = __builtin_bit_cast(std::uint32_t, value);
        const std::uint32_t sign = (wide >> 16) & 0x8000U;
        const std::uint32_t magnitude = wide & 0x7fffffffU;
        // A unit in the last place of a half is one of binary16's smallest steps: the addition rounds.
        const float at_half = __builtin_bit_cast(float, magnitude) + 0.5F;
        const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, at_half) - (126U << 23);
        const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
        const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
        std::uint32_t narrow = either(magnitude < 0x38800000U, subnormal, normal);
        narrow = either(magnitude >= 0x477ff000U, 0x7c00U, narrow);
        narrow = either(magnitude > 0x7f800000U, nan, narrow);
        return {static_cast<std::uint16_t>(narrow | sign)};
    }
};

struct Bfloat16 {
    std::uint16_t bits;

    /// The values in the lower and in the upper half of a word.
    static float low_of(std::uint32_t word) { return __builtin_bit_cast(float, word << 16); }
    static float high_of(std::uint32_t word) { return __builtin_bit_cast(float, word & 0xffff0000U); }
    /// The result is in the upper half; the lower one is undefined.
    static std::uint32_t rounded_word(float value) {
        const auto wide = __builtin_bit_cast(std::uint32_t, value);
        const std::uint32_t near = wide + 0x7fffU + ((wide >> 16) & 1U);
        return either((wide & 0x7fffffffU) > 0x7f800000U, wide | 0x400000U, near);
    }

    float widened() const { return low_of(bits); }
    static Bfloat16 rounded(float value) { return {static_cast<std::uint16_t>(rounded_word(value) >> 16)}; }
};

}  // namespace palmette::kernels::PALMETTE_KERNEL_SET
