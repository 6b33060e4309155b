// Collectives and MPI_Finalize when main has returned already: in the destructor of a global object, or in a function
// of atexit.
//
//     after_main destructor|atexit

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/outcome.hpp"

using namespace test;

namespace {

const char* when = "";

void add_up(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

/// Everything that keeps something between calls: tables of algorithms and operations, plans, rooms of a thread, what
/// runs in the background.
void collectives(Outcome& outcome) {
    int rank = 0, size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int sum_of_ranks = size * (size - 1) / 2;
    MPI_Comm fresh = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    MPI_Op own = MPI_OP_NULL;
    MPI_Op_create(add_up, 1, &own);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, fresh}) {
        for (const MPI_Op op : {MPI_SUM, own}) {
            int sum = 0;
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, comm);
            outcome.check(sum == sum_of_ranks, "MPI_Allreduce %s: %d", when, sum);
        }
        struct {
            double value;
            int index;
        } in{static_cast<double>(rank), rank}, most{0, 0};
        MPI_Allreduce(&in, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
        outcome.check(most.index == size - 1, "MPI_MAXLOC %s: %d", when, most.index);
        std::vector<int> to(static_cast<std::size_t>(size), rank), from(to.size(), -1);
        MPI_Alltoall(to.data(), 1, MPI_INT, from.data(), 1, MPI_INT, comm);
        int sum = 0;
        for (const int value : from) sum += value;
        outcome.check(sum == sum_of_ranks, "MPI_Alltoall %s: %d", when, sum);
        MPI_Datatype apart = MPI_DATATYPE_NULL;
        MPI_Type_vector(50, 1, 2, MPI_INT, &apart);
        MPI_Type_commit(&apart);
        std::vector<int> data(100, rank == 0 ? 5 : 0);
        MPI_Bcast(data.data(), 1, apart, 0, comm);
        outcome.check(data.front() == 5 && data[98] == 5, "MPI_Bcast %s", when);
        MPI_Request request = MPI_REQUEST_NULL;
        data.assign(100, rank == 0 ? 7 : 0);
        MPI_Ibcast(data.data(), 1, apart, 0, comm, &request);
        MPI_Type_free(&apart);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        outcome.check(data.front() == 7 && data[98] == 7, "MPI_Ibcast %s", when);
    }
    MPI_Op_free(&own);
    MPI_Comm_free(&fresh);
}

void last() {
    Outcome outcome;
    collectives(outcome);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    if (status != 0) _exit(status);
}

/// Made before anything of the library's, so it goes after all of that.
struct Global {
    ~Global() {
        if (std::strcmp(when, "destructor") == 0) last();
    }
} global;

}  // namespace

int main(int argc, char** argv) {
    when = argc > 1 ? argv[1] : "destructor";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    if (std::strcmp(when, "atexit") == 0) std::atexit(last);
    Outcome outcome;
    collectives(outcome);
    return 0;
}
