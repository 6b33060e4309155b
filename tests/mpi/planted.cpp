// Programs with one known trouble each, for what `palmette report DIR` finds.
//
//     planted (late-rank | late-sender | late-root | early-root | nonblocking | balanced | turns) FILE
//
// Rank 1 is the late one, 6 times: it sleeps for 60 ms after all others have said in FILE, which all map, that they are
// about to call.
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace {

int rank = 0;
int ranks = 1;

std::atomic<int>* there = nullptr;
int rounds_done = 0;

/// All but the late one come first, however busy the machine is.
void sleep_if(bool late) {
    ++rounds_done;
    if (!late) {
        there->fetch_add(1);
        return;
    }
    while (there->load() < rounds_done * (ranks - 1)) sched_yield();
    usleep(60000);
}

void late_rank() {
    sleep_if(rank == 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

void late_sender() {
    char byte = 0;
    sleep_if(rank == 1);
    if (rank == 1) MPI_Send(&byte, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&byte, 1, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void late_root() {
    double value = 0;
    sleep_if(rank == 1);
    MPI_Bcast(&value, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
}

void early_root() {
    double value = 0;
    double sum = 0;
    sleep_if(rank == 1);
    MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}

void nonblocking() {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    char in = 0;
    char out = 0;
    if (rank == 0) MPI_Irecv(&in, 1, MPI_CHAR, 1, 4, MPI_COMM_WORLD, &requests[0]);
    sleep_if(rank == 1);
    if (rank == 1) MPI_Isend(&out, 1, MPI_CHAR, 0, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void turns(int round) {
    double value = 0;
    double sum = 0;
    sleep_if(rank == round % ranks);
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void balanced() {
    usleep(60000);
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    const char* const what = argc > 1 ? argv[1] : "";
    const int file = argc > 2 ? open(argv[2], O_RDWR | O_CREAT, 0644) : -1;
    if (file < 0 || ftruncate(file, 4096) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 2);
    there = static_cast<std::atomic<int>*>(memory);
    const auto is = [&](const char* name) { return std::strcmp(what, name) == 0; };
    for (int round = 0; round < 6; ++round) {
        if (is("late-rank")) late_rank();
        if (is("late-sender")) late_sender();
        if (is("late-root")) late_root();
        if (is("early-root")) early_root();
        if (is("nonblocking")) nonblocking();
        if (is("turns")) turns(round);
        if (is("balanced")) balanced();
    }
    MPI_Finalize();
    return 0;
}
