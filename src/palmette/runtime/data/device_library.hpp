// Detects a loaded GPU driver library: then buffers may be in device memory.
#pragma once

namespace palmette::runtime {

/// Whether the library of a GPU's driver is loaded in this process: CUDA's, HIP's or Level Zero's. Then a buffer may be
/// in memory that the CPU can't read. Costs less than a microsecond where no library has been loaded since the last
/// call.
bool device_library_is_loaded();

/// Warns once per process, on rank 0 of any communicator, that palmette serves nothing for that reason.
void warn_of_device_memory(int rank);

}  // namespace palmette::runtime
