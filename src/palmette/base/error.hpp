// Errors carry where something is wrong, what was expected and what to do about it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "palmette/base/text.hpp"

namespace palmette::base {

/// Wrong input from a user or a file. The text names the place (file, line, rank, argument) and the way out. Never
/// crosses an MPI_* boundary: the runtime turns an Error into a counted fallback.
class Error : public std::runtime_error {
  public:
    /// What it names of the input may be anything.
    explicit Error(std::string_view text) : std::runtime_error(printable(text)) {}
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    throw Error(cat(parts...));
}

}  // namespace palmette::base
