// SHA-256 (FIPS 180-4) and HMAC (RFC 2104): the preload links no cryptographic library (docs/decisions/0023).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace palmette::aggregate {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
  public:
    void add(std::string_view bytes) noexcept;
    Digest finish() noexcept;

  private:
    void block(const std::uint8_t* bytes) noexcept;

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, 64> pending_{};
    std::uint64_t size_ = 0;
};

Digest sha256(std::string_view bytes) noexcept;
Digest hmac(std::string_view key, std::string_view message) noexcept;

inline std::string_view view(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Whether two digests are equal, in a time that doesn't depend on where they differ.
bool same_digest(const Digest& one, const Digest& other) noexcept;

std::string hex(std::string_view bytes);
/// The digest of 64 hexadecimal digits; false for any other text.
bool from_hex(std::string_view text, Digest& digest) noexcept;

/// Fills `bytes` from the kernel's generator. False where it has none.
bool fill_random(void* bytes, std::size_t size) noexcept;

}  // namespace palmette::aggregate
