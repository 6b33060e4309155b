#include "palmette/base/text.hpp"

#include <array>

namespace palmette::base {

std::string number_text(double value, int digits) {
    std::array<char, 48> text{};
    char* const end = text.data() + text.size();
    return {text.data(), std::to_chars(text.data(), end, value, std::chars_format::general, digits).ptr};
}

namespace {

/// Bytes of the UTF-8 sequence that begins here; 0 where none does.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80                      ? 1
                               : first >> 5 == 6 && first > 0xc1 ? 2
                               : first >> 4 == 14                ? 3
                               : first >> 3 == 30                ? 4
                                                                 : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if (byte(i) >> 6 != 2) return 0;
    // Surrogates, overlong forms and what is beyond Unicode.
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 ? byte(1) > 0x8f : first > 0xf4) return 0;
    return length;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
    constexpr const char* digits = "0123456789abcdef";
    std::string out;
    std::size_t word = 0;
    bool cut = false;
    while (!text.empty()) {
        const auto first = static_cast<unsigned char>(text[0]);
        const std::size_t length = sequence_length(text);
        const bool space = first == ' ' || first == '\n';
        if (space) word = 0, cut = false;
        if (word >= longest) {
            if (!cut) out += "...";
            cut = true;
        } else if (length == 0 || (first < 0x20 && !space) || first == 0x7f) {
            out += {'\\', 'x', digits[first >> 4], digits[first & 15]};
        } else {
            out += text.substr(0, length);
        }
        word += space ? 0 : 1;
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    if (text.empty()) return parts;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t end = text.find(separator, begin);
        if (end == std::string_view::npos) break;
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    parts.push_back(text.substr(begin));
    return parts;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view space = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(space);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::string wrapped(std::string_view text, std::size_t column) {
    std::string_view rest = text;
    const std::size_t width = 80 - column;
    std::string out;
    while (rest.size() > width) {
        const std::size_t space = rest.rfind(' ', width);
        const bool breaks = space != std::string_view::npos && space > 0;
        out.append(rest.substr(0, breaks ? space : width)).append("\n").append(column, ' ');
        rest.remove_prefix(breaks ? space + 1 : width);
    }
    return out.append(rest).append("\n");
}

}  // namespace palmette::base
