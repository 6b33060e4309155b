// FNV-1a (Fowler, Noll, Vo): a 64-bit hash that is the same in every process and build.
#pragma once

#include <cstdint>
#include <string_view>

namespace palmette::base {

inline constexpr std::uint64_t fnv1a_start = 0xcbf29ce484222325U;

/// Continues `hash` with the bytes of `text`.
inline void hash_append(std::uint64_t& hash, std::string_view text) {
    for (const char one : text) hash = (hash ^ static_cast<unsigned char>(one)) * 0x100000001b3U;
}

}  // namespace palmette::base
