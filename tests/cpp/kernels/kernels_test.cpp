// The kernels against plain C++, one element at a time, on every instruction set of this processor.
#include "palmette/kernels/kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "support/halves.hpp"

namespace palmette::kernels {
namespace {

using test::Binary16;
using test::Brain16;
using test::half_by_operator;

constexpr std::size_t longest = 300;
constexpr std::size_t guard = 64;
constexpr std::byte untouched{0xa5};

using Bytes = std::vector<std::byte>;

/// One element: fills it with a value that neither overflows nor is NaN, and tells what the result must be.
struct Sample {
    std::function<void(std::mt19937_64&, std::byte*)> fill;
    std::function<void(Operator, const std::byte*, const std::byte*, std::byte*)> apply;
    std::size_t value_bytes;  ///< leading bytes of an element that count
};

template <class T>
T read(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
}
template <class T>
constexpr std::size_t bytes_that_count = std::is_same_v<T, long double> && LDBL_MANT_DIG == 64 ? 10 : sizeof(T);
template <class T>
void write(std::byte* at, T value) {
    std::memcpy(at, &value, bytes_that_count<T>);
}

template <class T>
T random_value(std::mt19937_64& random) {
    if constexpr (std::is_integral_v<T>) {
        // A third of them small, so that equal values and zeros come up.
        return static_cast<T>(random() % 3 == 0 ? random() % 4 : random());
    } else {
        return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random() % 20001) - 10000) / 64.0);
    }
}

/// Sums and products of integers wrap around.
template <class T>
T by_operator(Operator op, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        const auto x = static_cast<std::uint64_t>(a);
        const auto y = static_cast<std::uint64_t>(b);
        switch (op) {
            case Operator::sum:
                return static_cast<T>(x + y);
            case Operator::prod:
                return static_cast<T>(x * y);
            case Operator::land:
                return static_cast<T>(a && b);
            case Operator::lor:
                return static_cast<T>(a || b);
            case Operator::lxor:
                return static_cast<T>(!a != !b);
            case Operator::band:
                return static_cast<T>(x & y);
            case Operator::bor:
                return static_cast<T>(x | y);
            case Operator::bxor:
                return static_cast<T>(x ^ y);
            default:
                break;
        }
    } else {
        if (op == Operator::sum) return a + b;
        if (op == Operator::prod) return a * b;
    }
    return op == Operator::min ? std::min(a, b) : std::max(a, b);
}

template <class T>
Sample plain() {
    return {[](std::mt19937_64& random, std::byte* at) { write(at, random_value<T>(random)); },
            [](Operator op, const std::byte* a, const std::byte* b, std::byte* to) {
                write(to, by_operator(op, read<T>(a), read<T>(b)));
            },
            bytes_that_count<T>};
}

/// Real and imaginary part each with their own rounding; volatile, for no compiler may fuse a product and a sum.
template <class T>
Sample complex_numbers() {
    return {[](std::mt19937_64& random, std::byte* at) {
                write(at, random_value<T>(random) / 3);
                write(at + sizeof(T), random_value<T>(random) / 7);
            },
            [](Operator op, const std::byte* left, const std::byte* right, std::byte* to) {
                const T a = read<T>(left), b = read<T>(left + sizeof(T));
                const T c = read<T>(right), d = read<T>(right + sizeof(T));
                volatile T ac = a * c, bd = b * d, ad = a * d, bc = b * c;
                write(to, op == Operator::sum ? a + c : static_cast<T>(ac - bd));
                write(to + sizeof(T), op == Operator::sum ? b + d : static_cast<T>(ad + bc));
            },
            sizeof(T) + bytes_that_count<T>};
}

template <class Value, class Index>
Sample pair() {
    struct Pair {
        Value value;
        Index index;
    };
    return {[](std::mt19937_64& random, std::byte* at) {
                write(at, static_cast<Value>(static_cast<int>(random() % 5) - 2));
                write(at + offsetof(Pair, index), static_cast<Index>(static_cast<int>(random() % 5) - 2));
            },
            [](Operator op, const std::byte* left, const std::byte* right, std::byte* to) {
                const auto a = read<Value>(left), b = read<Value>(right);
                const auto i = read<Index>(left + offsetof(Pair, index)),
                           j = read<Index>(right + offsetof(Pair, index));
                const bool first = a == b ? i <= j : (op == Operator::minloc ? a < b : a > b);
                write(to, first ? a : b);
                write(to + offsetof(Pair, index), first ? i : j);
            },
            sizeof(Pair)};
}

template <class Format>
Sample halves() {
    return {[](std::mt19937_64& random, std::byte* at) {
                std::uint16_t bits = 0;
                do bits = static_cast<std::uint16_t>(random());
                while ((bits & 0x7fffU) >= Format::infinity);
                write(at, bits);
            },
            [](Operator op, const std::byte* a, const std::byte* b, std::byte* to) {
                write(to, half_by_operator<Format>(op, read<std::uint16_t>(a), read<std::uint16_t>(b)));
            },
            2};
}

Sample sample_of(Element element) {
    switch (element) {
        case Element::int8:
            return plain<std::int8_t>();
        case Element::int16:
            return plain<std::int16_t>();
        case Element::int32:
            return plain<std::int32_t>();
        case Element::int64:
            return plain<std::int64_t>();
        case Element::uint8:
        case Element::byte:
        case Element::logical8:
            return plain<std::uint8_t>();
        case Element::uint16:
        case Element::logical16:
            return plain<std::uint16_t>();
        case Element::uint32:
        case Element::logical32:
            return plain<std::uint32_t>();
        case Element::uint64:
        case Element::logical64:
            return plain<std::uint64_t>();
        case Element::float16:
            return halves<Binary16>();
        case Element::bfloat16:
            return halves<Brain16>();
        case Element::float32:
            return plain<float>();
        case Element::float64:
            return plain<double>();
        case Element::long_double:
            return plain<long double>();
        case Element::complex_float:
            return complex_numbers<float>();
        case Element::complex_double:
            return complex_numbers<double>();
        case Element::complex_long_double:
            return complex_numbers<long double>();
        case Element::float_int:
            return pair<float, int>();
        case Element::double_int:
            return pair<double, int>();
        case Element::long_int:
            return pair<long, int>();
        case Element::int_int:
            return pair<int, int>();
        case Element::short_int:
            return pair<short, int>();
        case Element::long_double_int:
            return pair<long double, int>();
        case Element::float_float:
            return pair<float, float>();
        case Element::double_double:
            return pair<double, double>();
        case Element::int64_int64:
            return pair<std::int64_t, std::int64_t>();
    }
    return {};
}

template <class Body>
void for_every_kernel(Body body) {
    for (const InstructionSet set : instruction_sets()) {
        for (std::size_t o = 0; o < operator_count; ++o) {
            for (std::size_t e = 0; e < element_count; ++e) {
                const auto op = static_cast<Operator>(o);
                const auto element = static_cast<Element>(e);
                SCOPED_TRACE(std::string(name_of(set)) + " " + std::string(name_of(op)) + " of " +
                             std::string(name_of(element)));
                body(set, op, element);
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

enum class Target { elsewhere, left, right };

/// `count` elements, `shift` bytes off any alignment, with guards around.
void check(Kernel kernel, Operator op, Element element, std::size_t count, std::size_t shift, Target where,
           std::mt19937_64& random) {
    const Sample sample = sample_of(element);
    const std::size_t extent = bytes_of(element).extent;
    const std::size_t bytes = guard + shift + count * extent + guard;
    Bytes left(bytes, untouched), right(bytes, untouched), other(bytes, untouched);
    const std::size_t first = guard + shift;
    for (std::size_t i = 0; i < count; ++i) {
        sample.fill(random, &left[first + i * extent]);
        sample.fill(random, &right[first + i * extent]);
    }
    Bytes& target = where == Target::left ? left : where == Target::right ? right : other;
    // Where nothing is to be written, holes among it, the target's bytes stay.
    Bytes expected = target;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = first + i * extent;
        sample.apply(op, &left[at], &right[at], &expected[at]);
    }
    kernel(&left[first], &right[first], &target[first], count);
    for (std::size_t i = 0; i < bytes; ++i) {
        if (target[i] == expected[i]) continue;
        ADD_FAILURE() << "byte " << i - first << " of " << count << " elements, shift " << shift << ", target "
                      << static_cast<int>(where);
        return;
    }
}

TEST(Kernels, equal_plain_arithmetic_for_any_count_alignment_and_target) {
    std::mt19937_64 random(20);
    std::size_t kernels = 0;
    for_every_kernel([&](InstructionSet set, Operator op, Element element) {
        const Kernel kernel = kernel_for(op, element, set);
        if (kernel == nullptr) return;
        ++kernels;
        for (const Target where : {Target::elsewhere, Target::left, Target::right}) {
            for (const std::size_t count : {0, 1, 2, 3, 7, 8, 15, 31, 33, 64, 100})
                check(kernel, op, element, count, random() % 64, where, random);
            check(kernel, op, element, longest - random() % 64, random() % 64, where, random);
        }
    });
    EXPECT_EQ(kernels, 139 * instruction_sets().size());
}

TEST(Kernels, exist_where_MPI_defines_the_operation) {
    const auto count = [](Operator op) {
        std::size_t found = 0;
        for (std::size_t e = 0; e < element_count; ++e) found += kernel_for(op, static_cast<Element>(e)) != nullptr;
        return found;
    };
    EXPECT_EQ(count(Operator::sum), 16U);
    EXPECT_EQ(count(Operator::prod), 16U);
    EXPECT_EQ(count(Operator::min), 13U) << "complex numbers have no order";
    EXPECT_EQ(count(Operator::max), 13U);
    EXPECT_EQ(count(Operator::land), 12U);
    EXPECT_EQ(count(Operator::lor), 12U);
    EXPECT_EQ(count(Operator::lxor), 12U);
    EXPECT_EQ(count(Operator::band), 9U);
    EXPECT_EQ(count(Operator::bor), 9U);
    EXPECT_EQ(count(Operator::bxor), 9U);
    EXPECT_EQ(count(Operator::minloc), 9U);
    EXPECT_EQ(count(Operator::maxloc), 9U);
    EXPECT_EQ(kernel_for(Operator::band, Element::float32), nullptr);
    EXPECT_EQ(kernel_for(Operator::sum, Element::float_int), nullptr);
    EXPECT_EQ(kernel_for(Operator::sum, Element::byte), nullptr);
}

TEST(Kernels, give_the_same_bits_on_every_instruction_set_for_any_bits) {
    std::mt19937_64 random(21);
    for_every_kernel([&](InstructionSet set, Operator op, Element element) {
        // With two that aren't numbers the processor keeps one of both, and which one is the compiler's to say.
        const bool rounded = element >= Element::float16 && element <= Element::complex_long_double;
        const bool pairs = op == Operator::minloc || op == Operator::maxloc;
        const Kernel kernel = kernel_for(op, element, set);
        if (kernel == nullptr || rounded || pairs) return;
        Bytes left(longest * bytes_of(element).extent), right(left.size()), target(left.size()), first(left.size());
        for (std::byte& byte : left) byte = static_cast<std::byte>(random());
        for (std::byte& byte : right) byte = static_cast<std::byte>(random());
        kernel(left.data(), right.data(), target.data(), longest);
        kernel_for(op, element, InstructionSet::baseline)(left.data(), right.data(), first.data(), longest);
        EXPECT_EQ(target, first);
    });
}

template <class Format>
void check_halves(Element element) {
    // Each number with those that round in an interesting way: itself, one, the smallest, the largest.
    const std::vector<std::uint16_t> partners{0x0000, 0x8000, 0x0001, 0x8001,
                                              0x3c00, 0x3f80, 0x1234, Format::infinity - 1};
    std::vector<std::uint16_t> left, right;
    for (unsigned bits = 0; bits < 0x10000U; ++bits) {
        if ((bits & 0x7fffU) >= Format::infinity) continue;
        for (std::uint16_t partner : partners) {
            left.push_back(static_cast<std::uint16_t>(bits));
            right.push_back(partner);
        }
        left.push_back(static_cast<std::uint16_t>(bits));
        right.push_back(static_cast<std::uint16_t>(bits));
    }
    for (const Operator op : {Operator::sum, Operator::prod, Operator::min, Operator::max}) {
        std::vector<std::uint16_t> expected;
        for (std::size_t i = 0; i < left.size(); ++i)
            expected.push_back(half_by_operator<Format>(op, left[i], right[i]));
        for (const InstructionSet set : instruction_sets()) {
            std::vector<std::uint16_t> target(left.size());
            kernel_for(op, element, set)(left.data(), right.data(), target.data(), left.size());
            for (std::size_t i = 0; i < left.size(); ++i) {
                ASSERT_EQ(target[i], expected[i])
                    << name_of(set) << " " << name_of(op) << " of " << std::hex << left[i] << " and " << right[i];
            }
        }
    }
}

TEST(Kernels, every_binary16_is_rounded_to_nearest_even) { check_halves<Binary16>(Element::float16); }
TEST(Kernels, every_bfloat16_is_rounded_to_nearest_even) { check_halves<Brain16>(Element::bfloat16); }

TEST(Kernels, infinities_and_what_is_no_number_stay_so_in_16_bits) {
    for (const InstructionSet set : instruction_sets()) {
        const auto both = [&](Element element, Operator op, std::uint16_t a, std::uint16_t b) {
            std::uint16_t result = 0;
            kernel_for(op, element, set)(&a, &b, &result, 1);
            return result;
        };
        EXPECT_EQ(both(Element::float16, Operator::sum, 0x7c00, 0x3c00), 0x7c00);
        EXPECT_EQ(both(Element::float16, Operator::sum, 0x7bff, 0x7bff), 0x7c00);
        EXPECT_EQ(both(Element::float16, Operator::prod, 0xfbff, 0x7bff), 0xfc00);
        EXPECT_EQ(both(Element::float16, Operator::sum, 0x7e00, 0x3c00), 0x7e00);
        EXPECT_EQ(both(Element::float16, Operator::sum, 0x7c01, 0x3c00), 0x7e01) << "a signalling one becomes quiet";
        EXPECT_EQ(both(Element::bfloat16, Operator::sum, 0x7f80, 0x3f80), 0x7f80);
        EXPECT_EQ(both(Element::bfloat16, Operator::sum, 0x7f7f, 0x7f7f), 0x7f80);
        EXPECT_EQ(both(Element::bfloat16, Operator::sum, 0x7fc0, 0x3f80), 0x7fc0);
    }
}

TEST(Kernels, sizes_are_those_of_C) {
    EXPECT_EQ(bytes_of(Element::short_int).size, 6U);
    EXPECT_EQ(bytes_of(Element::short_int).extent, 8U);
    EXPECT_EQ(bytes_of(Element::double_int).size, 12U);
    EXPECT_EQ(bytes_of(Element::double_int).extent, 16U);
    EXPECT_EQ(bytes_of(Element::complex_double).extent, 16U);
    EXPECT_EQ(bytes_of(Element::bfloat16).extent, 2U);
}

TEST(Kernels, exact_are_those_of_whole_numbers) {
    EXPECT_TRUE(is_exact(Operator::sum, Element::int32));
    EXPECT_TRUE(is_exact(Operator::bxor, Element::byte));
    EXPECT_TRUE(is_exact(Operator::maxloc, Element::int_int));
    EXPECT_FALSE(is_exact(Operator::sum, Element::float32));
    EXPECT_FALSE(is_exact(Operator::max, Element::bfloat16)) << "0.0 and -0.0 are equal, and different";
    EXPECT_FALSE(is_exact(Operator::minloc, Element::double_int));
}

}  // namespace
}  // namespace palmette::kernels
