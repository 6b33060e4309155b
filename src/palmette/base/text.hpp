// Small text helpers, since std::format is not in every C++20 compiler that we build with.
#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace palmette::base {

/// A number with `digits` significant digits and a point, whatever locale a program has set.
std::string number_text(double value, int digits = 6);

namespace detail {

template <class Part>
void append(std::string& text, const Part& part) {
    if constexpr (std::convertible_to<const Part&, std::string_view>) {
        text += std::string_view(part);
    } else if constexpr (std::is_floating_point_v<Part>) {
        text += number_text(static_cast<double>(part));
    } else if constexpr (std::is_integral_v<Part> && sizeof(Part) > 1) {
        char digits[std::numeric_limits<Part>::digits10 + 2];
        text.append(digits, std::to_chars(digits, digits + sizeof digits, part).ptr);
    } else {
        std::ostringstream out;
        out << part;
        text += out.str();
    }
}

}  // namespace detail

/// Sanitises untrusted text for printing: control characters and bytes that are no UTF-8 as \xNN, words of more than
/// `longest` bytes cut.
std::string printable(std::string_view text, std::size_t longest = 400);

/// Text that begins in `column` of a page of 80 columns, in lines that all begin there; ends with a line feed.
std::string wrapped(std::string_view text, std::size_t column);

/// Joins anything that a stream can print, as it would: cat("rank ", 3, " of ", p). Cheap for texts and numbers, since
/// the runtime composes reasons with it.
template <class... Parts>
std::string cat(const Parts&... parts) {
    std::string text;
    (detail::append(text, parts), ...);
    return text;
}

/// Splits at every `separator`; an empty text gives no parts, empty parts between separators are kept.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Text without white space at its ends.
std::string_view trim(std::string_view text);

}  // namespace palmette::base
