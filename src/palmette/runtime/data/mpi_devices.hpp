// Whether the MPI underneath takes buffers in device memory itself.
#pragma once

#include <optional>

#include "palmette/device/driver.hpp"

namespace palmette::runtime {

/// Whether it takes the memory of `driver`'s devices: as the user says, else as it answers to MPIX_Query_cuda_support
/// and the like; an MPI without these doesn't. To be called after MPI_Init. The answers are kept.
bool mpi_takes(const device::Driver& driver);

/// Whether the MPI takes device memory of all drivers that are loaded; true where none is.
bool mpi_takes_devices();

/// What the user says; nothing: the MPI is asked.
void set_mpi_takes_devices(std::optional<bool> takes);

}  // namespace palmette::runtime
