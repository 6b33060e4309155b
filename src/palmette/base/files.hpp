// Files: atomic replacement, and defensive reading.
#pragma once

#include <string>
#include <string_view>

namespace palmette::base {

/// Writes `text` to a file next to `path` and renames it atomically; what is no file (a pipe, /dev/stderr) is written
/// to as it is. False where that can't be done: the old file is then as it was.
bool replace_file(const std::string& path, std::string_view text);

/// What is in a file or comes out of a pipe. Throws Error that says what is wrong with it: a folder, a device, a pipe
/// that nothing writes to within a second, more than 256 MiB.
std::string read_file(const std::string& path);

}  // namespace palmette::base
