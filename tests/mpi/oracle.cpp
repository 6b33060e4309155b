// Random programs over all functions that the recorder knows, one after the other in one job, and this program's own
// account of them: what a recording, a matrix and every converted file of it must hold.
//
//     oracle PREFIX FIRST COUNT [--threads 1] [--leaves 1] [--only KIND[,KIND...]] [--print 1]
//                                    on at least three ranks
//
// --threads: some have several threads; --leaves: error handlers leave calls for good, by longjmp or an exception.
// Programs are numbered, and drawn from their numbers. Each begins with an MPI_Iprobe whose tag tells which it is. Rank
// r writes its account to PREFIX.r.json (tests/python/mpi/account.py reads them). Status 1: a message wasn't the one
// that it had to be.
#include <mpi.h>

#include <cstdlib>
#include <functional>
#include <string_view>

#include "oracle/collectives.hpp"
#include "oracle/communicators.hpp"
#include "oracle/errors.hpp"
#include "oracle/messages.hpp"
#include "oracle/persistent.hpp"
#include "oracle/surroundings.hpp"

namespace {

using namespace oracle;

struct Step {
    std::string_view kind;
    int weight;
    void (*take)(Run&);
    bool in_threads = true;
};

const std::vector<Step> steps{
    {"message", 8, one_message},
    {"burst", 5, burst},
    {"ready", 1, ready},
    {"both-ways", 2, both_ways},
    {"wild", 2, wild},
    {"cancelled", 1, cancelled},
    {"freed", 1, freed_send},
    {"nobody", 1, to_nobody},
    {"types", 1, own_types},
    {"local", 3, local},
    {"late", 1, late},
    {"complete", 4, complete_some},
    {"persistent", 2, persistent},
    {"freed-persistent", 1, freed_persistent},
#if MPI_VERSION >= 4
    {"partitioned", 1, partitioned},
#endif
    {"collective", 8, collective},
    {"neighbours", 3, over_neighbours},
    {"inter", 2, between_groups},
    {"communicator", 4, make_communicator},
    {"free", 2, free_communicator},
    {"error", 1, error, false},
    {"one-sided", 1, one_sided, false},
    {"off", 1, switched_off, false},
    {"child", 1, child, false},
#if defined(MPI_SESSION_NULL) && MPI_VERSION >= 4
    {"session", 1, session, false},
#endif
#if !defined(ORACLE_WITHOUT_FORTRAN)
    {"fortran", 2, by_fortran, false},
#endif
    {"coroutine", 1, in_coroutine, false},
};

std::vector<const Step*> chosen;

/// Takes a run's steps, and what is to be done before it ends.
void take_steps(Run& run, int count, bool in_thread) {
    int weights = 0;
    for (const Step* const step : chosen)
        if (!in_thread || step->in_threads) weights += step->weight;
    for (int i = 0; i < count && weights > 0; ++i) {
        int drawn = run.rng.below(weights);
        for (const Step* const step : chosen) {
            if (in_thread && !step->in_threads) continue;
            drawn -= step->weight;
            if (drawn >= 0) continue;
            if (printing)
                std::fprintf(stderr, "%d.%d step %s\n", world_rank, run.account.thread,
                             std::string(step->kind).c_str());
            step->take(run);
            break;
        }
    }
    complete_all(run);
    while (run.comms.size() > 1) free_one(run, std::prev(run.comms.end()));
}

constexpr int labels = 400;  ///< of communicators, for each program

/// A communicator of all for a run's own use: WORLD, or a duplicate of it.
void begin(Run& run, MPI_Comm base, int label) {
    Comm& first = run.comms.emplace_back();
    for (int r = 0; r < world_size; ++r) first.members.push_back(r);
    first.handle = base;
    first.label = label;
    first.find_me();
    if (label == 0) first.collectives = Run::on_world;
    {
        const std::lock_guard lock(accounts_mutex);
        Run::known[label] = {first.members, {}};
    }
    if (!run.rng.one_in(3)) return;
    Comm& wild = run.add(first.members);
    wild.is_wild = true;
    makes(run, "MPI_Comm_dup", label, wild, MPI_Comm_dup, base);
}

constexpr int first_tag = 10'000, first_thread_tag = 30'000;  ///< of the calls that tell which program begins

void mark(Account& account, int label, MPI_Comm comm, int tag) {
    int flag = 0;
    made(account, {"MPI_Iprobe", label, 0, 0, tag}, MPI_Iprobe, 0, tag, comm, &flag, MPI_STATUS_IGNORE);
}

bool one_program(int number, Account& account, bool threads) {
    Run run(account, 7, static_cast<std::uint64_t>(number), 10 + (number % 8000) * labels);
    mark(account, 0, MPI_COMM_WORLD, first_tag + number % first_tag);
    begin(run, MPI_COMM_WORLD, 0);
    const int count = run.rng.between(4, 18);
    bool good = true;
    if (threads && run.rng.one_in(6)) {
        good = in_threads(run, number, [&](Run& own, int thread, MPI_Comm base, int label) {
            mark(own.account, label, base, first_thread_tag + thread % first_tag);
            begin(own, base, label);
            take_steps(own, count / 2, true);
        });
        complete_all(run);
        while (run.comms.size() > 1) free_one(run, std::prev(run.comms.end()));
    } else {
        take_steps(run, count, false);
    }
    Run::on_world = run.comms.front().collectives;
    // Everything has arrived before its memory goes.
    PMPI_Barrier(MPI_COMM_WORLD);
    return good && !run.failed;
}

bool choose(std::string_view only) {
    for (const Step& step : steps)
        if (only.empty() ||
            ("," + std::string(only) + ",").find("," + std::string(step.kind) + ",") != std::string::npos)
            chosen.push_back(&step);
    return !chosen.empty();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const auto option = [&](std::string_view name) {
        for (int i = 4; i + 1 < argc; i += 2)
            if (argv[i] == name) return std::string_view(argv[i + 1]);
        return std::string_view();
    };
    printing = !option("--print").empty();
    leaves_calls = !option("--leaves").empty();
    const bool has_threads = !option("--threads").empty();
    Account& account = new_account();
    int provided = 0;
    made(account, {"MPI_Init_thread", none}, MPI_Init_thread, &argc, &argv,
         has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    know_mpi();
    if (world_size < 3 || !choose(option("--only"))) MPI_Abort(MPI_COMM_WORLD, 2);
    constexpr int space = 64 << 20;
    void* const buffered = std::malloc(space);
    PMPI_Buffer_attach(buffered, space);
    make_types();
    make_surroundings();
    bool good = true;
    const int first = std::atoi(argv[2]);
    for (int number = first; number < first + std::atoi(argv[3]); ++number)
        good = one_program(number, account, has_threads && provided == MPI_THREAD_MULTIPLE) && good;
    void* detached = nullptr;
    int size = 0;
    PMPI_Buffer_detach(static_cast<void*>(&detached), &size);
    made(account, {"MPI_Finalize", none}, MPI_Finalize);
    return write(std::string(argv[1]) + "." + std::to_string(world_rank) + ".json", Run::known) && good ? 0 : 1;
}
