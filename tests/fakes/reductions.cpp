// palmette's kernels, by their names, in C++.
#include <array>
#include <cstdint>
#include <cstring>

#include "driver.hpp"

namespace fake {
namespace {

/// Binary16 by the definition of its format.
float from_f16(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 0x1f;
    const std::uint32_t fraction = bits & 0x3ffU;
    std::uint32_t wide = 0;
    if (exponent == 31) {
        wide = 0x7f800000U | (fraction << 13);
    } else if (exponent > 0) {
        wide = (static_cast<std::uint32_t>(exponent + 112) << 23) | (fraction << 13);
    } else {
        const float small = static_cast<float>(fraction) / 16777216.0F;  // 2^-24
        std::memcpy(&wide, &small, sizeof wide);
    }
    wide |= static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

std::uint16_t to_f16(float value) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof wide);
    const auto sign = static_cast<std::uint16_t>((wide >> 16) & 0x8000U);
    const std::uint32_t fraction = wide & 0x7fffffU;
    const int exponent = static_cast<int>((wide >> 23) & 0xffU) - 127;
    if (exponent == 128 && fraction != 0) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (exponent > 15) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (exponent < -25) return sign;
    // All bits of the significand, of which `drop` go.
    const std::uint32_t significand = fraction | 0x800000U;
    const int drop = exponent >= -14 ? 13 : 13 + (-14 - exponent);
    std::uint32_t kept = significand >> drop;
    const std::uint32_t rest = significand & ((1U << drop) - 1U), half = 1U << (drop - 1);
    if (rest > half || (rest == half && (kept & 1U) != 0)) ++kept;
    // A carry goes into the exponent, as it must.
    if (exponent >= -14) kept += static_cast<std::uint32_t>(exponent + 14) << 10;
    return static_cast<std::uint16_t>(sign | kept);
}

float from_bf16(std::uint16_t bits) {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

std::uint16_t to_bf16(float value) {
    std::uint32_t wide = 0;
    std::memcpy(&wide, &value, sizeof wide);
    if ((wide & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((wide >> 16) | 0x40U);
    const std::uint32_t rest = wide & 0xffffU;
    wide >>= 16;
    if (rest > 0x8000U || (rest == 0x8000U && (wide & 1U) != 0)) ++wide;
    return static_cast<std::uint16_t>(wide);
}

enum Operation { sum, prod, min, max, band, bor, bxor };
constexpr std::array<const char*, 7> operations{"sum", "prod", "min", "max", "band", "bor", "bxor"};
constexpr std::array<const char*, 12> types{"f32", "f64", "f16", "bf16", "i8",  "u8",
                                            "i16", "u16", "i32", "u32",  "i64", "u64"};
constexpr std::array<std::size_t, 12> sizes{4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8};

bool parse(const std::string& name, int& operation, int& type) {
    const std::string prefix = "palmette_";
    const std::size_t last = name.rfind('_');
    if (name.rfind(prefix, 0) != 0 || last < prefix.size()) return false;
    const std::string op = name.substr(prefix.size(), last - prefix.size()), element = name.substr(last + 1);
    operation = type = -1;
    for (std::size_t i = 0; i < operations.size(); ++i) {
        if (op == operations[i]) operation = static_cast<int>(i);
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (element == types[i]) type = static_cast<int>(i);
    }
    return operation >= 0 && type >= 0 && (operation < band || type >= 4);
}

template <class T>
T of(int operation, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;  // wraps around
        switch (operation) {
            case sum:
                return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
            case prod:
                return static_cast<T>(std::uint64_t{static_cast<U>(a)} * static_cast<U>(b));
            case band:
                return static_cast<T>(a & b);
            case bor:
                return static_cast<T>(a | b);
            case bxor:
                return static_cast<T>(a ^ b);
            default:
                break;
        }
    }
    if (operation == sum) return static_cast<T>(a + b);
    if (operation == prod) return static_cast<T>(a * b);
    if (operation == min) return a < b ? a : b;
    return a > b ? a : b;
}

template <class T>
void each(int operation, const void* left, const void* right, void* target, std::size_t count) {
    for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) {  // buffers needn't be aligned
        T a, b;
        std::memcpy(&a, static_cast<const char*>(left) + i, sizeof a);
        std::memcpy(&b, static_cast<const char*>(right) + i, sizeof b);
        a = of<T>(operation, a, b);
        std::memcpy(static_cast<char*>(target) + i, &a, sizeof a);
    }
}

template <float (*From)(std::uint16_t), std::uint16_t (*To)(float)>
void each_half(int operation, const void* left, const void* right, void* target, std::size_t count) {
    for (std::size_t i = 0; i < count * 2; i += 2) {
        std::uint16_t a, b;
        std::memcpy(&a, static_cast<const char*>(left) + i, sizeof a);
        std::memcpy(&b, static_cast<const char*>(right) + i, sizeof b);
        a = To(of<float>(operation, From(a), From(b)));
        std::memcpy(static_cast<char*>(target) + i, &a, sizeof a);
    }
}

}  // namespace

bool has_kernel(const std::string& name) {
    int operation, type;
    return parse(name, operation, type);
}

std::size_t kernel_element(const std::string& name) {
    int operation, type;
    return parse(name, operation, type) ? sizes[static_cast<std::size_t>(type)] : 0;
}

bool reduce(const std::string& name, const void* left, const void* right, void* target, std::size_t count) {
    int operation, type;
    if (!parse(name, operation, type)) return false;
    using Each = void (*)(int, const void*, const void*, void*, std::size_t);
    constexpr std::array<Each, 12> of_type{
        each<float>,        each<double>,        each_half<from_f16, to_f16>, each_half<from_bf16, to_bf16>,
        each<std::int8_t>,  each<std::uint8_t>,  each<std::int16_t>,          each<std::uint16_t>,
        each<std::int32_t>, each<std::uint32_t>, each<std::int64_t>,          each<std::uint64_t>};
    of_type[static_cast<std::size_t>(type)](operation, left, right, target, count);
    return true;
}

}  // namespace fake

/// For the fake NCCL: target[i] = left[i] op right[i] on memory of the host, by the name of a kernel.
FAKE_API int fake_cuda_reduce(const char* kernel, const void* left, const void* right, void* target,
                              std::size_t count) {
    return fake::reduce(kernel, left, right, target, count) ? 1 : 0;
}
