// Words of a shell's command line, for commands that are printed to be pasted.
#pragma once

#include <string>
#include <string_view>

namespace palmette::base {

/// The word as it is typed: in single quotes where a shell would take it for something else.
std::string shell_word(std::string_view text);

}  // namespace palmette::base
