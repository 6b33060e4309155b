// Every blocking collective with random arguments through MPI_ and through PMPI_: every byte of every buffer must be
// what it has to be, those between and around the data included.
//
//     random_arguments [--seed N] [--first N] [--cases N] [--timeout SECONDS] [--alone 1] [--moving-only 1] [--renew N]
//
// With --renew the communicators are made anew after each N cases.
//
// A failure names its seed and case: `--seed S --first C --cases 1` does this one alone, on as many ranks and with the
// same settings. With --alone PMPI_'s collectives aren't called: what must come is known without them, and types may
// differ between ranks in ways that MPIs themselves don't bear.

#include <mpi.h>

#include <cstring>
#include <vector>

#include "support/case.hpp"
#include "support/communicators.hpp"
#include "support/moving.hpp"
#include "support/outcome.hpp"
#include "support/reducing.hpp"

using namespace test;

int main(int argc, char** argv) {
    DriverOptions drivers(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1));
    const long first = option(argc, argv, "--first", 0);
    const long cases = option(argc, argv, "--cases", 200);
    const auto timeout_s = static_cast<unsigned>(option(argc, argv, "--timeout", 60));
    const bool alone = option(argc, argv, "--alone", 0) != 0;
    const long renew = option(argc, argv, "--renew", 0);
    const int functions =
        option(argc, argv, "--moving-only", 0) != 0 ? static_cast<int>(Function::reduce) : function_count;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const std::vector<PredefinedType> types = predefined_types();
    Operations operations{predefined_operands(types), make_own_operations()};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);

    std::vector<Communicator> all = make_communicators(seed);
    Outcome outcome;
    Outcome rival("only the MPI is wrong");
    for (long number = first; number < first + cases; ++number) {
        watch(timeout_s);
        drivers.at(number);
        if (renew > 0 && number > first && (number - first) % renew == 0) {
            free_communicators(all);
            all = make_communicators(seed + static_cast<std::uint64_t>(number));
        }
        Rng choice(seed, static_cast<std::uint64_t>(number), 1U << 20);
        // Half of the cases on the world: most programs use nothing else.
        const Communicator& where = choice.one_in(2) ? all[0] : choice.pick(all);
        auto function = static_cast<Function>(choice.below(functions));
        if (where.comm == MPI_COMM_NULL) continue;
        CaseContext context{seed, number, where.comm};
        MPI_Comm_rank(where.comm, &context.rank);
        MPI_Comm_size(where.comm, &context.size);
        // Open MPI 5.0.11, on one rank, takes alltoallw's displacements for items.
        if (context.size == 1 && function == Function::alltoallw) function = Function::alltoallv;
        context.alone = alone;
        context.plain = !alone && is_intel();
        context.large_counts = !alone;  // where they pass through they would meet the MPI's limits
        std::snprintf(doing, sizeof doing, "seed %llu case %ld: %s on %s (rank %d of %d)",
                      static_cast<unsigned long long>(seed), number, function_names[static_cast<int>(function)],
                      where.name.c_str(), context.rank, context.size);
        if (is_reduction(function)) {
            ReducingCase(context, function, operations).run(outcome, rival);
        } else {
            MovingCase(context, function).run(outcome, rival);
        }
    }
    std::snprintf(doing, sizeof doing, "freeing communicators and MPI_Finalize");
    watch(timeout_s);
    outcome.check(calls_with_another_type == 0, "operations were called %ld times with another type",
                  calls_with_another_type);
    free_own_operations(operations.own);
    free_communicators(all);
    rival.tell("where only the MPI is wrong", MPI_COMM_WORLD);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
