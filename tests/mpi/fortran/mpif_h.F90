#define USES
#define INCLUDES include 'mpif.h'
#define HANDLE(kind) integer
#define STATUS_OF(name) integer :: name(MPI_STATUS_SIZE)
#include "collectives.inc"
