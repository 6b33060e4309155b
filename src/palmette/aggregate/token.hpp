// Site tokens: who may make groups. A token is a text that says so and a key that only the site can derive from it; the
// key proves the token without crossing the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "palmette/aggregate/sha256.hpp"

namespace palmette::aggregate {

/// "palmette-token-1,uid,expires,groups": `expires` in seconds since 1970, `groups` at the same time on each daemon.
struct Grant {
    std::uint32_t uid = 0;
    std::int64_t expires_s = 0;
    std::uint32_t groups = 0;

    std::string text() const;
    /// False for anything else than what text() makes.
    bool read(std::string_view text) noexcept;
};

struct Token {
    std::string text;  ///< a Grant's
    Digest key{};
};

inline constexpr std::size_t most_token_bytes = 128;

/// HMAC of the grant's text with the site's key.
Digest token_key(std::string_view site_key, std::string_view text) noexcept;

/// The token in a file that `palmette-aggregator token` wrote: "text:key in hexadecimal digits". Throws base::Error,
/// also where others may read the file.
Token read_token(const std::string& path);

/// The site's key: at least 32 bytes, in a file that only its owner may read. Throws base::Error.
std::string read_site_key(const std::string& path);

}  // namespace palmette::aggregate
