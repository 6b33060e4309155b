// Wrappers of MPI_Init and MPI_Finalize, and of the starts of persistent requests.
#include <cstdlib>
#include <string>
#include <vector>

#include "palmette/matrix/matrix_file.hpp"
#include "palmette/matrix/wrappers.hpp"

/// The interposing library looks for it, to report where PALMETTE_MATRIX is set and no library counts.
extern "C" __attribute__((visibility("default"))) const char palmette_counts_messages = 1;

namespace palmette::matrix {
namespace {

std::string file_name() {
    const char* const path = std::getenv("PALMETTE_MATRIX");
    return path ? path : "";
}

void start() {
    if (!file_name().empty()) Counters::instance().start();
}

}  // namespace

int on_MPI_Init(int* argc, char*** argv) {
    const int code = next::MPI_Init(argc, argv);
    if (code == MPI_SUCCESS) start();
    return code;
}

int on_MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int code = next::MPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS) start();
    return code;
}

int on_MPI_Finalize() {
    if (Counters& counters = Counters::instance(); counters.counting()) {
        counters.stop();
        write_file(file_name(), counters);
    }
    return next::MPI_Finalize();
}

int on_MPI_Start(MPI_Request* request) {
    const Outermost call;
    const int code = next::MPI_Start(request);
    if (code == MPI_SUCCESS && call) Counters::instance().started(*request);
    return code;
}

int on_MPI_Startall(int count, MPI_Request* requests) {
    const Outermost call;
    const int code = next::MPI_Startall(count, requests);
    if (code == MPI_SUCCESS && call)
        for (int i = 0; i < count; ++i) Counters::instance().started(requests[i]);
    return code;
}

int on_MPI_Request_free(MPI_Request* request) {
    const Outermost call;
    if (call && request) Counters::instance().forget(*request);
    return next::MPI_Request_free(request);
}

}  // namespace palmette::matrix
