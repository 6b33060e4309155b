// The communicators of a run.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "rng.hpp"

namespace test {

struct Communicator {
    std::string name;
    MPI_Comm comm;
};

/// Collective over the world. Some ranks may have no part in one (MPI_COMM_NULL). The first is the world.
inline std::vector<Communicator> make_communicators(std::uint64_t seed) {
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<Communicator> result = {{"world", MPI_COMM_WORLD}, {"self", MPI_COMM_SELF}};
    auto add = [&](const char* name, int color, int key) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
        result.push_back({name, comm});
    };
    MPI_Comm dup = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    result.push_back({"dup", dup});
    add("parity", rank % 2, rank);
    add("reversed", 0, -rank);
    std::vector<int> order;
    for (int i = 0; i < size; ++i) order.push_back(i);
    Rng rng(seed, 1U << 30, 0);
    rng.shuffle(order);
    add("shuffled", 0, order[static_cast<std::size_t>(rank)]);
    add("some", order[static_cast<std::size_t>(rank)] % 3 == 0 ? MPI_UNDEFINED : 1, rank);
    return result;
}

inline void free_communicators(std::vector<Communicator>& all) {
    for (Communicator& one : all) {
        if (one.comm != MPI_COMM_NULL && one.name != "world" && one.name != "self") MPI_Comm_free(&one.comm);
    }
}

}  // namespace test
