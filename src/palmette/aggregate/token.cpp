#include "palmette/aggregate/token.hpp"

#include <sys/stat.h>

#include <charconv>

#include "palmette/base/error.hpp"
#include "palmette/base/files.hpp"

namespace palmette::aggregate {
namespace {

constexpr std::string_view token_version = "palmette-token-1";
constexpr std::size_t least_key_bytes = 32;

template <class T>
bool whole_number(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

std::string read_secret(const std::string& path) {
    struct stat status{};
    const bool known = stat(path.c_str(), &status) == 0;
    // A service's credential has an entry for its user, whose rights then show as those of root's group.
    const mode_t others = S_IRWXO | S_IWGRP | (status.st_gid == 0 ? 0 : S_IRGRP);
    if (known && (status.st_mode & others) != 0) base::fail(path, ": others may read it; chmod 600 ", path);
    return base::read_file(path);
}

}  // namespace

std::string Grant::text() const { return base::cat(token_version, ',', uid, ',', expires_s, ',', groups); }

bool Grant::read(std::string_view text) noexcept {
    if (text.size() > most_token_bytes || !text.starts_with(token_version)) return false;
    text.remove_prefix(token_version.size());
    const std::size_t second = text.find(',', 1);
    if (second == std::string_view::npos || text[0] != ',') return false;
    const std::size_t third = text.find(',', second + 1);
    if (third == std::string_view::npos) return false;
    return whole_number(text.substr(1, second - 1), uid) &&
           whole_number(text.substr(second + 1, third - second - 1), expires_s) &&
           whole_number(text.substr(third + 1), groups);
}

Digest token_key(std::string_view site_key, std::string_view text) noexcept { return hmac(site_key, text); }

Token read_token(const std::string& path) {
    const std::string file = read_secret(path);
    const std::string_view line = base::trim(file);
    const std::size_t colon = line.find(':');
    Token token;
    Grant grant;
    if (colon == std::string_view::npos || !grant.read(line.substr(0, colon)) ||
        !from_hex(line.substr(colon + 1), token.key))
        base::fail(path, ": no token; palmette-aggregator token makes one");
    token.text = line.substr(0, colon);
    return token;
}

std::string read_site_key(const std::string& path) {
    std::string key(base::trim(read_secret(path)));
    if (key.size() < least_key_bytes)
        base::fail(path, ": ", key.size(), " bytes are too short for a key; palmette-aggregator token --new-key ", path,
                   " makes one");
    return key;
}

}  // namespace palmette::aggregate
