#include "palmette/aggregate/crc32c.hpp"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#include <nmmintrin.h>
#endif

namespace palmette::aggregate {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? 0x82f63b78U : 0U);
        tables[0][byte] = value;
    }
    for (std::size_t table = 1; table < tables.size(); ++table) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t last = tables[table - 1][byte];
            tables[table][byte] = (last >> 8) ^ tables[0][last & 0xffU];
        }
    }
    return tables;
}
constexpr Tables tables = make_tables();

#ifdef __x86_64__
// Both features: some compilers switch the instruction off by its own name for processors that needn't have it.
__attribute__((target("sse4.2,crc32"))) std::uint32_t by_instruction(const unsigned char* at, std::size_t size,
                                                                     std::uint32_t crc) noexcept {
    std::uint64_t wide = crc;
    for (; size >= sizeof(std::uint64_t); size -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    auto narrow = static_cast<std::uint32_t>(wide);
    for (; size > 0; --size, ++at) narrow = _mm_crc32_u8(narrow, *at);
    return narrow;
}

bool has_instruction() noexcept {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_2) != 0;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(const void* bytes, std::size_t size, std::uint32_t before) noexcept {
    const auto* at = static_cast<const unsigned char*>(bytes);
    std::uint32_t crc = ~before;
    for (; size >= 4; size -= 4, at += 4) {
        crc ^= at[0] | static_cast<std::uint32_t>(at[1]) << 8 | static_cast<std::uint32_t>(at[2]) << 16 |
               static_cast<std::uint32_t>(at[3]) << 24;
        crc = tables[3][crc & 0xffU] ^ tables[2][(crc >> 8) & 0xffU] ^ tables[1][(crc >> 16) & 0xffU] ^
              tables[0][crc >> 24];
    }
    for (; size > 0; --size, ++at) crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xffU];
    return ~crc;
}

std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t before) noexcept {
#ifdef __x86_64__
    static const bool fast = has_instruction();
    if (fast) return ~by_instruction(static_cast<const unsigned char*>(bytes), size, ~before);
#endif
    return crc32c_by_tables(bytes, size, before);
}

}  // namespace palmette::aggregate
