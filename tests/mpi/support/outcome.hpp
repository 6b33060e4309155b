// Counting cases and mistakes, the closing line, and a watchdog that names the case in which a rank is stuck.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace test {

/// What this rank is doing, for the watchdog. A plain buffer: it is read in a signal handler.
inline char doing[768] = "nothing yet";
inline int world_rank = -1;

inline void on_alarm(int) {
    char text[900];
    const int length = std::snprintf(text, sizeof text, "rank %d is stuck in: %s\n", world_rank, doing);
    if (length > 0 && write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) _exit(4);
    _exit(3);
}

/// Ends this process with status 3 when it isn't called again within `seconds`.
inline void watch(unsigned seconds) {
    std::signal(SIGALRM, on_alarm);
    alarm(seconds);
}

/// The word behind `--name` on the command line, or `fallback`.
inline const char* word_option(int argc, char** argv, const char* name, const char* fallback) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
    }
    return fallback;
}

/// Number behind an option of the command line; `fallback` where it isn't given.
inline long option(int argc, char** argv, const char* name, long fallback) {
    const char* const word = word_option(argc, argv, name, nullptr);
    return word ? std::strtol(word, nullptr, 10) : fallback;
}

/// Counts cases and mistakes of this rank.
class Outcome {
  public:
    explicit Outcome(const char* what = "wrong") : what_(what) {}

    /// One case; printf's arguments say which, for the case that it is wrong. Returns `right`.
    __attribute__((format(printf, 3, 4))) bool check(bool right, const char* format, ...) {
        ++cases_;
        if (right) return true;
        ++wrong_;
        if (wrong_ > 10) return false;  // the first mistakes say enough
        char text[3000];
        std::va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        std::fprintf(stderr, "rank %d: %s: %s\n", world_rank, what_, text);
        return false;
    }

    /// Adds what another counter saw.
    void add(const Outcome& other) {
        cases_ += other.cases_;
        wrong_ += other.wrong_;
    }

    /// Collective: rank 0 prints "N cases, M wrong" for all ranks of `comm`. Returns the exit status, equal on all
    /// ranks.
    int close(MPI_Comm comm) {
        long mine[2] = {cases_, wrong_};
        long all[2] = {0, 0};
        PMPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, comm);
        int rank = 0;
        PMPI_Comm_rank(comm, &rank);
        if (rank == 0) print(all[0], all[1]);
        return status(all[0], all[1]);
    }

    /// Collective: rank 0 prints how many mistakes were counted on all ranks, if any; they don't count as ours.
    void tell(const char* what, MPI_Comm comm) const {
        long all = 0;
        PMPI_Allreduce(&wrong_, &all, 1, MPI_LONG, MPI_SUM, comm);
        if (all > 0 && world_rank == 0) std::printf("%ld cases %s\n", all, what);
    }

    /// For programs that end after MPI_Finalize, where ranks can't tell each other. Every rank prints.
    int close_alone() const {
        print(cases_, wrong_);
        return status(cases_, wrong_);
    }

  private:
    static void print(long cases, long wrong) {
        std::printf("%ld cases, %ld wrong\n", cases, wrong);
        std::fflush(stdout);
    }
    static int status(long cases, long wrong) { return wrong == 0 && cases > 0 ? 0 : 1; }

    const char* what_;
    long cases_ = 0;
    long wrong_ = 0;
};

}  // namespace test
