// Files: written so that nobody ever sees half of one, read so that nothing in them harms.
#pragma once

#include <string>
#include <string_view>

namespace palmette::base {

/// Writes `text` beside `path` and moves it there in one step; what is no file (a pipe, /dev/stderr) is written to as
/// it is. False where that can't be done: the old file is then as it was.
bool replace_file(const std::string& path, std::string_view text);

/// What is in a file or comes out of a pipe. Throws Error that says what is wrong with it: a folder, a device, a pipe
/// that nothing writes to within a second, more than 256 MiB.
std::string read_file(const std::string& path);

}  // namespace palmette::base
