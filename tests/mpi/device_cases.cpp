// Device buffers where arguments are special: inter-communicators, large blocks, aliases, absolute addresses, arguments
// without a meaning, operations of the program's own, threads without a context, communicators freed at once.
//
//     device_cases --driver LIBRARY [--free-communicator 0]

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "support/device.hpp"
#include "support/outcome.hpp"

using namespace test;

namespace {

/// Ints on the device.
class Ints {
  public:
    explicit Ints(std::size_t count, int first = 0, int step = 1) : values_(count) {
        for (std::size_t i = 0; i < count; ++i) values_[i] = first + static_cast<int>(i) * step;
        memory_ = driver->allocate(Driver::Kind::device, count * sizeof(int) + 16);
        driver->write(memory_, values_.data(), count * sizeof(int));
    }
    Ints(const Ints&) = delete;
    Ints& operator=(const Ints&) = delete;
    ~Ints() { driver->release(Driver::Kind::device, memory_, values_.size() * sizeof(int) + 16); }
    int* there(std::size_t from = 0) { return reinterpret_cast<int*>(memory_) + from; }
    const std::vector<int>& back() {
        driver->read(reinterpret_cast<char*>(values_.data()), memory_, values_.size() * sizeof(int));
        return values_;
    }
    bool holds(std::size_t from, std::size_t count, int value) {
        back();
        for (std::size_t i = from; i < from + count; ++i)
            if (values_[i] != value) return false;
        return true;
    }

  private:
    std::vector<int> values_;
    char* memory_;
};

int rank_of(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}
int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

void inter_communicators(Outcome& outcome) {
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    const int side = world_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &half);
    if (MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &inter) != MPI_SUCCESS) return;
    int others = 0;
    MPI_Comm_remote_size(inter, &others);
    const int rank = rank_of(half);
    const int root = side == 0 ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    constexpr std::size_t n = 50;

    Ints data(n, side == 0 && rank == 0 ? 7 : -1, 0);
    MPI_Bcast(data.there(), n, MPI_INT, root, inter);
    outcome.check(data.holds(0, n, side == 1 || rank == 0 ? 7 : -1), "bcast between groups");

    Ints own(n, 10 * side + 1, 0), sum(n, -1, 0);
    MPI_Allreduce(own.there(), sum.there(), n, MPI_INT, MPI_SUM, inter);
    outcome.check(sum.holds(0, n, others * (10 * (1 - side) + 1)), "allreduce between groups");

    Ints reduced(n, -1, 0);
    MPI_Reduce(own.there(), reduced.there(), n, MPI_INT, MPI_SUM, root, inter);
    outcome.check(reduced.holds(0, n, side == 0 && rank == 0 ? others * 11 : -1), "reduce between groups");

    Ints all(n * static_cast<std::size_t>(others), -1, 0), mine(n, rank + 100 * side, 0);
    MPI_Allgather(mine.there(), n, MPI_INT, all.there(), n, MPI_INT, inter);
    bool right = true;
    for (int r = 0; r < others; ++r)
        right = right && all.holds(n * static_cast<std::size_t>(r), n, r + 100 * (1 - side));
    outcome.check(right, "allgather between groups");

    Ints gathered(n * static_cast<std::size_t>(others), -1, 0);
    MPI_Gather(mine.there(), n, MPI_INT, gathered.there(), n, MPI_INT, root, inter);
    right = true;
    for (int r = 0; r < others; ++r)
        right = right && gathered.holds(n * static_cast<std::size_t>(r), n, root == MPI_ROOT ? r + 100 : -1);
    outcome.check(right, "gather between groups");

    Ints from(n * static_cast<std::size_t>(others), rank, 0), to(n * static_cast<std::size_t>(others), -1, 0);
    MPI_Alltoall(from.there(), n, MPI_INT, to.there(), n, MPI_INT, inter);
    right = true;
    for (int r = 0; r < others; ++r) right = right && to.holds(n * static_cast<std::size_t>(r), n, r);
    outcome.check(right, "alltoall between groups");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/// Many pieces, so that copies overlap with the plan; repeated.
void large_blocks(Outcome& outcome, std::size_t count) {
    const int size = size_of(MPI_COMM_WORLD);
    Ints in(count, world_rank), out(count, -1, 0);
    for (int round = 0; round < 2; ++round) {
        MPI_Allreduce(in.there(), out.there(), static_cast<int>(count), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        const std::vector<int>& sum = out.back();
        const int ranks = size * (size - 1) / 2;
        bool right = true;
        for (std::size_t i = 0; i < count; ++i) right = right && sum[i] == ranks + size * static_cast<int>(i);
        outcome.check(right, "allreduce of %zu", count);
    }
    MPI_Allreduce(MPI_IN_PLACE, in.there(), static_cast<int>(count), MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const std::vector<int>& most = in.back();
    bool right = true;
    for (std::size_t i = 0; i < count; ++i) right = right && most[i] == size - 1 + static_cast<int>(i);
    outcome.check(right, "allreduce of %zu in place", count);
    Ints data(count, world_rank == 1 ? 3 : 0);
    MPI_Bcast(data.there(), static_cast<int>(count), MPI_INT, 1, MPI_COMM_WORLD);
    const std::vector<int>& got = data.back();
    right = true;
    for (std::size_t i = 0; i < count; ++i) right = right && got[i] == 3 + static_cast<int>(i);
    outcome.check(right, "bcast of %zu", count);
    const std::size_t each = count / static_cast<std::size_t>(size);
    Ints all(each * static_cast<std::size_t>(size), -1, 0);
    MPI_Allgather(data.there(), static_cast<int>(each), MPI_INT, all.there(), static_cast<int>(each), MPI_INT,
                  MPI_COMM_WORLD);
    right = true;
    const std::vector<int>& gathered = all.back();
    for (std::size_t i = 0; i < gathered.size(); ++i) right = right && gathered[i] == 3 + static_cast<int>(i % each);
    outcome.check(right, "allgather of %zu", each);
}

void no_buffers(Outcome& outcome) {
    // Arguments without a meaning, and none at all.
    Ints data(4, world_rank, 0), sum(4, -1, 0);
    auto* const garbage = reinterpret_cast<void*>(std::uintptr_t{0x1234567});
    MPI_Reduce(data.there(), world_rank == 0 ? static_cast<void*>(sum.there()) : garbage, 4, MPI_INT, MPI_SUM, 0,
               MPI_COMM_WORLD);
    const int size = size_of(MPI_COMM_WORLD);
    outcome.check(sum.holds(0, 4, world_rank == 0 ? size * (size - 1) / 2 : -1), "reduce");
    outcome.check(MPI_Bcast(nullptr, 0, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "no elements");
    MPI_Gather(data.there(), 0, MPI_INT, nullptr, 0, MPI_INT, 0, MPI_COMM_WORLD);
    outcome.check(data.holds(0, 4, world_rank), "gather of nothing");
    // Absolute addresses of the host's, whatever the driver.
    int value = world_rank;
    MPI_Aint address = 0;
    MPI_Get_address(&value, &address);
    MPI_Datatype absolute = MPI_DATATYPE_NULL;
    const int one = 1;
    MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Bcast(MPI_BOTTOM, 1, absolute, 1, MPI_COMM_WORLD);
    outcome.check(value == 1, "bcast of MPI_BOTTOM: %d", value);
    MPI_Type_free(&absolute);
    // One side here, one there.
    int mine = 1, total = 0;
    MPI_Allreduce(&mine, sum.there(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(sum.there(), &total, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    outcome.check(total == size, "from the host and back: %d", total);
}

/// Where an MPI refuses aliases, it refuses them on devices.
void aliases(Outcome& outcome) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    // Open MPI raises this one there.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    std::vector<int> host(10, 1);
    Ints data(10, 1, 0);
    const int on_host = MPI_Allreduce(host.data(), host.data(), 10, MPI_INT, MPI_SUM, comm);
    const int on_device = MPI_Allreduce(data.there(), data.there(), 10, MPI_INT, MPI_SUM, comm);
    outcome.check((on_host == MPI_SUCCESS) == (on_device == MPI_SUCCESS), "aliases: %d on the host, %d on the device",
                  on_host, on_device);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

void add_up(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void own_operation(Outcome& outcome, bool free_communicator) {
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_up, 0, &op);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int size = size_of(comm);
    Ints data(3000, 1, 0), result(3000, 0, 0);
    MPI_Allreduce(data.there(), result.there(), 3000, MPI_INT, op, comm);
    outcome.check(result.holds(0, 3000, size), "an operation of the program's: %d", result.back()[0]);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(data.there(), result.there(), 3000, MPI_INT, op, comm, &request);
    MPI_Op_free(&op);
    if (free_communicator) MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!free_communicator) MPI_Comm_free(&comm);
    outcome.check(result.holds(0, 3000, size), "the same in the background, freed at once");
}

/// A thread that has no context: the buffer's is used.
void another_thread(Outcome& outcome) {
    Ints data(100, world_rank, 0), sum(100, 0, 0);
    std::thread thread([&] { MPI_Allreduce(data.there(), sum.there(), 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
    thread.join();
    const int size = size_of(MPI_COMM_WORLD);
    outcome.check(sum.holds(0, 100, size * (size - 1) / 2), "a thread without a context");
}

/// A buffer without elements may point behind device memory in the same page, or where such memory was before it was
/// freed; what lies there at the next call is a device's.
void empty_buffers(Outcome& outcome) {
    const int size = size_of(MPI_COMM_WORLD);
    const std::vector<int> zeros(static_cast<std::size_t>(size), 0);
    for (const bool freed : {false, true}) {
        char* memory = driver->allocate(Driver::Kind::device, 64);
        if (freed) driver->release(Driver::Kind::device, memory, 64);
        char* const nothing = freed ? memory : memory + 64;
        MPI_Alltoallv(nothing, zeros.data(), zeros.data(), MPI_INT, nullptr, zeros.data(), zeros.data(), MPI_INT,
                      MPI_COMM_WORLD);
        MPI_Bcast(nothing, 0, MPI_INT, 0, MPI_COMM_WORLD);
        if (freed) memory = driver->allocate(Driver::Kind::device, 64);
        int values[2] = {world_rank, -1};
        driver->write(memory, values, sizeof values);
        MPI_Allreduce(memory, memory + 4, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        driver->read(values, memory, sizeof values);
        outcome.check(values[1] == size * (size - 1) / 2, "after an empty buffer %s: %d",
                      freed ? "in freed memory" : "at the end", values[1]);
        driver->release(Driver::Kind::device, memory, 64);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const DriverOptions drivers(argc, argv);
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(100);
    Outcome outcome;
    if (driver) {
        no_buffers(outcome);
        empty_buffers(outcome);
        inter_communicators(outcome);
        aliases(outcome);
        own_operation(outcome, option(argc, argv, "--free-communicator", 1) != 0);
        if (provided >= MPI_THREAD_SERIALIZED) another_thread(outcome);
        for (const std::size_t count : {1000UL, 300000UL, 1500001UL}) large_blocks(outcome, count);
    }
    const int status = outcome.close(MPI_COMM_WORLD);
    MPI_Finalize();
    return status;
}
