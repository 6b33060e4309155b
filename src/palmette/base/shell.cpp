#include "palmette/base/shell.hpp"

namespace palmette::base {

std::string shell_word(std::string_view text) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
    std::string out = "'";
    for (const char letter : text) out += letter == '\'' ? std::string("'\"'\"'") : std::string(1, letter);
    return out + "'";
}

}  // namespace palmette::base
