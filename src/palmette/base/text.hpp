// Small text helpers, since std::format is not in every C++20 compiler that we build with.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace palmette::base {

/// Joins anything that a stream can print: cat("rank ", 3, " of ", p).
template <class... Parts>
std::string cat(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

/// Splits at every `separator`; an empty text gives no parts, empty parts between separators are kept.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Text without white space at its ends.
std::string_view trim(std::string_view text);

}  // namespace palmette::base
