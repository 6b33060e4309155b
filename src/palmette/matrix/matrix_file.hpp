// Writes the communication matrix to a file: docs/reference/matrix-file.md.
#pragma once

#include <string>

#include "palmette/matrix/counters.hpp"

namespace palmette::matrix {

/// After MPI_Init: begins to count where PALMETTE_MATRIX names a file.
void start();
/// Before MPI_Finalize, collective over MPI_COMM_WORLD where `start` began to count: writes the file.
void finish();

/// Collective over MPI_COMM_WORLD. Rank 0 receives one rank's part after the other and writes it, so that no process
/// holds more than its own part and a megabyte. Where the file can't be written, rank 0 reports it on standard error
/// and the run continues.
void write_file(const std::string& path, const Counters& counters);

}  // namespace palmette::matrix
