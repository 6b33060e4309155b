/* Sends that aren't all recorded as calls, and count all the same: 10 bytes to the next rank three times, twice of them
   while recording is switched off; 7 bytes twice to the rank before, on a communicator that is freed by then, once
   while it is switched off; 4 bytes to itself from a callback; and 3 bytes to the next rank. */
#include <mpi.h>
#include <stddef.h>

static void sends(void *in, void *inout, int *count, MPI_Datatype *type) {
    int x = 1, y = 0, rank = 0;
    MPI_Request request;
    (void)in, (void)inout, (void)count, (void)type;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(&y, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &request);
    MPI_Send(&x, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void start(MPI_Request *requests) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void exchange(int bytes, int rank, int size, MPI_Comm comm, MPI_Request *requests) {
    static char out[16], in[16];
    MPI_Send_init(out, bytes, MPI_CHAR, (rank + 1) % size, 0, comm, &requests[0]);
    MPI_Recv_init(in, bytes, MPI_CHAR, (rank + size - 1) % size, 0, comm, &requests[1]);
}

int main(int argc, char **argv) {
    int rank, size, falling, x = 1, y = 2;
    char out[3] = "", in[3];
    MPI_Comm comm;
    MPI_Op op;
    MPI_Request upwards[2], downwards[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &falling);

    MPI_Pcontrol(0);
    exchange(10, rank, size, MPI_COMM_WORLD, upwards);
    start(upwards);
    start(upwards);
    MPI_Pcontrol(1);
    start(upwards);
    exchange(7, falling, size, comm, downwards);
    MPI_Comm_free(&comm);
    MPI_Pcontrol(0);
    start(downwards);
    MPI_Request_free(&upwards[0]);
    MPI_Request_free(&upwards[1]);
    MPI_Pcontrol(1);
    start(downwards);
    MPI_Request_free(&downwards[0]);
    MPI_Request_free(&downwards[1]);

    MPI_Op_create(sends, 1, &op);
    MPI_Reduce_local(&x, &y, 1, MPI_INT, op);
    MPI_Op_free(&op);
    MPI_Sendrecv(out, 3, MPI_CHAR, (rank + 1) % size, 1, in, 3, MPI_CHAR, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
