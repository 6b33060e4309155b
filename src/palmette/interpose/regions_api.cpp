// The functions of palmette.h for regions where nothing is recorded: the recorder, which comes first, has its own.
#include "palmette/interpose/api.hpp"
#include "palmette/interpose/palmette.h"

// What is simulated has both in one program.
#if !defined(PALMETTE_ABI_SMPI)

PALMETTE_API int palmette_region_begin(const char* /*name*/) { return MPI_SUCCESS; }
PALMETTE_API int palmette_region_end(const char* /*name*/) { return MPI_SUCCESS; }

#endif
