// Detects the library of a GPU whose memory palmette can't stage: then buffers may be in it.
#pragma once

namespace palmette::runtime {

/// Whether Level Zero is loaded in this process. Then a buffer may be in memory that the CPU can't read, and palmette
/// can't either (those of CUDA and HIP: on_device.hpp). Costs less than a microsecond where no library has been loaded
/// since the last call.
bool device_library_is_loaded();

/// Warns once per process, on rank 0 of any communicator, that palmette serves nothing for that reason.
void warn_of_device_memory(int rank);

}  // namespace palmette::runtime
