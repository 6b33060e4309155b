#define USES use mpi_f08
#define INCLUDES
#define HANDLE(kind) type(kind)
#define STATUS_OF(name) type(MPI_Status) :: name
#define POINTERS
#ifdef MESSAGES
#include "messages.inc"
#else
#include "collectives.inc"
#endif
