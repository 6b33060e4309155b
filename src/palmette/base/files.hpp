// Files that nobody ever sees half of.
#pragma once

#include <string>
#include <string_view>

namespace palmette::base {

/// Writes `text` beside `path` and moves it there in one step; what is no file (a pipe, /dev/stderr) is written to as
/// it is. False where that can't be done: the old file is then as it was.
bool replace_file(const std::string& path, std::string_view text);

}  // namespace palmette::base
