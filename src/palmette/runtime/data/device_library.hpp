// Whether buffers may lie in a device's memory.
#pragma once

namespace palmette::runtime {

/// Whether the library of a GPU's driver is loaded in this process: CUDA's, HIP's or Level Zero's. Then a buffer may
/// lie where a processor can't read it. Costs less than a microsecond where no library has come since the last time.
bool device_library_is_loaded();

/// Says once in this process, as rank 0 of whatever communicator, that palmette serves nothing because of that.
void tell_of_device_memory(int rank);

}  // namespace palmette::runtime
