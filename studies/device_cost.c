/* What it costs a call on host memory that a GPU's driver may be there: MPI_Allreduce of 8 bytes on MPI_COMM_SELF,
 * which palmette passes on, against PMPI_Allreduce by turns.
 *
 *     device_cost [--driver LIBRARY] [--context] [TURNS]        one process; prints the difference in ns, turn by turn
 *
 * --driver loads a driver library first (a real libcuda.so.1, or that of tests/fakes), --context makes a context,
 * too. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { calls = 20000 };

static double timed(int through_mpi, long* value, long* sum) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i)
        if (through_mpi)
            MPI_Allreduce(value, sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_SELF);
        else
            PMPI_Allreduce(value, sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_SELF);
    return (MPI_Wtime() - begin) / calls * 1e9;
}

static int load(const char* name, int with_context) {
    void* library = dlopen(name, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "device_cost: %s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*retain)(void**, int) = (int (*)(void**, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*set)(void*) = (int (*)(void*))dlsym(library, "cuCtxSetCurrent");
    void* context = NULL;
    if (!with_context) return 0;
    if (!init || !retain || !set || init(0) || retain(&context, 0) || set(context)) {
        fprintf(stderr, "device_cost: %s makes no context\n", name);
        return 1;
    }
    return 0;
}

int main(int argc, char** argv) {
    const char* driver = NULL;
    int turns = 31, with_context = 0;
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--driver") && i + 1 < argc)
            driver = argv[++i];
        else if (!strcmp(argv[i], "--context"))
            with_context = 1;
        else
            turns = atoi(argv[i]);
    }
    MPI_Init(&argc, &argv);
    if (driver && load(driver, with_context)) return 1;
    long value = 1, sum = 0;
    timed(1, &value, &sum);
    for (int turn = 0; turn < turns; ++turn) {
        const double first = timed(turn % 2, &value, &sum), second = timed(1 - turn % 2, &value, &sum);
        printf("%.2f\n", turn % 2 ? first - second : second - first);
    }
    MPI_Finalize();
    return 0;
}
