// A program that is linked with palmette: each rank's block to the next one, by hand, an allreduce by name, and
// communicators that follow the machine. Rank 0 prints `right`.
#include <cstdio>
#include <cstdlib>
#include <palmette.hpp>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int wrong = 0;
    {
        palmette::Composition halo(ranks, {.blocks = ranks, .count = 3}, MPI_INT);
        const int field = halo.buffer("field"), ghost = halo.buffer("ghost");
        for (int r = 0; r < ranks; ++r) halo.multicast(r, {(r + 1) % ranks}, field, {r, 1}, ghost);
        const palmette::Plan plan(halo, MPI_COMM_WORLD);
        std::vector<int> mine(3, rank), left(3, -1);
        wrong += plan.buffer_bytes(field) != 12;
        palmette::Run run = plan.bind({mine.data(), left.data()});
        auto sum = palmette::Composition::named("allreduce", ranks, 0, {100}, MPI_DOUBLE, MPI_SUM);
        const palmette::Plan reduction(sum, MPI_COMM_WORLD, "method=ring pipeline=2");
        std::vector<double> x(100, rank + 1.0), y(100, 0.0);
        palmette::Run other = reduction.bind({x.data(), y.data()});
        run.start();
        other.start();
        while (!other.test()) continue;
        run.wait();
        wrong += left[2] != (rank + ranks - 1) % ranks;
        wrong += y[99] != ranks * (ranks + 1) / 2.0;
        // Rank r touches the indices 0 to r; each rank owns one.
        palmette::SparseSum::Request request;
        for (int i = 0; i <= rank; ++i) request.touched.push_back(i);
        request.first = rank, request.end = rank + 1;
        const palmette::SparseSum sparse(request, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        std::vector<int> partial(sparse.partial_rows().size(), 1), own(sparse.own_rows().size());
        const palmette::Plan adding = sparse.sum(), spreading = sparse.spread();
        palmette::Run forth = adding.bind({partial.data(), own.data()});
        palmette::Run back = spreading.bind({partial.data(), own.data()});
        forth.start();
        forth.wait();
        wrong += own.size() != 1 || own[0] != ranks - rank;
        back.start();
        back.wait();
        for (std::size_t i = 0; i < partial.size(); ++i)
            wrong += partial[i] != ranks - static_cast<int>(sparse.partial_rows()[i]);
        // To the next rank, which doesn't know: rank + 1 elements.
        const std::vector<int> next(static_cast<std::size_t>(rank) + 1, 100 + rank);
        const auto came = palmette::exchange<int>({(rank + 1) % ranks}, {rank + 1}, next, MPI_INT, MPI_COMM_WORLD);
        const int before = (rank + ranks - 1) % ranks;
        wrong += came.from != std::vector<int>{before} || came.counts[0] != before + 1 ||
                 came.data != std::vector<int>(static_cast<std::size_t>(before) + 1, 100 + before);
        try {
            palmette::exchange<int>({0}, {rank}, next, MPI_INT, MPI_COMM_WORLD);
            ++wrong;
        } catch (const palmette::Error& error) {
            wrong += std::string(error.what()).find("count is -1") == std::string::npos;
        }
        try {
            palmette::Plan(halo, MPI_COMM_WORLD, "method=star");
            ++wrong;
        } catch (const palmette::Error& error) {
            wrong += std::string(error.what()).find("star") == std::string::npos || error.code() == MPI_SUCCESS;
        }
    }
    {
        int number = -1, members = 0;
        palmette::Split host = palmette::comm_split(MPI_COMM_WORLD, "host", -rank);
        MPI_Comm_rank(host.group, &number);
        MPI_Comm_size(host.group, &members);
        wrong += members != ranks || number != ranks - 1 - rank;
        wrong += (host.leaders != MPI_COMM_NULL) != (number == 0);
        if (host.leaders != MPI_COMM_NULL) MPI_Comm_free(&host.leaders);
        MPI_Comm_free(&host.group);
        // On a line, in the order 0, ranks - 1, ..., 1.
        std::vector<double> far;
        for (int a = 0; a < ranks; ++a)
            for (int b = 0; b < ranks; ++b) far.push_back(std::abs((ranks - a) % ranks - (ranks - b) % ranks));
        MPI_Comm greedy = palmette::reorder(MPI_COMM_WORLD, "greedy", rank == 0 ? far : std::vector<double>());
        MPI_Comm_rank(greedy, &number);
        wrong += number != (ranks - rank) % ranks;
        MPI_Comm_free(&greedy);
        const std::vector<double> seconds = palmette::distances(MPI_COMM_WORLD, 100);
        wrong += seconds.size() != (rank == 0 ? far.size() : 0);
        MPI_Comm ring = palmette::reorder(MPI_COMM_WORLD, "ring", seconds);
        MPI_Comm_free(&ring);
        try {
            palmette::reorder(MPI_COMM_WORLD, "ring", std::vector<double>(2, 1.0));
            ++wrong;
        } catch (const palmette::Error& error) {
            wrong += error.code() != MPI_ERR_ARG;
        }
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) std::puts(all == 0 ? "right" : "wrong");
    MPI_Finalize();
    return all != 0;
}
