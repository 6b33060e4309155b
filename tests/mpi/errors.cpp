// Wrong arguments: the same error class as without a preload, told to the user's own error handler, once, with the
// user's communicator; and collectives go on working afterwards.
//
//     errors [--timeout SECONDS]

#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

#include "support/call.hpp"
#include "support/outcome.hpp"
#include "support/predefined.hpp"
#include "support/simple.hpp"

using namespace test;

namespace {

int told = 0;
bool told_right = false;
MPI_Comm expected = MPI_COMM_NULL;

void on_error(MPI_Comm* comm, int*, ...) {
    ++told;
    told_right = *comm == expected;
}

struct Mistake {
    std::string name;
    std::function<void(Call&)> make;
};

int class_of(int code) {
    int result = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &result);
    return result;
}

/// Mistakes that every rank makes, so that no MPI waits for a rank that gave up.
std::vector<Mistake> mistakes(int size) {
    return {
        {"root -5", [](Call& c) { c.root = -5; }},
        {"root behind the last rank", [size](Call& c) { c.root = size; }},
        {"negative count to send", [](Call& c) { c.sendcount = -1; }},
        {"negative counts on both sides", [](Call& c) { c.sendcount = c.recvcount = -2; }},
        {"no type to send", [](Call& c) { c.sendtype = MPI_DATATYPE_NULL; }},
        {"no types", [](Call& c) { c.sendtype = c.recvtype = MPI_DATATYPE_NULL; }},
        {"no operation", [](Call& c) { c.op = MPI_OP_NULL; }},
        {"an operation that the type doesn't have", [](Call& c) { c.op = MPI_MAXLOC; }},
        {"no communicator", [](Call& c) { c.comm = MPI_COMM_NULL; }},
    };
}

/// Whether a mistake is one in that function: others have nothing to say about it.
bool applies(const Mistake& mistake, Function function) {
    const bool reduces = is_reduction(function);
    const bool one_sided = reduces || function == Function::bcast || function == Function::barrier;
    if (mistake.name.find("root") != std::string::npos) return is_rooted(function);
#ifndef OPEN_MPI
    // MPICH 5.0.2 doesn't look at the counts, types and operations of reductions, and ends in an assertion or worse.
    if (reduces && !is_intel() && mistake.name.find("root") == std::string::npos && mistake.name != "no communicator")
        return false;
#endif
    if (mistake.name.find("operation") != std::string::npos) return reduces;
    if (mistake.name == "no communicator") {
#ifdef OPEN_MPI
        // Open MPI 5.0.11 follows the null pointer before it looks at the communicator.
        return is_gather(function) || is_scatter(function);
#else
        return true;
#endif
    }
    if (function == Function::barrier) return false;
    // In lists of counts and types there is none to spoil.
    if (function == Function::alltoallw || function == Function::alltoallv || function == Function::reduce_scatter)
        return false;
    if (mistake.name == "negative count to send" || mistake.name == "no type to send")
        return !is_scatter(function) && !one_sided;
    return true;
}

void try_all(MPI_Comm comm, const char* handler, bool counted, Outcome& outcome) {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const auto n = static_cast<std::size_t>(size);
    std::vector<int> send(n, 1), recv(n, 2), displs;
    const std::vector<int> counts(n, 1);
    const std::vector<MPI_Datatype> types(n, MPI_INT);
    for (int r = 0; r < size; ++r) displs.push_back(r);
    for (int f = 0; f < function_count; ++f) {
        const auto function = static_cast<Function>(f);
        for (const Mistake& mistake : mistakes(size)) {
            if (!applies(mistake, function)) continue;
            Call call{function, send.data(), 1, MPI_INT, recv.data(), 1, MPI_INT, 0, comm, MPI_SUM};
            call.sendcounts = call.recvcounts = counts.data();
            call.sdispls = call.rdispls = displs.data();
            call.sendtypes = call.recvtypes = types.data();
            mistake.make(call);
            std::snprintf(doing, sizeof doing, "%s of %d with %s, %s", function_names[f], size, mistake.name.c_str(),
                          handler);
            // Without a communicator the error goes to the handler of MPI_COMM_SELF (MPI 4) or of MPI_COMM_WORLD.
            const bool ours = counted && call.comm == comm;
            told = 0;
            const int theirs = class_of(call_pmpi(call));
            const int told_by_mpi = told;
            told = 0;
            told_right = false;
            const int mine = class_of(call_mpi(call));
            outcome.check(mine == theirs, "%s: class %d instead of %d", doing, mine, theirs);
            if (ours && told_by_mpi > 0) {
                outcome.check(told == told_by_mpi, "%s: the handler was called %d times, not %d", doing, told,
                              told_by_mpi);
                outcome.check(told_right, "%s: the handler got another communicator", doing);
            }
        }
    }
    exercise(comm, 5, outcome, "after the mistakes");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 60)));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    Outcome outcome;
    exercise(MPI_COMM_WORLD, 1, outcome, "before any mistake");
    try_all(MPI_COMM_WORLD, "errors returned", false, outcome);
    try_all(MPI_COMM_SELF, "errors returned", false, outcome);

    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    expected = comm;
    try_all(comm, "a handler of the user's", true, outcome);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
