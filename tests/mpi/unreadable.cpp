// Buffers that other processes can't read, although the node's memory is shared and single copies are in use: the data
// comes another way.
//
//     unreadable ordinary|secret [--bytes N] [--rounds N]
//
// ordinary: memory as any; something else refuses. secret: memory of memfd_secret on some ranks, in some rounds. Status
// 77 where the system has none.

#include <mpi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "support/outcome.hpp"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

using namespace test;

namespace {

/// Room for so many integers that nobody but this process, and not even the system, can read. Null where there is no
/// such thing.
int* secret(std::size_t count) {
    const auto bytes = (count * sizeof(int) + 65535) / 65536 * 65536;
    const int file = static_cast<int>(syscall(SYS_memfd_secret, 0));
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? nullptr : static_cast<int*>(at);
}

void add_up(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

class Round {
  public:
    Round(Outcome& outcome, int count, MPI_Op own) : outcome_(outcome), count_(count), own_(own) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
        all_.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(size_));
        more_.resize(all_.size());
        sum_.resize(static_cast<std::size_t>(count));
    }

    void run(int* data, long round) {
        const MPI_Comm world = MPI_COMM_WORLD;
        const int root = static_cast<int>(round) % size_;
        fill(data, rank_ == root ? 17 : -1);
        int code = MPI_Bcast(data, count_, MPI_INT, root, world);
        check(code, same(data, 17), "MPI_Bcast", round);

        fill(data, rank_);
        all_.assign(all_.size(), -1);
        code = MPI_Allgather(data, count_, MPI_INT, all_.data(), count_, MPI_INT, world);
        check(code, all_ranks_are_there(), "MPI_Allgather", round);

        all_.assign(all_.size(), -1);
        code = MPI_Gather(data, count_, MPI_INT, all_.data(), count_, MPI_INT, root, world);
        check(code, rank_ != root || all_ranks_are_there(), "MPI_Gather", round);

        for (const MPI_Op op : {MPI_SUM, own_}) {
            sum_.assign(sum_.size(), -1);
            code = MPI_Allreduce(data, sum_.data(), count_, MPI_INT, op, world);
            check(code, sum_is_right(), "MPI_Allreduce", round);
        }
        sum_.assign(sum_.size(), -1);
        code = MPI_Reduce(data, sum_.data(), count_, MPI_INT, MPI_SUM, root, world);
        check(code, rank_ != root || sum_is_right(), "MPI_Reduce", round);

        for (int r = 0; r < size_; ++r) fill(&more_[static_cast<std::size_t>(r) * sum_.size()], rank_);
        all_.assign(all_.size(), -1);
        code = MPI_Alltoall(more_.data(), count_, MPI_INT, all_.data(), count_, MPI_INT, world);
        check(code, all_ranks_are_there(), "MPI_Alltoall", round);
    }

  private:
    void check(int code, bool right, const char* name, long round) {
        outcome_.check(code == MPI_SUCCESS && right, "%s in round %ld: code %d", name, round, code);
    }
    void fill(int* data, int salt) const {
        for (int i = 0; i < count_; ++i) data[i] = i + salt * 1000;
    }
    bool same(const int* data, int salt) const {
        for (int i = 0; i < count_; ++i)
            if (data[i] != i + salt * 1000) return false;
        return true;
    }
    bool all_ranks_are_there() const {
        for (int r = 0; r < size_; ++r)
            if (!same(&all_[static_cast<std::size_t>(r) * sum_.size()], r)) return false;
        return true;
    }
    bool sum_is_right() const {
        for (int i = 0; i < count_; ++i)
            if (sum_[static_cast<std::size_t>(i)] != size_ * i + size_ * (size_ - 1) / 2 * 1000) return false;
        return true;
    }

    Outcome& outcome_;
    int count_, rank_ = 0, size_ = 1;
    MPI_Op own_;
    std::vector<int> all_, more_, sum_;
};

}  // namespace

int main(int argc, char** argv) {
    const bool hides = argc > 1 && std::strcmp(argv[1], "secret") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    watch(60);
    const int count = static_cast<int>(option(argc, argv, "--bytes", 400000) / static_cast<long>(sizeof(int)));
    std::vector<int> plain(static_cast<std::size_t>(count));
    int* hidden = hides ? secret(plain.size()) : plain.data();
    int everywhere = hidden != nullptr ? 1 : 0;
    PMPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (everywhere == 0) {
        MPI_Finalize();
        return 77;
    }
    MPI_Op own = MPI_OP_NULL;
    MPI_Op_create(add_up, 1, &own);
    Outcome outcome;
    Round round(outcome, count, own);
    for (long r = 0; r < option(argc, argv, "--rounds", 3); ++r) {
        std::snprintf(doing, sizeof doing, "round %ld", r);
        round.run((world_rank + r) % 2 == 0 ? hidden : plain.data(), r);
    }
    MPI_Op_free(&own);
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
