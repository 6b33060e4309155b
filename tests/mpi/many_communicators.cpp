// More communicators, and more kinds of calls, than a recording has room for.
//
//     many_communicators made|live|kinds N
//
// made: N times a communicator is made, used and freed; then 20 sums on a last one, to which rank 1 comes 3 ms late.
// live: N are used and kept. kinds: N are used, from 40 places each, with blocks of 12 sizes.
// Prints `expected RANK FUNCTION CALLS BYTES`. Needs two ranks.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

int rank, ranks;
std::map<std::string, std::pair<long, long>> expected;
std::vector<char> out(1 << 14), in(1 << 14);

void count(const char* function, long bytes) {
    ++expected[function].first;
    expected[function].second += bytes;
}

void use(MPI_Comm comm, int bytes) {
    MPI_Alltoall(out.data(), bytes, MPI_CHAR, in.data(), bytes, MPI_CHAR, comm);
    count("MPI_Alltoall", static_cast<long>(bytes) * ranks);
    MPI_Sendrecv(out.data(), bytes, MPI_CHAR, 1 - rank, 0, in.data(), bytes, MPI_CHAR, 1 - rank, 0, comm,
                 MPI_STATUS_IGNORE);
    count("MPI_Sendrecv", bytes);
}

MPI_Comm made() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    count("MPI_Comm_dup", 0);
    return comm;
}

template <int place>
[[gnu::noinline]] void from_place(MPI_Comm comm) {
    for (int size = 0; size < 12; ++size) {
        MPI_Allreduce(out.data(), in.data(), 1 << size, MPI_CHAR, MPI_MAX, comm);
        count("MPI_Allreduce", 1 << size);
    }
    if constexpr (place > 1) from_place<place - 1>(comm);
    asm volatile("" ::: "memory");  // no tail call
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::string what = argv[1];
    const int number = std::atoi(argv[2]);
    std::vector<MPI_Comm> kept;
    for (int i = 0; i < number; ++i) {
        MPI_Comm comm = made();
        if (what == "kinds")
            from_place<40>(comm);
        else
            use(comm, 16);
        if (what != "made") {
            kept.push_back(comm);
            continue;
        }
        MPI_Comm_free(&comm);
        count("MPI_Comm_free", 0);
    }
    if (what == "made") {
        kept.push_back(made());
        for (int i = 0; i < 20; ++i) {
            if (rank == 1) usleep(3000);
            int sum = 0;
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, kept[0]);
            count("MPI_Allreduce", 4);
        }
    }
    std::string text;
    for (const auto& [function, sums] : expected)
        text += "expected " + std::to_string(rank) + " " + function + " " + std::to_string(sums.first) + " " +
                std::to_string(sums.second) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    MPI_Finalize();
    return 0;
}
