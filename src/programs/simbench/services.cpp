#include "services.h"

#include "palmette/interpose/guard.hpp"
#include "palmette/runtime/serve/serve.hpp"
#include "palmette/runtime/transport/simulated_services.hpp"

using namespace palmette;

extern "C" void set_services(int count) { runtime::simulated_services = count; }

extern "C" int serve_allreduce(int elements) {
    const interpose::Guard guard;
    // Its program has neither input nor result.
    const runtime::Side nothing = runtime::Side::alike(nullptr, elements, MPI_UNSIGNED);
    return runtime::serve({select::Function::allreduce, true, MPI_COMM_WORLD, nothing, nothing, MPI_SUM, 0})
        .value_or(MPI_SUCCESS);
}
