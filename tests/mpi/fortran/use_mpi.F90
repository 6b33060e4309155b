#define USES use mpi
#define INCLUDES
#define HANDLE(kind) integer
#define STATUS_OF(name) integer :: name(MPI_STATUS_SIZE)
#ifdef MESSAGES
#include "messages.inc"
#else
#include "collectives.inc"
#endif
