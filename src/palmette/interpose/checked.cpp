// Wrappers of what makes communicators: PALMETTE_CHECK compares their collectives from the first one on.
#include "palmette/interpose/checkable.hpp"
#include "palmette/interpose/wrappers.hpp"

namespace palmette::interpose {
int on_MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) { return made_checkable(next::MPI_Comm_dup(comm, made), made); }

int on_MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
    return made_checkable(next::MPI_Comm_create(comm, group, made), made);
}

int on_MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
    return made_checkable(next::MPI_Comm_create_group(comm, group, tag, made), made);
}

int on_MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
    return made_checkable(next::MPI_Comm_split(comm, color, key, made), made);
}

int on_MPI_Cart_sub(MPI_Comm comm, const int* remains, MPI_Comm* made) {
    return made_checkable(next::MPI_Cart_sub(comm, remains, made), made);
}

int on_MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
    return made_checkable(next::MPI_Intercomm_merge(comm, high, made), made);
}

}  // namespace palmette::interpose
