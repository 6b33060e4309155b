#define USES use mpi
#define INCLUDES
#define HANDLE(kind) integer
#define STATUS_OF(name) integer :: name(MPI_STATUS_SIZE)
#include "collectives.inc"
