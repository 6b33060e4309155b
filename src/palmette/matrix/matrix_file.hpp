// The file that a run leaves: docs/reference/matrix-file.md.
#pragma once

#include <string>

#include "palmette/matrix/counters.hpp"

namespace palmette::matrix {

/// Collective over MPI_COMM_WORLD. Rank 0 takes one rank's part after the other and writes it on, so that no process
/// holds more than its own part and a megabyte. Where the file can't be written, rank 0 says so on standard error and
/// the run goes on.
void write_file(const std::string& path, const Counters& counters);

}  // namespace palmette::matrix
