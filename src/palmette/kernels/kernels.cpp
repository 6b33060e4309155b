#include "palmette/kernels/kernels.hpp"

#include <complex>
#include <cstddef>

#include "palmette/kernels/sets.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace palmette::kernels {
namespace {

template <class Value, class Index>
struct Pair {
    Value value;
    Index index;
};

template <class Value, class Index>
constexpr ElementBytes pair_bytes() {
    using Both = Pair<Value, Index>;
    return {sizeof(Value) + sizeof(Index), sizeof(Both), offsetof(Both, index) + sizeof(Index)};
}
template <class T>
constexpr ElementBytes plain_bytes() {
    return {sizeof(T), sizeof(T), sizeof(T)};
}

struct Named {
    std::string_view name;
    ElementBytes bytes;
};

// In the order of Element.
constexpr std::array<Named, element_count> elements{{
    {"int8", plain_bytes<std::int8_t>()},
    {"int16", plain_bytes<std::int16_t>()},
    {"int32", plain_bytes<std::int32_t>()},
    {"int64", plain_bytes<std::int64_t>()},
    {"uint8", plain_bytes<std::uint8_t>()},
    {"uint16", plain_bytes<std::uint16_t>()},
    {"uint32", plain_bytes<std::uint32_t>()},
    {"uint64", plain_bytes<std::uint64_t>()},
    {"float16", plain_bytes<std::uint16_t>()},
    {"bfloat16", plain_bytes<std::uint16_t>()},
    {"float32", plain_bytes<float>()},
    {"float64", plain_bytes<double>()},
    {"long_double", plain_bytes<long double>()},
    {"complex_float", plain_bytes<std::complex<float>>()},
    {"complex_double", plain_bytes<std::complex<double>>()},
    {"complex_long_double", plain_bytes<std::complex<long double>>()},
    {"logical8", plain_bytes<std::uint8_t>()},
    {"logical16", plain_bytes<std::uint16_t>()},
    {"logical32", plain_bytes<std::uint32_t>()},
    {"logical64", plain_bytes<std::uint64_t>()},
    {"byte", plain_bytes<std::uint8_t>()},
    {"float_int", pair_bytes<float, int>()},
    {"double_int", pair_bytes<double, int>()},
    {"long_int", pair_bytes<long, int>()},
    {"int_int", pair_bytes<int, int>()},
    {"short_int", pair_bytes<short, int>()},
    {"long_double_int", pair_bytes<long double, int>()},
    {"float_float", pair_bytes<float, float>()},
    {"double_double", pair_bytes<double, double>()},
    {"int64_int64", pair_bytes<std::int64_t, std::int64_t>()},
}};
static_assert(elements.back().name == "int64_int64");

constexpr std::array<std::string_view, operator_count> operators{"sum",  "prod", "min", "max",  "land",   "lor",
                                                                 "lxor", "band", "bor", "bxor", "minloc", "maxloc"};

const Named& row_of(Element element) { return elements[static_cast<std::size_t>(element)]; }

constexpr std::array<InstructionSet, 3> all_sets{InstructionSet::baseline, InstructionSet::avx2,
                                                 InstructionSet::avx512};

/// How many of all_sets this processor and its operating system support: each set includes the one before it. By cpuid
/// itself, since __builtin_cpu_supports needs a part of libgcc that not every toolchain has.
std::size_t available() {
#ifdef __x86_64__
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned first = bit_OSXSAVE | bit_AVX | bit_F16C;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & first) != first) return 1;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return 1;
    unsigned saved = 0, upper = 0;  // XCR0: the registers that the system saves at a context switch
    asm volatile("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
    constexpr unsigned ymm = 0x6, zmm = 0xe6;
    // Null in a build that compiled the set's file without its flags.
    if (!avx2_kernel(Operator::sum, Element::float32) || !(ebx & bit_AVX2) || (saved & ymm) != ymm) return 1;
    constexpr unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if (!avx512_kernel(Operator::sum, Element::float32) || (ebx & wide) != wide || (saved & zmm) != zmm) return 2;
    return 3;
#else
    return 1;
#endif
}

using KernelTable = std::array<std::array<Kernel, element_count>, operator_count>;

KernelTable best_kernels() {
    KernelTable table{};
    for (std::size_t op = 0; op < operator_count; ++op) {
        for (std::size_t element = 0; element < element_count; ++element) {
            table[op][element] =
                kernel_for(static_cast<Operator>(op), static_cast<Element>(element), instruction_sets().back());
        }
    }
    return table;
}

bool is_rounded(Element element) { return element >= Element::float16 && element <= Element::complex_long_double; }

}  // namespace

ElementBytes bytes_of(Element element) { return row_of(element).bytes; }
std::string_view name_of(Element element) { return row_of(element).name; }
std::string_view name_of(Operator op) { return operators[static_cast<std::size_t>(op)]; }

std::string_view name_of(InstructionSet set) {
    switch (set) {
        case InstructionSet::baseline:
            return "baseline";
        case InstructionSet::avx2:
            return "avx2";
        case InstructionSet::avx512:
            return "avx512";
    }
    return "";
}

std::span<const InstructionSet> instruction_sets() {
    static const std::size_t count = available();
    return std::span(all_sets).first(count);
}

Kernel kernel_for(Operator op, Element element, InstructionSet set) {
    switch (set) {
        case InstructionSet::baseline:
            return baseline_kernel(op, element);
        case InstructionSet::avx2:
            return avx2_kernel(op, element);
        case InstructionSet::avx512:
            return avx512_kernel(op, element);
    }
    return nullptr;
}

Kernel kernel_for(Operator op, Element element) {
    static const KernelTable table = best_kernels();
    return table[static_cast<std::size_t>(op)][static_cast<std::size_t>(element)];
}

bool is_exact(Operator op, Element element) {
    // Floating-point minimum and maximum depend on the order, too: of 0.0 and -0.0, and of NaNs, they keep one.
    if (is_rounded(element)) return false;
    if (op != Operator::minloc && op != Operator::maxloc) return true;
    return element == Element::long_int || element == Element::int_int || element == Element::short_int ||
           element == Element::int64_int64;
}

}  // namespace palmette::kernels
