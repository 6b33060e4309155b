// Persistent collectives whose arrays of counts, displacements and types are gone when they are started: MPI reads them
// when the operation is made. Status 77 where
// the MPI has none.
//
//     lists_gone [--timeout SECONDS]

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "support/background.hpp"
#include "support/outcome.hpp"

using namespace test;

namespace {

int ranks = 1;

/// As many elements for rank `r` as its number plus one.
std::vector<int> counts() {
    std::vector<int> out;
    for (int r = 0; r < ranks; ++r) out.push_back(r + 1);
    return out;
}
std::vector<int> displacements(int unit = 1) {
    std::vector<int> out;
    for (int r = 0, at = 0; r < ranks; at += ++r) out.push_back(at * unit);
    return out;
}
int total() { return ranks * (ranks + 1) / 2; }

/// What a program's memory holds after it has been used for something else.
void spoil(std::vector<int>& list) { list.assign(list.size(), -1234567); }

#ifdef TEST_HAS_PERSISTENT

void run(MPI_Comm comm, Outcome& outcome) {
    const int me = world_rank;
    const auto n = static_cast<std::size_t>(total());
    std::vector<int> count = counts(), at = displacements(), at_bytes = displacements(sizeof(int));
    // To each of alltoall: as many as the receiver's number plus one; from each as many as one's own.
    std::vector<int> mine(static_cast<std::size_t>(ranks), me + 1), mine_at, mine_at_bytes;
    for (int r = 0; r < ranks; ++r) mine_at.push_back(r * (me + 1));
    for (int r = 0; r < ranks; ++r) mine_at_bytes.push_back(r * (me + 1) * static_cast<int>(sizeof(int)));
    std::vector<MPI_Datatype> types(static_cast<std::size_t>(ranks), MPI_INT);
    const auto k = static_cast<std::size_t>(me + 1);
    std::vector<int> own(k), all(n), gathered(n), scattered(k), sums(k), to_all(n), from_all(k * count.size()),
        from_all_w(k * count.size());
    std::vector<MPI_Request> requests(7, MPI_REQUEST_NULL);
    const auto info = MPI_INFO_NULL;
    const auto length = static_cast<int>(k);
    MPI_Allgatherv_init(own.data(), length, MPI_INT, all.data(), count.data(), at.data(), MPI_INT, comm, info,
                        &requests[0]);
    MPI_Gatherv_init(own.data(), length, MPI_INT, gathered.data(), count.data(), at.data(), MPI_INT, ranks - 1, comm,
                     info, &requests[1]);
    MPI_Scatterv_init(to_all.data(), count.data(), at.data(), MPI_INT, scattered.data(), length, MPI_INT, 0, comm, info,
                      &requests[2]);
    MPI_Reduce_scatter_init(to_all.data(), sums.data(), count.data(), MPI_INT, MPI_SUM, comm, info, &requests[3]);
    MPI_Alltoallv_init(to_all.data(), count.data(), at.data(), MPI_INT, from_all.data(), mine.data(), mine_at.data(),
                       MPI_INT, comm, info, &requests[4]);
    MPI_Alltoallw_init(to_all.data(), count.data(), at_bytes.data(), types.data(), from_all_w.data(), mine.data(),
                       mine_at_bytes.data(), types.data(), comm, info, &requests[5]);
    MPI_Allreduce_init(&me, &sums[0], 0, MPI_INT, MPI_SUM, comm, info, &requests[6]);
    for (std::vector<int>* list : {&count, &at, &at_bytes, &mine, &mine_at, &mine_at_bytes}) spoil(*list);
    types.assign(types.size(), MPI_CHAR);
    count = counts();
    at = displacements();
    for (int round = 0; round < 3; ++round) {
        std::snprintf(doing, sizeof doing, "round %d", round);
        const auto value = [&](int from, int to, int i) { return round * 1000000 + from * 10000 + to * 100 + i; };
        for (int i = 0; i <= me; ++i) own[static_cast<std::size_t>(i)] = value(me, 0, i);
        for (int r = 0; r < ranks; ++r)
            for (int i = 0; i <= r; ++i)
                to_all[static_cast<std::size_t>(at[static_cast<std::size_t>(r)] + i)] = value(me, r, i);
        for (MPI_Request& request : requests) MPI_Start(&request);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
        for (int r = 0; r < ranks; ++r)
            for (int i = 0; i <= r; ++i) {
                const auto here = static_cast<std::size_t>(at[static_cast<std::size_t>(r)] + i);
                outcome.check(all[here] == value(r, 0, i), "allgatherv: block %d, element %d is %d", r, i, all[here]);
                if (me == ranks - 1)
                    outcome.check(gathered[here] == value(r, 0, i), "gatherv: block %d, element %d is %d", r, i,
                                  gathered[here]);
            }
        for (int i = 0; i <= me; ++i) {
            const auto here = static_cast<std::size_t>(i);
            int sum = 0;
            for (int r = 0; r < ranks; ++r) sum += value(r, me, i);
            outcome.check(scattered[here] == value(0, me, i), "scatterv: element %d is %d", i, scattered[here]);
            outcome.check(sums[here] == sum, "reduce_scatter: element %d is %d, not %d", i, sums[here], sum);
            for (int r = 0; r < ranks; ++r) {
                const std::size_t block = static_cast<std::size_t>(r) * k + here;
                outcome.check(from_all[block] == value(r, me, i), "alltoallv: block %d, element %d is %d", r, i,
                              from_all[block]);
                outcome.check(from_all_w[block] == value(r, me, i), "alltoallw: block %d, element %d is %d", r, i,
                              from_all_w[block]);
            }
        }
    }
    for (MPI_Request& request : requests) MPI_Request_free(&request);
}

#endif

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#ifdef TEST_HAS_PERSISTENT
    watch(static_cast<unsigned>(option(argc, argv, "--timeout", 60)));
    Outcome outcome;
    run(MPI_COMM_WORLD, outcome);
    const int status = outcome.close(MPI_COMM_WORLD);
#else
    const int status = 77;
#endif
    MPI_Finalize();
    return status;
}
