// Threads that come and go, and threads at the same time, each with one call: what a recording keeps of them.
//
//     short_threads [--one-by-one N] [--at-once N]
#include <mpi.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

void call() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_SELF, &size);
}

long option(int argc, char** argv, const char* name, long otherwise) {
    for (int i = 1; i + 1 < argc; i += 2)
        if (std::strcmp(argv[i], name) == 0) return std::atol(argv[i + 1]);
    return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (long i = 0; i < option(argc, argv, "--one-by-one", 200); ++i) std::thread(call).join();
    // All have called before the first one ends.
    std::mutex mutex;
    std::condition_variable all;
    const long at_once = option(argc, argv, "--at-once", 0);
    long called = 0;
    std::vector<std::thread> threads;
    for (long i = 0; i < at_once; ++i)
        threads.emplace_back([&] {
            call();
            std::unique_lock lock(mutex);
            if (++called == at_once) all.notify_all();
            all.wait(lock, [&] { return called == at_once; });
        });
    for (std::thread& thread : threads) thread.join();
    MPI_Finalize();
    return 0;
}
