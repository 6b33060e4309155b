// The loops behind kernel_for. Each instruction set's .cpp includes this once (by find.hpp), with its own namespace
// (PALMETTE_KERNEL_SET) and compiler flags. No standard-library calls: an inline function that isn't inlined would be
// merged with the copies of other translation units, which could then execute instructions that the processor lacks.
#pragma once

#ifndef PALMETTE_KERNEL_SET
#error "define PALMETTE_KERNEL_SET, the namespace of this instruction set, before including this file"
#endif

#include <cfloat>
#include <cstddef>
#include <cstdint>

#include "palmette/kernels/half.hpp"
#include "palmette/kernels/kernels.hpp"

#ifdef __F16C__
#include <immintrin.h>
#endif

// No loop-carried dependency: target may alias left or right, but only at the same index, which the compiler can't
// know.
#if defined(__clang__)
#define PALMETTE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PALMETTE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace palmette::kernels::PALMETTE_KERNEL_SET {

/// Bytes of a value without padding, which x87's long double has.
template <class T>
inline constexpr std::size_t value_bytes = sizeof(T);
template <>
inline constexpr std::size_t value_bytes<long double> = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);

// memcpy expresses an unaligned access.
template <class T>
T load(const void* from, std::size_t offset) {
    T value;
    __builtin_memcpy(&value, static_cast<const char*>(from) + offset, sizeof(T));
    return value;
}
template <class T>
void store(void* to, std::size_t offset, T value) {
    __builtin_memcpy(static_cast<char*>(to) + offset, &value, value_bytes<T>);
}

// Integer arithmetic is done unsigned, which wraps around as the MPIs' sums do; `1U *` avoids promotion of short types
// to int, whose products overflow (undefined behaviour).
struct Sum {
    static float of(float a, float b) { return a + b; }
    static double of(double a, double b) { return a + b; }
    static long double of(long double a, long double b) { return a + b; }
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a + b);
    }
};
struct Prod {
    static float of(float a, float b) { return a * b; }
    static double of(double a, double b) { return a * b; }
    static long double of(long double a, long double b) { return a * b; }
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(1U * a * b);
    }
};
struct Min {
    template <class T>
    static T of(T a, T b) {
        return a < b ? a : b;
    }
};
struct Max {
    template <class T>
    static T of(T a, T b) {
        return a > b ? a : b;
    }
};
struct LogicalAnd {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(static_cast<T>(a != 0) & static_cast<T>(b != 0));
    }
};
struct LogicalOr {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>((a | b) != 0);
    }
};
struct LogicalXor {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(static_cast<T>(a != 0) ^ static_cast<T>(b != 0));
    }
};
struct BitAnd {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a & b);
    }
};
struct BitOr {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a | b);
    }
};
struct BitXor {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};

template <class Op, class T>
void loop(const void* left, const void* right, void* target, std::size_t count) {
    PALMETTE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * sizeof(T);
        store(target, at, Op::of(load<T>(left, at), load<T>(right, at)));
    }
}

template <class Op, class T>
T of_halves(T a, T b) {
    return T::rounded(Op::of(a.widened(), b.widened()));
}

/// Two at a time, as the halves of a word, each widened and rounded in place: no shuffles between lanes.
template <class Op>
void bfloat16_loop(const void* left, const void* right, void* target, std::size_t count) {
    const std::size_t words = count / 2;
    PALMETTE_INDEPENDENT
    for (std::size_t i = 0; i < words; ++i) {
        const std::size_t at = i * sizeof(std::uint32_t);
        const auto a = load<std::uint32_t>(left, at);
        const auto b = load<std::uint32_t>(right, at);
        const std::uint32_t low = Bfloat16::rounded_word(Op::of(Bfloat16::low_of(a), Bfloat16::low_of(b)));
        const std::uint32_t high = Bfloat16::rounded_word(Op::of(Bfloat16::high_of(a), Bfloat16::high_of(b)));
        store(target, at, (low >> 16) | (high & 0xffff0000U));
    }
    if (count % 2 == 0) return;
    const std::size_t last = (count - 1) * sizeof(Bfloat16);
    store(target, last, of_halves<Op>(load<Bfloat16>(left, last), load<Bfloat16>(right, last)));
}

#ifdef __F16C__
// gcc 12 vectorises binary16 conversions only with these intrinsics.
template <class Op>
__m128i of_eight(__m128i left, __m128i right) {
    const __m256 result = Op::of(_mm256_cvtph_ps(left), _mm256_cvtph_ps(right));
    return _mm256_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT);
}

template <class Op>
void float16_loop(const void* left, const void* right, void* target, std::size_t count) {
    constexpr std::size_t lanes = 8;
    std::size_t at = 0;
    const std::size_t whole = count / lanes * sizeof(__m128i);
    for (; at < whole; at += sizeof(__m128i))
        store(target, at, of_eight<Op>(load<__m128i>(left, at), load<__m128i>(right, at)));
    const std::size_t rest = count % lanes * sizeof(Float16);
    if (rest == 0) return;
    __m128i a{};
    __m128i b{};
    __builtin_memcpy(&a, static_cast<const char*>(left) + at, rest);
    __builtin_memcpy(&b, static_cast<const char*>(right) + at, rest);
    const __m128i result = of_eight<Op>(a, b);
    __builtin_memcpy(static_cast<char*>(target) + at, &result, rest);
}
#else
template <class Op>
void float16_loop(const void* left, const void* right, void* target, std::size_t count) {
    PALMETTE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * sizeof(Float16);
        store(target, at, of_halves<Op>(load<Float16>(left, at), load<Float16>(right, at)));
    }
}
#endif

template <class T>
void complex_sum(const void* left, const void* right, void* target, std::size_t count) {
    loop<Sum, T>(left, right, target, 2 * count);
}

/// The textbook complex product, without C Annex G's recovery of infinities from NaN.
template <class T>
void complex_product(const void* left, const void* right, void* target, std::size_t count) {
    PALMETTE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t real = 2 * i * sizeof(T);
        const std::size_t imaginary = real + sizeof(T);
        const T a = load<T>(left, real);
        const T b = load<T>(left, imaginary);
        const T c = load<T>(right, real);
        const T d = load<T>(right, imaginary);
        store(target, real, static_cast<T>(a * c - b * d));
        store(target, imaginary, static_cast<T>(a * d + b * c));
    }
}

/// MINLOC and MAXLOC: of equal values, the one with the smaller index.
template <class Better, class Value, class Index>
void location_loop(const void* left, const void* right, void* target, std::size_t count) {
    struct Pair {
        Value value;
        Index index;
    };
    PALMETTE_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * sizeof(Pair);
        const std::size_t index_at = at + offsetof(Pair, index);
        const auto a = load<Value>(left, at);
        const auto b = load<Value>(right, at);
        const auto a_index = load<Index>(left, index_at);
        const auto b_index = load<Index>(right, index_at);
        const bool second = Better::than(b, a) | ((a == b) & (b_index < a_index));
        store(target, at, second ? b : a);
        store(target, index_at, second ? b_index : a_index);
    }
}
struct Less {
    template <class T>
    static bool than(T a, T b) {
        return a < b;
    }
};
struct Greater {
    template <class T>
    static bool than(T a, T b) {
        return a > b;
    }
};

}  // namespace palmette::kernels::PALMETTE_KERNEL_SET
