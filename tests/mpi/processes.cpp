// What becomes of recordings in processes that aren't ranks, and where the program switches recording off.
//
//     processes fork | exec | pcontrol
//
// fork: a child, which must not call MPI, leaves by _exit; exec: after MPI_Finalize the process becomes itself with the
// argument `after`. pcontrol: of 30 calls 20 are made while recording is switched off, and of a request the start.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
    const char* const what = argc > 1 ? argv[1] : "";
    if (std::strcmp(what, "after") == 0) {
        std::puts("after");
        return 0;
    }
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (std::strcmp(what, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) {
            // Asks for nothing that needs the MPI, but goes through the recorder's wrapper.
            for (int i = 0; i < 100; ++i) MPI_Initialized(&size);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (status != 0) return 1;
    }
    if (std::strcmp(what, "pcontrol") == 0) {
        char in[2] = {0, 0};
        char byte = 0;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Request other = MPI_REQUEST_NULL;
        for (int i = 0; i < 30; ++i) {
            MPI_Pcontrol(i % 3 == 0 ? 1 : 0);
            MPI_Comm_size(MPI_COMM_WORLD, &size);
        }
        MPI_Irecv(&in[0], 1, MPI_CHAR, rank, 4, MPI_COMM_WORLD, &request);
        MPI_Pcontrol(1);
        MPI_Irecv(&in[1], 1, MPI_CHAR, rank, 3, MPI_COMM_WORLD, &other);
        MPI_Pcontrol(0);
        MPI_Pcontrol(2);
        MPI_Send(&byte, 1, MPI_CHAR, rank, 4, MPI_COMM_WORLD);
        MPI_Send(&byte, 1, MPI_CHAR, rank, 3, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    if (std::strcmp(what, "exec") == 0) execl(argv[0], argv[0], "after", static_cast<char*>(nullptr));
    return 0;
}
